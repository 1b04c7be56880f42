"""Auto-scaled pools: formulas run as they stand, on what the service has sampled."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

import pytest
from azure.batch import BatchClient, models
from azure.core.exceptions import HttpResponseError, ResourceExistsError

from local.batch import World, control
from local.batch.config import WorldFileError
from tests.batch_emulator.formulas import on_active_tasks, on_pending_tasks
from tests.batch_emulator.support import POOL, act, make_client, make_job, make_task, refusal, runner_of, states

_MINUTE = 60.0
_CONSTANT = "$TargetLowPriorityNodes = 2;"


def _world(formula: str, interval_seconds: float = 300, slots: int = 1, **keys: Any) -> World:
    pool = {
        "id": POOL,
        "taskSlotsPerNode": slots,
        "start_seconds": 0,
        "return_after_seconds": None,
        "autoscale": {"formula": formula, "interval_seconds": interval_seconds},
    }
    return World.from_json({"pools": [pool], **keys})


def _submit(client: BatchClient, number: int, job_id: str = "job") -> None:
    make_job(client, job_id)
    for index in range(number):
        make_task(client, f"t{index}", job_id)


def _run(client: BatchClient) -> models.AutoScaleRun:
    run = client.get_pool(POOL).auto_scale_run
    assert run
    return run


def _target(client: BatchClient) -> int | None:
    return client.get_pool(POOL).target_low_priority_nodes


def _evaluate(client: BatchClient, formula: str) -> models.AutoScaleRun:
    return client.evaluate_pool_auto_scale(POOL, models.BatchPoolEvaluateAutoScaleOptions(auto_scale_formula=formula))


def test_a_pool_of_the_world_file_begins_with_what_its_formula_says() -> None:
    client = make_client(_world("$TargetDedicatedNodes = 1; $TargetLowPriorityNodes = 2;"))

    pool = client.get_pool(POOL)

    assert (pool.current_dedicated_nodes, pool.current_low_priority_nodes) == (1, 2)
    assert pool.allocation_state == models.AllocationState.STEADY
    assert pool.auto_scale_evaluation_interval == timedelta(minutes=5)


def test_several_pools_scale_side_by_side() -> None:
    pools = [{"id": f"p{number}", "autoscale": {"formula": f"$TargetDedicatedNodes = {number};"}} for number in (1, 2)]
    client = make_client(World.from_json({"pools": pools}))

    assert [pool.target_dedicated_nodes for pool in client.list_pools()] == [1, 2]


def test_a_created_pool_is_resized_to_what_its_formula_says(client: BatchClient, world: World) -> None:
    client.create_pool(
        models.BatchPoolCreateOptions(
            id="new",
            vm_size="standard_d2s_v3",
            enable_auto_scale=True,
            auto_scale_formula="$TargetDedicatedNodes = 3.9;",
            auto_scale_evaluation_interval=timedelta(minutes=6),
        )
    )

    assert client.get_pool("new").allocation_state == models.AllocationState.RESIZING
    world.advance(1)
    pool = client.get_pool("new")
    assert (pool.target_dedicated_nodes, pool.current_dedicated_nodes) == (3, 3)
    assert pool.auto_scale_run
    assert pool.auto_scale_run.results == (
        "$TargetDedicatedNodes=3;$TargetLowPriorityNodes=0;$NodeDeallocationOption=requeue"
    )
    assert len(world.events.select("autoscale", pool="new")) == 1
    world.advance(6 * _MINUTE)
    assert len(world.events.select("autoscale", pool="new")) == 2


def test_samples_are_taken_every_half_minute_and_seen_a_minute_later() -> None:
    world = _world(on_pending_tasks(9))
    client = make_client(world)
    _submit(client, 2)

    def seen(expression: str) -> str:
        results = _evaluate(client, f"x = {expression};").results
        assert results
        return results.partition("$x=")[2]

    for seconds, count, percent in ((89, "0", "0"), (1, "1", "25"), (29, "1", "25"), (1, "2", "50")):
        world.advance(seconds)
        assert seen("$PendingTasks.Count()") == count
        assert seen("$PendingTasks.GetSamplePercent(2 * TimeInterval_Minute)") == percent
    assert seen("$ActiveTasks.GetSample(2)") == "[2,2]"
    assert seen("$RunningTasks.GetSample(1)") == "[0]"


def test_every_metric_of_tasks_and_nodes() -> None:
    world = _world("$TargetLowPriorityNodes = 3; $TargetDedicatedNodes = 1;", slots=2)
    client = make_client(world)
    _submit(client, 10)
    runner_of(world).finish("job", "t0", 0)
    runner_of(world).finish("job", "t1", 1)
    control.preempt_node(world, POOL)
    world.advance(120)

    shown = _evaluate(
        client,
        """
        active = val($ActiveTasks.GetSample(1), 0); running = val($RunningTasks.GetSample(1), 0);
        pending = val($PendingTasks.GetSample(1), 0);
        succeeded = val($SucceededTasks.GetSample(1), 0); failed = val($FailedTasks.GetSample(1), 0);
        dedicated = $CurrentDedicatedNodes; spot = $CurrentLowPriorityNodes; lost = $PreemptedNodeCount;
        usable = $UsableNodeCount; all = $SampleNodeCount; slots = $TaskSlotsPerNode;
        """,
    ).results

    assert shown
    assert shown.split(";")[3:] == [
        *("$active=2", "$all=4", "$dedicated=1", "$failed=1", "$lost=1", "$pending=8", "$running=6"),
        *("$slots=2", "$spot=3", "$succeeded=1", "$usable=3"),
    ]


def test_tasks_of_a_disabled_job_are_not_ready_to_run() -> None:
    world = _world("$TargetLowPriorityNodes = 0;")
    client = make_client(world)
    _submit(client, 3)
    act(client, "/jobs/job/disable", {"disableTasks": "requeue"})
    world.advance(120)

    results = _evaluate(client, "x = $ActiveTasks.GetSample(1);").results
    assert results and results.endswith("$x=[0]")


def test_the_pool_follows_its_tasks_and_goes_to_zero() -> None:
    world = _world(on_pending_tasks(4))
    client = make_client(world)
    _submit(client, 6)

    world.advance(5 * _MINUTE + 1)
    assert (_target(client), list(states(client).values()).count("running")) == (4, 4)
    for index in range(4):
        runner_of(world).finish("job", f"t{index}")
    world.advance(10 * _MINUTE)
    assert _target(client) == 2
    for index in (4, 5):
        runner_of(world).finish("job", f"t{index}")
    world.advance(15 * _MINUTE)
    assert _target(client) == 0
    assert client.get_pool(POOL).current_low_priority_nodes == 0


def test_slots_are_counted() -> None:
    world = _world(on_pending_tasks(4), slots=4)
    client = make_client(world)
    _submit(client, 5)

    world.advance(5 * _MINUTE + 1)

    assert _target(client) == 2
    assert list(states(client).values()) == ["running"] * 5


def test_formulas_on_active_tasks_forget_what_runs() -> None:
    """Once the queue is empty the pool is told to go, whatever runs; only `taskcompletion` saves the task, and until
    it ends the pool takes no newcomer."""
    world = _world(on_active_tasks(4))
    client = make_client(world)
    _submit(client, 1)
    world.advance(5 * _MINUTE + 1)
    assert states(client) == {"t0": "running"}

    world.advance(20 * _MINUTE)
    pool = client.get_pool(POOL)
    assert (pool.target_low_priority_nodes, pool.allocation_state) == (0, models.AllocationState.RESIZING)
    make_task(client, "late")
    world.advance(60 * _MINUTE)
    assert states(client) == {"t0": "running", "late": "active"}

    runner_of(world).finish("job", "t0")
    world.advance(10 * _MINUTE)
    assert states(client)["late"] == "running"


def test_formulas_on_active_tasks_count_the_queue_alone() -> None:
    """Three tasks run and one waits: one node is asked for, where four are needed."""
    world = _world(on_active_tasks(4))
    client = make_client(world)
    _submit(client, 3)
    world.advance(5 * _MINUTE + 1)
    assert list(states(client).values()) == ["running"] * 3
    make_task(client, "late")

    world.advance(2 * _MINUTE)

    wrong, right = (_evaluate(client, formula(4)).results for formula in (on_active_tasks, on_pending_tasks))
    assert wrong and "$TargetLowPriorityNodes=1;" in wrong
    assert right and "$TargetLowPriorityNodes=4;" in right


def test_without_taskcompletion_a_formula_on_active_tasks_kills_its_tasks_again_and_again() -> None:
    world = _world(on_active_tasks(4).replace("taskcompletion", "requeue"))
    client = make_client(world)
    _submit(client, 1)

    world.advance(2 * 3600)

    info = client.get_task("job", "t0").execution_info
    assert info and (info.requeue_count or 0) >= 3


def test_a_node_that_is_lost_does_not_hold_its_task_s_place() -> None:
    """The corrected formula: 1 for a task that runs, 2 when its node is lost and still listed, 0 when all is done."""
    world = _world(on_pending_tasks(4))
    client = make_client(world)
    _submit(client, 1)
    world.advance(10 * _MINUTE)
    assert (_target(client), states(client)) == (1, {"t0": "running"})

    control.preempt_node(world, POOL)
    world.advance(10 * _MINUTE)
    assert (_target(client), states(client)) == (2, {"t0": "running"})
    nodes = client.get_pool(POOL).current_low_priority_nodes
    assert nodes == 2

    runner_of(world).finish("job", "t0")
    world.advance(15 * _MINUTE)
    assert _target(client) == 0


def test_a_formula_on_active_tasks_leaves_a_lost_node_in_its_task_s_place() -> None:
    world = _world(on_active_tasks(4))
    client = make_client(world)
    _submit(client, 1)
    world.advance(5 * _MINUTE + 1)
    control.preempt_node(world, POOL)

    world.advance(60 * _MINUTE)

    assert (_target(client), states(client)) == (1, {"t0": "active"})


@pytest.mark.parametrize("formula", [on_active_tasks(27), on_pending_tasks(27)])
def test_the_maximum_holds_under_a_flood(formula: str) -> None:
    world = _world(formula)
    client = make_client(world)
    make_job(client)
    for first in range(0, 600, 100):
        tasks = [models.BatchTaskCreateOptions(id=f"t{first + index}", command_line="program") for index in range(100)]
        client.create_task_collection("job", models.BatchTaskGroup(task_values=tasks))

    world.advance(30 * _MINUTE)

    assert client.get_pool(POOL).current_low_priority_nodes == 27


def test_too_few_samples_leave_the_targets_and_are_told() -> None:
    formula = "$TargetLowPriorityNodes = avg($PendingTasks.GetSample(5 * TimeInterval_Minute, 70));"
    world = _world(formula)
    client = make_client(world)
    _submit(client, 3)

    run = _run(client)
    assert run.error
    assert run.error.code == "InsufficientSampleData"
    assert run.error.error_values and run.error.error_values[0].name == "Message"
    assert run.error.error_values[0].value == (
        "Line 1, Col 45: Insufficient data from data set: $PendingTasks wanted 70%, received 0%"
    )
    assert run.results == "$TargetDedicatedNodes=0;$TargetLowPriorityNodes=0;$NodeDeallocationOption=requeue"
    world.advance(5 * _MINUTE + 1)
    assert _run(client).error is None
    assert _target(client) == 3

    world.pool(POOL).sampled = False
    world.advance(10 * _MINUTE)
    run = _run(client)
    assert run.error and run.error.code == "InsufficientSampleData"
    assert run.timestamp == world.now - timedelta(seconds=1)
    assert (run.results or "").startswith("$TargetDedicatedNodes=0;$TargetLowPriorityNodes=3;")
    assert _target(client) == 3


def test_evaluating_a_formula_changes_nothing() -> None:
    client = make_client(_world(_CONSTANT))

    run = _evaluate(client, "$TargetLowPriorityNodes = 5; $NodeDeallocationOption = terminate; x = 1 / 4;")

    assert run.error is None
    assert run.results == (
        "$TargetDedicatedNodes=0;$TargetLowPriorityNodes=5;$NodeDeallocationOption=terminate;$x=0.25"
    )
    pool = client.get_pool(POOL)
    assert (pool.auto_scale_formula, pool.target_low_priority_nodes) == (_CONSTANT, 2)
    wrong = _evaluate(client, "$something_useless")
    assert wrong.error and wrong.error.code == "AutoScalingFormulaEvaluationError"
    assert wrong.results == "$TargetDedicatedNodes=0;$TargetLowPriorityNodes=2;$NodeDeallocationOption=requeue"


def test_only_a_pool_that_scales_can_try_a_formula(client: BatchClient) -> None:
    with pytest.raises(ResourceExistsError) as refused:
        _evaluate(client, _CONSTANT)

    assert refusal(refused.value) == (409, "OperationNotValidOnPool")


@pytest.mark.parametrize(
    ("formula", "code"),
    [("$TargetDedicatedNodes = (1;", "AutoScalingFormulaSyntaxError"), ("x" * 8193, "AutoScalingFormulaTooLong")],
)
def test_what_is_no_formula_is_refused_wherever_it_comes(client: BatchClient, formula: str, code: str) -> None:
    enabling = models.BatchPoolEnableAutoScaleOptions(auto_scale_formula=formula)
    creating = models.BatchPoolCreateOptions(
        id="new", vm_size="standard_d2s_v3", enable_auto_scale=True, auto_scale_formula=formula
    )

    for call in (
        lambda: client.enable_pool_auto_scale(POOL, enabling),
        lambda: client.create_pool(creating),
        lambda: _evaluate(client, formula),
    ):
        with pytest.raises(HttpResponseError) as refused:
            call()
        assert refusal(refused.value) == (400, code)
    with pytest.raises(WorldFileError, match="formula"):
        _world(formula)


@pytest.mark.parametrize(("minutes", "fits"), [(4.9, False), (5, True), (168 * 60, True), (168 * 60 + 1, False)])
def test_the_interval_has_limits(client: BatchClient, minutes: float, fits: bool) -> None:
    options = models.BatchPoolEnableAutoScaleOptions(
        auto_scale_formula=_CONSTANT, auto_scale_evaluation_interval=timedelta(minutes=minutes)
    )

    if fits:
        client.enable_pool_auto_scale(POOL, options)
        assert client.get_pool(POOL).auto_scale_evaluation_interval == timedelta(minutes=minutes)
    else:
        with pytest.raises(HttpResponseError) as refused:
            client.enable_pool_auto_scale(POOL, options)
        assert refusal(refused.value) == (400, "InvalidPropertyValue")


def test_the_interval_is_a_quarter_of_an_hour_unless_given(client: BatchClient, world: World) -> None:
    client.enable_pool_auto_scale(POOL, models.BatchPoolEnableAutoScaleOptions(auto_scale_formula=_CONSTANT))

    assert client.get_pool(POOL).auto_scale_evaluation_interval == timedelta(minutes=15)
    client.create_pool(
        models.BatchPoolCreateOptions(
            id="new", vm_size="standard_d2s_v3", enable_auto_scale=True, auto_scale_formula=_CONSTANT
        )
    )
    assert client.get_pool("new").auto_scale_evaluation_interval == timedelta(minutes=15)
    world.advance(15 * _MINUTE - 1)
    assert len(world.events.select("autoscale", pool=POOL)) == 1
    world.advance(1)
    assert len(world.events.select("autoscale", pool=POOL)) == 2


def test_enabling_again_evaluates_at_once_with_the_samples_that_are_there() -> None:
    world = _world(on_pending_tasks(4), interval_seconds=3600)
    client = make_client(world)
    _submit(client, 2)
    world.advance(120)
    assert _target(client) == 0

    same = models.BatchPoolEnableAutoScaleOptions(auto_scale_formula=on_pending_tasks(4))
    client.enable_pool_auto_scale(POOL, same)

    assert _target(client) == 2
    world.advance(10)
    with pytest.raises(HttpResponseError) as refused:
        client.enable_pool_auto_scale(POOL, same)
    assert refusal(refused.value) == (503, "TooManyEnableAutoScaleRequests")
    world.advance(3590)
    assert len(world.events.select("autoscale")) == 3


def test_disabling_keeps_the_targets_and_forgets_the_samples() -> None:
    world = _world(on_pending_tasks(4))
    client = make_client(world)
    _submit(client, 2)
    world.advance(6 * _MINUTE)

    client.disable_pool_auto_scale(POOL)
    world.advance(60 * _MINUTE)
    pool = client.get_pool(POOL)
    assert (pool.enable_auto_scale, pool.target_low_priority_nodes, pool.auto_scale_run) == (False, 2, None)
    client.enable_pool_auto_scale(
        POOL, models.BatchPoolEnableAutoScaleOptions(auto_scale_formula="x = $PendingTasks.Count();")
    )
    assert (_run(client).results or "").endswith("$x=0")


def test_a_shrinking_formula_says_what_becomes_of_tasks() -> None:
    """The deallocation option counts from evaluation to evaluation; left out it is requeue."""
    for option, state in (("terminate", "completed"), ("requeue", "active"), ("taskcompletion", "running")):
        world = _world(f"$TargetLowPriorityNodes = time().hour < 9 ? 1 : 0; $NodeDeallocationOption = {option};")
        client = make_client(world)
        _submit(client, 1)
        assert states(client) == {"t0": "running"}

        world.advance(3600)

        assert states(client) == {"t0": state}


def test_a_pool_with_the_plain_rule_can_get_a_formula() -> None:
    world = World.from_json({"pools": [{"id": POOL, "start_seconds": 0, "autoscale": {"max": 3}}]})
    client = make_client(world)
    _submit(client, 5)
    shown = client.get_pool(POOL).auto_scale_formula
    world.advance(31)

    client.enable_pool_auto_scale(POOL, models.BatchPoolEnableAutoScaleOptions(auto_scale_formula=shown))
    assert _target(client) == 3
    world.advance(31)
    client.enable_pool_auto_scale(POOL, models.BatchPoolEnableAutoScaleOptions(auto_scale_formula=_CONSTANT))
    assert _target(client) == 2
    world.advance(90)
    assert (_evaluate(client, "x = $PendingTasks.Count();").results or "").endswith("$x=1")


def test_the_same_history_gives_the_same_targets() -> None:
    world = _world("$TargetLowPriorityNodes = rand() * 1000;")
    twin = copy.deepcopy(world)

    for one in (world, twin):
        one.advance(3600)

    targets = [event["low_priority"] for event in world.events.select("autoscale")]
    assert targets == [event["low_priority"] for event in twin.events.select("autoscale")]
    assert len(set(targets)) > 1

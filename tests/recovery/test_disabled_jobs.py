"""An operator disables a tenant's Batch job on one pool: what can run elsewhere does, and hinders nobody."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shared.batch.types import JobView
from shared.kinds import Entity, Kind
from shared.pools.placer import Placer, SharedNames
from shared.protocol.record import State
from shared.worker import ManagedPools
from tests.support.passing_waits import PassingWaits
from tests.support.small_world import PROJECT
from tests.support.trainings import Trainings, at_most_one_each, pool, two_pools

#: After this a job that took tasks is looked at before it takes another one.
_LOOKED_AT_AGAIN = timedelta(minutes=11)


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def disable_job_of(story: Trainings, entity: Entity) -> None:
    version = story.world.ledger.read(entity.key)
    assert version is not None and version.record.placement is not None
    story.call("POST", f"/jobs/{version.record.placement.job_id}/disable", b'{"disableTasks": "wait"}')


def disabled_on_h100() -> Trainings:
    """Nothing runs, and h100 takes no task."""
    story = two_pools()
    story.train("1")
    disable_job_of(story, story.live_of("1").entity)
    story.end_all()
    story.wait(_LOOKED_AT_AGAIN)
    story.until(lambda: story.of("1") is None)
    return story


def test_a_new_job_goes_to_another_pool() -> None:
    story = disabled_on_h100()
    story.train("2")
    story.until(lambda: story.running_in("t4") == 1)
    assert story.pool_of("2") == "t4"


def test_a_queued_task_moves_to_a_pool_that_is_free() -> None:
    story = two_pools()
    story.train("1", "9", "2")
    story.tick()
    assert [story.pool_of(model) for model in ("1", "9", "2")] == ["h100", "t4", "h100"]
    disable_job_of(story, story.live_of("1").entity)
    story.end_all()
    story.until(lambda: story.running_in("t4") == 1, ticks=60)
    assert (story.pool_of("2"), story.live_of("2").attempt) == ("t4", 2)
    at_most_one_each(story)


def with_a_pool_for_inference() -> Trainings:
    story = Trainings(pools=[pool("h100"), pool("t4"), pool("cpu")])
    pools = {Kind.TRAINING: ("h100", "t4"), Kind.INFERENCE: ("cpu",)}
    placer = Placer(story.worker.batch, lambda kind: pools.get(kind, ()), SharedNames("tenant"))
    return story.with_worker(placer=placer)


def infer(story: Trainings, model: str) -> Entity:
    entity = Entity(Kind.INFERENCE, PROJECT, model)
    story.world.save_record(entity, status="Queued", taskId=None)
    story.deliver(story.message(f"i{model}", "Queued", entity, modelId=model), Kind.INFERENCE)
    return entity


def test_jobs_that_wait_for_it_do_not_count_as_being_on_their_way_elsewhere() -> None:
    story = with_a_pool_for_inference()
    first = infer(story, "90")
    story.train("1", "2", "3")
    story.tick()
    disable_job_of(story, first)
    story.wait(_LOOKED_AT_AGAIN)
    waiting = [infer(story, model) for model in ("91", "92")]
    story.end_all(pool="t4")
    story.until(lambda: story.pool_of("3") == "t4" and story.running_in("t4") == 1, ticks=60)
    for entity in waiting:
        version = story.world.ledger.read(entity.key)
        assert version is not None and version.record.state is State.WAITING
        assert "az batch job enable" in version.record.reason
        assert version.record.waits < 10, "it pauses ever longer"


def test_nothing_moves_to_a_pool_whose_batch_job_takes_no_task() -> None:
    """Its nodes are idle because of that. A task that moved for nothing would lose its place in the queue."""
    story = disabled_on_h100()
    story.train("2", "3", "4")
    for _ in range(200):
        story.tick()
    assert [(story.pool_of(model), story.live_of(model).attempt) for model in "234"] == [("t4", 1)] * 3
    assert "no other pool is free" in story.live_of("3").reason


def test_where_the_quota_of_batch_jobs_is_used_up_a_pool_that_has_one_is_taken() -> None:
    story = two_pools()
    story.worker.notes.update(lambda notes: notes.with_cool_down("h100", story.now() + timedelta(minutes=10), "rest"))
    story.train("1", "2")
    assert [story.pool_of(model) for model in "12"] == ["t4", "t4"], "only there is a Batch job"
    story.wait(timedelta(minutes=15))
    story.fault(operation="create_job", code="ActiveJobAndScheduleQuotaReached")
    for _ in range(60):
        story.tick()
    story.train("3")
    assert [(story.pool_of(model), story.live_of(model).attempt) for model in "123"] == [("t4", 1)] * 3


def test_a_pool_is_not_woken_for_a_job_that_it_cannot_take() -> None:
    story = disabled_on_h100().with_worker(managed_pools=ManagedPools(0, 1))
    story.resize("h100", 0)
    story.resize("t4", 0)
    story.train("2")
    story.until(lambda: story.running_in("t4") == 1)
    assert len(story.world.batch_world.pool("h100").nodes) == 0


def test_a_cancel_that_comes_while_a_job_is_tried_is_carried_out_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Trainings(pools=[pool("h100")])
    story.fault(operation="get_job", status=403, code="AuthorizationFailure")
    story.train("1")
    story.tick(3600)
    real = story.worker.batch.job
    cancel = story.message("c1", "Cancelled", story.live_of("1").entity, modelId="1")
    cancelled: list[str] = []

    def late(job_id: str) -> JobView:
        story.deliver(cancel)
        cancelled.append(job_id)
        return real(job_id)

    with monkeypatch.context() as patch:
        patch.setattr(story.worker.batch, "job", late)
        story.until(lambda: cancelled)
    story.tick(1)
    assert story.ended("1") == "cancelled"


def test_who_waits_for_something_else_than_a_place_holds_nobody_back() -> None:
    story = with_a_pool_for_inference()
    first = infer(story, "90")
    disable_job_of(story, first)
    story.end_all()
    story.wait(_LOOKED_AT_AGAIN)
    infer(story, "91")
    for _ in range(10):
        story.tick()
    pools = {Kind.INFERENCE: ("t4",)}
    story.with_worker(placer=Placer(story.worker.batch, lambda kind: pools.get(kind, ()), SharedNames("tenant")))
    newer = story.world.ledger.read(infer(story, "92").key)
    assert newer is not None and newer.record.state is State.PLACED, "at once"

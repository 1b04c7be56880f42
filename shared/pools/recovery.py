"""Whether a live attempt has lost its node, and what to do about it: pure decisions with their reasons.

Batch re-runs a preempted task by itself and cannot be told not to. So an attempt counts as lost only on two sources,
the task and its node; a reading that failed is never a source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from shared.batch.types import NodeView, PoolCounts, TaskView
from shared.limits import Policy
from shared.pools.routing import Avoid, Decision
from shared.protocol.record import EndReason, NodeRun, Record
from shared.protocol.table import Seen, Verdict

#: Node states in which a node has lost what it ran.
LOST_NODE_STATES = frozenset({"preempted", "unusable", "starttaskfailed", "unknown"})
#: A task still called running although its node is lost: how long before that is a source.
RUNNING_WITHOUT_NODE = timedelta(minutes=2)
#: failureInfo codes for which the node, or storage at that moment, is to blame and not the program.
_NOT_THE_PROGRAMS = frozenset(
    {
        "BlobDownloadMiscError",
        "BlobDownloadTimedOut",
        "FileUploadMiscError",
        "FileUploadTimedOut",
        "ResourceContainerListMiscError",
        "ResourceContainerListTimedOut",
        "DiskFull",
        "ResourceDirectoryCreateFailed",
        "ResourceFileCreateFailed",
        "ResourceFileWriteFailed",
        "ContainerMiscError",
        "MaxInternalRetryCountReached",
    }
)
_TASK_ENDED = "TaskEnded"


def seen(task: TaskView | None, policy: Policy) -> Seen:
    """What a reading of the task amounts to."""
    if task is None:
        return Seen.ABSENT
    if task.state != "completed":
        return Seen.LIVE
    if task.succeeded:
        return Seen.ENDED_WITH_SUCCESS
    if task.failure_code == _TASK_ENDED and not ran_its_time(task, policy.max_run):
        return Seen.ENDED_OTHERWISE
    return Seen.ENDED_OTHERWISE if task.failure_code in _NOT_THE_PROGRAMS else Seen.ENDED_BY_ITSELF


def ran_its_time(task: TaskView, max_run: timedelta | None) -> bool:
    """The task was ended because its maximum run time was over (Batch gives the same code as for a terminate)."""
    if max_run is None or task.started_at is None or task.ended_at is None:
        return False
    return task.ended_at - task.started_at >= max_run - timedelta(seconds=5)


def latest_run(record: Record, task: TaskView) -> NodeRun | None:
    """The latest run of the task on a node: as Batch tells it, else as it was last seen."""
    if task.node_id is not None and task.started_at is not None:
        return NodeRun(task.node_id, task.started_at)
    return record.node_run


def is_suspect(task: TaskView, counts: PoolCounts | None) -> bool:
    """It ran and is queued again; or it is called running in a pool that has lost nodes, or runs none at all.

    `counts` are those of its pool, None if it was not counted.
    """
    if task.state == "active":
        return task.previous_state == "running"
    return counts is not None and (counts.lost > 0 or counts.running == 0)


def find_loss(record: Record, task: TaskView, nodes: Mapping[str, NodeView] | None, now: datetime) -> str | None:
    """Why the latest run of this attempt is lost; None if it is not, is noted already, or two sources do not say so.

    `nodes` are the nodes of the task's pool, None if they were not read.
    """
    run = latest_run(record, task)
    if run is None or nodes is None or is_lost(record, task):
        return None
    node = nodes.get(run.node_id)
    node_fault = _node_fault(run, node)
    if node_fault is None:
        return None
    if task.state == "active" and task.previous_state == "running":
        return f"the task is queued again after running, and {node_fault}"
    if task.state == "running" and now - _lost_since(run, node) >= RUNNING_WITHOUT_NODE:
        return f"the task is called running, but {node_fault}"
    return None


def is_stuck(record: Record, task: TaskView, nodes: Mapping[str, NodeView] | None) -> bool:
    """Batch calls the task running although the node it ran on is lost, or has booted since."""
    run = latest_run(record, task)
    if task.state != "running" or run is None or nodes is None:
        return False
    return _node_fault(run, nodes.get(run.node_id)) is not None


def is_stuck_for(longest: timedelta, record: Record, task: TaskView, now: datetime) -> bool:
    """The latest run was noticed as lost so long ago, and Batch calls it running all the same."""
    if task.state != "running" or not is_lost(record, task):
        return False
    return now - max(loss.noticed_at for loss in record.losses) >= longest


def was_interrupted_unseen(record: Record, run: NodeRun) -> bool:
    """Batch has started the task again since its last run was seen, and nobody saw that run's loss in between."""
    seen_run = record.node_run
    return seen_run is not None and seen_run.started_at != run.started_at and not _is_noted(record, seen_run)


def is_lost(record: Record, task: TaskView) -> bool:
    """The task's latest run is noted as lost: Batch has not started it again."""
    run = latest_run(record, task)
    return run is not None and _is_noted(record, run)


def _is_noted(record: Record, run: NodeRun) -> bool:
    return any(loss.attempt == record.attempt and loss.started_at == run.started_at for loss in record.losses)


def judge_lost(
    record: Record,
    elsewhere: Decision | None,
    candidates: Sequence[str],
    policy: Policy,
    now: datetime,
    *,
    pool_exists: bool = True,
    is_stuck: bool = False,
) -> Verdict:
    """What to do with an attempt whose run is lost and not running again, or whose pool has lost it too often.

    Another candidate with a free slot is taken at once; one that can grow when Batch's own re-run has been waited for.
    `elsewhere` is the routing decision, None if it would stay on this attempt's pool. One that is stuck ends wherever
    the next one goes: Batch will not run it again.
    """
    here = record.placed.pool_id
    counts, told = losses_by_pool(record), told_losses(record)
    if elsewhere is not None and elsewhere.pool_id is not None and elsewhere.has_free_slot:
        return Verdict(EndReason.MOVE, f"lost its node on {here}; {elsewhere.pool_id} {elsewhere.why}")
    waited = now - max((loss.noticed_at for loss in record.losses), default=now)
    if elsewhere is not None and elsewhere.can_grow and waited >= policy.rerun_grace:
        return Verdict(EndReason.MOVE, f"not run again on {here} for {waited}; {elsewhere.pool_id} can grow")
    if not pool_exists and elsewhere is not None and elsewhere.pool_id is not None:
        return Verdict(EndReason.MOVE, f"pool {here} does not exist any more; {elsewhere.pool_id}: {elsewhere.why}")
    if counts.get(here, 0) >= policy.most_losses_per_pool:
        if any(counts.get(pool, 0) < policy.most_losses_per_pool for pool in candidates):
            return Verdict(EndReason.MOVE, f"lost its node too often on {here} ({told})")
        return Verdict(EndReason.GIVE_UP, f"lost its node too often on every candidate pool ({told})")
    if is_stuck:
        return Verdict(EndReason.MOVE, f"lost its node on {here}, and Batch has called it running for {waited} since")
    return Verdict(None, f"preempted on {here}; waiting for Batch to run it again there, no other pool is free")


def is_queued_too_long(record: Record, task: TaskView, policy: Policy, now: datetime) -> bool:
    """The task has been waiting for a node for so long that another candidate with a free slot is better."""
    return task.state == "active" and now - _queued_since(record, task) >= policy.queued_too_long


def judge_queued(record: Record, elsewhere: Decision | None, *, pool_exists: bool) -> Verdict:
    """What to do with a task that has been queued too long, perhaps on a pool that has gone."""
    here = record.placed.pool_id
    if elsewhere is not None and elsewhere.has_free_slot:
        return Verdict(EndReason.MOVE, f"queued too long on {here}; {elsewhere.pool_id} {elsewhere.why}")
    if pool_exists:
        return Verdict(None, f"queued on {here}; no other pool is free")
    if elsewhere is not None and elsewhere.pool_id is not None:
        return Verdict(EndReason.MOVE, f"pool {here} does not exist any more; {elsewhere.pool_id}: {elsewhere.why}")
    return Verdict(None, f"pool {here} does not exist; the task waits for it")


def credentials_run_out(record: Record, task: TaskView, policy: Policy, now: datetime) -> bool:
    """A run that starts now, or has started late, could outlive its SAS, whose life is allowed wait plus longest run.

    A first run starts in time. One that Batch has started again by itself, after the first was lost, may not.
    """
    start = now if task.state == "active" else task.started_at
    if policy.max_wait is None or start is None:
        return False
    return start >= max(filter(None, (record.placed.at, task.created_at))) + policy.max_wait


def _queued_since(record: Record, task: TaskView) -> datetime:
    return max(filter(None, (record.placed.at, task.state_changed_at)))


def budget_is_spent(record: Record, policy: Policy) -> bool:
    """The attempt's pool has lost this request as often as it may, even if Batch has started it there again."""
    return losses_by_pool(record).get(record.placed.pool_id, 0) >= policy.most_losses_per_pool


def told_losses(record: Record) -> str:
    """The losses in words: `h100-pool: 3, t4-pool: 1`."""
    return ", ".join(f"{pool}: {count}" for pool, count in losses_by_pool(record).items())


def told_interruption(record: Record) -> str:
    """What became of this attempt, for the user: `Interrupted after 3 h 12 min`. That work is lost."""
    loss = record.losses[-1] if record.losses else None
    if loss is None or loss.attempt != record.attempt:
        return "Interrupted" if record.node_run is not None else "Not started"
    minutes = int((loss.noticed_at - loss.started_at).total_seconds()) // 60
    if minutes < 1:
        return "Interrupted"
    hours = f"{minutes // 60} h " if minutes >= 60 else ""
    return f"Interrupted after {hours}{minutes % 60} min"


def losses_by_pool(record: Record) -> dict[str, int]:
    """Losses of this request per pool, over all its attempts."""
    counts: dict[str, int] = {}
    for loss in record.losses:
        counts[loss.pool_id] = counts.get(loss.pool_id, 0) + 1
    return counts


def pools_to_avoid(record: Record, policy: Policy, now: datetime) -> dict[str, Avoid]:
    """Pools that lost this request: for a while, or for good once their budget is spent."""
    avoid: dict[str, Avoid] = {}
    for pool, count in losses_by_pool(record).items():
        latest = max(loss.noticed_at for loss in record.losses if loss.pool_id == pool)
        if count >= policy.most_losses_per_pool:
            avoid[pool] = Avoid(f"lost this job {count} times", for_good=True)
        elif now - latest < policy.pool_cool_down:
            avoid[pool] = Avoid(f"lost this job at {latest:%H:%M:%S}")
    return avoid


def is_without_node(task: TaskView, nodes: Mapping[str, NodeView]) -> bool:
    """A task that is called running has lost the node it ran on, as far as the pool's nodes tell."""
    if task.node_id is None or task.started_at is None:
        return False
    return _node_fault(NodeRun(task.node_id, task.started_at), nodes.get(task.node_id)) is not None


def _node_fault(run: NodeRun, node: NodeView | None) -> str | None:
    if node is None:
        return "its node has left the pool"
    if node.state in LOST_NODE_STATES:
        return f"its node is {node.state}"
    if node.last_boot_at is not None and node.last_boot_at > run.started_at:
        return "its node has booted since"
    return None


def _lost_since(run: NodeRun, node: NodeView | None) -> datetime:
    if node is None or node.state_changed_at is None:
        return run.started_at
    return max(run.started_at, node.state_changed_at)

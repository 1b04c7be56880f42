"""How a training comes to stand in each state of its life, by messages, ticks, and hosts that are killed on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from local.batch import control
from shared.kinds import Entity, Kind
from shared.protocol.record import task_ids
from tests.faults.audit import Books
from tests.faults.tenant import KilledAt, MovingWaits, Play, Tenant

_LONG_AGO_SECONDS = 3 * 86400.0


@dataclass
class Scene:
    """A tenant with one training, whose programs run on and on until `programs_end`."""

    tenant: Tenant
    entity: Entity = field(init=False)
    books: Books = field(default_factory=Books)
    programs_end: bool = False

    def __post_init__(self) -> None:
        self.tenant.pass_seconds(_LONG_AGO_SECONDS)  # so that what the pools' last resize says is old
        self.entity = self.tenant.new(Kind.TRAINING)
        self.tenant.program = lambda _order: (20.0, 0) if self.programs_end and not self.is_cancelled else None

    @classmethod
    def begin(cls, waits: MovingWaits) -> Scene:
        return cls(Tenant(waits))

    @property
    def is_cancelled(self) -> bool:
        return any(one.is_cancel for one in self.tenant.asked)

    def ask(self, *, cancel: bool = False) -> None:
        """HASTE's API puts a message, and a queue trigger takes it at once, before all others."""
        self.tenant.ask(self.entity, cancel=cancel)
        self.tenant.deliver(self.tenant.letters[-1])
        self.look()

    def tick(self, seconds: float = 30, play: Play | None = None) -> None:
        """Time passes, the timer runs, messages are delivered."""
        self.tenant.pass_seconds(seconds)
        self.tenant.timer(play)
        self.look()
        self.tenant.deliver_due()
        self.look()

    def look(self) -> None:
        """The guarantees that hold at every moment."""
        self.tenant.batch.tick()
        records = {self.entity: self.tenant.record(self.entity)}
        self.books.look(self.tenant.asked, self.tenant.batch.events.entries, records)

    def check_end(self) -> None:
        """The guarantees at the end."""
        self.look()
        records = {self.entity: self.tenant.record(self.entity)}
        self.books.check_end(records, self.tenant.world.candidates, self.tenant.world.most_losses)

    # --- what an operator sees of the training

    def tasks(self) -> list[tuple[str, str]]:
        """(job, task) of every task of the training that Batch lists, the latest last."""
        requests = [one.message_id for one in self.tenant.asked if not one.is_cancel]
        ids = {task for request in requests for task in task_ids(Kind.TRAINING, request, 9)}
        listed = [
            (task.number, job.id, task.id)
            for job in self.tenant.batch.jobs.values()
            for task in job.tasks.values()
            if task.id in ids
        ]
        return [(job, task) for _, job, task in sorted(listed)]

    def running(self) -> list[tuple[str, str]]:
        """(job, task) of the training that runs."""
        ours = set(self.tasks())
        return [one for one in self.tenant.world.runner.running() if one in ours]

    # --- hosts that are killed

    def killed_at(self, access: str, after_seconds: float = 30) -> None:
        """A tick whose host is killed just before its first access of this name."""
        self.tenant.pass_seconds(after_seconds)
        self.tenant.timer(KilledAt(access))
        self.look()


# --- the states -------------------------------------------------------------------------------------------------


def not_taken_in(scene: Scene) -> None:
    """The message is there, and nobody has taken it yet."""
    scene.tenant.ask(scene.entity)


def waiting(scene: Scene) -> None:
    """The handler's host died when the record was written, before a pool was chosen."""
    scene.tenant.ask(scene.entity)
    (letter,) = scene.tenant.due()
    scene.tenant.deliver(letter, KilledAt("ledger.done"))


def placed_without_task(scene: Scene) -> None:
    """The placement is stored; the host died before the task was added."""
    scene.tenant.ask(scene.entity)
    (letter,) = scene.tenant.due()
    scene.tenant.deliver(letter, KilledAt("batch.create_task"))


def queued(scene: Scene) -> None:
    """Somebody else's tasks have all nodes."""
    for pool in scene.tenant.world.candidates:
        scene.tenant.by_hand("POST", "/jobs", {"id": f"others-{pool}", "poolInfo": {"poolId": pool}})
        scene.tenant.by_hand("POST", f"/jobs/others-{pool}/tasks", {"id": "other", "commandLine": "other"})
    scene.ask()
    scene.tick()
    assert not scene.running()


def starting(scene: Scene) -> None:
    """Its node has just taken it and fetches the resource files: Batch says running, nobody has seen it yet."""
    scene.ask()
    assert scene.running()


def running(scene: Scene) -> None:
    """In mid-run; the timer has seen it."""
    scene.ask()
    scene.tick()
    scene.tick()


def waiting_again(scene: Scene) -> None:
    """Attempt 1 has lost its node and has been ended; attempt 2 waits for its message."""
    running(scene)
    control.preempt_task(scene.tenant.batch, *scene.running()[0])
    for _ in range(2):
        scene.tenant.pass_seconds(30)
        scene.tenant.timer()
    assert not scene.running() and len(scene.tasks()) == 1


def ending_for_cancel(scene: Scene) -> None:
    """Cancelled; the host died before the task was terminated."""
    running(scene)
    scene.ask(cancel=True)
    scene.killed_at("batch.terminate_task")


def ending_for_next(scene: Scene) -> None:
    """The user has started it anew; the host died before the first request's task was terminated."""
    running(scene)
    scene.ask()
    scene.killed_at("batch.terminate_task")


def ending_for_move(scene: Scene) -> None:
    """Its node is lost and the other pool is free; the host died before the task was terminated."""
    running(scene)
    control.preempt_task(scene.tenant.batch, *scene.running()[0])
    scene.killed_at("batch.terminate_task")


def ending_for_give_up(scene: Scene) -> None:
    """Batch refuses the task for good; the host died before its id was spent."""
    scene.tenant.batch.faults.add(
        {"operation": "create_task", "status": 400, "code": "InvalidPropertyValue", "times": 1}
    )
    asked = scene.tenant.ask(scene.entity)
    scene.books.refused.add(asked.message_id)
    (letter,) = scene.tenant.due()
    scene.tenant.deliver(letter, KilledAt("batch.spend_task_id"))


def ended(scene: Scene) -> None:
    """It has run to success; nobody has seen it yet."""
    running(scene)
    scene.tenant.world.runner.finish(*scene.running()[0])
    scene.tenant.batch.tick()


def finishing_before_patch(scene: Scene) -> None:
    """Its outcome is stored; the host died before HASTE's record was written."""
    ended(scene)
    scene.killed_at("haste.replace")
    assert scene.tenant.record(scene.entity)["status"] == "InProgress"


def finishing_after_patch(scene: Scene) -> None:
    """HASTE's record shows the end; a late save of HASTE's API is still waited for."""
    scene.ask()
    scene.tenant.pass_seconds(1)
    scene.tenant.world.runner.finish(*scene.running()[0])
    scene.tick(1)
    assert scene.tenant.record(scene.entity)["status"] == "Processed"
    assert not scene.tenant.is_quiet()


STATES: dict[str, Callable[[Scene], None]] = {
    "not-taken-in": not_taken_in,
    "waiting": waiting,
    "waiting-again": waiting_again,
    "placed-without-task": placed_without_task,
    "queued": queued,
    "starting": starting,
    "running": running,
    "ending-for-cancel": ending_for_cancel,
    "ending-for-next": ending_for_next,
    "ending-for-move": ending_for_move,
    "ending-for-give-up": ending_for_give_up,
    "ended-unseen": ended,
    "finishing-before-patch": finishing_before_patch,
    "finishing-after-patch": finishing_after_patch,
}

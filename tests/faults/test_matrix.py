"""Every state of a training meets every fault, and a cancel races with each: one row per combination.

The worker is reached by queue messages and the timer alone; what must hold is read from the Batch account's event log
and from HASTE's record.
"""

from __future__ import annotations

import pytest

from tests.faults.happenings import HAPPENINGS, NothingToHit
from tests.faults.states import STATES, Scene
from tests.faults.tenant import Interruption, MovingWaits

#: When the user cancels: never, before the fault, during it, at each access of the first timer or handler at work in
#: it, or during it with the cancel's own host being killed at each access.
CANCELS = ("not-cancelled", "cancelled-before", "cancelled-during", "cancel-raced", "cancel-killed")
#: The longest pause of a job that waits for quota is an hour.
_MOST_TICKS = 150

_NO_TASK = "the training has no task in Batch"
_NOT_ON_A_NODE = "the training runs on no node"
_COMPLETED = "its task is completed"
_NO_MESSAGE = "no message is on its way"
_WITHOUT_TASK = ("not-taken-in", "waiting", "placed-without-task", "ending-for-give-up")
_WITHOUT_NODE = (*_WITHOUT_TASK, "waiting-again", "queued", "ending-for-move")
_ENDED = ("ended-unseen", "finishing-before-patch", "finishing-after-patch")
_WITHOUT_MESSAGE = (
    *("queued", "starting", "running", "ending-for-cancel", "ending-for-next", "ending-for-move"),
    *_ENDED,
)
_HITS_TASK = ("task-deleted", "task-terminated", "job-deleted", "job-terminated", "pool-deleted")
_PREEMPTS = ("preempted", "preempted-twice")

#: (state, fault) that cannot meet, and why.
IMPOSSIBLE: dict[tuple[str, str], str] = {
    **{(state, fault): _NO_TASK for state in _WITHOUT_TASK for fault in _HITS_TASK},
    **{(state, fault): _NOT_ON_A_NODE for state in (*_WITHOUT_NODE, *_ENDED) for fault in _PREEMPTS},
    **{(state, "task-terminated"): _COMPLETED for state in ("waiting-again", *_ENDED)},
    **{(state, "handler-killed"): _NO_MESSAGE for state in _WITHOUT_MESSAGE},
}
ROWS = [(state, fault) for state in STATES for fault in HAPPENINGS if (state, fault) not in IMPOSSIBLE]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> MovingWaits:
    return MovingWaits.installed(monkeypatch)


@pytest.mark.parametrize("cancel", CANCELS)
@pytest.mark.parametrize(("state", "fault"), ROWS, ids=["-x-".join(row) for row in ROWS])
def test_one_end_one_live_task_and_a_record_that_tells_it(
    waits: MovingWaits, state: str, fault: str, cancel: str
) -> None:
    access = 0
    while play(waits, state, fault, cancel, access):
        access += 1
    assert access > 0 or not (HAPPENINGS[fault].kills or cancel in ("cancel-raced", "cancel-killed"))


@pytest.mark.parametrize(("state", "fault"), IMPOSSIBLE, ids=["-x-".join(row) for row in IMPOSSIBLE])
def test_what_is_left_out_cannot_happen(waits: MovingWaits, state: str, fault: str) -> None:
    scene = Scene.begin(waits)
    STATES[state](scene)
    with pytest.raises(NothingToHit, match=IMPOSSIBLE[state, fault]):
        HAPPENINGS[fault].begin(scene)


def play(waits: MovingWaits, state: str, fault: str, cancel: str, access: int) -> bool:
    """One row; False if nothing happened at the access with this number, so that there is no further one to try."""
    scene, happening = Scene.begin(waits), HAPPENINGS[fault]
    STATES[state](scene)
    if cancel == "cancelled-before":
        scene.ask(cancel=True)
    happening.begin(scene)
    scene.look()
    interrupted = _first_tick(scene, happening.kills, cancel == "cancel-raced", access)
    if cancel == "cancelled-during":
        scene.ask(cancel=True)
    elif cancel == "cancel-killed":
        interrupted = _cancel_killed(scene, access) or interrupted
    for _ in range(happening.ticks - 1):
        scene.tick(happening.tick_seconds)
    happening.end(scene)
    scene.programs_end = True
    for _ in range(_MOST_TICKS):
        if scene.tenant.is_quiet():
            break
        scene.tick()
    scene.check_end()
    told = f"{state}, {fault}, {cancel}, access {access}: {scene.tenant.record(scene.entity)}"
    assert scene.tenant.is_quiet(), f"never ends: {told}, {list(scene.tenant.world.ledger.live())}"
    assert not scene.tenant.poisoned and not scene.tenant.kept.blobs, told
    assert scene.tenant.record(scene.entity)["status"] in _expected(state, fault, cancel), told
    return interrupted


def _first_tick(scene: Scene, kills: str, races: bool, access: int) -> bool:
    """The first tick of the fault. A host is killed at that access of its work, or a cancel comes there, or both."""
    cancel = (lambda: scene.ask(cancel=True)) if races else None
    if not kills and not races:
        scene.tick()
        return False
    interruption = Interruption(access, cancel, killed=bool(kills))
    if kills == "handler":
        scene.tenant.pass_seconds(30)
        letter = next(letter for letter in scene.tenant.due() if not letter.is_cancel)
        scene.tenant.deliver(letter, interruption)
    else:
        scene.tick(play=interruption)
    if cancel and not interruption.happened:
        cancel()
    scene.look()
    return interruption.happened


def _cancel_killed(scene: Scene, access: int) -> bool:
    """The user cancels, and the host that takes the message is killed; the message shows up again."""
    scene.tenant.ask(scene.entity, cancel=True)
    interruption = Interruption(access, killed=True)
    for letter in scene.tenant.due():
        if letter.is_cancel:
            scene.tenant.deliver(letter, interruption)
    scene.look()
    return interruption.happened


def _expected(state: str, fault: str, cancel: str) -> tuple[str, ...]:
    """What the user must be shown in the end."""
    if state == "ended-unseen" and fault in ("task-deleted", "job-deleted") and cancel != "not-cancelled":
        return ("Processed", "Cancelled")  # the success was deleted, perhaps before anybody saw it
    if state in _ENDED:
        return ("Processed",)
    if state == "ending-for-give-up":
        return ("Failed",) if cancel == "not-cancelled" else ("Failed", "Cancelled")
    if cancel != "not-cancelled" or state == "ending-for-cancel":
        return ("Cancelled",)
    return ("Processed",)

"""Random fault schedules on a running stack, over HTTP, with two hosts of one tenant: nothing lost, nothing doubled.

All schedules are played side by side, each with layers and models of its own. What is asserted is read from HASTE's
records and queues, from the kept messages, and from the Batch account's event log.
`HASTE_FAULT_HTTP_SEED=7` plays that one alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from local.certificates import Certificates
from local.stack import running_stack
from tests.faults.http_plan import TROUBLES, make_plan
from tests.faults.http_playing import Playing
from tests.faults.http_stack import stack_options
from tests.support.gate import Gate

_ONLY = os.environ.get("HASTE_FAULT_HTTP_SEED")
_SEEDS = [int(_ONLY)] if _ONLY else list(range(1, 21))

pytestmark = pytest.mark.timeout(900)  # the first test plays all schedules


@pytest.fixture(scope="module")
def played(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playing]:
    folder = tmp_path_factory.mktemp("random")
    image = folder / "image"
    with (
        Gate(certificates) as gate,
        running_stack(stack_options(folder / "run", image, certificates, gate)) as running,
    ):
        playing = Playing(running, gate, image, [make_plan(seed) for seed in _SEEDS])
        playing.play()
        yield playing


@pytest.mark.parametrize("seed", _SEEDS)
def test_every_request_has_one_end_and_never_two_live_tasks(played: Playing, seed: int) -> None:
    schedule = played.schedules[seed]
    why = schedule.broken or played.left_over.get(seed)
    if why is not None:
        pytest.fail(f"{why}\n{schedule.told()}", pytrace=False)


def test_no_message_is_left_over(played: Playing) -> None:
    assert played.haste.is_idle()
    assert played.haste.poisoned() == 0
    assert played.haste.blob_names(played.haste.own, "rejected/") == set()


def test_every_task_belongs_to_a_request(played: Playing) -> None:
    assert played.strangers == []


@pytest.mark.skipif(_ONLY is not None, reason="one schedule does not hold every kind of trouble")
def test_what_can_go_wrong_went_wrong(played: Playing) -> None:
    """Else the tests above would prove less. On a slow machine a trouble may come when its work has ended."""
    assert min(played.counts[what] for what in ("fault", "run_lost", "kills_host")) > 0
    missed = [what for what in TROUBLES if played.counts[what] == 0]
    assert len(missed) <= len(TROUBLES) / 4, missed


@pytest.mark.skipif(_ONLY is not None, reason="one schedule may not need it")
def test_messages_were_delivered_again(played: Playing) -> None:
    """Else the tests above would prove less."""
    assert played.troubles.deletions.refused.total() > 0

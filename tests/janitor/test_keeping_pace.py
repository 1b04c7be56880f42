"""Old entries at the size of a busy deployment, by the timer as it is deployed, on storage in this process."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count

import pytest

from bench import storage_service
from bench.deployment import Deployment
from bench.storage_service import Blob
from shared.housekeeping.expiring import MOST_DELETIONS, OldEntries
from tests.support.passing_waits import PassingWaits

TEN_MINUTES = 600


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def deployed() -> Deployment:
    return Deployment([{"id": "h100", "targetLowPriorityNodes": 0}])


def put(deployment: Deployment, prefix: str, number: int, written_at: datetime) -> None:
    own = deployment.storage.containers["haste-worker"]
    for one in range(number):
        own[f"{prefix}/{one:05}"] = Blob(b"{}", f'"{prefix}-{one}"', written_at)


def left(deployment: Deployment, prefix: str) -> int:
    return sum(name.startswith(f"{prefix}/") for name in deployment.storage.containers["haste-worker"])


def test_both_kinds_of_entries_shrink_from_the_first_run_on_and_faster_than_they_come() -> None:
    deployment = deployed()
    long_ago = deployment.clock.now() - timedelta(days=31)
    put(deployment, "done/training/old", 3 * MOST_DELETIONS, long_ago)
    put(deployment, "rejected/train-queue", 50, long_ago)
    deployment.tick()
    assert left(deployment, "rejected") == 0
    assert left(deployment, "done") == 2 * MOST_DELETIONS
    for _ in range(2):
        deployment.tick(TEN_MINUTES)
    assert left(deployment, "done") == 0


def test_a_run_lists_each_kind_once() -> None:
    deployment = deployed()
    put(deployment, "done/training/new", 2 * MOST_DELETIONS, deployment.clock.now())
    deployment.tick()
    deployment.world.advance(TEN_MINUTES)
    deployment.count_anew()
    deployment.app.tick()
    lists, ledgers = deployment.calls()["Storage list blobs"], 2  # one for the jobs, one for housekeeping
    assert lists - ledgers == 2
    assert deployment.calls()["Storage delete blob"] == 0


def test_a_list_of_many_pages_is_gone_through_in_several_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five blobs to a page, of which one is old; each look at the time finds three seconds gone."""
    monkeypatch.setattr(storage_service, "_PAGE", 5)
    deployment = deployed()
    new = deployment.clock.now()
    put(deployment, "done/training/x", 50, new)
    own = deployment.storage.containers["haste-worker"]
    for name in [name for name in own if name.startswith("done/")][4::5]:
        own[name].written_at = new - timedelta(days=16)
    entries = OldEntries(deployment.app.own_blobs, three_seconds_each())
    lists = []
    for _ in range(6):
        deployment.count_anew()
        entries.expire(new)
        lists.append(deployment.calls()["Storage list blobs"] - 1)  # without that of `rejected/`
        if left(deployment, "done") == 40:
            break
    assert left(deployment, "done") == 40
    assert len(lists) > 2 and max(lists) <= 3 and sum(lists) < 20


def three_seconds_each() -> Callable[[], float]:
    return count(0.0, 3.0).__next__

"""Alerts fire on what the worker really does: on decisions of routing, and on pauses as waiting makes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from shared.kinds import Entity, Kind
from shared.ledger.port import Versioned
from shared.pools.routing import Decision, PoolReading, route
from shared.protocol.record import Record, Request, State
from shared.requests import place
from shared.requests.accept import RESUME_AFTER
from tests.infra.snapshots import load, resources
from tests.support.pool_readings import NOON, around, counts, view

CANDIDATES = ("h100", "t4")
HOURS = {"PT30M": 0.5, "PT1H": 1, "PT2H": 2}


def _alert(name: str) -> dict[str, Any]:
    alerts = resources(load("main-from-nothing"), "Microsoft.Insights/scheduledQueryRules")
    (found,) = [one["properties"] for one in alerts if one["name"].endswith(f"-{name}")]
    return dict(found)


def _query(name: str) -> str:
    return str(_alert(name)["criteria"]["allOf"][0]["query"])


def _route(*codes: str, nodes: tuple[int, int, int, int] = (0, 0, 0, 0), **fields: Any) -> Decision:
    """A decision where every pool's last resize ended with these codes. `nodes`: idle, running, starting, lost."""
    known = {"resize_error_codes": codes, "allocation_changed_at": NOON, "auto_scales": True, "maximum_nodes": 1}
    views = {pool: view(pool, **{**known, **fields}) for pool in CANDIDATES}
    return route(CANDIDATES, PoolReading({pool: counts(pool, *nodes) for pool in CANDIDATES}, views), around())


@dataclass
class _Line:
    """What `place` logs of a decision."""

    event: str
    why: str
    rejected: str

    @classmethod
    def of(cls, decision: Decision) -> _Line:
        if decision.pool_id is None:
            return cls("waits", "; ".join((decision.why, *decision.rejected)), "")
        return cls("routed", decision.why, str(list(decision.rejected)))

    def has(self, pattern: str) -> bool:
        return bool(re.search(pattern, self.why + self.rejected))


def _tells_no_nodes(line: _Line) -> bool:
    """The query of `no-nodes`, read here."""
    query = _query("no-nodes")
    placed = re.search(r'event == "waits" or \(event == "routed" and tostring\(line.why\) contains "(.+?)"\)', query)
    pattern = re.search(r'strcat\(tostring\(line.why\), tostring\(line.rejected\)\) matches regex "(.+?)"', query)
    assert placed
    assert pattern
    return (line.event == "waits" or placed[1] in line.why) and line.has(pattern[1])


def _tells_sick_pool(line: _Line) -> bool:
    """The part of the query of `sick-pool` that is about decisions."""
    pattern = re.search(r'event in \("waits", "routed"\) and .* matches regex "(.+?)"', _query("sick-pool"))
    assert pattern
    return line.has(pattern[1])


@pytest.mark.parametrize(
    "decision",
    [
        pytest.param(_route("AllocationFailed"), id="no-capacity"),
        pytest.param(_route("AllocationTimedout"), id="not-enough-capacity"),
        pytest.param(_route("AccountSpotCoreQuotaReached"), id="quota"),
        pytest.param(_route("AccountCoreQuotaReached", "AllocationFailed"), id="quota-and-no-capacity"),
        pytest.param(_route(nodes=(0, 0, 0, 1)), id="lost-nodes-only"),
    ],
)
def test_a_job_without_a_node_in_sight_is_told(decision: Decision) -> None:
    assert not decision.has_free_slot
    assert not decision.can_grow
    assert _tells_no_nodes(_Line.of(decision))


def test_a_full_quota_of_batch_jobs_is_told() -> None:
    assert _tells_no_nodes(_Line("waits", "waiting for quota (ActiveJobAndScheduleQuotaReached)", ""))


@pytest.mark.parametrize(
    "decision",
    [
        pytest.param(_route("AllocationFailed", nodes=(1, 0, 0, 0)), id="a-free-slot"),
        pytest.param(_route(), id="can-grow"),
        pytest.param(_route(nodes=(0, 1, 0, 0)), id="busy-and-as-large-as-it-may-be"),
        pytest.param(_route("ResizeStopped", nodes=(0, 1, 0, 0)), id="superseded-resize"),
    ],
)
def test_ordinary_days_are_not(decision: Decision) -> None:
    assert decision.pool_id
    assert not _tells_no_nodes(_Line.of(decision))
    assert not _tells_sick_pool(_Line.of(decision))


def test_a_pool_that_azure_refuses_or_that_is_not_there_is_told() -> None:
    assert _tells_sick_pool(_Line.of(_route("UnsupportedVMSize")))
    reading = PoolReading({"t4": counts("t4", 0, 1, 0, 0)}, {"t4": view("t4")})
    assert _tells_sick_pool(_Line.of(route(CANDIDATES, reading, around())))


def _pause(waits: int) -> timedelta:
    """How long a job pauses that has been refused so often before."""
    now, kept = datetime(2026, 1, 1, tzinfo=UTC), []
    ledger = SimpleNamespace(replace=lambda _version, record: kept.append(record))
    quiet = SimpleNamespace(noted=lambda *_: None, show_progress=lambda *_: None)
    worker: Any = SimpleNamespace(now=lambda: now, ledger=ledger, haste=quiet, workloads=dict.fromkeys(Kind, quiet))
    entity = Entity(Kind.TRAINING, "p", "m")
    record = Record(entity, Request("r", now), State.WAITING, now, waits=waits)
    place.wait(worker, Versioned(record, "v", now), "no node")
    return timedelta(seconds=(kept[0].not_before - now).total_seconds())


def test_a_job_that_waits_for_half_an_hour_is_told_from_then_on() -> None:
    """Its lines come ever less often: one long pause must be enough, and each look back must find one."""
    found = re.search(r"pause >= (\d+)", _query("jobs-wait"))
    assert found
    long = timedelta(seconds=int(found[1]))
    pauses = [_pause(waits) for waits in range(12)]
    first = next(number for number, pause in enumerate(pauses) if pause >= long)
    assert timedelta(minutes=25) < sum(pauses[:first], timedelta()) < timedelta(minutes=40)
    assert all(pause >= long for pause in pauses[first:])
    assert max(pauses) < timedelta(hours=HOURS[_alert("jobs-wait")["windowSize"]])


def test_a_service_that_does_not_answer_for_half_an_hour_is_told() -> None:
    """Such a job is looked at about once a minute, and its lines tell no pause."""
    found = re.search(r"looks >= (\d+)", _query("jobs-wait"))
    assert found
    ordinary = [_pause(waits) for waits in range(12)]
    within = timedelta(hours=HOURS[_alert("jobs-wait")["windowSize"]])
    most = next(number for number in range(12) if sum(ordinary[:number], timedelta()) > within)
    assert most < int(found[1]) <= timedelta(minutes=30) / RESUME_AFTER

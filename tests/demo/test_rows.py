"""What the demo's table says about a request."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from local.demo.evidence import Request
from local.demo.rows import Row, row, with_short_names
from local.demo.table import PlainLines, table

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
TRAINING = Request("training", "project", "1234", follows=False, asked_at=NOW)
LINE = "\n2026-11-30T12:00:00.000000+00:00: "
MODEL = {"status": "InProgress", "progressPct": 50.0, "statusMessage": f"{LINE}Queued{LINE}Half way\nepoch: 2"}


def live(**fields: Any) -> dict[str, Any]:
    entity = {"kind": "training", "project_id": "project", "entity_id": "1234"}
    placement = {"pool_id": "t4-pool", "task_id": "trn-1"}
    return {"entity": entity, "state": "placed", "attempt": 2, "placement": placement, "reason": "moved"} | fields


def test_a_request_that_the_worker_has_not_met() -> None:
    shown = row(TRAINING, None, {"status": "Queued"}, [], [])
    assert shown == Row("training", "1234", "Queued", "-", 1, 0.0, "")


@pytest.mark.parametrize(
    ("events", "state"),
    [([], "queued"), (["task_created"], "queued"), (["task_created", "task_started"], "running")],
)
def test_a_placed_attempt_shows_what_batch_does_with_it(events: list[str], state: str) -> None:
    happened = [{"event": event, "task": "trn-1"} for event in events]
    others = [{"event": "task_started", "task": "trn-2"}, {"event": "run_lost", "task": "trn-1"}]
    shown = row(TRAINING, None, MODEL, [live()], [*happened, *others])
    assert shown == Row("training", "1234", state, "t4-pool", 2, 50.0, "moved")


def test_a_waiting_attempt_keeps_no_pool() -> None:
    before = row(TRAINING, None, MODEL, [live()], [])
    shown = row(TRAINING, before, MODEL, [live(state="waiting", placement=None, reason="quota")], [])
    assert (shown.state, shown.pool, shown.reason) == ("waiting", "-", "quota")


def test_the_end_is_hastes_and_stays() -> None:
    before = row(TRAINING, None, MODEL, [live()], [])
    done = replace(TRAINING, shown_at=NOW)
    processed = MODEL | {"status": "Processed", "progressPct": 100.0}
    shown = row(done, before, processed, [], [])
    assert shown == Row("training", "1234", "Processed", "t4-pool", 2, 100.0, "Half way")
    assert row(done, shown, {"status": "Queued"}, [live()], []) == shown


def test_another_entitys_record_is_not_mine() -> None:
    other = live(entity={"kind": "inference", "project_id": "project", "entity_id": "1234"})
    assert row(TRAINING, None, MODEL, [other], []).pool == "-"


def test_plain_lines_tell_changes_only(capsys: pytest.CaptureFixture[str]) -> None:
    lines = PlainLines()
    first = row(TRAINING, None, MODEL, [live()], [])
    for rows in ([first], [first], [replace(first, state="running")]):
        lines.show(rows)
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 2
    assert "queued" in told[0] and "running" in told[1] and "moved" in told[1]


def test_why_a_pool_was_chosen_and_the_others_were_not() -> None:
    placement = {"pool_id": "t4-pool", "task_id": "trn-1", "why": "can grow", "rejected": ["h100-pool: is full"]}
    chosen = row(TRAINING, None, MODEL, [live(reason="can grow", placement=placement)], [])
    assert chosen.reason == "can grow; h100-pool: is full"
    later = row(TRAINING, None, MODEL, [live(reason="running since noon", placement=placement)], [])
    assert later.reason == "running since noon"


def test_a_title_and_short_names() -> None:
    titled = row(replace(TRAINING, title="training, the second"), None, MODEL, [live(reason="left h100-pool")], [])
    assert titled.work == "training, the second"
    shown = with_short_names(titled, {"t4-pool": "t4", "h100-pool": "h100"})
    assert (shown.pool, shown.reason) == ("t4", "left h100")


def test_the_table_has_a_line_per_request() -> None:
    assert table([row(TRAINING, None, MODEL, [live()], [])]).row_count == 1

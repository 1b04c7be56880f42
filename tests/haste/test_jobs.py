"""The job objects of a record: the latest run's, and the history of all runs."""

from __future__ import annotations

import copy
from datetime import datetime

import pytest

from shared.haste.jobs import JobHistory, LatestJob
from shared.haste.log_text import timestamp
from shared.haste.workload import JsonObject
from shared.protocol.outcome import Run
from tests.support import samples

END = samples.at("12:00:00")
RUN = samples.inference_run()
WITHOUT_TASK = Run(RUN.entity, RUN.request_id)


def new_job(run: Run, at: datetime) -> JsonObject:
    return {"taskId": run.task_id, "creationDate": timestamp(at)}


LATEST = LatestJob("job", new_job)
HISTORY = JobHistory("jobs", "current", new_job)


def job_of(task_id: str | None, status: str, **fields: str) -> JsonObject:
    return {"taskId": task_id, "status": status, **fields}


def test_a_job_that_is_lost_began_when_its_task_was_placed() -> None:
    record: JsonObject = {}
    LATEST.end(record, RUN, "Failed", END)
    HISTORY.end(record, RUN, "Failed", END)
    assert RUN.placed_at is not None
    assert record["job"]["creationDate"] == timestamp(RUN.placed_at)
    assert record["jobs"] == [record["job"]]
    assert (record["job"]["status"], record["job"]["completedDate"]) == ("Failed", timestamp(END))


def test_without_a_task_what_is_open_ends_and_what_has_ended_stays() -> None:
    ended, is_open = job_of("a", "Processed", completedDate="earlier"), job_of("b", "InProgress")
    record = {"job": ended, "jobs": [ended, is_open]}
    LATEST.end(record, WITHOUT_TASK, "Failed", END)
    HISTORY.end(record, WITHOUT_TASK, "Failed", END)
    assert record["job"] == ended
    assert record["jobs"] == [ended, {**is_open, "status": "Failed", "completedDate": timestamp(END)}]
    assert "current" not in record


def test_without_a_task_no_job_is_made_up() -> None:
    record: JsonObject = {}
    LATEST.end(record, WITHOUT_TASK, "Failed", END)
    HISTORY.end(record, WITHOUT_TASK, "Failed", END)
    assert record == {"job": None, "jobs": []}


@pytest.mark.parametrize("jobs", [LATEST, HISTORY])
def test_no_job_object_is_changed_in_place(jobs: LatestJob | JobHistory) -> None:
    own, other = job_of(RUN.task_id, "InProgress"), job_of("a", "InProgress")
    record = {"job": own, "jobs": [other, own], "current": RUN.task_id}
    before = copy.deepcopy((own, other))
    jobs.set_logs(record, RUN, "log")
    jobs.place(record, RUN, END)
    jobs.end(record, RUN, "Processed", END)
    assert (own, other) == before
    assert jobs.has(record, RUN)
    assert jobs.shown(record, "status").job_status == "Processed"


def test_the_log_is_kept_with_the_run_s_own_job() -> None:
    own, other = job_of(RUN.task_id, "Processed"), job_of("a", "Failed")
    record = {"job": other, "jobs": [other, own]}
    LATEST.set_logs(record, RUN, "log")
    HISTORY.set_logs(record, RUN, "log")
    assert record == {"job": other, "jobs": [other, {**own, "logs": "log"}]}

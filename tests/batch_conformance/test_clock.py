"""Time is given to the emulator: hours of waiting take no time, and nothing sleeps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path

from local.batch import ManualClock, ScriptedRunner, World, WorldConfig
from local.batch.clock import ScaledClock
from local.batch.iso8601 import format_time, parse_time
from local.batch.process_runner import ProcessRunner
from tests.batch_conformance.blobs import CONTENT, blobs
from tests.batch_conformance.wire import POOL, Wire, account
from tests.batch_emulator.process_support import until
from tests.support.serving import serving


def test_the_wall_clocks_of_task_and_job(wire: Wire) -> None:
    wire.job(constraints={"maxWallClockTime": "P2D"})
    wire.task(constraints={"maxWallClockTime": "P1D"})
    start = parse_time(wire.info()["startTime"])

    wire.advance(5 * 86400)

    end = parse_time(wire.info()["endTime"])
    assert (end - start).total_seconds() == 86400
    job = wire.get("/jobs/job")
    assert (job["state"], job["executionInfo"]["terminateReason"]) == ("completed", "MaxWallClockTimeExpiry")
    created, ended = parse_time(job["creationTime"]), parse_time(job["executionInfo"]["endTime"])
    assert 2 * 86400 <= (ended - created).total_seconds() <= 2 * 86400 + 1


def test_retention_of_files_and_of_completed_tasks(wire: Wire) -> None:
    wire.job()
    wire.task(constraints={"retentionTime": "P1D"})
    wire.end()
    files = "/jobs/job/tasks/task/files"

    wire.advance(86399)
    assert wire.send("GET", files).status == 200
    wire.advance(1)
    assert wire.send("GET", files).refusal == (409, "TaskFilesCleanedup")
    wire.advance(6 * 86400 - 1)
    assert wire.state() == "completed"
    wire.advance(1)
    assert wire.send("GET", "/jobs/job/tasks/task").refusal == (404, "TaskNotFound")


def test_an_answer_is_dated_by_the_worlds_clock(wire: Wire) -> None:
    """To the second, in HTTP's own words, refusals too."""
    before = parsedate_to_datetime(wire.send("GET", f"/pools/{POOL}").headers["Date"])
    wire.advance(3600)
    for path in (f"/pools/{POOL}", "/pools/none"):
        dates = wire.send("GET", path).headers.get_all("Date")
        assert dates is not None and len(dates) == 1
        assert parsedate_to_datetime(dates[0]) - before == timedelta(hours=1)


def test_the_world_shows_the_time_it_was_given() -> None:
    with account() as wire:
        wire.advance(12345.5)
        wire.job()

        assert wire.get("/jobs/job")["creationTime"] == "2026-01-05T11:25:45.5000000Z"


def test_an_input_s_signature_that_runs_out_between_two_runs_fails_the_second(tmp_path: Path) -> None:
    clock = ManualClock()
    pool = {"id": POOL, "targetLowPriorityNodes": 1, "start_seconds": 0, "return_after_seconds": 0}
    config = WorldConfig.from_json({"root": str(tmp_path), "pools": [pool]})
    world = World(config, clock, ProcessRunner(config))
    with blobs(clock) as storage, serving(world) as endpoint:
        wire = Wire(endpoint, None)
        wire.job()
        expiry = format_time(datetime(2026, 1, 5, 12, tzinfo=UTC))
        blob = {"httpUrl": f"{storage.url}/in/x?se={expiry}&sig=s", "filePath": "x"}
        wire.task(commandLine="/bin/bash -c 'cat x; touch ready; sleep 600'", resourceFiles=[blob])
        until(lambda: wire.send("GET", "/jobs/job/tasks/task/files/wd%2Fready").status == 200)
        assert wire.send("GET", "/jobs/job/tasks/task/files/stdout.txt").body == CONTENT

        wire.advance(86400)
        wire.admin("POST", "/jobs/job/tasks/task/preempt")
        until(lambda: wire.state() == "completed")

        failure = wire.info()["failureInfo"]
        assert (failure["category"], failure["code"]) == ("usererror", "BlobAccessDenied")
        world.close()


def test_a_scaled_clock_lets_hours_pass_in_seconds() -> None:
    runner = ScriptedRunner(finish_after_seconds=6 * 3600)
    pool = {"id": POOL, "targetLowPriorityNodes": 1, "start_seconds": 0}
    with serving(World.from_json({"pools": [pool]}, clock=ScaledClock(36_000), runner=runner)) as endpoint:
        wire = Wire(endpoint, runner)
        wire.job()
        wire.task()

        until(lambda: wire.state() == "completed")

        info = wire.info()
        assert (parse_time(info["endTime"]) - parse_time(info["startTime"])).total_seconds() == 6 * 3600

"""The operator's commands, as an operator starts them, say where a job is, why, and what it waits for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from local.batch import ACCOUNT_KEY, control
from local.batch.server import server_context
from local.certificates import Certificates
from local.stack.azurite import StorageAccount
from shared.kinds import Entity, Kind
from shared.protocol.record import State
from tests.operate.deployment import Deployment
from tests.support.serving import serving
from tests.support.small_world import MODEL, PROJECT

JOB = ("training", PROJECT, MODEL)


@pytest.fixture
def deployment(storage_account: StorageAccount, certificates: Certificates, tmp_path: Path) -> Iterator[Deployment]:
    made = Deployment(storage_account, tmp_path)
    context = server_context(str(certificates.certificate), str(certificates.key))
    with serving(made.story.world.batch_world, context) as endpoint:
        made.settings["AZURE_BATCH_URL"] = endpoint
        yield made


def moved(deployment: Deployment) -> None:
    """A training that has lost its node on h100 and runs on t4."""
    story = deployment.story
    story.ask()
    story.tick()
    control.preempt_task(story.world.batch_world, story.job_id(), story.task_id(), return_after_seconds=None)
    story.until(lambda: story.live and story.live.attempt == 2 and story.live.state is State.PLACED)
    story.tick()


def disable(deployment: Deployment, job: str, tasks: str = "requeue") -> None:
    """What an operator does by `az batch job disable`."""
    body = json.dumps({"disableTasks": tasks}).encode()
    headers = {"authorization": "Bearer x", "content-type": "application/json"}
    world = deployment.story.world.batch_world
    assert world.handle("POST", f"/jobs/{job}/disable", {"api-version": "2025-06-01"}, headers, body).status == 202
    world.advance(5)


def test_a_running_job_is_explained_with_its_attempts_and_losses(deployment: Deployment) -> None:
    moved(deployment)
    found = deployment.json("explain", *JOB)
    assert (found["state"], found["next_look"]) == ("running", "with every run of the timer")
    first, second = found["attempts"]
    assert (first["pool"], first["task"], first["losses"]) == ("h100", deployment.story.task_id(1), 1)
    assert first["in_batch"].startswith("ended with TaskEnded")
    assert (second["pool"], second["outcome"], second["losses"]) == ("t4", "running", 0)
    assert second["in_batch"].startswith("running on node ")
    assert second["why"] == "has a free slot"
    assert [line.partition(":")[0] for line in second["rejected"]] == ["h100"]
    assert [(loss["pool_id"], loss["attempt"]) for loss in found["losses"]] == [("h100", 1)]
    assert found["losses_by_pool"] == {"h100": 1}
    assert found["request"]["request_id"] == "m1"
    assert found["haste"] is None


def test_the_same_as_plain_text(deployment: Deployment) -> None:
    moved(deployment)
    text = deployment.run("explain", *JOB).stdout
    story = deployment.story
    for expected in ("running", "h100", "t4", story.task_id(1), story.task_id(2), "has a free slot", "lost its node"):
        assert expected in text
    assert max(map(len, text.splitlines())) < 400
    assert "\n\n\n" not in text


def test_a_waiting_job_says_what_it_waits_for_and_when_it_is_looked_at(deployment: Deployment) -> None:
    story = deployment.story
    story.fault(operation="create_job", code="ActiveJobAndScheduleQuotaReached")
    story.ask()
    found = deployment.json("explain", *JOB)
    assert found["state"] == "waiting"
    assert found["waits_for"] == found["why"] == "waiting for quota (ActiveJobAndScheduleQuotaReached)"
    assert found["next_look"] == story.record.not_before.isoformat().replace("+00:00", "Z")
    assert found["attempts"] == []
    assert "waiting for quota" in deployment.run("explain", *JOB).stdout


def test_a_job_whose_next_look_is_past_is_looked_at_with_every_run(deployment: Deployment) -> None:
    story = deployment.story
    story.fault(operation="create_job", code="ActiveJobAndScheduleQuotaReached")
    story.ask()
    past = datetime.now(UTC) - timedelta(hours=5)
    story.world.ledger.replace(story.version, replace(story.record, not_before=past))
    found = deployment.json("explain", *JOB)
    assert (found["state"], found["next_look"]) == ("waiting", "with every run of the timer")
    ((job,), told) = deployment.json("status")["jobs"], deployment.run("status").stdout
    assert (job["state"], job["next_look"]) == ("waiting", None)
    assert "every run" in told and f"{past:%H:%M:%S}Z" not in told


def test_a_placed_job_whose_task_is_not_in_batch_yet_waits_for_the_timer(deployment: Deployment) -> None:
    story = deployment.story
    story.fault(operation="create_task", status=403, code="AuthorizationFailure")
    story.ask()
    found = deployment.json("explain", *JOB)
    assert (found["state"], found["attempts"][0]["in_batch"]) == ("placed", "not in Batch")
    assert found["waits_for"] == "the next run of the timer, which adds the task again"
    assert "waiting for an operator" in found["why"]
    story.cancel()
    assert deployment.json("explain", *JOB)["waits_for"] == "the next run of the timer, which ends this attempt"
    assert story.created() == []


def test_a_disabled_batch_job_is_named_with_the_command_that_enables_it(deployment: Deployment) -> None:
    """Its pool has a free node, and no pool is to blame."""
    story = deployment.story
    story.ask()
    story.tick()
    job = story.job_id()
    disable(deployment, job)
    story.tick()
    assert not story.world.runner.running()
    found = deployment.json("explain", *JOB)
    assert found["state"] == "queued"
    assert found["why"] == f"Batch job {job} is disabled, so that none of its tasks starts"
    assert found["waits_for"] == f"the Batch job to be enabled: az batch job enable --job-id {job}"
    ((one,), told) = deployment.json("status")["jobs"], deployment.run("status").stdout
    assert one["why"] == f"{found['why']}: az batch job enable --job-id {job}"
    assert one["why"] in told
    story.worker.batch.enable_job(job)
    story.tick()
    assert "disabled" not in deployment.run("explain", *JOB).stdout + deployment.run("status").stdout


def test_a_task_that_still_runs_in_a_disabled_batch_job_waits_for_nothing(deployment: Deployment) -> None:
    story = deployment.story
    story.ask()
    story.tick()
    disable(deployment, story.job_id(), tasks="wait")
    found = deployment.json("explain", *JOB)
    assert (found["state"], found["waits_for"]) == ("running", "")
    assert "disabled" not in found["why"] + deployment.run("status").stdout


def test_a_task_in_a_disabled_batch_job_that_is_not_wanted_any_more_waits_for_its_end(deployment: Deployment) -> None:
    story = deployment.story
    story.ask()
    story.tick()
    disable(deployment, story.job_id())
    story.cancel()
    found = deployment.json("explain", *JOB)
    assert (found["state"], found["waits_for"]) == ("queued", "the next run of the timer, which ends this attempt")
    assert "disabled" not in found["why"] + deployment.run("status").stdout


def test_a_batch_job_that_cannot_be_read_is_said_beside_the_rest(deployment: Deployment) -> None:
    story = deployment.story
    story.ask()
    story.tick()
    disable(deployment, story.job_id())
    story.fault(operation="get_job", status=403, code="AuthorizationFailure")
    refused = "Azure Batch answered 403 AuthorizationFailure"
    (attempt,) = deployment.json("explain", *JOB)["attempts"]
    assert attempt["in_batch"].startswith(f"not read: {refused}"), "whose the job is comes first"
    status = deployment.json("status")
    assert [one["state"] for one in status["jobs"]] == ["placed"]
    (fault,) = status["faults"]
    assert fault.startswith(f"Batch job {story.job_id()} not read: {refused}")


def test_newer_requests_and_cancels_are_shown(deployment: Deployment) -> None:
    story = deployment.story
    story.ask()
    story.world.clock.advance(1)
    story.ask("m2")
    story.world.clock.advance(1)
    story.cancel()
    found = deployment.json("explain", *JOB)
    assert [one["request_id"] for one in found["next_requests"]] == ["m2"]
    assert found["cancel_asked"] is not None
    assert [(one["message"], one["result"]) for one in found["done"]] == [("c1", "cancel")]
    assert "m2" in deployment.run("explain", *JOB).stdout


def test_an_ended_job_shows_its_last_ends(deployment: Deployment) -> None:
    story = deployment.story
    story.ask()
    story.complete()
    story.until_done()
    story.ask("m2")
    story.complete(3)
    story.until_done()
    found = deployment.json("explain", *JOB)
    assert (found["state"], found["why"]) == ("ended", "failed: exit code 3")
    assert [(one["message"], one["result"], one["attempts"]) for one in found["done"]] == [
        ("m2", "failed", 1),
        ("m1", "completed", 1),
    ]
    assert len(deployment.json("explain", *JOB, "--done", "1")["done"]) == 1
    assert "exit code 3" in deployment.run("explain", *JOB).stdout


def test_an_unknown_job_is_said_to_be_unknown(deployment: Deployment) -> None:
    assert deployment.json("explain", "inference", PROJECT, "1", expect=1)["state"] == "unknown"


def test_status_shows_all_live_jobs_pools_and_rejected_messages(deployment: Deployment) -> None:
    story = deployment.story
    for model in ("1", "2", "3"):  # two pools with one node each
        entity = Entity(Kind.TRAINING, PROJECT, model)
        story.world.save_record(entity, status="Queued", taskId=None)
        story.deliver(story.message(f"m{model}", "Queued", entity, modelId=model))
        story.world.clock.advance(1)
    story.worker.notes.update(
        lambda notes: notes.with_cool_down("t4", story.now() + timedelta(hours=1), "its nodes never become usable")
    )
    for number in range(2):
        deployment.blobs.create(f"rejected/train-queue/{number}", b"?")
    found = deployment.json("status")
    assert (found["tenant"], found["live"]) == ("tenant", 3)
    assert [(job["entity"], job["state"], job["pool"]) for job in found["jobs"]] == [
        ("1", "running", "h100"),
        ("2", "running", "t4"),
        ("3", "queued", "h100"),
    ]
    assert found["counts"] == [
        {"state": "queued", "pool": "h100", "jobs": 1},
        {"state": "running", "pool": "h100", "jobs": 1},
        {"state": "running", "pool": "t4", "jobs": 1},
    ]
    assert [(pool["pool"], pool["why"]) for pool in found["pools"]] == [("t4", "its nodes never become usable")]
    assert [(one["queue"], one["messages"]) for one in found["rejected"]] == [("train-queue", 2)]
    assert found["faults"] == []
    text = deployment.run("status").stdout
    for expected in ("3 live jobs", "queued", "its nodes never become usable", "train-queue"):
        assert expected in text
    few = deployment.run("status", "--most", "1").stdout
    assert "... and 2 more" in few


def test_with_nothing_live_status_says_so(deployment: Deployment) -> None:
    assert "0 live jobs" in deployment.run("status").stdout


def test_settings_come_from_the_file_and_the_environment_wins(deployment: Deployment) -> None:
    deployment.story.ask()
    file = deployment.folder / "local.settings.json"
    file.write_text(json.dumps({"Values": {**deployment.settings, "WORKER_TENANT": "filed"}}), encoding="utf-8")
    assert deployment.run("status").stdout.startswith("tenant: 1 live jobs")
    deployment.settings = {}
    assert deployment.run("status").stdout.startswith("filed: 1 live jobs")


def test_wrong_settings_are_named_all_at_once(deployment: Deployment) -> None:
    told = deployment.run("status", expect=2, AZURE_BATCH_URL="", WORKER_MAX_PREEMPTIONS="many").stderr
    assert "setting AZURE_BATCH_URL" in told and "setting WORKER_MAX_PREEMPTIONS" in told


def test_when_batch_refuses_the_rest_is_shown(deployment: Deployment) -> None:
    deployment.story.ask()
    deployment.story.fault(operation="get_task", status=403, code="AuthenticationFailed")
    deployment.story.fault(operation="list_tasks", status=403, code="AuthenticationFailed")
    found = deployment.json("explain", *JOB)
    assert found["state"] == "placed"
    assert found["attempts"][0]["in_batch"].startswith("not read: Azure Batch answered 403 AuthenticationFailed: ")
    status = deployment.json("status")
    assert [job["state"] for job in status["jobs"]] == ["placed"]
    assert len(status["faults"]) == 1


def test_nothing_is_changed_and_no_secret_is_shown(deployment: Deployment) -> None:
    moved(deployment)
    before = {name: str(version) for name, _metadata, version in deployment.blobs.list_with_metadata("")}
    asked = len(deployment.story.events("request"))
    shown = [
        deployment.run(*command, *way) for command in (("explain", *JOB), ("status",)) for way in ((), ("--json",))
    ]
    assert {name: str(version) for name, _metadata, version in deployment.blobs.list_with_metadata("")} == before
    methods = {event["method"] for event in deployment.story.events("request")[asked:]}
    assert methods == {"GET"}
    for done in shown:
        for secret in (deployment.account.key, ACCOUNT_KEY, "sig=", "AccountKey"):
            assert secret not in done.stdout + done.stderr


def test_records_that_stand_still_are_named(deployment: Deployment) -> None:
    """Those of another version, too."""
    story = deployment.story
    story.ask()
    name = f"active/{story.record.entity.key}.json"
    ((_name, metadata, version),) = deployment.blobs.list_with_metadata(name)
    deployment.blobs.create_with_etag("active/embedding/0.json", b"{}", metadata)
    deployment.blobs.replace(name, b"{}", version, metadata | {"state": "parked"})
    faults = deployment.json("status")["faults"]
    assert len(faults) == 2 and all(fault.startswith("stands still: active/") for fault in faults)
    assert name in faults[1] and "parked" in faults[1]
    told = deployment.run("status").stdout
    assert "active/embedding/0.json" in told and name in told


def test_a_record_that_cannot_be_read_is_said_and_hides_no_other(deployment: Deployment) -> None:
    story = deployment.story
    story.ask()
    story.world.ledger.create(replace(story.record, entity=Entity(Kind.INFERENCE, PROJECT, "1")))
    name = f"active/{story.record.entity.key}.json"
    ((_name, metadata, version),) = deployment.blobs.list_with_metadata(name)
    deployment.blobs.replace(name, b'{"entity": 1}', version, metadata)
    status = deployment.json("status")
    assert status["live"] == 2 and len(status["jobs"]) == 1
    assert [fault for fault in status["faults"] if f"{name} cannot be read" in fault]
    assert f"{name} cannot be read" in deployment.run("explain", *JOB, expect=2).stderr

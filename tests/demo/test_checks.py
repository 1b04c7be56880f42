"""Each check of the demo passes on what a good run left, and fails on what a bad run would leave."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from local.demo import checks, scenes
from local.demo.attempts import attempts
from local.demo.blobs import expected_blobs
from local.demo.evidence import BatchTask, Evidence, Request, Text
from local.demo.finding import Finding
from local.demo.haste_log import WAITING, WAITING_AGAIN
from local.demo.summary import summarize

H100, T4 = "haste-shared-dev-h100-pool", "haste-shared-dev-t4-pool"

Spoil = Callable[[Evidence], Evidence]


def request(evidence: Evidence, kind: str, number: int = 0) -> Request:
    return [request for request in evidence.requests if request.kind == kind][number]


def tasks(evidence: Evidence, kind: str, number: int = 0) -> tuple[BatchTask, ...]:
    return evidence.tasks_of(request(evidence, kind, number))


def without_blob(part: str) -> Spoil:
    def spoil(evidence: Evidence) -> Evidence:
        names = tuple(name for name in evidence.blob_names if part not in name)
        assert len(names) < len(evidence.blob_names)
        return replace(evidence, blob_names=names)

    return spoil


def with_event(kind: str, after: str, **facts: Any) -> Spoil:
    """An event more, right behind the first one of kind `after` of the same task."""

    def spoil(evidence: Evidence) -> Evidence:
        known = evidence.select(after, task_id=facts["task"])[0]
        place = evidence.events.index(known) + 1
        event = {**known, "event": kind, **facts}
        return replace(evidence, events=(*evidence.events[:place], event, *evidence.events[place:]))

    return spoil


def without_events(*kinds: str, task_id: str) -> Spoil:
    return lambda evidence: replace(
        evidence,
        events=tuple(e for e in evidence.events if not (e["event"] in kinds and e.get("task") == task_id)),
    )


def with_text(source: str, content: str) -> Spoil:
    return lambda evidence: replace(evidence, texts=(*evidence.texts, Text(source, content)))


def with_model(**fields: Any) -> Spoil:
    return lambda evidence: replace(evidence, model={**evidence.model, **fields})


def with_layer(number: int, **fields: Any) -> Spoil:
    def spoil(evidence: Evidence) -> Evidence:
        layers = list(evidence.layers)
        layers[number] = {**layers[number], **fields}
        return replace(evidence, layers=tuple(layers))

    return spoil


def with_log_without(kind: str, sentence: re.Pattern[str]) -> Spoil:
    """HASTE's page of the second layer (imageryprep) or the model, without the lines that end with `sentence`."""

    def spoil(evidence: Evidence) -> Evidence:
        record = evidence.layers[1] if kind == "imageryprep" else evidence.model
        kept = [line for line in record["statusMessage"].splitlines() if not re.search(f"{sentence.pattern}$", line)]
        assert len(kept) < len(record["statusMessage"].splitlines())
        changed = "\n".join(kept)
        spoiler = with_layer(1, statusMessage=changed) if kind == "imageryprep" else with_model(statusMessage=changed)
        return spoiler(evidence)

    return spoil


def without_quota_errors(pool_id: str) -> Spoil:
    return lambda evidence: replace(
        evidence,
        events=tuple(
            {**event, "errors": []} if event["event"] == "pool_steady" and event["pool"] == pool_id else event
            for event in evidence.events
        ),
    )


def judged(check: Callable[[Evidence], Finding], evidence: Evidence) -> checks.Check:
    name = next(name for name, known in checks.CHECKS.items() if known is check)
    return next(found for found in checks.run_checks(evidence) if found.name == name)


def test_a_good_run_passes_every_check(good: Evidence) -> None:
    results = checks.run_checks(good)
    assert [check.detail for check in results if not check.ok] == []
    assert [check.name for check in results] == list(checks.CHECKS)


def test_a_demo_that_was_broken_off(good: Evidence) -> None:
    check = judged(checks.played_to_the_end, replace(good, trouble="waited 120 s in vain for training"))
    assert (check.ok, check.detail) == (False, "waited 120 s in vain for training")


@pytest.mark.parametrize("status", ["Queued", "InProgress", "Failed", None])
def test_a_record_that_is_not_processed(good: Evidence, status: str | None) -> None:
    for field in ("status", "inferenceStatus"):
        assert not judged(checks.every_record_processed, with_model(**{field: status})(good)).ok
    for number in range(2):
        assert not judged(checks.every_record_processed, with_layer(number, status=status)(good)).ok


def test_a_layer_that_was_never_asked_for(good: Evidence) -> None:
    check = judged(checks.every_record_processed, replace(good, layers=good.layers[:1]))
    assert (check.ok, check.detail) == (False, "1 layers instead of 2")


def test_a_job_inside_a_record_that_is_not_processed(good: Evidence) -> None:
    unfinished = [*good.model["inferenceJobs"][:-1], {**good.model["inferenceJobs"][-1], "status": "InProgress"}]
    check = judged(checks.every_record_processed, with_model(inferenceJobs=unfinished)(good))
    assert (check.ok, check.detail) == (False, "inference job 2 is InProgress")


def test_progress_that_is_not_complete(good: Evidence) -> None:
    assert not judged(checks.every_record_processed, with_model(inferenceProgressPct=85.71)(good)).ok
    assert not judged(checks.every_record_processed, with_layer(1, progressPct=75.0)(good)).ok


@pytest.mark.parametrize(
    "part",
    [
        "imageryprep_config_",
        "imagery_manifest.json",
        "processed_imagery_post_event_cog_",
        "building_footprints_",
        "logs/imagery_friendly.log",
        "/labels_",
        "train_labels_",
        "experiment_config_",
        "checkpoint/last.ckpt",
        "events.out.tfevents",
        "_predictions.tif",
        "_visualizer.tif",
        "predicted_damage_",
        "stdout.txt",
    ],
)
def test_a_blob_that_is_missing(good: Evidence, part: str) -> None:
    check = judged(checks.every_blob_present, without_blob(part)(good))
    assert not check.ok
    assert "is missing" in check.detail


def test_every_single_expected_blob_is_missed(good: Evidence) -> None:
    for wanted in expected_blobs(good):
        names = tuple(name for name in good.blob_names if not name.startswith(wanted.removesuffix("*")))
        assert not judged(checks.every_blob_present, replace(good, blob_names=names)).ok, wanted


def test_a_training_that_did_not_move(good: Evidence) -> None:
    _, second = tasks(good, "training")
    stayed = replace(good, tasks=tuple(task for task in good.tasks if task != second))
    assert "1 attempts instead of 2" in judged(checks.training_moved, stayed).detail


def test_a_training_that_moved_to_the_same_pool(good: Evidence) -> None:
    first, second = tasks(good, "training")
    events = tuple({**e, "pool": first.pool_id} if e.get("task") == second.task_id else e for e in good.events)
    check = judged(checks.training_moved, replace(good, events=events))
    assert (check.ok, "both attempts were on one pool" in check.detail) == (False, True)


@pytest.mark.parametrize(
    ("missing", "words"),
    [("run_lost", "did not lose its node"), ("request", "was not ended by the worker")],
)
def test_a_move_for_another_reason(good: Evidence, missing: str, words: str) -> None:
    first, _ = tasks(good, "training")
    events = tuple(
        event
        for event in good.events
        if not (event["event"] == missing and first.task_id in f"{event.get('task')} {event.get('path')}")
    )
    assert len(events) == len(good.events) - 1
    check = judged(checks.training_moved, replace(good, events=events))
    assert (check.ok, words in check.detail) == (False, True)


def test_a_second_attempt_that_failed(good: Evidence) -> None:
    _, second = tasks(good, "training")
    check = judged(checks.training_moved, without_events("task_completed", task_id=second.task_id)(good))
    assert "the second attempt did not succeed" in check.detail


def test_a_pool_at_its_quota_is_told(good: Evidence) -> None:
    told = judged(scenes.spilled_over, good).detail
    assert told == f"{H100} (AccountLowPriorityCoreQuotaReached), so to {T4}"


def test_a_training_that_went_to_its_preferred_pool(good: Evidence) -> None:
    first, _ = tasks(good, "training")
    moved = tuple(replace(task, pool_id=H100) if task == first else task for task in good.tasks)
    assert f"it went to {H100}" in judged(scenes.spilled_over, replace(good, tasks=moved)).detail
    elsewhere = tuple(replace(task, pool_id="spare") if task == first else task for task in good.tasks)
    assert "spare is no pool for training" in judged(scenes.spilled_over, replace(good, tasks=elsewhere)).detail


def test_a_training_that_went_elsewhere_although_its_pool_could_grow(good: Evidence) -> None:
    check = judged(scenes.spilled_over, without_quota_errors(H100)(good))
    assert (check.ok, check.detail) == (False, f"{H100} was not at its quota")
    # a resize that still goes on says nothing of a quota
    first, _ = tasks(good, "training")
    resizing = with_event("pool_resizing", after="task_created", task=first.task_id, pool=H100)
    assert not judged(scenes.spilled_over, resizing(good)).ok


def test_a_training_that_went_to_a_pool_at_its_quota(good: Evidence) -> None:
    first, _ = tasks(good, "training")
    full = with_event("pool_steady", "task_created", task=first.task_id, pool=T4, errors=["AccountCoreQuotaReached"])
    check = judged(scenes.spilled_over, full(good))
    assert (check.ok, check.detail) == (False, f"{T4} was at its quota, too")


def test_a_layer_that_never_waited(good: Evidence) -> None:
    check = judged(scenes.waited_for_capacity, with_log_without("imageryprep", WAITING)(good))
    assert (check.ok, "never said" in check.detail) == (False, True)


@pytest.mark.parametrize("pool_id", [H100, T4])
def test_a_layer_that_waited_although_a_pool_could_grow(good: Evidence, pool_id: str) -> None:
    check = judged(scenes.waited_for_capacity, without_quota_errors(pool_id)(good))
    assert f"{pool_id} was not at its quota when it began to wait" in check.detail


def test_a_layer_that_waited_and_never_ran(good: Evidence) -> None:
    (task,) = tasks(good, "imageryprep", 1)
    never = replace(good, tasks=tuple(one for one in good.tasks if one != task))
    assert "0 tasks instead of 1" in judged(scenes.waited_for_capacity, never).detail
    unfinished = without_events("task_completed", task_id=task.task_id)(good)
    assert "did not succeed" in judged(scenes.waited_for_capacity, unfinished).detail


def test_a_layer_whose_task_was_there_before_it_waited(good: Evidence) -> None:
    (task,) = tasks(good, "imageryprep", 1)
    early = good.requests[1].asked_at.isoformat()
    events = tuple(
        {**event, "time": early} if (event["event"], event.get("task")) == ("task_created", task.task_id) else event
        for event in good.events
    )
    check = judged(scenes.waited_for_capacity, replace(good, events=events))
    assert "added before it waited" in check.detail


def test_a_layer_that_was_sent_to_a_pool_at_its_quota(good: Evidence) -> None:
    (task,) = tasks(good, "imageryprep", 1)
    full = next(event for event in good.select("pool_steady") if event.get("errors"))
    late = {**full, "pool": task.pool_id, "time": good.select("task_created", task_id=task.task_id)[0]["time"]}
    check = judged(scenes.waited_for_capacity, replace(good, events=(*good.events, late)))
    assert f"{task.pool_id} was still at its quota" in check.detail


def test_two_losses_are_told(good: Evidence) -> None:
    assert judged(scenes.preempted_twice, good).detail == f"on {T4}, then on {H100}; 2 tasks, 3 runs"


@pytest.mark.parametrize("attempt", [0, 1])
def test_a_training_that_lost_its_node_once_only(good: Evidence, attempt: int) -> None:
    task = tasks(good, "training")[attempt]
    check = judged(scenes.preempted_twice, without_events("run_lost", task_id=task.task_id)(good))
    assert "1 losses instead of 2" in check.detail


def test_a_training_that_did_not_run_again(good: Evidence) -> None:
    _, second = tasks(good, "training")
    last = good.select("task_started", task_id=second.task_id)[-1]
    check = judged(scenes.preempted_twice, replace(good, events=tuple(event for event in good.events if event != last)))
    assert "did not run again after each loss" in check.detail
    failed = without_events("task_completed", task_id=second.task_id)(good)
    assert "its last task did not succeed" in judged(scenes.preempted_twice, failed).detail


def test_how_much_was_lost_may_be_told(good: Evidence) -> None:
    told = good.model["statusMessage"].replace("Interrupted, waiting", "Interrupted after 3 h 12 min, waiting")
    assert told != good.model["statusMessage"]
    assert judged(scenes.preempted_twice, with_model(statusMessage=told)(good)).ok


def test_losses_that_hastes_page_does_not_show(good: Evidence) -> None:
    check = judged(scenes.preempted_twice, with_log_without("training", WAITING_AGAIN)(good))
    assert (check.ok, f"said {WAITING_AGAIN.pattern!r} 0 times" in check.detail) == (False, True)


def test_a_doubled_task(good: Evidence) -> None:
    """A second task of the same training, alive together with the first."""
    _, second = tasks(good, "training")
    twin = replace(second, task_id="trn-twin")
    both = with_event("task_created", after="task_created", task=second.task_id)(good)
    events = [dict(event) for event in both.events]
    doubled = [event for event in events if event["event"] == "task_created" and event["task"] == second.task_id]
    doubled[0]["task"] = twin.task_id
    check = judged(checks.never_two_live_tasks, replace(both, events=tuple(events), tasks=(*good.tasks, twin)))
    assert (check.ok, "a second live task of training" in check.detail) == (False, True)


def test_a_second_task_before_the_first_one_has_ended(good: Evidence) -> None:
    first, _ = tasks(good, "training")
    never_ended = without_events("task_completed", task_id=first.task_id)(good)
    assert not judged(checks.never_two_live_tasks, never_ended).ok


def test_a_second_process_of_one_task(good: Evidence) -> None:
    """Batch's own re-run while the lost run still goes on somewhere."""
    (only,) = tasks(good, "imageryprep")
    check = judged(
        checks.never_two_live_tasks, with_event("task_started", "task_started", task=only.task_id, run=9)(good)
    )
    assert (check.ok, "a second live process of imageryprep" in check.detail) == (False, True)


@pytest.mark.parametrize(
    "leak",
    [
        "https://storage.invalid/data/blob?sv=2026-02-06&sr=b&sig=abc%2Bdef%3D&se=2026",
        "AccountName=a;AccountKey=bm90LWEtcmVhbC1rZXk=;EndpointSuffix=core.windows.net",
        "Authorization: Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl",
        "SharedKey localbatch:bm90LWEtcmVhbC1rZXktYXQtYWxsLW5vdC1yZWFs",
    ],
)
@pytest.mark.parametrize("source", ["log host", "worker blob active/training/x.json", "environment of task trn-1"])
def test_a_leaked_secret(good: Evidence, leak: str, source: str) -> None:
    check = judged(checks.no_secret_readable, with_text(source, f"before {leak} after")(good))
    assert not check.ok
    assert source in check.detail
    assert leak not in check.detail


def test_a_leaked_key_that_looks_like_nothing(good: Evidence) -> None:
    for secret in good.secrets:
        check = judged(
            checks.no_secret_readable, with_text("command line of task trn-1", f"--with {secret.value}")(good)
        )
        assert not check.ok
        assert secret.value not in check.detail


def test_a_redacted_signature_is_no_leak(good: Evidence) -> None:
    assert judged(checks.no_secret_readable, with_text("log", "https://storage.invalid/a?sig=REDACTED")(good)).ok


def test_a_second_label_project(good: Evidence) -> None:
    label_projects = [name for name in good.blob_names if "/labels_" in name and "/artifacts/" not in name]
    assert len(label_projects) == 2
    for label_project in label_projects:
        twin = label_project.replace(".json", "-2.json")
        assert not judged(checks.follow_ups_once, replace(good, blob_names=(*good.blob_names, twin))).ok
    assert not judged(checks.follow_ups_once, without_blob("/labels_")(good)).ok


def test_a_follow_up_that_came_twice_or_not_at_all(good: Evidence) -> None:
    (automatic,) = tasks(good, "inference", 0)
    twin = replace(automatic, task_id="inf-twin")
    created = {**good.select("task_created", task_id=automatic.task_id)[0], "task": twin.task_id}
    twice = replace(good, tasks=(*good.tasks, twin), events=(*good.events, created))
    assert "inference 1 had 2 tasks" in judged(checks.follow_ups_once, twice).detail
    never = replace(good, tasks=tuple(task for task in good.tasks if task != automatic))
    assert "inference 1 had 0 tasks" in judged(checks.follow_ups_once, never).detail


def test_a_task_added_twice(good: Evidence) -> None:
    (automatic,) = tasks(good, "inference", 0)
    again = with_event("task_created", after="task_completed", task=automatic.task_id)(good)
    assert "was added 2 times" in judged(checks.follow_ups_once, again).detail


def test_an_inference_job_that_nobody_ran(good: Evidence) -> None:
    ghost = {**good.model["inferenceJobs"][0], "taskId": "inf-ghost"}
    model = with_model(inferenceJobs=[*good.model["inferenceJobs"], ghost])
    assert not judged(checks.follow_ups_once, model(good)).ok


def test_a_demo_that_never_got_anywhere_fails_every_check() -> None:
    nothing = Evidence("tenanta", (), (), {}, (), (), (), (), (), trouble="the layer is Failed")
    summary = summarize(nothing, checks.run_checks(nothing))
    assert summary["ok"] is False
    assert [check["name"] for check in summary["checks"] if check["ok"]] == []


def test_the_summary(good: Evidence) -> None:
    summary = summarize(good, checks.run_checks(good))
    assert summary["ok"] is True
    assert [(job["kind"], job["state"], len(job["attempts"])) for job in summary["jobs"]] == [
        ("imageryprep", "Processed", 1),
        ("imageryprep", "Processed", 1),
        ("training", "Processed", 2),
        ("inference", "Processed", 1),
        ("inference", "Processed", 1),
    ]
    first, second = summary["jobs"][2]["attempts"]
    assert (first["pool"], first["outcome"]) == (T4, "preempted, ended by the worker")
    assert (second["pool"], second["outcome"]) == (H100, "preempted, run again, succeeded")
    assert first["queued_at"] <= first["started_at"] < first["ended_at"] < second["queued_at"]
    assert set(summary) == {"ok", "jobs", "checks"}
    assert set(summary["jobs"][0]) == {"kind", "tenant", "entity", "state", "attempts", "seconds"}
    assert set(first) == {"pool", "task_id", "queued_at", "started_at", "ended_at", "outcome"}
    assert set(summary["checks"][0]) == {"name", "ok", "detail"}


def test_one_failed_check_fails_the_demo(good: Evidence) -> None:
    assert summarize(good, [checks.Check("a", True, ""), checks.Check("b", False, "")])["ok"] is False
    assert summarize(good, [])["ok"] is False


@pytest.mark.parametrize(
    ("left_out", "outcome"),
    [(("task_completed",), "preempted, not ended"), (("run_lost",), "ended by the worker")],
)
def test_how_an_attempt_ended(good: Evidence, left_out: tuple[str, ...], outcome: str) -> None:
    first, _ = tasks(good, "training")
    spoiled = without_events(*left_out, task_id=first.task_id)(good)
    assert attempts(spoiled, request(spoiled, "training"))[0].outcome == outcome


def test_requests_of_one_model_do_not_share_tasks(good: Evidence) -> None:
    automatic, explicit = tasks(good, "inference", 0), tasks(good, "inference", 1)
    listed: list[Mapping[str, Any]] = list(good.model["inferenceJobs"])
    assert [task.task_id for task in (*automatic, *explicit)] == [job["taskId"] for job in listed]

"""Batch jobs of version 0.1.0 that nothing is live in: the requests that ended in them tell whose they are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.blob import ContainerClient

from shared.housekeeping import past_jobs
from shared.housekeeping.past_jobs import PastJobs
from shared.kinds import Entity, Kind
from shared.ledger.blob_ledger import BlobLedger
from shared.protocol.outcome import Outcome, Result, Run
from shared.protocol.record import Done
from shared.storage.blob_container import BlobContainer
from tests.ledger.conftest import container as container
from tests.support.batch_account import Account

AT = datetime(2026, 1, 5, tzinfo=UTC)
OURS, ANOTHERS = "contoso-training-h100-2026w01", "contoso-training-t4-2026w01"


def ended(ledger: BlobLedger, number: int, job_id: str | None) -> None:
    entity = Entity(Kind.TRAINING, "9f3c2b7e-41d0-4c55-8a6e-0b7d5e1f2a34", str(number))
    run = Run(entity, f"m{number}", 1, job_id, f"trn-{number}" if job_id else None)
    ledger.add_done(entity, Done(f"m{number}", AT, Outcome(Result.COMPLETED, "done", AT), run))
    ledger.add_done(entity, Done(f"c{number}", AT + timedelta(seconds=1)))


@pytest.mark.parametrize("at_once", [3, 200])
def test_a_job_in_which_a_request_of_ours_has_ended_is_claimed_and_no_other(
    container: ContainerClient, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    worker_blobs = BlobContainer(container)
    monkeypatch.setattr(past_jobs, "_MOST_READ", at_once)
    account = Account()
    for job in (OURS, ANOTHERS):
        account.batch.create_job(job, "h100", None, "contoso")
    ledger = BlobLedger(worker_blobs)
    for number in range(5):
        ended(ledger, number, OURS if number == 4 else None)
    worker_blobs.create("done/training/0000/broken.json", b"{}")
    batch, jobs = account.of_tenant(), PastJobs(worker_blobs)
    runs = 0
    while not (found := [job.job_id for job in batch.jobs_of("contoso")]) and runs < 10:
        jobs.claim(batch)
        runs += 1
    assert found == [OURS]
    assert runs == (1 if at_once == 200 else 4), "each run reads a part of the eleven entries"
    for _ in range(3):
        jobs.claim(batch)
    metadata = {one["name"]: one["value"] for one in account.raw("GET", f"/jobs/{OURS}")["metadata"]}
    assert metadata["haste-worker-account"] == "contosostorage"
    assert [job.job_id for job in batch.unclaimed()] == [ANOTHERS]
    assert len(account.raw("GET", f"/jobs/{ANOTHERS}")["metadata"]) == 1


def test_without_such_a_job_nothing_is_read() -> None:
    account = Account()
    batch = account.of_tenant()
    batch.create_job(OURS, "h100", None, "contoso")
    batch.jobs_of("contoso")
    PastJobs(container=None).claim(batch)  # type: ignore[arg-type]  # it would fail

"""Which Batch jobs one tenant of a shared account may use, by whatever call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shared.batch.tenant_batch import TenantBatch
from shared.batch.types import Whose
from shared.errors import JobOver, NotOurs
from tests.support.batch_account import Account
from tests.support.batch_calls import body
from tests.support.passing_waits import PassingWaits

CALLS: dict[str, Callable[[TenantBatch, str], Any]] = {
    "enable_job": lambda batch, job: batch.enable_job(job),
    "terminate_job": lambda batch, job: batch.terminate_job(job),
    "delete_job": lambda batch, job: batch.delete_job(job),
    "create_task": lambda batch, job: batch.create_task(job, body("trn-1")),
    "spend_task_id": lambda batch, job: batch.spend_task_id(job, "trn-1"),
    "task": lambda batch, job: batch.task(job, "trn-1"),
    "live_tasks": lambda batch, job: batch.live_tasks(job),
    "tasks": lambda batch, job: batch.tasks(job),
    "terminate_task": lambda batch, job: batch.terminate_task(job, "trn-1"),
    "delete_stuck_task": lambda batch, job: batch.delete_stuck_task(job, "trn-1"),
    "read_task_file": lambda batch, job: batch.read_task_file(job, "trn-1", "wd/a", 0, 1),
    "task_file_names": lambda batch, job: batch.task_file_names(job, "trn-1", "wd"),
}


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def test_every_call_that_names_a_job_is_among_these() -> None:
    free = {"job", "is_ours", "whose_task", "create_job", "jobs_of", "unclaimed", "claim"}
    inner = {"stamp_job", "output_containers"}  # what the check itself is made of
    taking_a_job = {
        name
        for name in dir(TenantBatch)
        if not name.startswith("_") and "job_id" in getattr(TenantBatch, name).__code__.co_varnames[:2]
    }
    assert taking_a_job - free - inner == CALLS.keys()


@pytest.mark.parametrize("call", CALLS)
def test_no_call_reaches_into_anothers_job(call: str) -> None:
    account = Account()
    account.batch.create_job("theirs", "h100", None, "rival", "rivalstorage")
    account.batch.create_task("theirs", body("trn-1"))
    batch = account.of_tenant()
    before = len(account.requests())
    for _ in range(3):
        with pytest.raises(NotOurs, match=r"theirs .*contosostorage"):
            CALLS[call](batch, "theirs")
    assert [one["operation"] for one in account.requests()[before:]] == ["get_job"], "and it is asked once"


@pytest.mark.parametrize("call", CALLS)
def test_in_the_legacy_mode_jobs_are_not_looked_at(call: str) -> None:
    account = Account()
    account.batch.create_job("bare", "h100", None, None)
    account.batch.create_task("bare", body("trn-1"))
    before = len(account.requests("get_job"))
    if call != "enable_job":  # it is enabled already
        CALLS[call](account.of_tenant(shares=False), "bare")
    assert len(account.requests("get_job")) == before


def test_that_it_was_anothers_is_looked_at_again_after_a_while() -> None:
    account = Account()
    account.batch.create_job("job", "h100", None, "contoso", "mistaken")
    batch = account.of_tenant()
    with pytest.raises(NotOurs):
        batch.tasks("job")
    metadata = [{"name": "haste-worker-account", "value": "contosostorage"}]
    account.raw("PATCH", "/jobs/job", {"metadata": metadata})
    with pytest.raises(NotOurs):
        batch.tasks("job")
    account.world.advance(600)
    assert batch.tasks("job") == []


def test_a_job_that_is_not_there_tells_so_itself() -> None:
    batch = Account().of_tenant()
    with pytest.raises(JobOver):
        batch.tasks("absent")
    assert batch.whose_task("absent", "trn-1") is Whose.NOBODYS


def test_a_bare_job_that_does_not_hold_the_task_any_more_takes_none() -> None:
    account = Account()
    account.batch.create_job("bare", "h100", None, None)
    with pytest.raises(JobOver):
        account.of_tenant().spend_task_id("bare", "trn-1")
    assert account.requests("create_task") == []


def test_a_job_that_somebody_else_was_faster_to_make_is_looked_at() -> None:
    account = Account()
    batch = account.of_tenant()
    assert batch.create_job("job", "h100", 0, "contoso")
    assert not batch.create_job("job", "h100", 0, "contoso")
    assert not account.of_tenant("contoso", "another").is_ours(batch.job("job"))


def test_what_an_operator_has_noted_on_a_job_stays_when_it_is_stamped() -> None:
    account = Account()
    account.batch.create_job("contoso-job", "h100", None, "contoso")
    noted = [{"name": "haste-worker-tenant", "value": "contoso"}, {"name": "owner", "value": "maps"}]
    account.raw("PATCH", "/jobs/contoso-job", {"metadata": noted})
    batch = account.of_tenant()
    batch.jobs_of("contoso")
    (job,) = batch.unclaimed()
    batch.claim(job)
    stamped = {"name": "haste-worker-account", "value": "contosostorage"}
    assert account.raw("GET", "/jobs/contoso-job")["metadata"] == [*noted, stamped]

"""The Batch job of a placement: there before anything is stored, and never one that cannot be used."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from shared.errors import NeedsOperator, QuotaReached, Transient
from shared.kinds import Kind
from shared.pools.job_names import with_successors
from shared.pools.placer import JobNames, LegacyNames, Placer, SharedNames, read_counts, read_pools
from shared.pools.routing import Circumstances, route
from shared.protocol.record import Placement
from tests.support.batch_account import Account
from tests.support.passing_waits import PassingWaits

CANDIDATES = ("h100", "t4")
WEEK_JOB = "contoso-training-h100-2026w02"
SHARED = SharedNames("contoso")
LEGACY = LegacyNames(dict.fromkeys(Kind, "nightly"), dict.fromkeys(Kind, CANDIDATES))


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


class Placing:
    def __init__(
        self,
        account: Account | None = None,
        names: JobNames = SHARED,
        candidates: Sequence[str] = CANDIDATES,
    ) -> None:
        self.account = account or Account()
        self.candidates = candidates
        self.batch = self.account.of_tenant(shares=names.tenant is not None)
        self.placer = Placer(self.batch, lambda _kind: candidates, names)

    def place(self, kind: Kind = Kind.TRAINING, task: str = "trn-1") -> Placement:
        around = Circumstances(self.account.clock.now())
        decision = route(self.candidates, read_pools(self.batch, read_counts(self.batch)), around)
        return self.placer.place(kind, decision, task, self.account.clock.now())

    def job(self, job_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.account.raw("GET", f"/jobs/{job_id}")
        return found

    def make_job(self, job_id: str, pool: str = "h100", tenant: str | None = "contoso") -> None:
        self.batch.create_job(job_id, pool, None, tenant)

    def end_job(self, job_id: str) -> None:
        self.account.raw("POST", f"/jobs/{job_id}/terminate", expect=202)


def test_two_jobs_in_quick_succession_spill_over_to_two_batch_jobs_and_none_is_pointed_elsewhere() -> None:
    """The first takes the only node of the preferred pool."""
    account = Account(
        [
            {"id": "h100", "targetLowPriorityNodes": 1, "start_seconds": 0},
            {"id": "t4", "targetLowPriorityNodes": 1, "start_seconds": 0},
        ]
    )
    placing = Placing(account, LEGACY)
    first = placing.place(task="trn-1")
    account.batch.spend_task_id(first.job_id, "trn-1")
    account.world.tick()
    second = placing.place(task="trn-2")
    assert [(one.pool_id, one.job_id) for one in (first, second)] == [("h100", "nightly-h100"), ("t4", "nightly-t4")]
    assert [placing.job(one.job_id)["poolInfo"]["poolId"] for one in (first, second)] == ["h100", "t4"]
    assert placing.job(first.job_id)["state"] == placing.job(second.job_id)["state"] == "active"
    assert account.requests("update_job") == account.requests("disable_job") == []


def test_the_job_is_made_once_with_tenant_and_priority_of_its_class() -> None:
    placing = Placing()
    assert placing.place().job_id == placing.place().job_id == WEEK_JOB
    assert len(placing.account.requests("create_job")) == 1
    job = placing.job(WEEK_JOB)
    assert job["metadata"] == [
        {"name": "haste-worker-tenant", "value": "contoso"},
        {"name": "haste-worker-account", "value": "contosostorage"},
    ]
    inference, imagery = placing.place(Kind.INFERENCE), placing.place(Kind.IMAGERYPREP)
    assert inference.job_id == imagery.job_id == "contoso-interactive-h100-2026w02"
    assert placing.job(inference.job_id)["priority"] > job.get("priority", 0), "people wait for inferences"


def test_in_the_legacy_mode_the_job_is_bare_as_hastes() -> None:
    placing = Placing(names=LEGACY)
    job = placing.job(placing.place().job_id)
    assert "metadata" not in job or job["metadata"] == []
    (request,) = [one for one in placing.account.transport.sent if one.method == "POST"]
    body = request.content if isinstance(request.content, str) else bytes(request.content).decode()
    assert set(json.loads(body)) == {"id", "poolInfo"}


def test_a_disabled_job_is_enabled_again() -> None:
    """HASTE's own app disables the job whenever one of its tasks ends."""
    placing = Placing(names=LEGACY)
    placing.make_job("nightly-h100", tenant=None)
    placing.account.raw("POST", "/jobs/nightly-h100/disable", {"disableTasks": "requeue"}, expect=202)
    assert placing.job("nightly-h100")["state"] == "disabled"
    assert placing.place().job_id == "nightly-h100"
    placing.account.world.advance(2)
    assert placing.job("nightly-h100")["state"] == "active"


def test_a_job_of_hastes_that_is_still_being_disabled_takes_the_task() -> None:
    """It waits for the tasks that run in it; the timer enables it later."""
    placing = Placing(names=LEGACY)
    placing.make_job("nightly-h100", tenant=None)
    placing.account.raw("POST", "/jobs/nightly-h100/disable", {"disableTasks": "requeue"}, expect=202)
    placing.account.fault(operation="enable_job", status=409, code="OperationInvalidForCurrentState")
    assert placing.place().job_id == "nightly-h100"


def test_a_job_of_our_own_that_an_operator_has_disabled_takes_nothing_and_stays_so() -> None:
    placing = Placing()
    placing.make_job(WEEK_JOB)
    placing.account.raw("POST", f"/jobs/{WEEK_JOB}/disable", {"disableTasks": "requeue"}, expect=202)
    with pytest.raises(NeedsOperator, match=f"az batch job enable --job-id {WEEK_JOB}"):
        placing.place()
    placing.account.world.advance(2)
    assert placing.job(WEEK_JOB)["state"] == "disabled"


def test_a_job_that_is_gone_for_another_request_is_not_made_again() -> None:
    placing, now = Placing(), Placing().account.clock.now()
    decision = route(("h100",), read_counts(placing.batch), Circumstances(now))
    placed = placing.placer.place(Kind.TRAINING, decision, "trn-1", now, gone=lambda: {WEEK_JOB})
    assert placed.job_id == f"{WEEK_JOB}-2"


@pytest.mark.parametrize("ended", [1, 2, 9])
def test_a_job_that_is_over_gets_a_successor(ended: int) -> None:
    placing = Placing()
    names = list(with_successors(WEEK_JOB))
    for name in names[:ended]:
        placing.make_job(name)
        placing.end_job(name)
    assert placing.place().job_id == names[ended]


def test_with_all_successors_over_the_job_waits() -> None:
    placing = Placing()
    for name in with_successors(WEEK_JOB):
        placing.make_job(name)
        placing.end_job(name)
    with pytest.raises(Transient, match=WEEK_JOB):
        placing.place()


@pytest.mark.parametrize(
    "names",
    [SharedNames("contoso"), LegacyNames(dict.fromkeys(Kind, "nightly"), dict.fromkeys(Kind, ("h100",)))],
)
def test_a_job_bound_to_another_pool_is_left_alone(names: JobNames) -> None:
    placing = Placing(names=names, candidates=("h100",))
    named = placing.placer.job_id(Kind.TRAINING, "h100", placing.account.clock.now())
    placing.make_job(named, "t4")
    placed = placing.place()
    assert placed.job_id == f"{named}-h100"
    assert placing.job(placed.job_id)["poolInfo"]["poolId"] == "h100"
    assert placing.job(named)["poolInfo"]["poolId"] == "t4"


def test_a_job_of_its_own_name_that_is_bound_to_another_pool_is_passed_over_as_well() -> None:
    placing = Placing()
    placing.make_job(WEEK_JOB, "t4")
    placing.make_job(f"{WEEK_JOB}-h100", "t4")
    placed = placing.place()
    assert placed.job_id == f"{WEEK_JOB}-h100-2"
    assert placing.job(placed.job_id)["poolInfo"]["poolId"] == "h100"


def test_a_job_whose_pool_is_gone_and_was_made_anew_under_another_name_is_left_alone() -> None:
    """The legacy deployment's pool was replaced: the old job is bound to what is not there any more."""
    placing = Placing(
        names=LegacyNames(dict.fromkeys(Kind, "nightly"), dict.fromkeys(Kind, ("h100",))), candidates=("h100",)
    )
    placing.make_job("nightly", "a-pool-that-was")
    assert placing.place().job_id == "nightly-h100"


def test_another_tenants_job_of_the_same_name_is_left_alone() -> None:
    """Tenant a with pool b-training-c and tenant a-training-b... : names with dashes can meet."""
    placing = Placing()
    placing.make_job(WEEK_JOB, tenant="another")
    assert placing.place().job_id == f"{WEEK_JOB}-2"


def test_quota_is_told_as_quota() -> None:
    placing = Placing(Account(quotas={"active_jobs": 0}))
    with pytest.raises(QuotaReached) as raised:
        placing.place()
    assert raised.value.code == "ActiveJobAndScheduleQuotaReached"


# --- reading the pools ------------------------------------------------------------------------------------------


def test_all_pools_are_read_by_two_calls() -> None:
    account = Account([{"id": f"p{n}", "targetLowPriorityNodes": 1, "start_seconds": 0} for n in range(20)])
    reading = read_pools(account.of_tenant(), read_counts(account.of_tenant()))
    assert reading.counts is not None and reading.pools is not None
    assert set(reading.counts) == set(reading.pools) == {f"p{n}" for n in range(20)}
    assert sorted(one["operation"] for one in account.requests()) == ["list_pool_node_counts", "list_pools"]


FAULTS = [{"status": 503}, {"status": 400, "code": "InvalidQuery"}]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault["status"]))
@pytest.mark.parametrize("broken", [["list_pools"], ["list_pool_node_counts"], ["list_pools", "list_pool_node_counts"]])
def test_a_reading_that_fails_hides_neither_the_other_nor_its_reason(
    broken: list[str], fault: dict[str, Any], waits: PassingWaits
) -> None:
    account = Account()
    for operation in broken:
        account.fault(operation=operation, **fault)
    reading = read_pools(account.of_tenant(), read_counts(account.of_tenant()))
    assert (reading.pools is None) is ("list_pools" in broken)
    assert (reading.counts is None) is ("list_pool_node_counts" in broken)
    assert str(fault["status"]) in reading.fault
    assert sum(waits.seconds) < 60


@pytest.mark.parametrize(
    ("operation", "what"), [("list_pool_node_counts", "nodes not counted"), ("list_pools", "pools not read")]
)
def test_a_reading_that_is_denied_names_what_is_missing(operation: str, what: str) -> None:
    account = Account()
    account.fault(operation=operation, status=403, code="AuthorizationFailure")
    with pytest.raises(NeedsOperator, match=f"{what} .*403 AuthorizationFailure: .* role Azure Batch Job Submitter"):
        read_pools(account.of_tenant(), read_counts(account.of_tenant()))


def test_a_task_of_hastes_own_app_is_placed_where_it_is() -> None:
    placing = Placing()
    placing.make_job("haste-demo-pool", "t4", tenant=None)
    placed = placing.placer.adopted("haste-demo-pool", "trn-x", placing.account.clock.now())
    assert (placed.pool_id, placed.job_id, placed.task_id) == ("t4", "haste-demo-pool", "trn-x")
    gone = placing.placer.adopted("gone", "trn-x", placing.account.clock.now())
    assert (gone.pool_id, gone.job_id) == ("", "gone")


# --- jobs that were seen lately -----------------------------------------------------------------------------------


def test_a_job_of_our_own_that_was_seen_lately_is_not_asked_for_again() -> None:
    placing = Placing()
    placing.place()
    asked = len(placing.account.requests("get_job"))
    placing.account.world.advance(9 * 60)
    assert placing.place().job_id == WEEK_JOB
    assert len(placing.account.requests("get_job")) == asked
    placing.account.world.advance(2 * 60)
    placing.place()
    assert len(placing.account.requests("get_job")) > asked


def test_once_it_is_known_to_be_over_it_is_looked_at_again() -> None:
    placing = Placing()
    placing.place()
    placing.end_job(WEEK_JOB)
    placing.placer.forget(WEEK_JOB)
    assert placing.place().job_id == f"{WEEK_JOB}-2"


def test_a_job_of_hastes_is_always_looked_at_since_its_app_disables_it() -> None:
    names = LegacyNames(dict.fromkeys(Kind, "nightly"), dict.fromkeys(Kind, ("h100",)))
    placing = Placing(names=names, candidates=("h100",))
    placing.place()
    asked = len(placing.account.requests("get_job"))
    placing.place()
    assert len(placing.account.requests("get_job")) > asked

"""Names of Batch jobs: short enough, distinct, and in the legacy mode HASTE's own."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.pools.job_names import (
    legacy_job_id,
    pool_scoped_job_id,
    shared_job_id,
    week_named,
    week_of,
    with_successors,
)

MONDAY = datetime(2026, 8, 10, 0, 0, tzinfo=UTC)
SAMPLES = Path(__file__).parents[1] / "haste_samples/batch-tasks"
_ids = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=64)


def test_a_shared_job_is_named_by_tenant_class_pool_and_week() -> None:
    assert shared_job_id("contoso", "training", "h100-spot", MONDAY) == "contoso-training-h100-spot-2026w33"
    assert (
        shared_job_id("contoso", "training", "h100-spot", MONDAY + timedelta(days=7))
        == "contoso-training-h100-spot-2026w34"
    )


@pytest.mark.parametrize(
    ("day", "week"),
    [
        (datetime(2026, 8, 16, 23, 59, 59, tzinfo=UTC), "2026w33"),
        (datetime(2026, 8, 17, tzinfo=UTC), "2026w34"),
        (datetime(2026, 1, 1, tzinfo=UTC), "2026w01"),
        (datetime(2027, 1, 3, tzinfo=UTC), "2026w53"),
        (datetime(2024, 12, 30, tzinfo=UTC), "2025w01"),
    ],
)
def test_a_week_begins_on_monday_and_belongs_to_the_year_of_its_thursday(day: datetime, week: str) -> None:
    assert shared_job_id("t", "training", "p", day) == f"t-training-p-{week}"
    began = week_of(day)
    assert week_named(f"t-training-p-{week}") == began
    assert began.weekday() == 0 and timedelta() <= day - began < timedelta(days=7)


def test_the_week_in_a_name_is_read_from_its_end() -> None:
    assert week_named("t-training-2025w01-2026w33") == MONDAY
    assert week_named("t-training-p-2026w33-p") == MONDAY, "a name that another pool had taken"
    assert week_named("h100-pool") is None
    assert week_named("t-training-p-2026w99") is None


@given(
    _ids,
    _ids,
    st.sampled_from(["training", "interactive"]),
    st.sampled_from(["training", "interactive"]),
    _ids,
    st.booleans(),
)
def test_shared_job_ids_fit_and_are_distinct_for_one_tenant(
    tenant: str, pool: str, class_1: str, class_2: str, pool_2: str, same_week: bool
) -> None:
    first = shared_job_id(tenant, class_1, pool, MONDAY)
    second = shared_job_id(tenant, class_2, pool_2, MONDAY if same_week else MONDAY + timedelta(days=7))
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", first)
    assert (first == second) is ((class_1, pool) == (class_2, pool_2) and same_week)


def test_a_name_that_had_to_be_cut_keeps_tenant_and_week_and_stays_distinct() -> None:
    long = "p" * 60
    names = {shared_job_id("a-tenant-of-24-characters", "training", long + end, MONDAY) for end in ("1", "2", "3")}
    assert len(names) == 3
    for name in names:
        assert len(name) == 61
        assert name.startswith("a-tenant-of-24-characters-training-") and name.endswith("-2026w33")
        assert [week_named(successor) for successor in with_successors(name)] == [MONDAY] * 10


@given(_ids)
def test_successors_fit_begin_with_the_name_itself_and_are_distinct(name: str) -> None:
    names = list(with_successors(name))
    assert names[0] == name
    assert len(names) == len(set(names)) or name.endswith(tuple(f"-{n}" for n in range(2, 11)))
    assert all(0 < len(one) <= 64 for one in names)
    assert len(names) == 10


def test_the_successors_of_a_full_length_name() -> None:
    assert list(with_successors("x" * 64))[1] == "x" * 62 + "-2"
    assert list(with_successors("job"))[1:3] == ["job-2", "job-3"]


# --- HASTE's rule -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["imageryprep", "training", "inference"])
def test_the_standard_deployment_keeps_hastes_job(kind: str) -> None:
    job_id = json.loads((SAMPLES / f"{kind}.json").read_text())["_jobId"]
    assert legacy_job_id(job_id, job_id, (job_id,)) == job_id


@pytest.mark.parametrize(
    ("base", "pool", "candidates", "job_id"),
    [
        ("h100", "h100", ("h100", "t4"), "h100"),
        ("h100", "t4", ("h100", "t4"), "t4"),  # the base is one of the candidates: the pool's own name
        ("nightly", "h100", ("h100",), "nightly"),
        ("nightly", "h100", ("h100", "t4"), "nightly-h100"),
        ("nightly", "t4", ("h100", "t4"), "nightly-t4"),
        ("n" * 70, "h100", ("h100",), "n" * 64),
        ("n" * 64, "t4", ("h100", "t4"), "n" * 61 + "-t4"),
        ("nightly", "p" * 60, ("p" * 60, "t4"), "nig-" + "p" * 60),
    ],
)
def test_hastes_rule(base: str, pool: str, candidates: tuple[str, ...], job_id: str) -> None:
    assert legacy_job_id(base, pool, candidates) == job_id


@given(_ids, st.lists(_ids.map(lambda name: name[:60]), min_size=2, max_size=4, unique=True))
def test_no_two_pools_share_a_job(base: str, candidates: list[str]) -> None:
    """A Batch job is bound to one pool."""
    names = [legacy_job_id(base, pool, candidates) for pool in candidates]
    assert all(0 < len(name) <= 64 for name in names)
    if base in candidates:
        assert names == candidates
    else:
        assert len({(name, pool) for name, pool in zip(names, candidates, strict=True)}) == len(candidates)
        assert all(name.endswith(f"-{pool}") for name, pool in zip(names, candidates, strict=True))


def test_a_job_of_another_pool_gives_the_pool_a_job_of_its_own() -> None:
    assert pool_scoped_job_id("nightly", "t4") == "nightly-t4"
    assert pool_scoped_job_id("n" * 64, "t4") == "n" * 61 + "-t4"

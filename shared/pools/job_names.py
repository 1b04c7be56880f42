"""Names of the Batch jobs that hold our tasks. A Batch job is bound to one pool, so the pool is in its name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

_MOST_CHARACTERS = 64
#: How many successors of a job that is over are tried before a placement gives up and waits.
_MOST_SUCCESSORS = 9
_WEEK = re.compile(r"-(\d{4})w(\d{2})(?=-|$)")


def shared_job_id(tenant: str, job_class: str, pool_id: str, at: datetime) -> str:
    """`<tenant>-<class>-<pool>-<ISO week>`: this week's job of a tenant on a pool."""
    year, week, _day = at.isocalendar()
    return _shortened(f"{tenant}-{job_class}-{pool_id}", f"-{year}w{week:02}")


def week_named(job_id: str) -> datetime | None:
    """When the ISO week that `shared_job_id` put into this name, or a successor's, began; None if there is none."""
    found = _WEEK.findall(job_id)
    try:
        return datetime.fromisocalendar(int(found[-1][0]), int(found[-1][1]), 1).replace(tzinfo=UTC) if found else None
    except ValueError:
        return None


def week_of(at: datetime) -> datetime:
    """When the ISO week of a time (UTC) began."""
    return datetime.fromisocalendar(*at.isocalendar()[:2], 1).replace(tzinfo=UTC)


def legacy_job_id(base_id: str, pool_id: str, candidates: Sequence[str]) -> str:
    """HASTE's rule: the pool's own name if the base is one of the candidates, the base if there is no choice."""
    if base_id in candidates:
        return pool_id[:_MOST_CHARACTERS]
    if len(candidates) <= 1:
        return base_id[:_MOST_CHARACTERS]
    return pool_scoped_job_id(base_id, pool_id)


def pool_scoped_job_id(base_id: str, pool_id: str) -> str:
    """HASTE's rule for a base id that is taken by another pool: the base is cut, the pool is not."""
    suffix = f"-{pool_id}"[:_MOST_CHARACTERS]
    return base_id[: _MOST_CHARACTERS - len(suffix)] + suffix


def legacy_job_ids(base_id: str, candidates: Sequence[str]) -> Iterator[str]:
    """Every id that HASTE's rule can give a Batch job of these pools."""
    for pool_id in candidates:
        for job_id in (legacy_job_id(base_id, pool_id, candidates), pool_scoped_job_id(base_id, pool_id)):
            yield from with_successors(job_id)


def with_successors(job_id: str) -> Iterator[str]:
    """The id, then `-2`, `-3`...: a job that is over cannot be used again, and its id stays taken."""
    yield job_id
    for number in range(2, 2 + _MOST_SUCCESSORS):
        suffix = f"-{number}"
        yield job_id[: _MOST_CHARACTERS - len(suffix)] + suffix


def _shortened(text: str, suffix: str) -> str:
    """Room is left for the number of a successor, which must not cut the week off."""
    most = _MOST_CHARACTERS - len(suffix) - len(f"-{1 + _MOST_SUCCESSORS}")
    if len(text) <= most:
        return text + suffix
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    return text[: most - 11] + "-" + digest + suffix

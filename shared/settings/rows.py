"""How the rows of the settings table are written, and what those of one kind of work amount to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic import Field

from shared.settings.values import account_name

Known = dict[str, Any]


@dataclass(frozen=True)
class KindSettings:
    """The settings of one kind of work.

    `queue_name` is HASTE's queue, `pool_ids` are the candidate pools, best first, HASTE's rule makes Batch job ids of
    `base_job_id`, `image` is the container image of the tasks, `max_run` their longest run (None = no limit, in the
    legacy mode only).
    """

    queue_name: str
    pool_ids: tuple[str, ...]
    base_job_id: str
    image: str
    max_run: timedelta | None


def setting(name: str, default: Any, meaning: str) -> Any:
    """One row of the table. `default` is a value, or a function of the rows above that are free of faults."""
    if callable(default):
        return Field(default_factory=default, alias=name, description=meaning)
    return Field(default, alias=name, description=meaning)


def single(pool_setting: str) -> Callable[[Known], tuple[str, ...]]:
    """The default of a list of pools: the one pool of another row."""
    return lambda known: (known[pool_setting],)


def with_sas(max_run: timedelta) -> Callable[[Known], timedelta | None]:
    """The default of a longest run: tasks whose SAS ends need one, others have none."""
    return lambda known: max_run if known["azure_batch_use_sas"] else None


def output_account(known: Known) -> str:
    """The default of the tenant: the account that results are put into; empty if its URL does not tell."""
    return account_name(known["azure_batch_output_container_url"]) or ""

"""What is reachable and what is misconfigured, for an operator with the function key. Shows no secret and no URL."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

from shared.app import App, get_app
from shared.errors import ConfigurationError
from shared.kinds import Kind
from shared.telemetry.logs import redact


@dataclass(frozen=True)
class Check:
    """One thing looked at."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True)
class Report:
    """All checks; `ok` if every one is."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Nothing is wrong."""
        return all(check.ok for check in self.checks)

    def to_json(self) -> str:
        """One JSON object: ok, checks[]."""
        return json.dumps({"ok": self.ok, "checks": [asdict(check) for check in self.checks]}, indent=1)


def report() -> Report:
    """Look at the settings, and if they are good at every service the worker needs."""
    try:
        app = get_app()
    except ConfigurationError as error:
        return Report(tuple(Check("settings", False, fault) for fault in error.faults))
    except Exception as error:  # noqa: BLE001  (a health report tells what is broken instead of breaking)
        return Report((_failed("start", error),))
    checks = (
        Check("settings", True, "shared mode" if app.settings.shared_mode else "legacy mode (pool identity)"),
        _check("ledger", lambda: _ledger(app)),
        _check("HASTE's container", lambda: _haste_container(app)),
        _check("task credentials", lambda: _credentials(app)),
        _check("Azure Batch", lambda: _pools(app)),
    )
    return Report(checks)


def _check(name: str, look: Callable[[], str]) -> Check:
    try:
        return Check(name, True, look())
    except Exception as error:  # noqa: BLE001  (as above)
        return _failed(name, error)


def _failed(name: str, error: Exception) -> Check:
    return Check(name, False, redact(f"{type(error).__name__}: {error}")[:500])


def _ledger(app: App) -> str:
    live = app.worker.ledger.live()
    standing_still = "".join(f"; stands still: {one.why}" for one in live.standing_still)
    return f"{len(live.records)} live jobs{standing_still}"


def _haste_container(app: App) -> str:
    size = app.haste_blobs.size_bytes("project_stats.json")
    return "readable" if size is not None else "readable (no project_stats.json yet)"


def _credentials(app: App) -> str:
    for kind in Kind:
        app.worker.tasks.transfer(kind).resign(app.haste_blobs.url("health"))
    return "a delegation key can be had" if app.settings.shared_mode else "the pool's identity is used"


def _pools(app: App) -> str:
    pools = app.worker.batch.pools()
    wanted = {pool for kind in Kind for pool in app.settings.of(kind).pool_ids}
    missing = sorted(wanted - pools.keys())
    if missing:
        raise LookupError(f"candidate pools that do not exist: {', '.join(missing)}")
    return f"candidate pools exist: {', '.join(sorted(wanted))}"

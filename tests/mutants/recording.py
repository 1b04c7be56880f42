"""A pytest plugin: which lines of shared/ each test runs, and how long it takes, into the folder `MUTANTS_RECORD`."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

_FOLDER = Path(os.environ["MUTANTS_RECORD"])
_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
_recorded = coverage.Coverage(
    data_file=str(_FOLDER / f"lines-{_WORKER}"),
    config_file=False,
    source=[str(Path("shared").resolve())],
    concurrency=["thread"],  # following greenlets too makes it twice as slow, for a few tests
)
_seconds: defaultdict[str, float] = defaultdict(float)
_failed: set[str] = set()

if _WORKER:
    _recorded.start()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if not _WORKER:
        return (yield)
    _recorded.switch_context(item.nodeid)
    try:
        return (yield)
    finally:
        _recorded.switch_context("")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] += report.duration
    if report.outcome != "passed":
        _failed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    if _WORKER:
        _recorded.stop()
        _recorded.save()
    else:
        good = {test: seconds for test, seconds in _seconds.items() if test not in _failed}
        (_FOLDER / "seconds.json").write_text(json.dumps(good), encoding="utf-8")

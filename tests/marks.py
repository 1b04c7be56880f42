"""Each test has one of four marks, told by where it is and by the fixtures it uses. Here alone, so no test says it.

What is named nowhere below is a unit test, and `UnitGuard` holds it to that.
"""

from __future__ import annotations

import importlib
import platform
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

MARKS = ("unit", "contract", "scenario", "chaos")

#: Who uses one of these talks to a service of the local stack.
_SERVICES = {"azurite", "supervisor", "identity_endpoint", "storage_account"}

#: Beginnings of test ids below tests/. The longest that fits counts, before any fixture.
PLACES = {
    "architecture/test_kinds.py": "scenario",
    "batch_conformance/": "contract",
    "batch_conformance/test_fidelity_table.py::test_a_test_that_is_named_exists": "unit",
    "batch_contract/": "contract",
    "batch_emulator/test_https.py": "contract",
    "batch_emulator/test_process_runner.py": "scenario",
    "batch_emulator/test_retention.py::test_folders_of_real_nodes_come_and_go": "scenario",
    "bench/": "scenario",
    "demo/test_demo.py": "scenario",
    "docs/test_commands.py::test_a_python_command_exists": "scenario",
    "docs/test_queries.py": "scenario",
    "docs/test_walkthrough.py": "scenario",
    "faults/test_random.py": "chaos",
    "faults/test_random_http.py": "chaos",
    "functions/test_index.py": "scenario",
    "functions/test_invoked.py": "scenario",
    "functions_host/test_hosts_": "scenario",
    "functions_host/test_queue_port.py": "contract",
    "functions_host/test_singleton.py": "scenario",
    "identity/": "contract",
    "functions_host/test_refusals.py": "scenario",
    "images/": "scenario",
    "images/test_geopackage.py": "unit",
    "infra/test_api_versions.py": "scenario",
    "infra/test_check.py": "scenario",
    "infra/test_mutations.py": "scenario",
    "infra/test_parameters.py": "scenario",
    "ledger/test_contract.py": "contract",
    "ledger/test_notes_contract.py": "contract",
    "logs/test_logs.py::test_without_a_host_every_line_on_stderr_is_json": "scenario",
    "package/": "scenario",
    "producer/test_command_line.py": "scenario",
    "protocol/test_interleaving.py": "chaos",
    "protocol/test_needs_operator.py::test_an_identity_that_does_not_answer": "contract",
    "protocol/test_needs_operator.py::test_with_a_wrong_client_id": "contract",
    "scenarios/": "scenario",
    "stack/": "scenario",
    "stack/test_azurite.py": "contract",
    "stack/test_certificates.py": "contract",
    "stack/test_delegated_sas.py": "contract",
    "stack/test_identity.py": "contract",
    "stack/test_settings.py": "unit",
    "storage/test_failures.py": "contract",
}

_OPENS_OR_STARTS = {"socket.bind", "subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec"}


def mark_of(test: str, fixtures: Collection[str]) -> str:
    """The mark of a test; `test` is its id below tests/."""
    place = max((place for place in PLACES if test.startswith(place)), key=len, default=None)
    if place is not None:
        return PLACES[place]
    return "contract" if _SERVICES.intersection(fixtures) else "unit"


class UnitGuard:
    """Refuses to open a port or to start a process while it is on, and remembers who tried.

    It hears what the interpreter tells its auditors, so that no way around `socket` or `subprocess` is missed.
    """

    def __init__(self) -> None:
        self.tried: list[str] = []
        self._is_on = False
        platform.platform()  # starts `uname` the first time, for the Azure SDKs' user agent
        importlib.import_module("urllib3.util.connection")  # looks whether it can open a port, the first time
        sys.addaudithook(self._hear)

    @contextmanager
    def on(self) -> Iterator[None]:
        self._is_on = True
        try:
            yield
        finally:
            self._is_on = False

    def _hear(self, event: str, _arguments: tuple[Any, ...]) -> None:
        if self._is_on and event in _OPENS_OR_STARTS:
            self.tried.append(event)
            raise PermissionError(f"a unit test opens no port and starts no process, and this is {event}")


_guard = UnitGuard()


#: Files that take longest, begun first: begun last, one would keep one worker busy while the others idle. Those that
#: run a stack alternate with those that compute, so that two stacks seldom share the machine.
FIRST = (
    "faults/test_random_http.py",
    "faults/test_matrix.py",
    "protocol/test_interleaving.py",
    "demo/test_demo.py",
    "faults/test_random.py",
    "scenarios/test_duplicates.py",
    "bench/test_bench.py",
    "package/test_clean_environment.py",
    "timer/test_runs.py",
    "stack/test_command_line.py",
    "scenarios/test_sigkill.py",
    "docs/test_walkthrough.py",
    "scenarios/",
    "functions_host/test_hosts_",
)


def pytest_itemcollected(item: pytest.Item) -> None:
    test = item.nodeid.removeprefix("tests/")
    item.add_marker(mark_of(test, getattr(item, "fixturenames", ())))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts them by `FIRST`; the others stay in their order. xdist keeps to it with --no-loadscope-reorder."""
    items.sort(key=lambda item: _turn(item.nodeid.removeprefix("tests/")))


def _turn(test: str) -> int:
    return next((turn for turn, place in enumerate(FIRST) if test.startswith(place)), len(FIRST))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """With its fixtures, of whatever scope."""
    if item.get_closest_marker("unit") is None:
        return (yield)
    with _guard.on():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """A test fails also if the code under test took the refusal for something else and went on."""
    yield
    tried, _guard.tried = _guard.tried, []
    if tried:
        pytest.fail(f"a unit test reached for {', '.join(sorted(set(tried)))}; see tests/marks.py", pytrace=False)

"""The guard fails a test that reaches for another machine, and lets loopback pass."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

# Addresses and names that are reserved for documentation: nothing is there, should the guard not hold.
REACHES_OUT = {
    "connect": "socket.socket().connect(('192.0.2.1', 80))",
    "create_connection": "socket.create_connection(('192.0.2.1', 80), timeout=1)",
    "connect_ex": "socket.socket().connect_ex(('192.0.2.1', 80))",
    "udp": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 9))",
    "look_up": "socket.getaddrinfo('storage.example.org', 443)",
    "ip_v6": "socket.socket(socket.AF_INET6).connect(('2001:db8::1', 80))",
    "asyncio": "asyncio.run(asyncio.open_connection('192.0.2.1', 80))",
    "requests": "requests.get('http://192.0.2.1/', timeout=1)",
    "swallowed": "\n    try: socket.create_connection(('192.0.2.1', 80), timeout=1)\n    except OSError: pass",
}
SERVES = "s = socket.create_server(('127.0.0.1', 0)); "
STAYS_HERE = {
    "loopback": f"{SERVES}socket.create_connection(s.getsockname()).close()",
    "localhost": f"{SERVES}socket.create_connection(('localhost', s.getsockname()[1])).close()",
    "another_loopback": "s = socket.create_server(('127.1.2.3', 0)); socket.create_connection(s.getsockname()).close()",
    "unix": "a, b = socket.socketpair(); a.send(b'x')",
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The summary of a pytest run with the guard, in which each statement is a test."""
    folder = tmp_path_factory.mktemp("guarded")
    tests = [f"def test_{name}():\n    {statement}\n" for name, statement in (REACHES_OUT | STAYS_HERE).items()]
    (folder / "test_all.py").write_text("\n".join(["import asyncio, socket, requests", *tests]))
    options = ["-rA", "--tb=no", "-p", "tests.network_guard", "-p", "no:cacheprovider", "-c", "/dev/null"]
    command = [sys.executable, "-m", "pytest", *options, f"--rootdir={folder}", str(folder)]
    project = Path(__file__).resolve().parents[2]
    wide = os.environ | {"COLUMNS": "200"}  # else the reasons are cut off
    return subprocess.run(
        command, cwd=project, env=wide, capture_output=True, text=True, timeout=60, check=False
    ).stdout


@pytest.mark.parametrize("name", REACHES_OUT)
def test_reaching_out_fails_the_test(outcomes: str, name: str) -> None:
    assert re.search(rf"^ERROR \S*::test_{name} - .*the test reached for ", outcomes, re.MULTILINE), outcomes


@pytest.mark.parametrize("name", STAYS_HERE)
def test_staying_on_the_machine_is_fine(outcomes: str, name: str) -> None:
    assert re.search(rf"^PASSED \S*::test_{name}$", outcomes, re.MULTILINE), outcomes
    assert not re.search(rf"^(ERROR|FAILED) \S*::test_{name} ", outcomes, re.MULTILINE)

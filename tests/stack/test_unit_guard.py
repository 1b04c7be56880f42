"""A unit test that opens a port or starts a process fails, whichever way it takes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REACHES = {
    "port": "socket.create_server(('127.0.0.1', 0))",
    "udp": "socket.socket(type=socket.SOCK_DGRAM).bind(('127.0.0.1', 0))",
    "unix_port": "socket.socket(socket.AF_UNIX).bind(str(tmp_path / 's'))",
    "asyncio": "asyncio.run(asyncio.start_server(print, '127.0.0.1', 0))",
    "http": "http.server.HTTPServer(('127.0.0.1', 0), None)",
    "process": "subprocess.run(['true'])",
    "shell": "os.popen('true')",
    "fork": "os.fork() or os._exit(0)",
    "spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "multiprocessing": "multiprocessing.get_context('fork').Process(target=print).start()",
    "swallowed": "\n    try: subprocess.run(['true'])\n    except OSError: pass",
    "thread": "\n    t = threading.Thread(target=subprocess.run, args=(['true'],)); t.start(); t.join()",
}
STAYS = {
    "nothing": "pass",
    "loop": "asyncio.run(asyncio.sleep(0))",
    "pair": "a, b = socket.socketpair(); a.send(b'x')",
    "platform": "platform.platform()",
}
FIXTURE = """
@pytest.fixture(scope='module')
def served():
    with socket.create_server(('127.0.0.1', 0)) as server: yield server

def test_fixture(served):
    pass
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The summary of a pytest run with the guard, in which each statement is a unit test."""
    folder = tmp_path_factory.mktemp("guarded")
    tests = [f"def test_{name}(tmp_path):\n    {statement}\n" for name, statement in (REACHES | STAYS).items()]
    modules = "import asyncio, http.server, multiprocessing, os, platform, socket, subprocess, threading, pytest"
    (folder / "test_all.py").write_text("\n".join([modules, *tests, FIXTURE]))
    options = ["-rA", "--tb=no", "-p", "tests.marks", "-p", "no:cacheprovider", "-c", "/dev/null"]
    command = [sys.executable, "-m", "pytest", *options, f"--rootdir={folder}", str(folder)]
    project = Path(__file__).resolve().parents[2]
    wide = os.environ | {"COLUMNS": "200"}  # else the reasons are cut off
    return subprocess.run(
        command, cwd=project, env=wide, capture_output=True, text=True, timeout=60, check=False
    ).stdout


@pytest.mark.parametrize("name", [*REACHES, "fixture"])
def test_reaching_for_one_fails_the_test(outcomes: str, name: str) -> None:
    assert re.search(rf"^ERROR \S*::test_{name} - .*a unit test reached for ", outcomes, re.MULTILINE), outcomes


@pytest.mark.parametrize("name", STAYS)
def test_staying_in_the_process_is_fine(outcomes: str, name: str) -> None:
    assert re.search(rf"^PASSED \S*::test_{name}$", outcomes, re.MULTILINE), outcomes
    assert not re.search(rf"^(ERROR|FAILED) \S*::test_{name} ", outcomes, re.MULTILINE)

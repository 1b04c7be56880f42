"""Whatever happens to the supervisor or to one of its children, nothing is left running."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.stack.environment import child_environment
from local.stack.reaper import marked_pids
from local.stack.supervisor import Child, StackError, Supervisor
from tests.support.waiting import DEADLINE_SECONDS, heed_interrupts, until

WAITS = "import time; print('ready', flush=True); time.sleep(600)"
IGNORES_SIGTERM = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {WAITS}"
HAS_A_TASK_IN_A_GROUP_OF_ITS_OWN = (
    f"import subprocess, sys; subprocess.Popen(['sleep', '600'], start_new_session=True); {WAITS}"
)
FAILS = "import sys; print('cannot listen'); sys.exit(3)"
SUPERVISES = """
import asyncio, os, sys
from pathlib import Path
from local.stack.supervisor import Supervisor
supervisor = Supervisor(Path(sys.argv[1]))
child = supervisor.spawn("waits", [sys.executable, "-c", sys.argv[2]], os.environ)
asyncio.run(supervisor.until_ready(child, lambda c: c.output() or None))
print(supervisor.mark, flush=True)
asyncio.run(child.wait(600))
"""


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Supervisor]:
    made = Supervisor(tmp_path / "logs")
    yield made
    asyncio.run(made.stop())


def spawn(owner: Supervisor, program: str, name: str = "child") -> Child:
    return owner.spawn(name, [sys.executable, "-c", program], child_environment())


def says_ready(child: Child) -> bool | None:
    return True if "ready" in child.output() else None


@pytest.mark.parametrize(
    "program", [WAITS, IGNORES_SIGTERM, HAS_A_TASK_IN_A_GROUP_OF_ITS_OWN], ids=["plain", "stubborn", "with a task"]
)
def test_stop_leaves_nothing(own: Supervisor, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local.stack.supervisor.STOP_SECONDS", 0.3)
    asyncio.run(own.until_ready(spawn(own, program), says_ready))
    assert marked_pids(own.mark)
    asyncio.run(own.stop())
    assert marked_pids(own.mark) == []
    assert own.children == ()


def test_children_stop_in_reverse_order(own: Supervisor, tmp_path: Path) -> None:
    note = tmp_path / "order"
    program = (
        "import pathlib, signal, sys, time\n"
        "def end(*_):\n"
        f"    with open({str(note)!r}, 'a') as file: file.write(sys.argv[1] + ' ')\n"
        "    sys.exit(0)\n"
        f"signal.signal(signal.SIGTERM, end)\n{WAITS}"
    )
    for name in ("first", "second", "third"):
        child = own.spawn(name, [sys.executable, "-c", program, name], child_environment())
        asyncio.run(own.until_ready(child, says_ready))
    asyncio.run(own.stop())
    assert note.read_text().split() == ["third", "second", "first"]


def test_a_child_that_ends_early_is_an_error_with_its_last_words(own: Supervisor) -> None:
    child = spawn(own, FAILS, "broken")
    with pytest.raises(StackError, match=r"(?s)broken ended with code 3 .*cannot listen"):
        asyncio.run(own.until_ready(child, says_ready))


def test_a_child_that_is_not_ready_in_time_is_an_error(own: Supervisor) -> None:
    child = spawn(own, "import time; time.sleep(600)", "slow")
    with pytest.raises(StackError, match=r"slow was not ready after 0\.2 s"):
        asyncio.run(own.until_ready(child, says_ready, seconds=0.2))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("program", [WAITS, HAS_A_TASK_IN_A_GROUP_OF_ITS_OWN], ids=["plain", "with a task"])
def test_the_death_of_the_supervisor_ends_its_children(tmp_path: Path, number: signal.Signals, program: str) -> None:
    command = [sys.executable, "-c", SUPERVISES, str(tmp_path), program]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, preexec_fn=heed_interrupts
    ) as owner:
        assert owner.stdout is not None
        mark = owner.stdout.readline().strip()
        assert marked_pids(mark)
        os.kill(owner.pid, number)
        owner.wait(DEADLINE_SECONDS)
    assert until(lambda: marked_pids(mark) == [])


def test_a_restart_of_the_same_name_reads_its_own_output_only(own: Supervisor) -> None:
    first = spawn(own, "print('ready, the first')")
    asyncio.run(first.wait(DEADLINE_SECONDS))
    second = spawn(own, "print('the second')")
    asyncio.run(second.wait(DEADLINE_SECONDS))
    assert second.output() == "the second\n"
    assert first.log == second.log
    assert "ready, the first" in second.log.read_text()

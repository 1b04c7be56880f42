"""What the pages say to type is typed, in the order of a walk through README, local-stack.md and operate.md.

`python` is this one, the stack's folder is the test's, `curl` is done by `requests`, and placeholders such as `$A` are
filled with what the commands before have printed.
"""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.docs.pages import PROJECT, code
from tests.support.waiting import DEADLINE_SECONDS, processes_naming, until

PAGES = [PROJECT / name for name in ("README.md", "docs/local-stack.md", "docs/operate.md")]
DOCUMENTED = {
    line
    for page in PAGES
    for line in code(page)
    if re.match(r"python -m (local\.stack|operate) |curl ", line) and "azurewebsites.net" not in line
}
STACK, RUN = "python -m local.stack", "python -m local.stack run --"
#: Other programs, and what `tests/stack/test_command_line.py` does.
NOT_TYPED = {f"{RUN} func start", f"{STACK} up --no-host", f"{STACK} down"}

pytestmark = pytest.mark.timeout(600)


class Shell:
    """Types documented lines. `typed` are those that were."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.typed: set[str] = set()
        self.known: dict[str, str] = {}

    def words(self, line: str) -> list[str]:
        assert line in DOCUMENTED, f"no page has {line!r}"
        self.typed.add(line)
        return shlex.split(self.filled(line))

    def filled(self, line: str) -> str:
        """With what is known for the placeholders, and with this test's Python and folder."""
        for placeholder, value in self.known.items():
            line = re.sub(rf"(?<![\w<$]){re.escape(placeholder)}(?!\w)", lambda _match, value=value: value, line)  # type: ignore[misc]
        return line.replace("python -m local.stack", f"python -m local.stack --folder {self.folder}")

    def start(self, line: str) -> subprocess.Popen[bytes]:
        """A program that goes on."""
        words = [sys.executable, *self.words(line)[1:]]
        return subprocess.Popen(words, cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def type(self, line: str, before: str = "") -> str:
        """What a program prints; it must end well. `before`: a documented command that this is given to."""
        words = [sys.executable, *[*shlex.split(self.filled(before)), *self.words(line)][1:]]
        done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False)
        assert done.returncode == 0, f"{line}: {done.stdout} {done.stderr}"
        return done.stdout

    def curl(self, line: str) -> requests.Response:
        """The answer to a request; it must be a good one."""
        words = self.words(line)[1:]
        options = {word: words[n + 1] for n, word in enumerate(words) if word in ("-X", "-d", "--cacert")}
        (url,) = [word for word in words if word.startswith("http")]
        answer = requests.request(
            options.get("-X", "GET"),
            url,
            data=options.get("-d"),
            verify=options.get("--cacert", True),
            timeout=DEADLINE_SECONDS,
        )
        assert answer.ok, f"{line}: {answer.status_code} {answer.text}"
        return answer


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path / "up")
    yield shell
    down = [sys.executable, "-m", "local.stack", "--folder", str(shell.folder), "down"]
    subprocess.run(down, cwd=PROJECT, check=True, stdout=subprocess.DEVNULL)
    assert until(lambda: processes_naming(shell.folder) == [])


def state(shell: Shell) -> dict[str, Any]:
    words = [sys.executable, "-m", "local.stack", "--folder", str(shell.folder), "status", "--json"]
    found = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, check=False)
    return dict(json.loads(found.stdout)) if found.returncode == 0 else {}


def shown(shell: Shell, entity: str) -> object:
    """The status that HASTE's page shows of a layer or a model's training, told by `explain`."""
    kind = "imageryprep" if entity == shell.known["L"] else "training"
    words = ["run", "--", "python", "-m", "operate", "explain", kind, shell.known["P"], entity, "--json"]
    command = [sys.executable, "-m", "local.stack", "--folder", str(shell.folder), *words]
    found = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    return (json.loads(found.stdout)["haste"] or {}).get("status") if found.returncode == 0 else None


def world(shell: Shell) -> dict[str, Any]:
    """The Batch account as its administration shows it."""
    answer = requests.get(f"{shell.known['$A']}/world", verify=shell.known["$C"], timeout=DEADLINE_SECONDS)
    return dict(answer.json()["result"])


def running(shell: Shell) -> list[tuple[str, str]]:
    """Job and task of each training that runs."""
    tasks = [task for task in world(shell)["tasks"] if task["state"] == "running"]
    return [(task["job"], task["task"]) for task in tasks if task["task"].startswith("trn-")]


def test_everything_that_is_documented_can_be_typed(shell: Shell) -> None:
    shell.type(f"{STACK} up --detach --tenants tenanta,tenantb --hosts 2 --task-seconds 60")
    assert len(state(shell)["hosts"]) == 4
    subprocess.run([sys.executable, *shlex.split(shell.filled(f"{STACK} down"))[1:]], cwd=PROJECT, check=True)

    in_the_foreground = shell.start(f"{STACK} up")
    assert until(lambda: state(shell))
    assert "The local stack is up." in shell.type(f"{STACK} status")
    now = state(shell)
    shell.known |= {
        "$A": now["admin_url"],
        "$C": now["trust"]["SSL_CERT_FILE"],
        "<Batch administration>": now["admin_url"],
        "<authority>": now["trust"]["SSL_CERT_FILE"],
        "<functions host>": now["hosts"][0]["url"],
    }
    answer = shell.curl("curl --cacert <authority> <Batch administration>/world").json()
    assert "h100-pool" in {pool["id"] for pool in answer["result"]["pools"]}
    shell.curl('curl "<functions host>/api/health?code=local-function-key"')

    shell.type("python -m local.stack run --tenant tenanta -- python -m local.producer layer")
    ids = json.loads(shell.type(f"{RUN} python -m local.producer layer"))
    layer = ids["imageLayerId"]
    shell.known |= dict.fromkeys(("P", "<projectId>"), ids["projectId"])
    shell.known |= dict.fromkeys(("L", "<imageLayerId>", "<layerId>"), layer)
    assert until(lambda: shown(shell, layer) == "Processed")
    assert "imageryprep" in shell.type("python -m operate explain imageryprep <projectId> <imageLayerId> --json", RUN)

    train = f"{RUN} python -m local.producer train --project-id P --layer-id L --delay-seconds 0"
    shell.type(f"{RUN} python -m local.producer train --project-id <projectId> --layer-id <imageLayerId>")
    model = json.loads(shell.type(train))["modelId"]
    shell.known |= dict.fromkeys(("M", "<modelId>"), model)
    assert until(lambda: running(shell))
    shell.known["<job>"], shell.known["<task>"] = running(shell)[0]
    shell.curl("""curl --cacert "$C" -X POST "$A/jobs/<job>/tasks/<task>/preempt" -d '{"return_after_seconds": 20}'""")
    assert model in shell.type("python -m operate explain training <projectId> <modelId>", RUN)
    assert model in shell.type("python -m operate status", RUN)
    assert json.loads(shell.type("python -m operate status --most 1000 --json", RUN))
    shell.type(f"{RUN} python -m operate status")
    assert until(lambda: shown(shell, model) == "Processed")
    shell.type(f"{RUN} python -m local.producer infer --project-id P --model-id M --delay-seconds 0")

    shell.known["M"] = json.loads(shell.type(train))["modelId"]
    assert until(lambda: any(node["pool"] == "h100-pool" and node["runs"] for node in world(shell)["nodes"]))
    shell.curl('curl --cacert "$C" -X POST "$A/pools/h100-pool/nodes/any-running/preempt"')
    shell.type(f"{RUN} python -m local.producer cancel --project-id P --model-id M")
    shell.curl("""curl --cacert "$C" -X PUT "$A/pools/h100-pool/capacity" -d '{"low_priority_available": 0}'""")
    busy = '{"operation": "create_task", "status": 503, "times": 3}'
    lost = '{"operation": "create_task", "code": "InternalError", "when": "after", "times": 1}'
    for fault in (busy, lost):
        shell.curl(f"""curl --cacert "$C" -X POST "$A/faults" -d '{fault}'""")
    shell.curl('curl --cacert "$C" -X DELETE "$A/faults"')

    in_the_foreground.send_signal(signal.SIGINT)
    assert in_the_foreground.wait(DEADLINE_SECONDS) == 0
    assert DOCUMENTED - shell.typed == NOT_TYPED & DOCUMENTED, "typed by nobody"

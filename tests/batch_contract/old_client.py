"""azure-batch 14.2.0 in a virtual environment and a process of its own."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from local.batch import ACCOUNT_KEY

_HERE = Path(__file__).parent
_REQUIREMENTS = _HERE / "requirements-14.txt"
_ENVIRONMENT = _HERE.parents[1] / ".local" / "venv-batch14"
_INSTALL_SECONDS = 280
#: As it is before fixtures make this process trust the test's own authority only: packages come from outside.
_OUTSIDE = os.environ.copy()


class NotInstalledError(Exception):
    """The virtual environment could not be made, as when no package can be reached."""


class OldRefusal(Exception):
    """What the old client raises: HTTP status and Batch code, None where the answer has no body."""

    def __init__(self, status: int, code: str | None, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class OldClient:
    """One process that makes all calls; `call` names the SDK's operation group and method, as in "job.add"."""

    def __init__(self, python: Path) -> None:
        self._process = subprocess.Popen(
            [python, str(_HERE / "client_14.py"), "localbatch", ACCOUNT_KEY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def call(self, endpoint: str, call: str, *arguments: Any, **options: Any) -> Any:
        """The result as wire JSON, texts or lists of them; raises OldRefusal."""
        assert self._process.stdin
        assert self._process.stdout
        request = {"endpoint": endpoint, "call": call, "arguments": arguments, "options": options}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the old client has died; its last words are on stderr"
        answer = json.loads(line)
        if "error" in answer:
            error = answer["error"]
            raise OldRefusal(error["status"], error.get("code"), error.get("message", ""))
        return answer["result"]

    def close(self) -> None:
        self._process.communicate(timeout=30)


def installed_python() -> Path:
    """The Python with the old SDK; installs it once per version of the requirements. Raises NotInstalledError."""
    _ENVIRONMENT.parent.mkdir(exist_ok=True)
    ready = _ENVIRONMENT / "installed"
    python = _ENVIRONMENT / "bin" / "python"
    with (_ENVIRONMENT.parent / "venv-batch14.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one of several test processes installs, the others wait
        if not ready.exists() or ready.read_text() != _REQUIREMENTS.read_text():
            _run(sys.executable, "-m", "venv", "--clear", str(_ENVIRONMENT))
            _run(
                str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(_REQUIREMENTS)
            )
            ready.write_text(_REQUIREMENTS.read_text())
    return python


def _run(*words: str) -> None:
    try:
        subprocess.run(words, check=True, capture_output=True, text=True, env=_OUTSIDE, timeout=_INSTALL_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise NotInstalledError(f"it takes longer than {_INSTALL_SECONDS} seconds") from error
    except subprocess.CalledProcessError as error:
        raise NotInstalledError(error.stderr.strip().rpartition("\n")[2]) from error

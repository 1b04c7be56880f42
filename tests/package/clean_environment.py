"""A Python with what `requirements.txt` asks for and nothing else, not even pip."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

_PROJECT = Path(__file__).resolve().parents[2]
_FOLDER = _PROJECT / ".local" / "package"
_INSTALL_SECONDS = 280
#: As it is before fixtures make this process trust the tests' own authority only: packages come from outside.
_OUTSIDE = os.environ.copy()


class NotInstalledError(Exception):
    """The environment could not be made, as when no package can be reached."""


@dataclass(frozen=True)
class CleanEnvironment:
    """`install_seconds` and `size_bytes` tell what a remote build has to do; nothing depends on them."""

    python: Path
    install_seconds: float
    size_bytes: int

    def run(self, *words: str, folder: Path, environment: dict[str, str] | None = None) -> str:
        """What the Python prints, isolated from this process's Python settings; it must end well."""
        done = subprocess.run(
            [self.python, "-I", *words],
            cwd=folder,
            env={} if environment is None else environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def made() -> CleanEnvironment:
    """The environment, installed once per version of `requirements.txt`. Raises NotInstalledError."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    requirements = _PROJECT / "requirements.txt"
    wanted = f"{sys.version}\n{requirements.read_text(encoding='utf-8')}"
    ready = _FOLDER / "installed.json"
    environment = _FOLDER / "venv"
    python = environment / "bin" / "python"
    with (_FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one of several test processes installs, the others wait
        installed = json.loads(ready.read_text(encoding="utf-8")) if ready.exists() else {}
        if installed.get("wanted") != wanted:
            _run(sys.executable, "-m", "venv", "--clear", "--without-pip", str(environment))
            started = time.monotonic()
            # a remote build has no compiler and little time: whatever is not a wheel fails here
            _pip(python, "install", "--only-binary", ":all:", "--no-compile", "-r", str(requirements))
            seconds = time.monotonic() - started
            _pip(python, "check")
            size = sum(path.stat().st_size for path in environment.rglob("*") if path.is_file())
            installed = {"wanted": wanted, "install_seconds": round(seconds, 1), "size_bytes": size}
            ready.write_text(json.dumps(installed, indent=1), encoding="utf-8")
    return CleanEnvironment(python, installed["install_seconds"], installed["size_bytes"])


def _pip(python: Path, *words: str) -> None:
    _run(sys.executable, "-m", "pip", "--python", str(python), "--quiet", "--disable-pip-version-check", *words)


def _run(*words: str) -> None:
    try:
        subprocess.run(words, check=True, capture_output=True, text=True, env=_OUTSIDE, timeout=_INSTALL_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise NotInstalledError(f"it takes longer than {_INSTALL_SECONDS} seconds") from error
    except subprocess.CalledProcessError as error:
        last = (error.stderr or error.stdout).strip().rpartition("\n")[2]
        raise NotInstalledError(last) from error

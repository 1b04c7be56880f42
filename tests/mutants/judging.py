"""One mutant at a time in a copy of the project: killed if a test that runs its line fails, or does not end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.covering import environment
from tests.mutants.mutating import Mutant

_RUN = """
import json, sys, pytest
tests = json.load(open(sys.argv[1]))
sys.exit(pytest.main(["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]))
"""


def is_killed(copy: Path, mutant: Mutant, source: str, tests: Sequence[str], most_seconds: float) -> bool:
    """Whether one of the tests notices. The copy is as before afterwards."""
    (copy / mutant.path).write_text(mutant.applied(source), encoding="utf-8")
    listed = copy.with_suffix(".tests")
    listed.write_text(json.dumps(sorted(tests)), encoding="utf-8")
    try:
        with subprocess.Popen(
            [sys.executable, "-c", _RUN, str(listed)],
            cwd=copy,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as run:
            try:
                return run.wait(most_seconds) != 0
            except subprocess.TimeoutExpired:
                os.killpg(run.pid, signal.SIGKILL)
                return True
    finally:
        (copy / mutant.path).write_text(source, encoding="utf-8")

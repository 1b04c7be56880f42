"""`python -m local.demo`: exit code 0 when every expectation held."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from local.demo import summary
from local.demo.deployed_pools import deployed_pools
from local.demo.run import DemoOptions, run_demo

_PROJECT_FOLDER = Path(__file__).resolve().parents[2]
_TASK_SECONDS = 6.0
_STEP_SECONDS = 120.0
_INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Play, judge, tell."""
    given = _parser().parse_args(arguments)
    options = DemoOptions(given.folder.resolve(), given.app.resolve(), given.task_seconds, given.step_seconds)
    try:
        result = run_demo(options)
    except KeyboardInterrupt:
        print("interrupted; everything is stopped", file=sys.stderr)
        return _INTERRUPTED
    print(
        f"\n{summary.told(result, deployed_pools().short_names)}\n\nsummary: {options.folder / 'summary.json'}",
        flush=True,
    )
    return 0 if result["ok"] else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m local.demo", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=_PROJECT_FOLDER / ".local" / "demo", help="logs, outputs and summary.json"
    )
    parser.add_argument("--app", type=Path, default=_PROJECT_FOLDER, help="folder of the Functions app")
    parser.add_argument("--task-seconds", type=float, default=_TASK_SECONDS, help="added to every task's own work")
    parser.add_argument("--step-seconds", type=float, default=_STEP_SECONDS, help="longest wait for a step")
    return parser


if __name__ == "__main__":
    sys.exit(main())

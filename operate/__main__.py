"""`python -m operate explain <kind> <project> <entity> [--json]` and `python -m operate status [--json]`.

Settings come from the environment, and those that are not there from `local.settings.json` in the current folder.
Exit code: 0, or 1 if nothing is known of the job, or 2 if it could not be found out.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from operate import explanation, overview, plain_text
from shared.app import App, build
from shared.errors import ConfigurationError, WorkerError
from shared.kinds import Entity, Kind
from shared.settings.load import load_settings
from shared.telemetry.logs import redact

SETTINGS_FILE = "local.settings.json"
_MOST_JOBS = 200


def main(arguments: Sequence[str]) -> int:
    asked = _parser().parse_args(arguments)
    try:
        app = build(load_settings(_settings(os.environ, Path(SETTINGS_FILE))))
        logging.getLogger().setLevel(logging.CRITICAL)  # what goes wrong is in the answer
        return _status(app, asked) if asked.command == "status" else _explain(app, asked)
    except ConfigurationError as error:
        for fault in error.faults:
            print(f"setting {fault}", file=sys.stderr)
    except WorkerError as error:
        print(redact(str(error)), file=sys.stderr)
    return 2


def _explain(app: App, asked: argparse.Namespace) -> int:
    found = explanation.explain(app.worker, Entity(Kind(asked.kind), asked.project, asked.entity), asked.done)
    print(redact(explanation.to_json(found) if asked.json else plain_text.explanation(found)))
    return 0 if found.is_known else 1


def _status(app: App, asked: argparse.Namespace) -> int:
    found = overview.look(app.worker, app.own_blobs, asked.most)
    print(redact(overview.to_json(found) if asked.json else plain_text.overview(found)))
    return 0


def _settings(environment: Mapping[str, str], file: Path) -> dict[str, str]:
    """All settings; what is set in the environment wins."""
    stored = json.loads(file.read_text(encoding="utf-8")).get("Values", {}) if file.is_file() else {}
    return {**stored, **{name: value for name, value in environment.items() if value.strip()}}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m operate", description=__doc__.partition("\n\n")[2])
    commands = parser.add_subparsers(dest="command", required=True)
    explain = commands.add_parser("explain", help="one job: where it is, why, and what it waits for")
    explain.add_argument("kind", choices=[kind.value for kind in Kind])
    explain.add_argument("project", help="projectId")
    explain.add_argument("entity", help="imageLayerId of an imageryprep, else modelId")
    explain.add_argument("--done", type=int, default=10, metavar="N", help="show the last N ends (default 10)")
    status = commands.add_parser("status", help="all live jobs, pools in a cool-down, rejected messages")
    status.add_argument(
        "--most", type=int, default=_MOST_JOBS, metavar="N", help=f"show at most N jobs (default {_MOST_JOBS})"
    )
    for command in (explain, status):
        command.add_argument("--json", action="store_true", help="for programs")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

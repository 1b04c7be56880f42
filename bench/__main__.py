"""`python -m bench [NAME ...]`: measure (all, or recovery, calls, many), print a table, write `.local/bench.json`."""

# ruff: noqa: T201 - it is there to print
from __future__ import annotations

import logging
import sys
from pathlib import Path

import structlog

from bench import calls, figures, many, recovery

FILE = Path(".local/bench.json")
_PARTS = {"recovery": recovery.measure, "calls": calls.measure, "many": many.measure}


def main(arguments: list[str]) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    found = [figure for name in arguments or _PARTS for figure in _PARTS[name]()]
    figures.write(found, FILE)
    print(figures.table(found))
    print(f"\nwritten to {FILE}")


if __name__ == "__main__":
    main(sys.argv[1:])

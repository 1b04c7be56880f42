"""Reads the recordings of Microsoft's own queue and timer code."""

import json
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent / "oracles"


def read_lines(name: str) -> list[dict[str, Any]]:
    """The rows of a recording with one JSON object a line."""
    return [json.loads(line) for line in (_FOLDER / name).read_text(encoding="utf-8").splitlines() if line.strip()]


def read_rows(name: str) -> list[dict[str, Any]]:
    """The rows of a recording that is one JSON array."""
    rows: list[dict[str, Any]] = json.loads((_FOLDER / name).read_text(encoding="utf-8"))
    return rows

"""What was measured, as a file for programs and a table for people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """One figure. `goal` is the most it should be; None = it is there to be known."""

    name: str
    value: float
    unit: str
    goal: float | None
    detail: str

    @property
    def is_met(self) -> bool:
        """The goal is reached, or there is none."""
        return self.goal is None or self.value <= self.goal


def write(figures: Sequence[Figure], file: Path) -> None:
    """All figures in one JSON object."""
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {"figures": [asdict(figure) for figure in figures]}
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def table(figures: Sequence[Figure]) -> str:
    """One line per figure, and below it what it is made of."""
    lines = []
    for one in figures:
        goal = "" if one.goal is None else f"goal {one.goal:g}: {'met' if one.is_met else 'MISSED'}"
        lines += [f"{one.name:24}{one.value:10.4g} {one.unit:22}{goal}".rstrip(), f"    {one.detail}"]
    return "\n".join(lines)

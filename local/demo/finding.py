"""What a check of the demo finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What a check found `wrong`, and what it tells when nothing is."""

    wrong: list[str]
    well: str

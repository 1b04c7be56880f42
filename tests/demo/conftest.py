from __future__ import annotations

from pathlib import Path

import pytest

from local.demo.evidence import EVIDENCE, Evidence


@pytest.fixture(scope="session")
def good() -> Evidence:
    """Recorded from a demo that went well; texts and events shortened, keys replaced."""
    return EVIDENCE.validate_json((Path(__file__).parent / "evidence.json").read_bytes())

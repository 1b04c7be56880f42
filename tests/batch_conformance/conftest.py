"""Fixtures of the conformance tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.batch_conformance.wire import Wire, account


@pytest.fixture
def wire() -> Iterator[Wire]:
    """An account with one idle node of one slot."""
    with account() as opened:
        yield opened

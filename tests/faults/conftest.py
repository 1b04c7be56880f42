"""Thousands of faults: their log lines would cost more than the faults."""

from __future__ import annotations

from tests.protocol.conftest import _quiet as _quiet

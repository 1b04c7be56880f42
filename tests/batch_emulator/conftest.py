"""Fixtures of the emulator's tests."""

import pytest
from azure.batch import BatchClient

from local.batch import World
from tests.batch_emulator.support import make_client, make_world


@pytest.fixture
def world() -> World:
    """One pool with one idle low-priority node of one slot."""
    return make_world()


@pytest.fixture
def client(world: World) -> BatchClient:
    return make_client(world)

"""The table of kinds gives each kind its own module."""

from __future__ import annotations

import pytest

from shared.haste.by_kind import parse_message, workload
from shared.kinds import Kind, Subject
from shared.settings.load import load_settings
from tests.settings.test_settings import LEGACY
from tests.support import samples
from tests.support.memory_blobs import MemoryBlobs

QUEUED = {
    Kind.IMAGERYPREP: "image-layer.queued.json",
    Kind.TRAINING: "train.queued.json",
    Kind.INFERENCE: "inference.queued.json",
}


@pytest.mark.parametrize("kind", Kind)
def test_a_kind_has_its_own_workload_and_message(kind: Kind) -> None:
    entity = parse_message(samples.raw(f"messages/{QUEUED[kind]}"), kind).entity
    assert entity.kind is kind
    work = workload(kind, load_settings(LEGACY), MemoryBlobs())
    assert work.kind is kind
    record = samples.LAYER_NAME if kind.facts.subject is Subject.LAYER else samples.MODEL_NAME
    assert work.record_name(entity) == record


def test_a_task_id_tells_its_kind() -> None:
    assert len({kind.task_prefix for kind in Kind}) == len(Kind)

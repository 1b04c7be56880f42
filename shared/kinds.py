"""The kinds of work HASTE asks for, and what a request is about."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """A kind of HASTE work. The value is used in blob names, logs and our own messages."""

    IMAGERYPREP = "imageryprep"
    TRAINING = "training"
    INFERENCE = "inference"

    @property
    def task_prefix(self) -> str:
        """HASTE's task id prefix; its zip container sorts output folders by it."""
        return {"imageryprep": "img", "training": "trn", "inference": "inf"}[self.value]

    @property
    def job_class(self) -> str:
        """`training` or `interactive` (everything a person waits for): Batch jobs and priorities go by it."""
        return "training" if self is Kind.TRAINING else "interactive"


@dataclass(frozen=True)
class Entity:
    """What a request is about: one kind of work on one image layer or model of a project.

    `entity_id` is an image layer id (imageryprep) or a model id, which is unique inside its project only.
    """

    kind: Kind
    project_id: str
    entity_id: str

    @property
    def key(self) -> str:
        """Ledger key, `<kind>/<32 hex digits>`: safe in blob names, distinct for distinct entities."""
        text = "\n".join((self.kind.value, self.project_id, self.entity_id))
        return f"{self.kind.value}/{hashlib.sha256(text.encode()).hexdigest()[:32]}"

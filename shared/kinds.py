"""The kinds of work HASTE asks for, and what a request is about. How a kind is added: docs/adding-a-kind.md."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never


class Subject(StrEnum):
    """What a kind works on. Its id tells apart: a layer has a GUID, a model a number inside its project."""

    LAYER = "layer"
    MODEL = "model"


class JobClass(StrEnum):
    """Batch jobs and priorities go by it: `interactive` is everything a person waits for."""

    INTERACTIVE = "interactive"
    TRAINING = "training"


class Kind(StrEnum):
    """A kind of HASTE work. The value is used in blob names, logs and our own messages."""

    IMAGERYPREP = "imageryprep"
    TRAINING = "training"
    INFERENCE = "inference"

    @property
    def facts(self) -> KindFacts:
        """This kind's row."""
        return _facts(self)

    @property
    def task_prefix(self) -> str:
        """HASTE's task id prefix."""
        return self.facts.task_prefix

    @property
    def job_class(self) -> JobClass:
        """The class of the kind's Batch jobs."""
        return self.facts.job_class


@dataclass(frozen=True)
class KindFacts:
    """What the whole worker knows of a kind. `task_prefix` is HASTE's; its zip container sorts output folders by it."""

    task_prefix: str
    job_class: JobClass
    subject: Subject


def _facts(kind: Kind) -> KindFacts:
    match kind:
        case Kind.IMAGERYPREP:
            return KindFacts("img", JobClass.INTERACTIVE, Subject.LAYER)
        case Kind.TRAINING:
            return KindFacts("trn", JobClass.TRAINING, Subject.MODEL)
        case Kind.INFERENCE:
            return KindFacts("inf", JobClass.INTERACTIVE, Subject.MODEL)
        case _:
            assert_never(kind)


@dataclass(frozen=True)
class Entity:
    """What a request is about: one kind of work on one image layer or model of a project.

    `entity_id` is the id of an image layer or of a model (`Subject`); a model's is unique inside its project only.
    """

    kind: Kind
    project_id: str
    entity_id: str

    @property
    def key(self) -> str:
        """Ledger key, `<kind>/<32 hex digits>`: safe in blob names, distinct for distinct entities."""
        text = "\n".join((self.kind.value, self.project_id, self.entity_id))
        return f"{self.kind.value}/{hashlib.sha256(text.encode()).hexdigest()[:32]}"

"""HASTE's samples: one project with a layer and a model, in all states."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shared.batch.task_spec import OutputFile, ResourceFile, TaskSpec
from shared.kinds import Entity, Kind
from shared.protocol.outcome import Run
from tests.support.memory_blobs import MemoryBlobs

_FOLDER = Path(__file__).parents[1] / "haste_samples"

PROJECT_ID = "9f3c2b7e-41d0-4c55-8a6e-0b7d5e1f2a34"
LAYER_ID = "2c8e6d10-7a4b-4e39-9d52-6f1a3b8c4d05"
MODEL_ID = "4821"
LABEL_PROJECT_ID = "b41f7a90-5c2d-4f68-a1e3-8d9c0e7b6a52"
FOLDER = "8d47eea41b2d6b8b6df8fd702531b8a1b7631a553d109c6e6168e0461d793eaa"

IMAGERY_TASK = "img-5d0f3a1c-9b7e-4a26-8c41-1e2f3a4b5c60"
TRAINING_TASK = "trn-7e1a9c52-3d4b-4f80-b6a7-2c3d4e5f6a71"
INFERENCE_TASK = "inf-0a8b6c4d-2e1f-4a3b-9c5d-7e8f9a0b1c82"
JOB_ID = "haste-demo-pool"

LAYER_NAME = f"{FOLDER}/imagelayer_{LAYER_ID}.json"
MODEL_NAME = f"{FOLDER}/model_{MODEL_ID}.json"
CONFIG_NAME = f"{FOLDER}/experiment_config_{MODEL_ID}.yaml"


def raw(name: str) -> bytes:
    """Content of one sample file."""
    return (_FOLDER / name).read_bytes()


def sample(name: str) -> dict[str, Any]:
    """One JSON sample."""
    value = json.loads(raw(name))
    assert isinstance(value, dict)
    return value


def at(text: str) -> datetime:
    """A time on the day of the samples."""
    return datetime.fromisoformat(f"2026-08-12T{text}.123456").replace(tzinfo=UTC)


def imagery_run() -> Run:
    entity = Entity(Kind.IMAGERYPREP, PROJECT_ID, LAYER_ID)
    return Run(entity, "message-1", 1, JOB_ID, IMAGERY_TASK, at("09:01:05"))


def training_run() -> Run:
    entity = Entity(Kind.TRAINING, PROJECT_ID, MODEL_ID)
    return Run(entity, "message-2", 1, JOB_ID, TRAINING_TASK, at("09:31:00"))


def inference_run() -> Run:
    entity = Entity(Kind.INFERENCE, PROJECT_ID, MODEL_ID)
    return Run(entity, "message-3", 1, JOB_ID, INFERENCE_TASK, at("10:01:40"))


def project_blobs(**records: str) -> MemoryBlobs:
    """The project's records; keyword `layer`, `model`, `labels` choose a state by the sample's file name."""
    names = {"layer": LAYER_NAME, "model": MODEL_NAME, "labels": f"{FOLDER}/labels_{LABEL_PROJECT_ID}.json"}
    content = {names[key]: raw(f"metadata/{state}.json") for key, state in records.items()}
    return MemoryBlobs({f"{FOLDER}/project_{PROJECT_ID}.json": raw("metadata/project.json"), **content})


def change(blobs: MemoryBlobs, blob_name: str, /, **fields: Any) -> None:
    """Change fields of a stored record."""
    blobs.content[blob_name] = json.dumps(json.loads(blobs.content[blob_name]) | fields).encode()


def haste_task(name: str, image_name: str) -> TaskSpec:
    """The task that HASTE would add, in our terms."""
    body = sample(f"batch-tasks/{name}.json")
    assert body["containerSettings"]["imageName"] == image_name
    return TaskSpec(
        command_line=body["commandLine"],
        image_name=image_name,
        resource_files=tuple(ResourceFile(item["httpUrl"], item["filePath"]) for item in body["resourceFiles"]),
        output_files=tuple(
            OutputFile(item["filePattern"], item["destination"]["container"]["path"]) for item in body["outputFiles"]
        ),
        environment={item["name"]: item["value"] for item in body["environmentSettings"]},
    )


def lines(record: dict[str, Any], field: str = "statusMessage") -> list[str]:
    """The log without the lines that only HASTE writes: "Submitting ..." just before "... submitted"."""
    return [line for line in record[field].split("\n") if ": Submitting " not in line]

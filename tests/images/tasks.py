"""Runs the images' entrypoints as processes, the way a Batch node runs a task, on generated imagery."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local.producer import synthetic

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "tests" / "haste_samples"
PROJECT_ID = "9f3c2b7e-41d0-4c55-8a6e-0b7d5e1f2a34"
LAYER_ID = "2c8e6d10-7a4b-4e39-9d52-6f1a3b8c4d05"
SUFFIX = f"{PROJECT_ID}_{LAYER_ID}"
MODEL_ID = "4821"
_SET_BY_TESTS = {"HASTE_LOCAL_SECONDS", "HASTE_LOCAL_FAIL", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"}
MOSAIC = f"raw_imagery_post_event_mosaic_cog_{SUFFIX}"


@dataclass(frozen=True)
class Task:
    """A task's working directory and the environment its process gets."""

    directory: Path
    environment: dict[str, str] = field(default_factory=dict)

    def start(self, image: str, command_line: str) -> "subprocess.Popen[str]":
        """Start a command line, quoted as HASTE sends it, in a process group of its own."""
        assert command_line[0] == command_line[-1] == '"'
        environment = {key: value for key, value in os.environ.items() if key not in _SET_BY_TESTS}
        environment |= {"AZ_BATCH_TASK_WORKING_DIR": str(self.directory), "HASTE_LOCAL_PYTHON": sys.executable}
        return subprocess.Popen(
            [ROOT / "local" / "images" / image / "entrypoint", command_line[1:-1]],
            cwd=self.directory,
            env=environment | self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, image: str, command_line: str) -> "subprocess.CompletedProcess[str]":
        process = self.start(image, command_line)
        out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(command_line, process.returncode, out, err)

    def log_texts(self, name: str) -> list[str]:
        """The part after the first ``|`` of each line of a log in ``logs/``."""
        lines = (self.directory / "logs" / name).read_text().splitlines()
        return [line.split("|", 1)[1] for line in lines]


def sample_json(name: str) -> Any:
    return json.loads((SAMPLES / name).read_text())


def sample_command_line(kind: str) -> str:
    """The command line of HASTE's own task of that kind, unchanged."""
    return str(sample_json(f"batch-tasks/{kind}.json")["commandLine"])


def imagery_task(directory: Path, environment: dict[str, str] | None = None, **config: Any) -> Task:
    """A task with HASTE's imagery config, ``config`` over it."""
    directory.mkdir(parents=True, exist_ok=True)
    text = json.dumps(sample_json("configs/imageryprep_config.yaml") | config)
    (directory / f"imageryprep_config_{LAYER_ID}.yaml").write_text(text)
    return Task(directory, environment or {})


def model_task(directory: Path, step: str, prepared: Path, *, environment: dict[str, str] | None = None) -> Task:
    """A task with HASTE's experiment config of ``step`` and the inputs its resource files would bring."""
    inputs = directory / "inputs"
    inputs.mkdir(parents=True)
    config = (SAMPLES / "configs" / f"experiment_config.{step}.yaml").read_text()
    (inputs / f"experiment_config_{MODEL_ID}.yaml").write_text(config)
    raw_path = directory / json.loads(config)["imagery"]["raw_fn"].removeprefix("AZ_BATCH_TASK_WORKING_DIR/")
    raw_path.parent.mkdir()
    raw_path.symlink_to(prepared / "outputs" / raw_path.name)
    features = [
        {
            "type": "Feature",
            "geometry": label["geometry"],
            "properties": {
                "class" if key == "primaryClass" else key: text for key, text in label["properties"].items()
            },
        }
        for label in synthetic.labels()
    ]
    labels = {"type": "FeatureCollection", "name": "Cedar Valley 12 Aug", "features": features}
    (inputs / f"train_labels_{MODEL_ID}.geojson").write_text(json.dumps(labels))
    return Task(directory, environment or {})


def change_config(task: Task, old: str, new: str) -> None:
    """Replace one piece of the config's text, so that number formats arrive as written."""
    path = task.directory / "inputs" / f"experiment_config_{MODEL_ID}.yaml"
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import rasterio

from local.images.training.app.event_file import record, scalar_event, version_event
from tests.images.event_reader import read_scalars
from tests.images.tasks import MODEL_ID, SAMPLES, change_config, model_task, sample_command_line

COMMAND_LINE = sample_command_line("training")
SAMPLE_EVENTS = SAMPLES / "task-files" / "events.out.tfevents.1786527300.examplenode.1.0"
FAILED_LOG = [
    line.split("|")[1]
    for line in (SAMPLES / "task-files" / "workflow_progress.training-failed.log").read_text().splitlines()
]
DEADLINE_SECONDS = 60


def event_file_of(directory: Path) -> Path:
    (path,) = (directory / "logs" / f"model_{MODEL_ID}" / "version_0").iterdir()
    return path


def test_events_are_framed_byte_for_byte_like_those_of_tensorboard() -> None:
    sample = SAMPLE_EVENTS.read_bytes()
    opening_time = 1795998708.125955  # as in the sample's first record
    written = record(version_event(opening_time)) + b"".join(
        record(scalar_event(scalar.wall_time, scalar.step, scalar.tag, scalar.value))
        for scalar in read_scalars(SAMPLE_EVENTS)
    )
    assert written == sample


def test_scalars_of_each_epoch(trained: Path) -> None:
    path = event_file_of(trained)
    assert path.name.startswith("events.out.tfevents.")
    assert path.name.endswith(".0")
    sample, scalars = read_scalars(SAMPLE_EVENTS), read_scalars(path)
    third_epoch = [
        (250, "train_loss"), (250, "train_MulticlassAccuracy"), (250, "epoch"),
        (300, "train_loss"), (300, "train_MulticlassAccuracy"), (300, "epoch"),
    ]  # fmt: skip
    assert [(scalar.step, scalar.tag) for scalar in scalars] == [(s.step, s.tag) for s in sample] + third_epoch
    values = {tag: [s.value for s in scalars if s.tag == tag] for tag in {s.tag for s in scalars}}
    assert values["epoch"] == [0, 0, 1, 1, 2, 2]
    assert values["train_loss"] == sorted(values["train_loss"], reverse=True)
    assert values["train_MulticlassAccuracy"][-1] > 0.9
    times = [scalar.wall_time for scalar in scalars]
    assert times == sorted(times)


def test_checkpoints_are_the_last_and_the_two_best(trained: Path) -> None:
    names = {path.name for path in (trained / "checkpoint").iterdir()}
    assert names == {"last.ckpt", "epoch=1-step=200.ckpt", "epoch=2-step=300.ckpt"}


def test_masks_hold_the_place_of_the_class(trained: Path) -> None:
    (path,) = (trained / "masks").iterdir()
    with rasterio.open(path) as mask:
        values, counts = np.unique(mask.read(1), return_counts=True)
        pixels_per_house = 15 * 15
        assert list(values) == [0, 1, 2, 3]
        assert counts[2] == counts[3] == 4 * pixels_per_house
        assert counts[1] > 4 * pixels_per_house  # the drawn ground and the ring around the buildings


def test_the_directory_is_in_the_config_and_nothing_is_logged_on_success(trained: Path) -> None:
    config = (trained / "inputs" / f"experiment_config_{MODEL_ID}.yaml").read_text()
    assert "AZ_BATCH_TASK_WORKING_DIR" not in config
    assert f'"experiment_dir": "{trained}"' in config
    assert (trained / "images").is_dir()
    assert not (trained / "logs" / "workflow_progress.log").exists()


def test_the_same_inputs_give_the_same_checkpoint(prepared: Path, trained: Path, tmp_path: Path) -> None:
    assert model_task(tmp_path, "training", prepared).run("training", COMMAND_LINE).returncode == 0
    assert (tmp_path / "checkpoint/last.ckpt").read_bytes() == (trained / "checkpoint/last.ckpt").read_bytes()


def test_warm_start_goes_on_where_the_weights_were(prepared: Path, trained: Path, tmp_path: Path) -> None:
    task = model_task(tmp_path, "training", prepared)
    (tmp_path / "inputs" / "last.ckpt").write_bytes((trained / "checkpoint" / "last.ckpt").read_bytes())
    change_config(
        task, '"initial_weights_fn": null', '"initial_weights_fn": "AZ_BATCH_TASK_WORKING_DIR/inputs/last.ckpt"'
    )
    assert task.run("training", COMMAND_LINE).returncode == 0
    before, after = read_scalars(event_file_of(trained)), read_scalars(event_file_of(tmp_path))
    assert after[0].value < min(scalar.value for scalar in before if scalar.tag == "train_loss")


def test_scalars_can_be_followed_while_the_task_runs_and_the_task_can_be_ended(prepared: Path, tmp_path: Path) -> None:
    task = model_task(tmp_path, "training", prepared, environment={"HASTE_LOCAL_SECONDS": "600"})
    change_config(task, '"max_epochs": 3', '"max_epochs": 3000')
    process = task.start("training", COMMAND_LINE)
    try:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not (files := list(tmp_path.glob("logs/**/events*"))) or len(read_scalars(files[0])) < 9:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert (tmp_path / "checkpoint" / "last.ckpt").exists()
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == -signal.SIGTERM


def test_asked_to_fail(prepared: Path, tmp_path: Path) -> None:
    task = model_task(tmp_path, "training", prepared, environment={"HASTE_LOCAL_FAIL": "1"})
    assert task.run("training", COMMAND_LINE).returncode == 1
    assert task.log_texts("workflow_progress.log") == FAILED_LOG


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"learning_rate": 0.0001', '"learning_rate": 1e-05'),
        ('"learning_rate": 0.0001', '"learning_rate": 1'),
        ('"learning_rate": 0.0001', '"learning_rate": "0.0001"'),
        ('"max_epochs": 3', '"max_epochs": "3"'),
        ('"max_epochs": 3', '"max_epochs": true'),
        ('"use_constraint_loss": false', '"use_constraint_loss": null'),
        ('"num_channels": 3', '"num_channels": 4'),
        ('"experiment_name": "model_4821", ', ""),
        ('"checkpoint_fn": "", ', ""),
        ('{"experiment_dir"', 'experiment_dir: no JSON {"'),
    ],
)
def test_the_config_is_checked_for_presence_and_type(prepared: Path, tmp_path: Path, old: str, new: str) -> None:
    task = model_task(tmp_path, "training", prepared)
    change_config(task, old, new)
    finished = task.run("training", COMMAND_LINE)
    assert finished.returncode == 1
    assert "ConfigError" in finished.stderr
    assert task.log_texts("workflow_progress.log") == ["Error running check_config.py", *FAILED_LOG[1:]]


def test_a_small_learning_rate_with_a_decimal_point_is_a_float(prepared: Path, tmp_path: Path) -> None:
    task = model_task(tmp_path, "training", prepared)
    change_config(task, '"learning_rate": 0.0001', '"learning_rate": 1.0e-05')
    assert task.run("training", COMMAND_LINE).returncode == 0


def test_a_label_of_an_unknown_class_fails_without_showing_it_to_users(prepared: Path, tmp_path: Path) -> None:
    task = model_task(tmp_path, "training", prepared)
    change_config(task, '"Damaged Building"', '"Flooded"')
    finished = task.run("training", COMMAND_LINE)
    assert finished.returncode == 1
    assert "Damaged Building" in finished.stderr
    assert task.log_texts("workflow_progress.log") == ["Error running create_masks.py", *FAILED_LOG[1:]]

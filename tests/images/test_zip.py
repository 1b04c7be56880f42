import json
import zipfile
from pathlib import Path

import pytest

from tests.images.tasks import Task, sample_command_line, sample_json

COMMAND_LINE = sample_command_line("zip")
ENVIRONMENT = {item["name"]: item["value"] for item in sample_json("batch-tasks/zip.json")["environmentSettings"]}


def zip_task(directory: Path, *files: str) -> Task:
    for name in files:
        path = directory / ENVIRONMENT["INPUT_DIR"] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return Task(directory, ENVIRONMENT)


def test_task_folders_are_sorted_by_prefix(tmp_path: Path) -> None:
    task = zip_task(tmp_path, "trn-1/checkpoint/last.ckpt", "trn-1/stdout.txt", "inf-2/x.gpkg", "emb-3/y.bin")
    assert task.run("imageryprep", COMMAND_LINE).returncode == 0
    sample = sample_json("task-files/zip_manifest.json")
    manifest = json.loads((tmp_path / "outputs" / "zip_manifest.json").read_text())
    assert {key: list(entry) for key, entry in manifest.items()} == {key: list(entry) for key, entry in sample.items()}
    contents = {}
    for key, entry in manifest.items():
        path = tmp_path / "outputs" / entry["filename"]
        assert entry["filename"] == sample[key]["filename"]
        assert entry["size_bytes"] == path.stat().st_size
        with zipfile.ZipFile(path) as archive:
            contents[key] = archive.namelist()
    assert contents == {
        "training_zip": ["trn-1/checkpoint/last.ckpt", "trn-1/stdout.txt"],
        "inference_zip": ["inf-2/x.gpkg"],
    }


@pytest.mark.parametrize(("files", "keys"), [(("trn-1/a",), ["training_zip"]), (("emb-3/a",), [])])
def test_only_zips_that_have_files_are_named(tmp_path: Path, files: tuple[str, ...], keys: list[str]) -> None:
    assert zip_task(tmp_path, *files).run("imageryprep", COMMAND_LINE).returncode == 0
    assert list(json.loads((tmp_path / "outputs" / "zip_manifest.json").read_text())) == keys


def test_nothing_to_zip(tmp_path: Path) -> None:
    assert zip_task(tmp_path).run("imageryprep", COMMAND_LINE).returncode == 1

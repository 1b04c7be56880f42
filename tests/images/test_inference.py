import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import rasterio
from rasterio.warp import transform

from local.images.geopackage import read_polygons
from local.images.scenery import buildings_within
from local.producer import synthetic
from tests.images.tasks import (
    MOSAIC,
    SAMPLES,
    SUFFIX,
    Task,
    change_config,
    model_task,
    sample_command_line,
    sample_json,
)

COMMAND_LINE = sample_command_line("inference")
GPKG = "predicted_damage_cedar-valley-unet-1.gpkg"
LOG = [
    line.split("|")[1] for line in (SAMPLES / "task-files" / "workflow_progress.inference.log").read_text().splitlines()
]


def inference_task(directory: Path, prepared: Path, trained: Path, environment: dict[str, str] | None = None) -> Task:
    (settings,) = sample_json("batch-tasks/inference.json")["environmentSettings"]
    task = model_task(
        directory, "inference", prepared, environment={settings["name"]: settings["value"]} | (environment or {})
    )
    inputs = directory / "inputs"
    (inputs / "checkpoint").mkdir()
    (inputs / "checkpoint" / "last.ckpt").write_bytes((trained / "checkpoint" / "last.ckpt").read_bytes())
    footprints = prepared / "outputs" / f"building_footprints_{SUFFIX}.gpkg"
    (inputs / "building_footprints.gpkg").write_bytes(footprints.read_bytes())
    return task


@pytest.fixture(scope="module")
def inferred(prepared: Path, trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Task:
    task = inference_task(tmp_path_factory.mktemp("inference"), prepared, trained)
    finished = task.run("training", COMMAND_LINE)
    assert finished.returncode == 0, finished.stderr
    return task


def test_the_folder_holds_what_haste_uploads_and_looks_for(inferred: Task) -> None:
    names = {path.name for path in (inferred.directory / "inference").iterdir()}
    assert names == {f"{MOSAIC}_predictions.tif", f"{MOSAIC}_temp_vis.tif", f"{MOSAIC}_visualizer.tif", GPKG}


def test_log_lines(inferred: Task) -> None:
    assert inferred.log_texts("workflow_progress.log") == LOG


def test_predictions_find_houses_and_damage(inferred: Task) -> None:
    with rasterio.open(inferred.directory / "inference" / f"{MOSAIC}_predictions.tif") as predictions:
        assert predictions.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"
        assert predictions.crs.to_epsg() == 32610
        assert predictions.dtypes == ("uint8",)
        classes = predictions.read(1)
    assert set(np.unique(classes)) == {1, 2, 3}
    assert np.mean(classes == 1) > 0.8


def test_visualizer_is_a_transparent_cog_on_the_same_grid(inferred: Task) -> None:
    folder = inferred.directory / "inference"
    with (
        rasterio.open(folder / f"{MOSAIC}_visualizer.tif") as cog,
        rasterio.open(folder / f"{MOSAIC}_temp_vis.tif") as plain,
    ):
        assert cog.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"
        assert (cog.crs, cog.transform, cog.shape) == (plain.crs, plain.transform, plain.shape)
        assert [color.name for color in cog.colorinterp] == ["red", "green", "blue", "alpha"]
        assert np.array_equal(cog.read(), plain.read())
        assert set(np.unique(cog.read(4))) == {0, 255}


def test_geopackage_says_which_houses_are_damaged(inferred: Task) -> None:
    path = inferred.directory / "inference" / GPKG
    with closing(sqlite3.connect(path)) as file:
        (table,) = file.execute("SELECT table_name FROM gpkg_contents").fetchone()
        rows = file.execute(f'SELECT id, damage_pct_0m, damaged, unknown_pct FROM "{table}" ORDER BY fid').fetchall()
    truth = {}
    for house in buildings_within(synthetic.bounds(), is_geographic=False):
        xs, ys = transform("EPSG:32610", "EPSG:4326", [house.bounds[0]], [house.bounds[1]])
        truth[round(xs[0], 6), round(ys[0], 6)] = house.is_damaged
    found = {}
    for ((ring,),), (_, share, damaged, unknown) in zip(read_polygons(path).features, rows, strict=True):
        x, y = ring[0]
        found[round(x, 6), round(y, 6)] = share > 0.9
        assert damaged == int(share > 0)
        assert unknown == 0
        assert share > 0.9 or share < 0.1
    assert found == truth


def test_without_checkpoint(prepared: Path, trained: Path, tmp_path: Path) -> None:
    task = inference_task(tmp_path, prepared, trained)
    (tmp_path / "inputs" / "checkpoint" / "last.ckpt").unlink()
    assert task.run("training", COMMAND_LINE).returncode == 1
    assert task.log_texts("workflow_progress.log")[:2] == ["Generating predictions", "Error running inference.py"]


def test_footprints_that_are_no_geopackage(prepared: Path, trained: Path, tmp_path: Path) -> None:
    task = inference_task(tmp_path, prepared, trained)
    (tmp_path / "inputs" / "building_footprints.gpkg").write_bytes(b"<html>not found</html>" * 100)
    assert task.run("training", COMMAND_LINE).returncode == 1
    assert "Error running merge_with_building_footprints.py" in task.log_texts("workflow_progress.log")
    assert not (tmp_path / "inference" / GPKG).exists()


@pytest.mark.parametrize(("old", "new"), [("256", "200"), ("256", "null")])
def test_patch_size_must_be_a_power_of_two(prepared: Path, trained: Path, tmp_path: Path, old: str, new: str) -> None:
    task = inference_task(tmp_path, prepared, trained)
    change_config(task, f'"patch_size": {old}', f'"patch_size": {new}')
    assert task.run("training", COMMAND_LINE).returncode == 1
    assert task.log_texts("workflow_progress.log")[0] == "Error running check_config.py"


def test_asked_to_fail(prepared: Path, trained: Path, tmp_path: Path) -> None:
    task = inference_task(tmp_path, prepared, trained, {"HASTE_LOCAL_FAIL": "1"})
    assert task.run("training", COMMAND_LINE).returncode == 1
    assert task.log_texts("workflow_progress.log")[1] == "Error running inference.py"

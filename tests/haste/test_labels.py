"""Label projects: found, exported, and made once."""

from __future__ import annotations

import json

import pytest

from shared.haste import labels
from shared.haste.label_project import LabelledLayer, TileServer, ensure_label_project
from tests.support import samples
from tests.support.memory_blobs import MemoryBlobs
from tests.support.rasters import SAMPLE_BOUNDS

WEST, SOUTH, EAST, NORTH = SAMPLE_BOUNDS
OUTLINE = [(EAST, SOUTH), (EAST, NORTH), (WEST, NORTH), (WEST, SOUTH), (EAST, SOUTH)]
TILES = TileServer("http://localhost:7071/api/titiler/", 256)
OUTPUT = f"{samples.FOLDER}/{samples.IMAGERY_TASK}"
IMAGERY = f"{OUTPUT}/processed_imagery_{{}}_event_cog_{samples.PROJECT_ID}_{samples.LAYER_ID}.tif"


def labelled_layer(blobs: MemoryBlobs) -> LabelledLayer:
    post, pre = (blobs.reading_url(IMAGERY.format(word)) for word in ("post", "pre"))
    return LabelledLayer(samples.PROJECT_ID, samples.LAYER_ID, "Cedar Valley 12 Aug", post, pre, OUTLINE)


def test_export_is_haste_s() -> None:
    label_project = samples.sample("metadata/labelproject.with-labels.json")
    assert labels.geojson(label_project) == samples.sample("configs/train_labels.geojson")


def test_the_class_may_be_called_class() -> None:
    label_project = {"name": "x", "labels": [{"properties": {"class": "Building", "primaryClass": None}}]}
    assert labels.geojson(label_project)["features"][0]["properties"]["class"] == "Building"


def test_the_first_label_project_of_the_layer_counts() -> None:
    blobs = MemoryBlobs()
    for name, layer_id in (("0", "other"), ("2", "mine"), ("1", "mine")):
        blobs.content[f"{samples.FOLDER}/labels_{name}.json"] = json.dumps(
            {"id": name, "imageLayerId": layer_id}
        ).encode()
    blobs.content[f"{samples.FOLDER}/labels_00.json"] = b"broken"
    assert labels.find_label_project(blobs, samples.PROJECT_ID, "mine") == {"id": "1", "imageLayerId": "mine"}
    assert labels.find_label_project(blobs, samples.PROJECT_ID, "nobody's") is None


NAMED = "b41f7a90-5c2d-4f68-a1e3-8d9c0e7b6a52"


@pytest.mark.parametrize(
    ("named", "layer_id", "expected"),
    [
        (NAMED, "mine", NAMED),
        (NAMED, "other", "0"),
        ("b41f7a90-5c2d-4f68-a1e3-8d9c0e7b6a53", "mine", "0"),
        ("9-is-no-guid", "mine", "0"),
        ("", "mine", "0"),
    ],
    ids=["of this layer", "of another layer", "not there", "no id", "not named"],
)
def test_the_one_that_the_model_names_is_read_if_it_is_of_this_layer(named: str, layer_id: str, expected: str) -> None:
    blobs = MemoryBlobs()
    for name, layer in (("0", "mine"), ("9-is-no-guid", "mine"), (NAMED, layer_id)):
        blobs.content[f"{samples.FOLDER}/labels_{name}.json"] = json.dumps({"id": name, "imageLayerId": layer}).encode()
    found = labels.find_label_project(blobs, samples.PROJECT_ID, "mine", named)
    assert found is not None and found["id"] == expected


def test_a_new_label_project_is_haste_s() -> None:
    blobs = MemoryBlobs()
    created = samples.at("09:17:01")
    label_project_id, url = ensure_label_project(blobs, TILES, labelled_layer(blobs), "message-1", created)
    stored = json.loads(blobs.content[f"{samples.FOLDER}/labels_{label_project_id}.json"])
    expected = samples.sample("metadata/labelproject.fresh.json") | {"labelprojectId": label_project_id}
    assert stored == expected
    assert list(stored) == list(expected)
    export = f"{samples.FOLDER}/artifacts/labels_{label_project_id}.geojson"
    assert url == blobs.reading_url(export)
    assert json.loads(blobs.content[export]) == {
        "type": "FeatureCollection",
        "name": "Cedar Valley 12 Aug",
        "features": [],
    }


def test_making_it_again_changes_nothing() -> None:
    blobs = MemoryBlobs()
    first = ensure_label_project(blobs, TILES, labelled_layer(blobs), "message-1", samples.at("09:17:01"))
    content = dict(blobs.content)
    assert ensure_label_project(blobs, TILES, labelled_layer(blobs), "message-1", samples.at("09:30:00")) == first
    assert blobs.content == content


def test_an_existing_one_with_labels_is_used() -> None:
    blobs = samples.project_blobs(labels="labelproject.with-labels")
    used, _ = ensure_label_project(blobs, TILES, labelled_layer(blobs), "message-9", samples.at("09:17:01"))
    assert used == samples.LABEL_PROJECT_ID
    assert blobs.names(f"{samples.FOLDER}/labels_") == [f"{samples.FOLDER}/labels_{used}.json"]
    export = json.loads(blobs.content[f"{samples.FOLDER}/artifacts/labels_{used}.geojson"])
    assert len(export["features"]) == 4


@pytest.mark.parametrize("url", ["http://t/api", "http://t/api/"])
def test_tile_url_escapes_everything_of_the_raster_s_url(url: str) -> None:
    expected = (
        "http://t/api/cog/tiles/WebMercatorQuad/{z}/{x}/{y}?scale=1&url=https%3A%2F%2Fh%2Fx.tif%3Fa%3D1%26b%3D%2525"
    )
    assert TileServer(url, 256).tile_url("https://h/x.tif?a=1&b=%25") == expected
    assert TileServer(url, 256).tile_url("") == ""

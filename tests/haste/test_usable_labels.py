"""Labels that can train nothing are refused before a node starts; labels that can never are.

What can train is told by HASTE's own tool: GDAL burns a label into a mask, or does not.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import rasterio.features
from hypothesis import given, settings
from hypothesis import strategies as st
from rasterio.transform import from_bounds
from rasterio.warp import transform

from shared.errors import Refused
from shared.haste import usable_labels
from shared.haste.training import Training
from tests.support import samples

CLASSES = ["Background", "Building", "Damaged Building"]
WEST, SOUTH, EAST, NORTH = -120.512, 47.201, -120.488, 47.219
RING = [[-120.505, 47.205], [-120.5044, 47.205], [-120.5044, 47.2056], [-120.505, 47.2056], [-120.505, 47.205]]
SQUARE = {"type": "Polygon", "coordinates": [RING]}


def label(geometry: Any, name: Any = "Building", **properties: Any) -> dict[str, Any]:
    return {"type": "Feature", "geometry": geometry, "properties": {"primaryClass": name, **properties}}


def outline(west: float = WEST, south: float = SOUTH, east: float = EAST, north: float = NORTH) -> dict[str, Any]:
    """A label project's feature, as HASTE makes it of the corners of the imagery."""
    ring = [[east, south], [east, north], [west, north], [west, south], [east, south]]
    return {"geometry": {"type": "Polygon", "coordinates": [ring]}, "bbox": [west, south, east, north]}


def fault(*found: Any, features: Any = None) -> str | None:
    project = {"labels": list(found), "features": [outline()] if features is None else features}
    return usable_labels.fault(json.loads(json.dumps(project)), CLASSES)


def moved(degrees_east: float, degrees_north: float = 0) -> dict[str, Any]:
    ring = [[longitude + degrees_east, latitude + degrees_north] for longitude, latitude in RING]
    return {"type": "Polygon", "coordinates": [ring]}


# --- refused ------------------------------------------------------------------------------------------------------

NOTHING = [
    None,
    {},
    {"type": "Polygon", "coordinates": []},
    {"type": "Polygon", "coordinates": [[]]},
    {"type": "Polygon", "coordinates": None},
    {"type": "Polygon", "coordinates": [[["-120.5", "47.2"]]]},
    {"type": "GeometryCollection", "geometries": []},
    {"type": "Circle", "coordinates": [-120.5, 47.2]},
    {"type": "Polygon", "coordinates": [[[math.nan, math.inf]]]},
    "Polygon",
]


def test_labels_without_any_shape() -> None:
    told = fault(*map(label, NOTHING))
    assert told == "None of the image layer's labels has a shape: training needs at least one. Draw them again."


@pytest.mark.parametrize("name", [None, "", "Road", 7, "Building2", ["Building"]])
def test_labels_of_no_class_of_the_project(name: Any) -> None:
    told = fault(label(SQUARE, name), label(None, "Building"))
    assert told is not None and "(Background, Building, Damaged Building)" in told


@pytest.mark.parametrize("away", [(1, 0), (-1, 0), (0, 1), (0, -1), (100, -60)])
def test_labels_beside_the_imagery(away: tuple[float, float]) -> None:
    told = fault(label(moved(*away)), label(moved(*away), "Background"), label(None), label(SQUARE, "Road"))
    assert told is not None and told.startswith("All labels lie outside of the layer's imagery")


def test_before_a_task_is_made() -> None:
    blobs = samples.project_blobs(
        layer="imagelayer.processed", model="model.train-queued", labels="labelproject.with-labels"
    )
    name = f"{samples.FOLDER}/labels_{samples.LABEL_PROJECT_ID}.json"
    training = Training(blobs, image_name="example.azurecr.io/hastetraining:2.0.0")
    entity = samples.training_run().entity
    training.check(entity)
    for labels, reason in ((label(None), "a shape"), (label(SQUARE, "Road"), "classes"), (label(moved(1)), "outside")):
        samples.change(blobs, name, labels=[labels])
        with pytest.raises(Refused, match=reason):
            training.check(entity)
        with pytest.raises(Refused, match=reason):
            training.prepare(samples.training_run(), lambda url: url)
    assert not any("/inputs/" in one for one in blobs.content), "nothing is written for a task"


# --- never refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "geometry",
    [
        SQUARE,
        {"type": "polygon", "coordinates": [RING]},
        {"type": "Polygon", "coordinates": [[[*position, 12.5] for position in RING]]},
        {"type": "MultiPolygon", "coordinates": [[[[10, 10], [11, 10], [11, 11], [10, 10]]], [RING]]},
        {"type": "GeometryCollection", "geometries": [{"type": "Point", "coordinates": [0, 0]}, SQUARE]},
        {"type": "Point", "coordinates": RING[0]},
        {"type": "LineString", "coordinates": RING[:2]},
        {"type": "Polygon", "coordinates": [[[-500, -80], [-500, 80], [500, 80], [500, -80], [-500, -80]]]},
        moved(360),
        moved(-360),
        {"type": "Polygon", "coordinates": [[[-(10**400), 0], [10**400, 0], [0, 90], [-(10**400), 0]]]},
    ],
)
def test_one_label_that_counts_is_enough(geometry: Any) -> None:
    others = [*map(label, NOTHING), label(SQUARE, "Road"), label(moved(1))]
    assert fault(*others, label(geometry), *others) is None


@pytest.mark.parametrize("properties", [{"primaryClass": "building "}, {"primaryClass": "x", "class": "BUILDING"}])
def test_the_class_as_the_container_reads_it(properties: dict[str, Any]) -> None:
    assert fault({"geometry": SQUARE, "properties": properties}) is None


@pytest.mark.parametrize(
    "features",
    [
        [],
        [{}],
        [{"geometry": None, "bbox": None}],
        [{"bbox": [0, 0, 0, 0]}],
        [{"bbox": [179, -1, -179, 1]}],
        [outline(179.5, -17, -179.5, -16)],
        [{"bbox": [math.nan, 0, 1, 1]}],
        [{"bbox": ["0", "0", "1", "1"]}],
        [outline(0, 70, 1, 89.9)],
        [{"bbox": [10**400, 0, 10**400 + 1, 1]}],
        ["outline"],
        "features",
    ],
)
def test_without_a_certain_position_of_the_imagery_nothing_is_refused_for_it(features: Any) -> None:
    assert fault(label(moved(3)), features=features) is None


# --- by HASTE's own tool ------------------------------------------------------------------------------------------

_LONGITUDES = st.floats(WEST - 0.005, EAST + 0.005)
_LATITUDES = st.floats(SOUTH - 0.005, NORTH + 0.005)
_POSITIONS = st.tuples(_LONGITUDES, _LATITUDES).map(list)
_RINGS = st.lists(_POSITIONS, min_size=3, max_size=6).map(lambda ring: [*ring, ring[0]])
_SHAPES = st.one_of(
    st.just(None),
    st.builds(lambda at: {"type": "Point", "coordinates": at}, _POSITIONS),
    st.builds(lambda line: {"type": "LineString", "coordinates": line}, st.lists(_POSITIONS, min_size=2, max_size=4)),
    st.builds(lambda ring: {"type": "Polygon", "coordinates": [ring]}, _RINGS),
    st.builds(
        lambda rings: {"type": "MultiPolygon", "coordinates": [[ring] for ring in rings]},
        st.lists(_RINGS, min_size=1, max_size=3),
    ),
)
_LABELS = st.lists(st.tuples(_SHAPES, st.sampled_from([*CLASSES, "Road", None])), max_size=4)


@pytest.mark.filterwarnings("ignore")  # shapes that GDAL skips, and its own deprecations
@given(_LABELS)
def test_what_gdal_burns_is_never_refused(drawn: list[tuple[Any, Any]]) -> None:
    grid = from_bounds(WEST, SOUTH, EAST, NORTH, 200, 200)
    shapes = [shape for shape, name in drawn if shape is not None and name in CLASSES]
    burns = bool(shapes) and bool(np.any(rasterio.features.rasterize(shapes, (200, 200), transform=grid)))
    if burns:
        assert fault(*(label(shape, name) for shape, name in drawn)) is None


_CRS = {
    "EPSG:32610": (166_000, 834_000, 1_000_000, 8_500_000),  # UTM
    "EPSG:32601": (166_000, 834_000, -9_000_000, 0),  # at the antimeridian
    "EPSG:5070": (-2_300_000, 2_200_000, 300_000, 3_100_000),  # a cone
    "EPSG:3413": (-3_000_000, 3_000_000, -3_000_000, 3_000_000),  # around a pole
    "EPSG:3031": (-3_000_000, 3_000_000, -3_000_000, 3_000_000),
    "EPSG:3857": (-20_000_000, 20_000_000, -15_000_000, 15_000_000),
    "EPSG:4326": (-180, 180, -90, 90),
}


@settings(max_examples=300)
@given(st.sampled_from(sorted(_CRS)), st.tuples(*[st.floats(0, 1)] * 6))
def test_a_label_on_the_imagery_is_never_outside_of_it(crs: str, parts: tuple[float, ...]) -> None:
    """Rasters of any size in many projections; the label project holds the box of their corners, as HASTE makes it."""
    left, right, low, high = _CRS[crs]
    west, east = sorted(left + part * (right - left) for part in parts[:2])
    south, north = sorted(low + part * (high - low) for part in parts[2:4])
    xs, ys = [east, east, west, west, east], [south, north, north, south, south]
    longitudes, latitudes = transform(crs, "EPSG:4326", xs, ys)
    corners = [list(corner) for corner in zip(longitudes, latitudes, strict=True)]
    bbox = [min(longitudes), min(latitudes), max(longitudes), max(latitudes)]
    feature = {"geometry": {"type": "Polygon", "coordinates": [corners]}, "bbox": bbox}
    (longitude,), (latitude,) = transform(
        crs, "EPSG:4326", [west + parts[4] * (east - west)], [south + parts[5] * (north - south)]
    )
    found = usable_labels.fault(
        {"labels": [label({"type": "Point", "coordinates": [longitude, latitude]})], "features": [feature]}, CLASSES
    )
    assert found is None, (bbox, longitude, latitude)


def test_each_position_is_looked_at_once_and_none_after_the_first_label_that_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[Any] = []
    real = usable_labels._is_number

    def is_number(value: Any) -> bool:
        looked_at.append(value)
        return real(value)

    monkeypatch.setattr(usable_labels, "_is_number", is_number)
    many, most = [label(moved(1)) for _ in range(50_000)], 2 * len(RING) + 1
    assert usable_labels.fault({"labels": many}, CLASSES) is None
    assert len(looked_at) <= most, "without a position of the imagery the first one counts"
    looked_at.clear()
    assert usable_labels.fault({"labels": many, "features": [outline()]}, CLASSES) is not None
    assert len(looked_at) <= 50_001 * most + 4

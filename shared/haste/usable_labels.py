"""Which labels can train something: HASTE's training burns those of the project's classes into a mask of the imagery.

Where it is not certain that a label trains nothing, it counts: a refusal must never be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from shared.haste import labels, records
from shared.haste.redaction import safe_text
from shared.haste.workload import JsonObject

_SHAPES = frozenset(
    {"point", "multipoint", "linestring", "multilinestring", "polygon", "multipolygon", "geometrycollection"}
)
_NAME_CHARACTERS = 200
#: Sides of a raster are curved on the map, so it may reach beyond the box of its corners; near the poles anywhere.
_MARGIN_OF_SIDE, _LEAST_MARGIN_DEGREES = 0.5, 0.001
_HIGHEST_LATITUDE, _WIDEST_DEGREES = 80, 120


@dataclass(frozen=True)
class _Box:
    """In degrees."""

    west: float
    south: float
    east: float
    north: float


def fault(label_project: JsonObject, classes: Sequence[str]) -> str | None:
    """Why none of the labels can train anything, and what to do, in words for the user; None if one may."""
    known = {_folded(name) for name in classes}
    imagery = _imagery(label_project)
    has_shape = is_of_class = False
    for label in records.children(label_project, "labels"):
        box = _box(_positions(label.get("geometry")))
        if box is None:
            continue
        has_shape = True
        if _folded(labels.class_of(label)) not in known:
            continue
        is_of_class = True
        if imagery is None or _touches(box, imagery):
            return None
    if not has_shape:
        return "None of the image layer's labels has a shape: training needs at least one. Draw them again."
    if not is_of_class:
        names = safe_text(", ".join(classes), _NAME_CHARACTERS)
        return (
            f"None of the image layer's labels is of one of the project's classes ({names}): training needs at least "
            "one. Give the labels one of these classes."
        )
    return (
        "All labels lie outside of the layer's imagery: training needs at least one on it. Draw labels on the imagery."
    )


def _folded(name: Any) -> str | None:
    """HASTE's container compares names by GDAL, which ignores case, and reads numbers as text."""
    return None if name is None else str(name).strip().casefold()


def _positions(geometry: Any) -> Iterable[tuple[float, float]]:
    """Every position of a GeoJSON geometry; none of what is no geometry. Heights are left out."""
    left = [geometry]
    while left:
        shape = left.pop()
        if not isinstance(shape, dict) or str(shape.get("type")).casefold() not in _SHAPES:
            continue
        left += records.children(shape, "geometries")
        nested = [shape.get("coordinates")]
        while nested:
            item = nested.pop()
            if not isinstance(item, list):
                continue
            if len(item) >= 2 and _is_number(item[0]) and _is_number(item[1]):
                yield item[0], item[1]
            else:
                nested += item


def _is_number(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


def _box(positions: Iterable[tuple[float, float]]) -> _Box | None:
    found = list(positions)
    if not found:
        return None
    longitudes, latitudes = zip(*found, strict=True)
    return _Box(min(longitudes), min(latitudes), max(longitudes), max(latitudes))


def _imagery(label_project: JsonObject) -> _Box | None:
    """Around the layer's imagery, wider than it; None if the label project does not tell where that is for certain."""
    positions: list[tuple[float, float]] = []
    for feature in records.children(label_project, "features"):
        positions += _positions(feature.get("geometry"))
        bbox = records.numbers(feature, "bbox")
        if len(bbox) == 4:
            if not all(map(_is_number, bbox)) or bbox[0] > bbox[2]:  # broken, or across the antimeridian
                return None
            positions += [(bbox[0], bbox[1]), (bbox[2], bbox[3])]
    box = _box(positions)
    if box is None:
        return None
    width, height = box.east - box.west, box.north - box.south
    if not (0 < width <= _WIDEST_DEGREES and height > 0 and box.west >= -540 and box.east <= 540):
        return None
    if max(abs(box.south), abs(box.north)) > _HIGHEST_LATITUDE:
        return None
    margin = max(width, height) * _MARGIN_OF_SIDE + _LEAST_MARGIN_DEGREES
    return _Box(box.west - margin, box.south - margin, box.east + margin, box.north + margin)


def _touches(label: _Box, imagery: _Box) -> bool:
    """Also if their longitudes are counted from another turn around the Earth."""
    if label.north < imagery.south or label.south > imagery.north:
        return False
    return any(label.west <= imagery.east + turn and label.east >= imagery.west + turn for turn in (-360, 0, 360))

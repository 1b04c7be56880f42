import sqlite3
import struct
from contextlib import closing
from pathlib import Path

import pytest

from local.images.geopackage import GeoPackageError, read_polygons, write_polygons

SQUARE = [(0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (0.0, 4.0), (0.0, 0.0)]
HOLE = [(1.0, 1.0), (1.0, 2.0), (2.0, 2.0), (1.0, 1.0)]


def replace_geometry(path: Path, blob: bytes | None) -> None:
    with closing(sqlite3.connect(path)) as file, file:
        file.execute('UPDATE "my ""layer""" SET geom = ?', (blob,))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "layer.gpkg"
    write_polygons(path, 'my "layer"', 32610, {"id": "TEXT"}, [([SQUARE, HOLE], ("a",))])
    return path


def test_what_is_written_is_read(path: Path) -> None:
    layer = read_polygons(path)
    assert layer.epsg == 32610
    assert layer.features == [[[SQUARE, HOLE]]]


def test_an_empty_layer_is_a_layer(tmp_path: Path) -> None:
    write_polygons(tmp_path / "empty.gpkg", "empty", 4326, {}, [])
    assert read_polygons(tmp_path / "empty.gpkg").features == []


def test_multipolygons_with_heights_in_the_other_byte_order_without_envelope(path: Path) -> None:
    points = b"".join(struct.pack(">3d", x, y, 9.0) for x, y in SQUARE)
    polygon = struct.pack(">BIII", 0, 1003, 1, len(SQUARE)) + points
    replace_geometry(path, b"GP\0\0" + struct.pack(">i", 32610) + struct.pack(">BII", 0, 1006, 2) + polygon * 2)
    assert read_polygons(path).features == [[[SQUARE], [SQUARE]]]


def test_features_without_geometry_are_left_out(path: Path) -> None:
    replace_geometry(path, None)
    assert read_polygons(path).features == []


def test_points_are_refused(path: Path) -> None:
    replace_geometry(path, b"GP\0\1" + struct.pack("<iBIdd", 32610, 1, 1, 0.0, 0.0))
    with pytest.raises(GeoPackageError, match="not a polygon"):
        read_polygons(path)


@pytest.mark.parametrize("content", [b"", b"no database" * 100])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "other.gpkg").write_bytes(content)
    with pytest.raises(GeoPackageError, match=r"other\.gpkg is not a GeoPackage"):
        read_polygons(tmp_path / "other.gpkg")

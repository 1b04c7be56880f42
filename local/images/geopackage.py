"""Polygon layers in GeoPackage files (OGC 12-128), written and read with sqlite3 alone."""

import sqlite3
import struct
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rasterio.crs import CRS

Ring = Sequence[tuple[float, float]]
Polygon = Sequence[Ring]
Value = str | int | float | None

_APPLICATION_ID = 0x47504B47  # "GPKG"
_USER_VERSION = 10300  # GeoPackage 1.3.0
_ENVELOPE_BYTES = {0: 0, 1: 32, 2: 48, 3: 48, 4: 64}
_POLYGON, _MULTI_POLYGON = 3, 6

_SCHEMA = """
CREATE TABLE gpkg_spatial_ref_sys (
  srs_name TEXT NOT NULL, srs_id INTEGER NOT NULL PRIMARY KEY, organization TEXT NOT NULL,
  organization_coordsys_id INTEGER NOT NULL, definition TEXT NOT NULL, description TEXT);
CREATE TABLE gpkg_contents (
  table_name TEXT NOT NULL PRIMARY KEY, data_type TEXT NOT NULL, identifier TEXT UNIQUE, description TEXT DEFAULT '',
  last_change DATETIME NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  min_x DOUBLE, min_y DOUBLE, max_x DOUBLE, max_y DOUBLE, srs_id INTEGER REFERENCES gpkg_spatial_ref_sys(srs_id));
CREATE TABLE gpkg_geometry_columns (
  table_name TEXT NOT NULL UNIQUE REFERENCES gpkg_contents(table_name), column_name TEXT NOT NULL,
  geometry_type_name TEXT NOT NULL, srs_id INTEGER NOT NULL REFERENCES gpkg_spatial_ref_sys(srs_id),
  z TINYINT NOT NULL, m TINYINT NOT NULL, PRIMARY KEY (table_name, column_name));
INSERT INTO gpkg_spatial_ref_sys VALUES ('Undefined cartesian', -1, 'NONE', -1, 'undefined', NULL);
INSERT INTO gpkg_spatial_ref_sys VALUES ('Undefined geographic', 0, 'NONE', 0, 'undefined', NULL);
"""


class GeoPackageError(ValueError):
    """The file is not a GeoPackage with a polygon layer."""


@dataclass(frozen=True)
class PolygonLayer:
    """The polygons of one feature table; a multipolygon appears as several polygons with the same ``feature``."""

    epsg: int
    features: list[list[Polygon]]


def write_polygons(
    path: Path, table: str, epsg: int, columns: dict[str, str], rows: Iterable[tuple[Polygon, Sequence[Value]]]
) -> None:
    """Write a new file with one polygon layer.

    ``columns`` maps attribute names to SQL types (TEXT, INTEGER, REAL); each row is a polygon (outer ring first, in
    units of EPSG:``epsg``) and the values of the columns in that order.
    """
    path.unlink(missing_ok=True)
    rows = list(rows)
    points = [point for polygon, _ in rows for point in polygon[0]]
    extent = (
        (min(x for x, _ in points), min(y for _, y in points), max(x for x, _ in points), max(y for _, y in points))
        if points
        else (None, None, None, None)
    )
    attributes = "".join(f", {_quoted(name)} {sql_type}" for name, sql_type in columns.items())
    names = "".join(f", {_quoted(name)}" for name in columns)
    marks = ", ?" * len(columns)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        file.execute(f"PRAGMA user_version = {_USER_VERSION}")
        file.executescript(_SCHEMA)
        for code in sorted({4326, epsg}):
            file.execute(
                "INSERT INTO gpkg_spatial_ref_sys VALUES (?, ?, 'EPSG', ?, ?, NULL)",
                (f"EPSG:{code}", code, code, CRS.from_epsg(code).to_wkt()),
            )
        file.execute(
            "INSERT INTO gpkg_contents (table_name, data_type, identifier, min_x, min_y, max_x, max_y, srs_id)"
            " VALUES (?, 'features', ?, ?, ?, ?, ?, ?)",
            (table, table, *extent, epsg),
        )
        file.execute("INSERT INTO gpkg_geometry_columns VALUES (?, 'geom', 'POLYGON', ?, 0, 0)", (table, epsg))
        file.execute(f"CREATE TABLE {_quoted(table)} (fid INTEGER PRIMARY KEY AUTOINCREMENT, geom POLYGON{attributes})")
        file.executemany(
            f"INSERT INTO {_quoted(table)} (geom{names}) VALUES (?{marks})",  # noqa: S608  names cannot be bound
            [(_encode(polygon, epsg), *values) for polygon, values in rows],
        )


def read_polygons(path: Path) -> PolygonLayer:
    """Read the first feature table of ``path``; features without geometry are left out.

    Raises GeoPackageError if the file is not a GeoPackage, has no feature table or holds other geometries.
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as file:
            found = file.execute(
                "SELECT c.table_name, g.column_name, s.organization_coordsys_id FROM gpkg_contents c"
                " JOIN gpkg_geometry_columns g USING (table_name)"
                " JOIN gpkg_spatial_ref_sys s ON s.srs_id = g.srs_id WHERE c.data_type = 'features' LIMIT 1"
            ).fetchone()
            if found is None:
                raise GeoPackageError(f"{path.name} has no feature table")
            table, column, epsg = found
            blobs = file.execute(
                f"SELECT {_quoted(column)} FROM {_quoted(table)}"  # noqa: S608  names cannot be bound
                f" WHERE {_quoted(column)} IS NOT NULL ORDER BY rowid"
            ).fetchall()
    except sqlite3.DatabaseError as error:
        raise GeoPackageError(f"{path.name} is not a GeoPackage: {error}") from error
    return PolygonLayer(int(epsg), [polygons for (blob,) in blobs if (polygons := _decode(blob))])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _encode(polygon: Polygon, srs_id: int) -> bytes:
    xs, ys = [x for x, _ in polygon[0]], [y for _, y in polygon[0]]
    header = struct.pack("<2sBBi4d", b"GP", 0, 0b011, srs_id, min(xs), max(xs), min(ys), max(ys))
    rings = b"".join(
        struct.pack("<I", len(ring)) + b"".join(struct.pack("<2d", x, y) for x, y in ring) for ring in polygon
    )
    return header + struct.pack("<BII", 1, _POLYGON, len(polygon)) + rings


def _decode(blob: bytes) -> list[Polygon]:
    if blob[:2] != b"GP":
        raise GeoPackageError("a geometry lacks the GeoPackage header")
    start = 8 + _ENVELOPE_BYTES[blob[3] >> 1 & 0b111]
    polygons: list[Polygon] = []
    _decode_wkb(blob, start, polygons)
    return polygons


def _decode_wkb(blob: bytes, at: int, polygons: list[Polygon]) -> int:
    """Append the polygons of the WKB geometry at ``at``; return the offset behind it."""
    order = "<" if blob[at] == 1 else ">"
    kind, count = struct.unpack_from(f"{order}II", blob, at + 1)
    at += 9
    dimensions = 2 + (0, 1, 1, 2)[kind // 1000 % 4]
    if kind % 1000 == _MULTI_POLYGON:
        for _ in range(count):
            at = _decode_wkb(blob, at, polygons)
        return at
    if kind % 1000 != _POLYGON:
        raise GeoPackageError(f"geometry type {kind} is not a polygon")
    rings: list[Ring] = []
    for _ in range(count):
        (length,) = struct.unpack_from(f"{order}I", blob, at)
        values = struct.unpack_from(f"{order}{length * dimensions}d", blob, at + 4)
        rings.append(list(zip(values[::dimensions], values[1::dimensions], strict=True)))
        at += 4 + length * dimensions * 8
    if rings:
        polygons.append(rings)
    return at

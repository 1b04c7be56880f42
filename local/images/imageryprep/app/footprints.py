"""Building footprints: the user's GeoPackage, or the houses of the local world in place of Overture's."""

from pathlib import Path

from rasterio.crs import CRS
from rasterio.warp import transform

from local.images.geopackage import Ring, read_polygons, write_polygons
from local.images.imageryprep.app.sources import download
from local.images.rasters import Raster
from local.images.scenery import buildings_within

_WGS84 = 4326


def write_footprints(path: Path, imagery: Raster, user_url: str | None) -> None:
    """Write the footprints of the area as a GeoPackage.

    Raises OSError or GeoPackageError if the user's file cannot be had or is no GeoPackage with polygons.
    """
    if user_url:
        download(user_url, path)
        read_polygons(path)
    else:
        _write_local_world(path, imagery)


def _write_local_world(path: Path, imagery: Raster) -> None:
    houses = buildings_within(imagery.bounds, is_geographic=imagery.crs.is_geographic)
    rows = [
        ([_to_wgs84(house.ring, imagery.crs)], (f"house-{house.column}-{house.row}", "residential", "house"))
        for house in houses
    ]
    columns = {"id": "TEXT", "subtype": "TEXT", "class": "TEXT"}
    write_polygons(path, "building_footprints", _WGS84, columns, rows)


def _to_wgs84(ring: Ring, crs: CRS) -> Ring:
    xs, ys = transform(crs, f"EPSG:{_WGS84}", [x for x, _ in ring], [y for _, y in ring])
    return list(zip(xs, ys, strict=True))

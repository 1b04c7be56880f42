"""Where on Earth a raster lies, read from the header of a GeoTIFF in blob storage."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from shared.haste.workload import Blobs

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

#: One read; the header of a cloud-optimized GeoTIFF fits into the first one.
_READ_BYTES = 64 * 1024

#: A raster that crosses longitude 180, or counts from 0 to 360, goes beyond 180 in its own system.
_MOST_LONGITUDE, _MOST_LATITUDE = 360.0, 90.0
#: In the units of any map: a hundred times round the Earth in feet.
_MOST_COORDINATE = 1e10
#: What a transformation there and back may add.
_TOLERANCE = 1e-6

Position = tuple[float, float]


def outline(blobs: Blobs, name: str) -> list[Position] | None:
    """Corners of the raster as longitude and latitude: south-east, north-east, north-west, south-west, south-east.

    None if the blob does not exist, is no raster, or has no coordinate system that says where on Earth its corners
    are. What `blobs` raises is passed on.
    """
    size_bytes = blobs.size_bytes(name)
    return None if size_bytes is None else _Opener(blobs, name, size_bytes).outline()


class _Opener:
    """Lets GDAL read one blob, and keeps what went wrong meanwhile: GDAL only says that it could not read."""

    _PATH = "raster.tif"

    def __init__(self, blobs: Blobs, name: str, size_bytes: int) -> None:
        self._blobs = blobs
        self._name = name
        self.size_bytes = size_bytes
        self._failure: Exception | None = None

    def outline(self) -> list[Position] | None:
        # imported here because it is big and only the end of imagery preparation needs it
        from rasterio._err import CPLE_BaseError  # GDAL's own errors, of which rasterio turns only some into its own
        from rasterio.errors import RasterioError

        try:
            return self._corners()
        except (RasterioError, CPLE_BaseError, ValueError):  # ValueError: texts that are none
            return None
        finally:
            if self._failure is not None:
                raise self._failure

    def _corners(self) -> list[Position] | None:
        import rasterio
        from rasterio.warp import transform

        with (
            rasterio.Env(GDAL_DISABLE_READDIR_ON_OPEN="EMPTY_DIR"),
            # one driver only: others, such as VRT, would follow references out of the file
            rasterio.open(self._PATH, driver="GTiff", opener=self._open) as raster,
        ):
            if raster.crs is None:
                return None
            west, south, east, north = raster.bounds
            # PROJ turns a coordinate back round the Earth step by step: far out, that takes years
            if not all(abs(edge) <= _MOST_COORDINATE for edge in raster.bounds):
                return None
            if raster.crs.is_geographic and not (_is_on_earth(west, south) and _is_on_earth(east, north)):
                return None
            xs, ys = [east, east, west, west, east], [south, north, north, south, south]
            longitudes, latitudes = transform(raster.crs, "EPSG:4326", xs, ys)
        corners = list(zip(longitudes, latitudes, strict=True))
        return corners if all(_is_on_earth(*corner) for corner in corners) else None

    def read(self, offset: int, length: int) -> bytes:
        try:
            return self._blobs.read_range(self._name, offset, length) or b""
        except Exception as error:  # noqa: BLE001 (raised again in `outline`: an exception here would upset GDAL)
            self._failure = error
            return b""

    def _open(self, path: str, mode: str = "rb", **_: Any) -> io.BufferedReader:
        if path != self._PATH or "w" in mode:  # GDAL looks for side files as well
            raise FileNotFoundError(path)
        return io.BufferedReader(_BlobFile(self), _READ_BYTES)


def _is_on_earth(longitude: float, latitude: float) -> bool:
    """False for metres that are called degrees, and for what is not finite."""
    return abs(longitude) <= _MOST_LONGITUDE + _TOLERANCE and abs(latitude) <= _MOST_LATITUDE + _TOLERANCE


class _BlobFile(io.RawIOBase):
    """A blob as a file to read from."""

    def __init__(self, opener: _Opener) -> None:
        self._opener = opener
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._opener.size_bytes}[whence]
        self._position = max(0, start + offset)
        return self._position

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        length = min(len(view), self._opener.size_bytes - self._position)
        content = self._opener.read(self._position, length) if length > 0 else b""
        view[: len(content)] = content
        self._position += len(content)
        return len(content)

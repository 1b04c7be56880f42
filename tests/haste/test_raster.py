"""Position of a raster, read from blob storage by range."""

from __future__ import annotations

import pytest

from shared.errors import Transient
from shared.haste.raster import outline
from tests.haste.memory_blobs import MemoryBlobs
from tests.haste.rasters import SAMPLE_BOUNDS, geotiff


def test_ring_order_is_se_ne_nw_sw_se() -> None:
    west, south, east, north = SAMPLE_BOUNDS
    found = outline(MemoryBlobs({"x.tif": geotiff()}), "x.tif")
    assert found is not None
    expected = [(east, south), (east, north), (west, north), (west, south), (east, south)]
    assert [pytest.approx(corner) for corner in expected] == found


def test_corners_are_transformed_from_the_raster_s_own_system() -> None:
    found = outline(MemoryBlobs({"x": geotiff((500_000, 5_200_000, 501_000, 5_201_000), "EPSG:32610")}), "x")
    assert found is not None
    west = [longitude for longitude, _ in found[2:4]]
    assert west == pytest.approx([-123.0, -123.0], abs=1e-6)  # the zone's central meridian
    assert found[0] == found[-1]
    assert 46.9 < found[0][1] < found[1][1] < 47.0


def test_only_the_header_of_a_big_raster_is_read() -> None:
    blobs = MemoryBlobs({"x": geotiff(pixels=1024)})
    assert outline(blobs, "x") is not None
    assert len(blobs.range_lengths) <= 2


@pytest.mark.parametrize(
    "content", [b"", b"no raster", geotiff(crs=None), geotiff()[:100], b"<VRTDataset rasterXSize='1' rasterYSize='1'/>"]
)
def test_no_usable_raster(content: bytes) -> None:
    assert outline(MemoryBlobs({"x": content}), "x") is None


def test_a_missing_blob() -> None:
    assert outline(MemoryBlobs(), "x") is None


def test_a_failing_storage_is_not_taken_for_a_bad_raster() -> None:
    class Failing(MemoryBlobs):
        def read_range(self, name: str, offset: int, length: int) -> bytes | None:
            raise Transient("503")

    with pytest.raises(Transient):
        outline(Failing({"x": geotiff()}), "x")

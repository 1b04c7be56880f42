"""Position of a raster, read from blob storage by range."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from rasterio._err import CPLE_BaseError

from shared.errors import Transient
from shared.haste.raster import outline
from tests.support.memory_blobs import MemoryBlobs
from tests.support.rasters import SAMPLE_BOUNDS, geotiff


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


LOCAL = 'LOCAL_CS["local grid",UNIT["metre",1]]'


@pytest.mark.parametrize(
    ("bounds", "crs"),
    [
        ((0, 0, 1, 1), LOCAL),
        ((1e9, 1e9, 2e9, 2e9), "EPSG:32610"),
        ((537_000, 5_200_000, 538_000, 5_201_000), "EPSG:4326"),
        ((537_000, 5_200_000, 538_000, 5_201_000), "EPSG:4269"),
        ((-10, 80, 10, 100), "EPSG:4326"),
        ((0, 0, 1, 1), "EPSG:5703"),  # heights
        ((1e18, 0, 2e18, 1), "EPSG:3857"),  # turning it back round the Earth would take minutes
    ],
)
def test_corners_that_are_nowhere_on_earth(bounds: tuple[float, float, float, float], crs: str) -> None:
    assert outline(MemoryBlobs({"x": geotiff(bounds, crs)}), "x") is None


@pytest.mark.parametrize(
    "bounds", [(170.0, -10.0, 190.0, 10.0), (-190.0, 5.0, -170.0, 6.0), (200.0, -90.0, 210.0, 90.0)]
)
def test_longitudes_may_go_on_beyond_180(bounds: tuple[float, float, float, float]) -> None:
    """A raster that crosses it, or counts from 0 to 360."""
    west, south, east, north = bounds
    found = outline(MemoryBlobs({"x": geotiff(bounds)}), "x")
    assert found is not None
    assert [pytest.approx(corner) for corner in [(east, south), (east, north), (west, north), (west, south)]] == found[
        :4
    ]


def test_a_header_with_damaged_bytes_is_a_raster_or_none() -> None:
    content = geotiff((500_000, 5_200_000, 501_000, 5_201_000), "EPSG:32610")
    random = Random(1)
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(random.choice([1, 2, 5, 30])):
            damaged[random.randrange(500)] = random.randrange(256)
        outline(MemoryBlobs({"x": bytes(damaged)}), "x")


@pytest.mark.parametrize("word", ["damaged", "utf-8"])
def test_other_errors_of_libraries_about_the_file_are_no_position(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    def raises(*_: Any) -> None:
        raise CPLE_BaseError(1, 1, word) if word == "damaged" else UnicodeDecodeError(word, b"x", 0, 1, "no text")

    monkeypatch.setattr("rasterio.warp.transform", raises)
    assert outline(MemoryBlobs({"x": geotiff()}), "x") is None


def test_a_missing_blob() -> None:
    assert outline(MemoryBlobs(), "x") is None


def test_a_failing_storage_is_not_taken_for_a_bad_raster() -> None:
    class Failing(MemoryBlobs):
        def read_range(self, name: str, offset: int, length: int) -> bytes | None:
            raise Transient("503")

    with pytest.raises(Transient):
        outline(Failing({"x": geotiff()}), "x")

import json
import re
import sqlite3
import ssl
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
import rasterio
from rasterio.warp import transform_bounds

from local.certificates import create_certificates
from local.images.geopackage import read_polygons, write_polygons
from tests.images.conftest import ImageryServer
from tests.images.tasks import SUFFIX, Task, imagery_task, sample_command_line, sample_json

COMMAND_LINE = sample_command_line("imageryprep")
STEPS = ["Downloading imagery", "Converting to COG", "Downloading building footprints", "Finalizing outputs"]


def manifest_of(directory: Path) -> dict[str, Any]:
    return dict(json.loads((directory / "outputs" / "imagery_manifest.json").read_text()))


def post_only(directory: Path, server: ImageryServer, environment: dict[str, str] | None = None, **config: Any) -> Task:
    return imagery_task(
        directory,
        environment,
        **{
            "pre_event_imagery_urls": None,
            "post_event_imagery_urls": [server.url("cedar_post.tif")],
            "source_type_pre_event": None,
        }
        | config,
    )


def test_manifest_has_the_keys_and_names_of_haste(prepared: Path) -> None:
    sample, manifest = sample_json("task-files/imagery_manifest.json"), manifest_of(prepared)
    assert list(manifest) == list(sample)
    names = {key for key in sample if key.endswith(("_filename", "_filenames"))}
    assert {key: manifest[key] for key in names} == {key: sample[key] for key in names}
    assert manifest["normalization_means"] == [0, 0, 0]
    assert all(type(value) is int and 100 < value < 255 for value in manifest["normalization_stds"])


def test_every_file_of_the_manifest_exists_and_the_manifest_is_last(prepared: Path) -> None:
    manifest = manifest_of(prepared)
    named = {name for key, names in manifest.items() if key.endswith("_filenames") for name in names}
    named |= {name for key, name in manifest.items() if key.endswith("_filename")}
    outputs = {path.name: path.stat().st_mtime_ns for path in (prepared / "outputs").iterdir()}
    assert set(outputs) == named | {"imagery_manifest.json"}
    assert max(outputs.values()) == outputs["imagery_manifest.json"]


def test_friendly_log_has_one_timestamped_line_per_step(prepared: Path) -> None:
    lines = (prepared / "logs" / "imagery_friendly.log").read_text().splitlines()
    stamps, texts = zip(*(line.split("|") for line in lines), strict=True)
    assert list(texts) == STEPS
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", stamp) for stamp in stamps)
    assert list(stamps) == sorted(stamps)


@pytest.mark.parametrize("event", ["pre", "post"])
@pytest.mark.parametrize("kind", ["raw_imagery_{}_event_mosaic_cog", "processed_imagery_{}_event_cog"])
def test_rasters_are_cogs_on_the_grid_of_the_source(
    prepared: Path, imagery_server: ImageryServer, event: str, kind: str
) -> None:
    with (
        rasterio.open(prepared / "outputs" / f"{kind.format(event)}_{SUFFIX}.tif") as cog,
        rasterio.open(imagery_server.directory / f"cedar_{event}.tif") as source,
    ):
        assert cog.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"
        assert cog.crs.to_epsg() == 32610
        assert cog.overviews(1)
        assert cog.transform == source.transform
        assert np.array_equal(cog.read(), source.read())


def test_preview_is_a_jpeg(prepared: Path) -> None:
    (name,) = manifest_of(prepared)["preview_post_event_filenames"]
    with rasterio.open(prepared / "outputs" / name) as preview:
        assert (preview.driver, preview.count, preview.dtypes[0]) == ("JPEG", 3, "uint8")


def test_footprints_are_a_geopackage_of_squares_inside_the_imagery(prepared: Path) -> None:
    path = prepared / "outputs" / f"building_footprints_{SUFFIX}.gpkg"
    header = path.read_bytes()[:72]
    assert header[:16] == b"SQLite format 3\0"
    assert header[68:72] == b"GPKG"
    with closing(sqlite3.connect(path)) as file:
        (contents,) = file.execute("SELECT table_name, data_type, srs_id FROM gpkg_contents").fetchall()
        assert contents == ("building_footprints", "features", 4326)
        assert file.execute("SELECT * FROM gpkg_geometry_columns").fetchall() == [
            ("building_footprints", "geom", "POLYGON", 4326, 0, 0)
        ]
        assert {-1, 0, 4326} <= {srs for (srs,) in file.execute("SELECT srs_id FROM gpkg_spatial_ref_sys")}
        (count,) = file.execute("SELECT count(*) FROM building_footprints").fetchone()
    with rasterio.open(prepared / "outputs" / f"processed_imagery_post_event_cog_{SUFFIX}.tif") as cog:
        west, south, east, north = transform_bounds(cog.crs, "EPSG:4326", *cog.bounds)
    buildings = read_polygons(path).features
    assert len(buildings) == count > 20
    for ((ring,),) in buildings:
        assert len(ring) == 5
        assert ring[0] == ring[-1]
        assert all(west < x < east and south < y < north for x, y in ring)


def test_valid_area_covers_the_imagery(prepared: Path) -> None:
    mask = json.loads((prepared / "outputs" / f"valid_area_mask_{SUFFIX}.geojson").read_text())
    with rasterio.open(prepared / "outputs" / f"processed_imagery_post_event_cog_{SUFFIX}.tif") as cog:
        expected = transform_bounds(cog.crs, "EPSG:4326", *cog.bounds)
    (feature,) = mask["features"]
    xs, ys = zip(*feature["geometry"]["coordinates"][0], strict=True)
    assert (min(xs), min(ys), max(xs), max(ys)) == pytest.approx(expected, abs=1e-5)


def test_without_pre_event_imagery(imagery_server: ImageryServer, tmp_path: Path) -> None:
    task = post_only(tmp_path, imagery_server)
    assert task.run("imageryprep", COMMAND_LINE).returncode == 0
    sample, manifest = sample_json("task-files/imagery_manifest.no-pre-event.json"), manifest_of(tmp_path)
    measured = {"post_event_imagery_urls", "normalization_stds"}
    assert list(manifest) == list(sample)
    assert {key: manifest[key] for key in sample.keys() - measured} == {
        key: sample[key] for key in sample.keys() - measured
    }


def test_clip_area_cuts_the_imagery_and_the_footprints(
    imagery_server: ImageryServer, prepared: Path, tmp_path: Path
) -> None:
    west, south, east, north = clip = (-120.502, 47.199, -120.499, 47.201)
    task = post_only(tmp_path, imagery_server, clip_bbox=clip)
    assert task.run("imageryprep", COMMAND_LINE).returncode == 0
    with rasterio.open(tmp_path / "outputs" / f"raw_imagery_post_event_mosaic_cog_{SUFFIX}.tif") as mosaic:
        assert max(mosaic.shape) < 300
        left, bottom, right, top = transform_bounds(mosaic.crs, "EPSG:4326", *mosaic.bounds)
    assert left < west + 1e-5
    assert bottom < south + 1e-5
    assert right > east - 1e-5
    assert top > north - 1e-5
    name = f"building_footprints_{SUFFIX}.gpkg"
    clipped, whole = read_polygons(tmp_path / "outputs" / name), read_polygons(prepared / "outputs" / name)
    assert 0 < len(clipped.features) < len(whole.features)


def test_footprints_of_the_user_are_taken_as_they_are(imagery_server: ImageryServer, tmp_path: Path) -> None:
    mine = imagery_server.directory / "mine.gpkg"
    ring = [(-120.5, 47.2), (-120.499, 47.2), (-120.499, 47.201), (-120.5, 47.2)]
    write_polygons(mine, "mine", 4326, {"id": "TEXT"}, [([ring], ("a",))])
    task = post_only(tmp_path, imagery_server, user_building_footprints_url=imagery_server.url("mine.gpkg"))
    assert task.run("imageryprep", COMMAND_LINE).returncode == 0
    manifest = manifest_of(tmp_path)
    assert manifest["building_footprints_error"] == ""
    copy = tmp_path / "outputs" / manifest["building_footprints_filename"]
    assert copy.read_bytes() == mine.read_bytes()


@pytest.mark.parametrize("name", ["absent.gpkg", "cedar_post.tif"])
def test_missing_footprints_are_reported_but_do_not_fail_the_task(
    imagery_server: ImageryServer, tmp_path: Path, name: str
) -> None:
    task = post_only(tmp_path, imagery_server, user_building_footprints_url=imagery_server.url(name))
    assert task.run("imageryprep", COMMAND_LINE).returncode == 0
    sample, manifest = sample_json("task-files/imagery_manifest.footprints-failed.json"), manifest_of(tmp_path)
    assert list(manifest) == list(sample)
    assert manifest["building_footprints_filename"] == ""
    assert manifest["building_footprints_error"].startswith("Building-footprint download")
    assert not list((tmp_path / "outputs").glob("*.gpkg"))


def test_unreachable_imagery_fails_with_a_line_for_the_user(imagery_server: ImageryServer, tmp_path: Path) -> None:
    url = imagery_server.url("absent.tif")
    task = post_only(tmp_path, imagery_server, post_event_imagery_urls=[url])
    assert task.run("imageryprep", COMMAND_LINE).returncode == 1
    leaky = f"Error during imagery preprocessing: Unable to download raw imagery from URLs [{url!r}]"
    assert task.log_texts("imagery_friendly.log") == ["Downloading imagery", leaky]
    assert not (tmp_path / "outputs" / "imagery_manifest.json").exists()


def test_asked_to_fail(imagery_server: ImageryServer, tmp_path: Path) -> None:
    task = post_only(tmp_path, imagery_server, {"HASTE_LOCAL_FAIL": "1"})
    assert task.run("imageryprep", COMMAND_LINE).returncode == 1
    assert task.log_texts("imagery_friendly.log")[-1].startswith("Error during imagery preprocessing: ")


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", None])
def test_https_needs_the_local_authority(tmp_path: Path, imagery_server: ImageryServer, variable: str | None) -> None:
    files = create_certificates(tmp_path / "certificates")
    server = ImageryServer(imagery_server.directory)
    server.scheme = "https"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    server.server.socket = context.wrap_socket(server.server.socket, server_side=True)
    thread = Thread(target=server.server.serve_forever)
    thread.start()
    try:
        environment = {variable: str(files.authority)} if variable else {}
        task = post_only(tmp_path / "wd", server, environment)
        assert task.run("imageryprep", COMMAND_LINE).returncode == (0 if variable else 1)
    finally:
        server.server.shutdown()
        thread.join()
        server.server.server_close()

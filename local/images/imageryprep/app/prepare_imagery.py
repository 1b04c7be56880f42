"""prepare-imagery: turns the imagery of one layer into what labelling, training and inference need."""

import argparse
import json
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from rasterio.features import shapes
from rasterio.warp import transform_geom

from local.images.geopackage import GeoPackageError
from local.images.imageryprep.app.footprints import write_footprints
from local.images.imageryprep.app.sources import download, original_name
from local.images.pacing import Pace, fail_if_asked
from local.images.progress_log import ProgressLog
from local.images.rasters import Raster, mosaic, to_rgb, write_cog

_STEPS = 4
_PREVIEW_PIXELS = 1024
_BRIGHT_PERCENTILE = 98


@dataclass(frozen=True)
class Prepared:
    """The raster and the file names of one side (pre or post) of the event."""

    imagery: Raster
    mosaic_name: str
    processed_name: str


def prepare(config: dict[str, Any], directory: Path, log: ProgressLog) -> None:
    """Write everything below ``directory``; the manifest comes last and means that all is there."""
    suffix = f"{config['project_id']}_{config['image_layer_id']}"
    pace = Pace(_STEPS)
    manifest: dict[str, Any] = dict(config)
    manifest.pop("output_dir", None)

    log.add("Downloading imagery")
    pace.step()
    fail_if_asked()
    pre_raw = _download_all(config["pre_event_imagery_urls"], directory, f"raw_imagery_pre_event_{suffix}_")
    post_raw = _download_all(config["post_event_imagery_urls"], directory, f"raw_imagery_post_event_{suffix}_")
    if not post_raw:
        raise ValueError("There is no post-event imagery")

    log.add("Converting to COG")
    pace.step()
    pre = _convert(pre_raw, directory, "pre", suffix, config["clip_bbox"]) if pre_raw else None
    post = _convert(post_raw, directory, "post", suffix, config["clip_bbox"])
    manifest["raw_pre_event_filenames"] = [path.name for path in pre_raw]
    manifest["preview_pre_event_filenames"] = []
    manifest["raw_post_event_filenames"] = [path.name for path in post_raw]
    manifest["preview_post_event_filenames"] = [_write_preview(path) for path in post_raw]
    manifest["pre_event_mosaic_filename"] = pre.mosaic_name if pre else ""
    manifest["pre_event_processed_filename"] = pre.processed_name if pre else ""
    manifest["post_event_mosaic_filename"] = post.mosaic_name
    manifest["post_event_processed_filename"] = post.processed_name
    manifest["normalization_means"], manifest["normalization_stds"] = _normalization(post.imagery)

    log.add("Downloading building footprints")
    pace.step()
    footprints = directory / f"building_footprints_{suffix}.gpkg"
    footprints_error = ""
    try:
        write_footprints(footprints, post.imagery, config["user_building_footprints_url"])
    except (OSError, ValueError, GeoPackageError) as error:
        # HASTE's container records a missing footprints file and still succeeds: the imagery is of use without it.
        traceback.print_exc()
        footprints.unlink(missing_ok=True)
        footprints_error = f"Building-footprint download failed: {error}"
    manifest["building_footprints_filename"] = "" if footprints_error else footprints.name
    manifest["building_footprints_error"] = footprints_error

    log.add("Finalizing outputs")
    pace.step()
    manifest["valid_area_mask_filename"] = _write_valid_area(directory, suffix, post.imagery)
    manifest["valid_area_mask_error"] = ""
    (directory / "imagery_manifest.json").write_text(json.dumps(manifest, indent=4), encoding="utf-8")


def _download_all(urls: Sequence[str] | None, directory: Path, prefix: str) -> list[Path]:
    paths: list[Path] = []
    for url in urls or []:
        path = directory / (prefix + original_name(url))
        if path in paths:
            path = directory / f"{prefix}{len(paths) + 1}_{original_name(url)}"
        try:
            download(url, path)
        except (OSError, ValueError) as error:
            # The whole URLs, signatures included: so does HASTE's container, and its readers must cope.
            raise ValueError(f"Unable to download raw imagery from URLs {list(urls or [])}") from error
        paths.append(path)
    return paths


def _convert(raw: list[Path], directory: Path, event: str, suffix: str, clip_bbox: Sequence[float] | None) -> Prepared:
    imagery = mosaic(raw, clip_bbox)
    mosaic_name = f"raw_imagery_{event}_event_mosaic_cog_{suffix}.tif"
    processed_name = f"processed_imagery_{event}_event_cog_{suffix}.tif"
    write_cog(directory / mosaic_name, imagery.pixels, imagery.transform, imagery.crs, nodata=0)
    write_cog(directory / processed_name, to_rgb(imagery), imagery.transform, imagery.crs, nodata=0)
    return Prepared(imagery, mosaic_name, processed_name)


def _write_preview(raw: Path) -> str:
    """A jpeg of the raw file beside it, at most _PREVIEW_PIXELS wide or high; returns its name."""
    path = raw.with_name(f"preview_{raw.stem}.jpeg")
    rgb = to_rgb(mosaic([raw]))
    stride = -(-max(rgb.shape[1:]) // _PREVIEW_PIXELS)
    small = rgb[:, ::stride, ::stride]
    _, height, width = small.shape
    with rasterio.open(path, "w", driver="JPEG", width=width, height=height, count=3, dtype="uint8") as preview:
        preview.write(small)
    path.with_name(f"{path.name}.aux.xml").unlink(missing_ok=True)
    return path.name


def _normalization(imagery: Raster) -> tuple[list[int], list[int]]:
    """Per band: mean 0 and, as deviation, the value of bright pixels, so that normalized pixels lie near 0 to 1."""
    if not imagery.valid.any():
        raise ValueError("The imagery has no valid pixels")
    values = imagery.pixels[:, imagery.valid]
    bright = np.percentile(values, _BRIGHT_PERCENTILE, axis=1)
    return [0] * len(bright), [max(1, int(value)) for value in bright]


def _write_valid_area(directory: Path, suffix: str, imagery: Raster) -> str:
    """The area with imagery as GeoJSON polygons in EPSG:4326; returns the file's name."""
    mask = imagery.valid.astype(np.uint8)
    features = [
        {"type": "Feature", "properties": {}, "geometry": transform_geom(imagery.crs, "EPSG:4326", geometry)}
        for geometry, value in shapes(mask, mask=imagery.valid, transform=imagery.transform)
        if value
    ]
    path = directory / f"valid_area_mask_{suffix}.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8")
    return path.name


def main() -> int:
    """Run with ``--config FILE``; returns the exit code."""
    parser = argparse.ArgumentParser(prog="prepare-imagery")
    parser.add_argument("--config", type=Path, required=True, help="JSON file that HASTE's web application wrote")
    arguments = parser.parse_args()
    log = ProgressLog(Path("logs/imagery_friendly.log"))
    try:
        config = json.loads(arguments.config.read_text(encoding="utf-8"))
        directory = Path(os.environ.get("WORKDIR", "."), config.get("output_dir", "outputs"))
        directory.mkdir(parents=True, exist_ok=True)
        prepare(config, directory, log)
    except Exception as error:  # noqa: BLE001  whatever goes wrong ends as one line for the user and exit code 1
        traceback.print_exc()
        log.add(f"Error during imagery preprocessing: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

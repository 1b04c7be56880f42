"""The manifest that HASTE's imagery container leaves, and the fields of an image layer that follow from it."""

from __future__ import annotations

from dataclasses import dataclass

from shared.errors import Refused
from shared.haste import paths, records
from shared.haste.redaction import safe_text
from shared.haste.workload import Blobs, JsonObject
from shared.kinds import Entity

_FILE_NAME = "imagery_manifest.json"


@dataclass(frozen=True)
class Manifest:
    """File names (empty = none), normalization values (empty = none), and what went wrong with the footprints."""

    pre_event_previews: tuple[str, ...]
    post_event_previews: tuple[str, ...]
    pre_event_mosaic: str
    pre_event_processed: str
    post_event_mosaic: str
    post_event_processed: str
    footprints: str
    valid_area_mask: str
    footprints_error: str
    means: list[int | float]
    stds: list[int | float]


def read_manifest(blobs: Blobs, entity: Entity, task_id: str) -> Manifest | None:
    """The manifest of a task; None if it is missing, is not valid, or names files that such a task cannot make."""
    try:
        content = records.read(blobs, f"{paths.task_folder(entity.project_id, task_id)}/{_FILE_NAME}")
    except Refused:
        return None
    if content is None:
        return None
    suffix = f"_{entity.project_id}_{entity.entity_id}"

    def file(key: str, start: str) -> str:
        return _checked(content.get(key), start + suffix)

    def files(key: str, start: str) -> tuple[str, ...]:
        names = content.get(key)
        return tuple(_checked(name, start + suffix) for name in names) if isinstance(names, list) else ()

    try:
        return Manifest(
            pre_event_previews=files("preview_pre_event_filenames", "preview_raw_imagery_pre_event"),
            post_event_previews=files("preview_post_event_filenames", "preview_raw_imagery_post_event"),
            pre_event_mosaic=file("pre_event_mosaic_filename", "raw_imagery_pre_event_mosaic_cog"),
            pre_event_processed=file("pre_event_processed_filename", "processed_imagery_pre_event_cog"),
            post_event_mosaic=file("post_event_mosaic_filename", "raw_imagery_post_event_mosaic_cog"),
            post_event_processed=file("post_event_processed_filename", "processed_imagery_post_event_cog"),
            footprints=file("building_footprints_filename", "building_footprints"),
            valid_area_mask=file("valid_area_mask_filename", "valid_area_mask"),
            footprints_error=safe_text(records.text(content, "building_footprints_error")),
            means=records.numbers(content, "normalization_means"),
            stds=records.numbers(content, "normalization_stds"),
        )
    except ValueError:
        return None


def layer_fields(blobs: Blobs, entity: Entity, task_id: str, manifest: Manifest) -> JsonObject:
    """Owned fields of the layer. URLs only of files that are there; HASTE's word for no file is an empty string."""
    folder = paths.task_folder(entity.project_id, task_id)

    def url(name: str) -> str:
        found = bool(name) and blobs.size_bytes(f"{folder}/{name}") is not None
        return blobs.reading_url(f"{folder}/{name}") if found else ""

    return {
        "imageryPath": f"{paths.project_folder(entity.project_id)}/imagery_{task_id}",
        "preEventPreviewUrls": [found for name in manifest.pre_event_previews if (found := url(name))],
        "preEventMosaicCogImageryUrl": url(manifest.pre_event_mosaic),
        "preEventProcessedImageryUrl": url(manifest.pre_event_processed),
        "postEventPreviewUrls": [found for name in manifest.post_event_previews if (found := url(name))],
        "postEventMosaicCogImageryUrl": url(manifest.post_event_mosaic),
        "postEventProcessedImageryUrl": url(manifest.post_event_processed),
        "buildingFootprintsUrl": url(manifest.footprints),
        "validAreaMaskUrl": url(manifest.valid_area_mask),
        "normalizationMeans": manifest.means,
        "normalizationStds": manifest.stds,
    }


def _checked(name: object, start: str) -> str:
    if name is None or name == "":
        return ""
    if not isinstance(name, str) or not name.startswith(start) or "/" in name or not paths.is_safe_name(name):
        raise ValueError("unexpected file name")
    return name

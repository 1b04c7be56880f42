"""The table of HASTE's kinds of work: which module knows a kind's messages, records, configs and results."""

from __future__ import annotations

from typing import assert_never

from shared.haste import imageryprep, inference, training
from shared.haste.checked_json import json_object
from shared.haste.contained import PlainlyEnding
from shared.haste.messages import HasteMessage
from shared.haste.workload import Blobs
from shared.kinds import Kind
from shared.settings.table import Settings


def workload(kind: Kind, settings: Settings, blobs: Blobs) -> PlainlyEnding:
    """The kind's workload. `blobs` is HASTE's container."""
    image_name = settings.of(kind).image
    match kind:
        case Kind.IMAGERYPREP:
            return imageryprep.Imageryprep(
                blobs,
                image_name=image_name,
                titiler_url=settings.titiler_public_endpoint,
                tile_size=settings.titiler_tilesize,
            )
        case Kind.TRAINING:
            return training.Training(blobs, image_name=image_name, isolated=settings.shared_mode)
        case Kind.INFERENCE:
            return inference.Inference(
                blobs, image_name=image_name, gdal_translate_params=settings.gdal_translate_params
            )
        case _:
            assert_never(kind)


def parse_message(body: bytes, queue_kind: Kind) -> HasteMessage:
    """Read a message of the queue of `queue_kind`. Raises InvalidMessage for everything that can never be accepted."""
    fields = json_object(body)
    match queue_kind:
        case Kind.IMAGERYPREP:
            return imageryprep.read_message(fields)
        case Kind.TRAINING:
            return training.read_message(fields)
        case Kind.INFERENCE:
            return inference.read_message(fields)
        case _:
            assert_never(queue_kind)

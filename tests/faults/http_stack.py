"""The stack that random schedules are played on: two hosts of one tenant, tiny programs, and what trainings need."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueMessage, QueueServiceClient
from rasterio.crs import CRS
from rasterio.transform import from_bounds

from local.certificates import Certificates
from local.images.rasters import write_cog
from local.producer import names, synthetic
from local.producer.records import Record
from local.producer.storage import HasteStorage
from local.stack import StackOptions
from local.stack.settings import CONTAINER, IMAGERYPREP_IMAGE, TRAINING_IMAGE
from local.stack.world import default_world
from tests.faults.http_plan import HOSTS
from tests.support.gate import Gate
from tests.support.outside import Haste, Layer, Model, wait_for
from tests.support.stacks import options

TENANT = "tenanta"
POOLS = ("h100-pool", "t4-pool")
#: A message that nobody answers for any more comes again after this.
LEASE_SECONDS = 10
#: How late HASTE's API may save; here it saves at once, if the machine is not too busy.
LATE_SAVE_SECONDS = 8
MOST_LOSSES = 3

_SETTINGS = {
    "WATCH_SCHEDULE": "*/2 * * * * *",
    "WORKER_LATE_SAVE": f"PT{LATE_SAVE_SECONDS}S",
    "WORKER_PROGRESS_EVERY": "PT2S",
    "WORKER_PREEMPTION_GRACE": "PT4S",
    "WORKER_POOL_COOL_DOWN": "PT10S",
    "WORKER_QUEUED_TOO_LONG": "PT10S",
    "WORKER_MAX_PREEMPTIONS": str(MOST_LOSSES),
}
#: Stands in for both images: waits and ends as the file `programs/<layer or model>` says, and leaves what HASTE's
#: containers leave.
_ENTRYPOINT = r"""#!/bin/sh
set -eu
here=$(dirname "$0")
config=$(ls imageryprep_config_*.yaml inputs/experiment_config_*.yaml 2>/dev/null || true)
subject=${config##*_config_}
subject=${subject%.yaml}
field() { sed -n "s/.*\"$1\": \"\([^\"]*\)\".*/\1/p" "$config"; }
mkdir -p logs
echo "$(date -u +%Y-%m-%dT%H:%M:%S.%6N+00:00)|Working" | tee logs/imagery_friendly.log >logs/workflow_progress.log
seconds=0.2 code=0
[ ! -e "$here/programs/$subject" ] || read -r seconds code <"$here/programs/$subject"
sleep "$seconds"
[ "$code" = 0 ] || exit "$code"
case "$*" in
*"--step training"*)
    mkdir checkpoint
    echo weights >checkpoint/last.ckpt
    ;;
*"--step inference"*)
    mosaic=$(field raw_fn)
    mosaic=${mosaic##*/}
    mkdir -p inference
    echo map >"inference/${mosaic%.tif}_visualizer.tif"
    echo predictions >"inference/$(field predictions_gpkg_fileprefix).gpkg"
    ;;
*)
    suffix=$(field project_id)_$(field image_layer_id)
    mkdir -p outputs
    cp "$here/raster.tif" "outputs/raw_imagery_post_event_mosaic_cog_$suffix.tif"
    cp "$here/raster.tif" "outputs/processed_imagery_post_event_cog_$suffix.tif"
    echo footprints >"outputs/building_footprints_$suffix.gpkg"
    cat >outputs/imagery_manifest.json <<MANIFEST
{"post_event_mosaic_filename": "raw_imagery_post_event_mosaic_cog_$suffix.tif",
 "post_event_processed_filename": "processed_imagery_post_event_cog_$suffix.tif",
 "building_footprints_filename": "building_footprints_$suffix.gpkg", "building_footprints_error": "",
 "normalization_means": [0, 0, 0], "normalization_stds": [255, 255, 255]}
MANIFEST
    ;;
esac
"""


def stack_options(run_folder: Path, image: Path, certificates: Certificates, gate: Gate) -> StackOptions:
    """Two hosts that reach storage through the gate; HASTE's API, the programs and Batch do without it."""
    write_image(image)
    images = {TRAINING_IMAGE: str(image), IMAGERYPREP_IMAGE: str(image)}
    pools = [{"id": pool, "targetLowPriorityNodes": 4, "return_after_seconds": 5} for pool in POOLS]

    def adjust(tenant: str, settings: dict[str, str]) -> dict[str, str]:
        return gate.settings(tenant, settings) | {"AZURE_BATCH_URL": settings["AZURE_BATCH_URL"]}

    return options(
        run_folder,
        certificates,
        tenants=(TENANT,),
        hosts_per_tenant=HOSTS,
        lease_seconds=LEASE_SECONDS,
        world=default_world(0) | {"pools": pools, "images": images},
        settings=_SETTINGS,
        adjust=adjust,
    )


def write_image(folder: Path) -> None:
    """The programs, and one small raster where HASTE's users draw their labels."""
    (folder / "programs").mkdir(parents=True)
    entrypoint = folder / "entrypoint"
    entrypoint.write_text(_ENTRYPOINT)
    entrypoint.chmod(0o700)
    left, bottom, right, top = synthetic.bounds()
    place = from_bounds(left, bottom, right, top, 16, 16)
    write_cog(folder / "raster.tif", np.ones((3, 16, 16), dtype=np.uint8), place, CRS.from_epsg(synthetic.EPSG))


def write_program(image: Path, subject: str, seconds: float, exit_code: int) -> None:
    """How the programs of a layer or model go from now on."""
    (image / "programs" / subject).write_text(f"{seconds} {exit_code}\n")


@dataclass(frozen=True)
class Sent:
    """A message as storage has taken it."""

    queue_name: str
    message_id: str
    at: datetime


class NotingStorage(HasteStorage):
    """HASTE's storage that notes the ids of its messages: the API's callers are not told them."""

    def __init__(self, connection: str) -> None:
        blobs = BlobServiceClient.from_connection_string(connection)
        super().__init__(blobs, QueueServiceClient.from_connection_string(connection), CONTAINER)
        self.sent: list[Sent] = []

    def put_message(self, queue_name: str, record: Record, *, delay_seconds: int) -> QueueMessage:
        """As HASTE's, with a note."""
        message = super().put_message(queue_name, record, delay_seconds=delay_seconds)
        assert message.inserted_on is not None
        self.sent.append(Sent(queue_name, message.id, message.inserted_on))
        return message


@dataclass(frozen=True)
class Ground:
    """A layer with labels and a model trained on it, made through the worker before anything goes wrong."""

    layer: Layer
    model: Model

    @classmethod
    def made(cls, haste: Haste) -> Ground:
        """Ask for both and wait."""
        layer = haste.prepared_layer()
        model = haste.new_model(layer)
        assert model.ended() == "Processed", model.record["statusMessage"]
        wait_for(haste.is_idle)
        return cls(layer, model)

    def copy_model(self, haste: Haste, model_id: str) -> None:
        """Another trained model: the record and the config that its training would have left."""
        project = self.layer.project_id
        haste.api.storage.save(names.model_blob(project, model_id), self.model.record | {"modelId": model_id})
        folder = names.partition(project)
        config = haste.data.download_blob(f"{folder}/experiment_config_{self.model.model_id}.yaml").readall()
        haste.data.upload_blob(f"{folder}/experiment_config_{model_id}.yaml", config, overwrite=True)

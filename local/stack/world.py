"""The world that the Batch emulator of a local stack starts with."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from local.batch.config import ACCOUNT_KEY
from local.certificates import Certificates
from local.stack.environment import no_proxy
from local.stack.settings import IMAGERYPREP_IMAGE, LEGACY_POOL, TRAINING_IMAGE, Identity

DEFAULT_TASK_SECONDS = 3.0
_IMAGES_FOLDER = Path(__file__).resolve().parents[1] / "images"


def default_world(task_seconds: float = DEFAULT_TASK_SECONDS) -> dict[str, Any]:
    """Two pools of spot nodes that tenants share, one pool of a deployment's own, and the stand-in images.

    `task_seconds` is how long each task takes on top of its real work. Spot nodes return soon after a preemption, and
    a node starts within a second, so that a whole job's life can be watched.
    """
    return {
        "timings": {"resize_seconds": 0.2, "node_start_seconds": 0.5},
        "images": {
            TRAINING_IMAGE: str(_IMAGES_FOLDER / "training"),
            IMAGERYPREP_IMAGE: str(_IMAGES_FOLDER / "imageryprep"),
        },
        "task_environment": {"HASTE_LOCAL_SECONDS": f"{task_seconds:g}"},
        "pools": [
            _spot_pool("h100-pool", "standard_nc40ads_h100_v5"),
            _spot_pool("t4-pool", "standard_nc4as_t4_v3"),
            {"id": LEGACY_POOL, "vmSize": "standard_nc6s_v3", "targetDedicatedNodes": 1},
        ],
    }


def complete_world(
    world: Mapping[str, Any], run_folder: Path, certificates: Certificates, identity: Identity, marks: Mapping[str, str]
) -> dict[str, Any]:
    """`world` with what belongs to this run: its folders, its identity endpoint, what its tasks need to reach storage.

    `marks` goes into every task's environment, so that a task left behind can be found. What `world` says itself wins.
    """
    task_environment = {
        "HASTE_LOCAL_PYTHON": sys.executable,
        **certificates.environment(),
        **no_proxy({}),
        **marks,
        **world.get("task_environment", {}),
    }
    return {
        "account": {"name": "localbatch", "key": ACCOUNT_KEY},
        "root": str(run_folder / "batch-nodes"),
        "event_log": str(run_folder / "batch-events.jsonl"),
        "storage_identity": {"token_url": identity.endpoint, "secret": identity.secret},
        **world,
        "task_environment": task_environment,
    }


def _spot_pool(pool_id: str, vm_size: str) -> dict[str, Any]:
    return {
        "id": pool_id,
        "vmSize": vm_size,
        "targetLowPriorityNodes": 2,
        "return_after_seconds": 20,
    }

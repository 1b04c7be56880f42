"""The images that the emulated service offers for nodes. Data; the emulator's nodes run whatever their tasks need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from local.batch.listing import page
from local.batch.request import Call, Json, Response

if TYPE_CHECKING:
    from local.batch.world import World

_KNOWN = (*("nodeAgentSKUId", "imageReference", "osType", "capabilities", "batchSupportEndOfLife", "verificationType"),)
_FILTERS = ("nodeAgentSKUId", "osType", "verificationType")
#: publisher, offer, sku, node agent, operating system, capabilities
_IMAGES = (
    ("microsoft-dsvm", "ubuntu-hpc", "2204", "batch.node.ubuntu 22.04", "linux", "DockerCompatible NvidiaTeslaDriver"),
    ("microsoft-dsvm", "ubuntu-hpc", "2404", "batch.node.ubuntu 24.04", "linux", "DockerCompatible NvidiaTeslaDriver"),
    ("canonical", "ubuntu-24_04-lts", "server", "batch.node.ubuntu 24.04", "linux", ""),
    ("almalinux", "almalinux-x86_64", "9-gen2", "batch.node.el 9", "linux", ""),
    ("debian", "debian-12", "12", "batch.node.debian 12", "linux", ""),
    ("microsoftwindowsserver", "windowsserver", "2022-datacenter", "batch.node.windows amd64", "windows", ""),
)


def list_images(world: World, call: Call) -> Response:
    """All images; `$filter` on osType, verificationType and nodeAgentSKUId."""
    rows = [_row(*image) for image in _IMAGES]
    entries = [(f"{number:012d}", row) for number, row in enumerate(rows)]
    size = world.config.page_size
    return page(call, "supportedimages", entries, lambda row: row, _FILTERS, _KNOWN, size)


def _row(publisher: str, offer: str, sku: str, agent: str, system: str, capabilities: str) -> Json:
    return {
        "nodeAgentSKUId": agent,
        "imageReference": {"publisher": publisher, "offer": offer, "sku": sku, "version": "latest"},
        "osType": system,
        "capabilities": capabilities.split(),
        "verificationType": "verified",
    }

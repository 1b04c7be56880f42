"""An emulator of Azure Batch: the real SDK talks to it over https or in the same process.

world = World.from_json({"pools": [{"id": "p", "targetLowPriorityNodes": 1, "start_seconds": 0}]})
client = BatchClient("https://batch.local", world_credential, transport=InProcessTransport(world))
"""

from local.batch.clock import ManualClock, RealClock
from local.batch.config import ACCOUNT_KEY, WorldConfig
from local.batch.runner import Failure, RunEnd
from local.batch.scripted_runner import ScriptedRunner
from local.batch.transport import InProcessTransport
from local.batch.world import World

__all__ = [
    "ACCOUNT_KEY",
    "Failure",
    "InProcessTransport",
    "ManualClock",
    "RealClock",
    "RunEnd",
    "ScriptedRunner",
    "World",
    "WorldConfig",
]

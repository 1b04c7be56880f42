"""How the stack's own programs are started."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from local.certificates import Certificates
from local.stack.services import start_batch
from local.stack.supervisor import Supervisor


class Spawned:
    """Remembers with which environment programs were started."""

    environment: Mapping[str, str]

    def spawn(self, _name: str, _command: list[str], environment: Mapping[str, str]) -> Any:
        self.environment = environment


def test_a_key_meant_for_an_emulator_that_runs_alone_is_not_the_stacks(
    tmp_path: Path, certificates: Certificates
) -> None:
    """The hosts are given the key of the world file."""
    supervisor = Spawned()
    environment = {"BATCH_EMULATOR_KEY": "YW5vdGhlcg==", "PATH": "/usr/bin"}
    start_batch(cast(Supervisor, supervisor), tmp_path, {}, certificates, environment)
    assert supervisor.environment == {"PATH": "/usr/bin"}

"""The stack as these tests start it: the real app, quick timers, short tasks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from local import images
from local.certificates import Certificates
from local.stack import StackOptions
from local.stack.world import default_world

APP_FOLDER = Path(__file__).resolve().parents[2]
#: One tick per second; HASTE's late save is over soon after a message.
QUICK = {"WATCH_SCHEDULE": "*/1 * * * * *", "WORKER_LATE_SAVE": "PT2S", "WORKER_PROGRESS_EVERY": "PT1S"}


def options(
    run_folder: Path,
    certificates: Certificates,
    *,
    task_seconds: float = 1.0,
    world: Mapping[str, Any] | None = None,
    settings: Mapping[str, str] | None = None,
    **others: Any,
) -> StackOptions:
    """Options of a stack with the app in it; `others` are those of `StackOptions`."""
    return StackOptions(
        run_folder,
        APP_FOLDER,
        certificates=certificates,
        world=world or default_world(task_seconds),
        settings={**QUICK, **(settings or {})},
        **others,
    )


def training_image(folder: Path, **environment: str) -> str:
    """A new image in `folder`: the stand-in for training with these variables set. Its path, for a world's `images`."""
    stand_in = Path(images.__file__).parent / "training" / "entrypoint"
    variables = " ".join(f"{name}={value}" for name, value in environment.items())
    entrypoint = folder / "entrypoint"
    entrypoint.write_text(f'#!/bin/sh\n{variables} exec "{stand_in}" "$@"\n')
    entrypoint.chmod(0o700)
    return str(folder)

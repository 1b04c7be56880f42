"""What a task's command line means on its node."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from local.batch.runner import Failure


class CannotStart(Exception):
    """The task's process cannot be started; `failure` is its failureInfo."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def arguments(spec: Mapping[str, Any], images: Mapping[str, str]) -> list[str]:
    """The program and arguments to start. Raises CannotStart.

    A command line is cut into words as a shell would, but no shell runs: `$NAME` stays as it is. For a container task
    the words are the arguments of the image's entrypoint, an executable file in the image's folder.
    """
    try:
        words = shlex.split(spec["commandLine"])
    except ValueError as error:
        raise CannotStart(_failure("CommandLaunchFailed", f"The command line cannot be read: {error}")) from None
    container = spec.get("containerSettings")
    if not container:
        return words
    image = container["imageName"]
    folder = images.get(image)
    if folder is None:
        raise CannotStart(_failure("ContainerInvalidImage", f"The node has no image {image}"))
    entrypoint = Path(folder).resolve() / "entrypoint"
    if not os.access(entrypoint, os.X_OK):
        raise CannotStart(_failure("ContainerInvalidImage", f"The image {image} has no executable entrypoint"))
    return [str(entrypoint), *words]


def not_started(error: OSError | ValueError) -> Failure:
    """The failureInfo of a program that the system would not start."""
    if isinstance(error, FileNotFoundError):
        return _failure("CommandProgramNotFound", "The program of the command line was not found")
    reason = error.strerror if isinstance(error, OSError) else error
    return _failure("CommandLaunchFailed", f"The program could not be started: {reason}")


def _failure(code: str, message: str) -> Failure:
    return Failure(code, "usererror", message, stage="before")

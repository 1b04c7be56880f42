"""What the Batch tasks of all kinds have in common: the working directory, input copies, and output entries."""

from __future__ import annotations

import re
from collections.abc import Callable

from shared.batch.task_spec import OutputFile, ResourceFile
from shared.errors import Refused
from shared.haste import paths
from shared.haste.workload import Blobs
from shared.protocol.outcome import Outcome, Result, TaskEnd

#: Batch expands it in file patterns; in command lines the shell in the container does.
WORKING_DIRECTORY = "$AZ_BATCH_TASK_WORKING_DIR"

#: Paths of weights and checkpoints in HASTE's records: relative to the container, below a project's folder.
_CONTAINER_PATH = re.compile(r"[0-9a-f]{64}/.+")


def workflow_command(config_path: str, step: str) -> str:
    """Command line of HASTE's training image. `config_path` is in the working directory.

    The quotes are part of it: the image's entrypoint hands it to a shell as one word.
    """
    config = f"{WORKING_DIRECTORY}/{config_path}"
    return (
        f'"cd /app && source scripts/set_dirs.sh {config} && python scripts/print_gpu_info.py'
        f' && python run_workflow.py --config {config} --step {step}"'
    )


def stored_file(blobs: Blobs, path: str, file_path: str, what: str) -> ResourceFile:
    """A blob that a record names by its path in the container. Raises Refused, with `what` it is, if it is not one."""
    if _CONTAINER_PATH.fullmatch(path) is None or not paths.is_safe_name(path):
        raise Refused(f"{what} must be a path in HASTE's storage, <project folder>/..., not an address.")
    if blobs.size_bytes(path) is None:
        raise Refused(f"{what} does not exist in HASTE's storage.")
    return ResourceFile(blobs.url(path), file_path)


def write_input(blobs: Blobs, project_id: str, task_id: str, file_path: str, content: bytes) -> ResourceFile:
    """Write the task's own copy of a config or label file, to be laid at `file_path` in its working directory.

    Batch fetches inputs when a task starts, not when it is added: a file shared by all attempts may have changed by
    then.
    """
    name = paths.task_input(project_id, task_id, file_path.rpartition("/")[2])
    blobs.write(name, content)
    return ResourceFile(blobs.url(name), file_path)


def output_files(project_id: str, task_id: str, pattern: str, *, logs: bool) -> tuple[OutputFile, ...]:
    """What is uploaded when the task ends: the kind's pattern below the working directory, logs, std*.txt."""
    folder = paths.task_folder(project_id, task_id)
    return (
        OutputFile(f"{WORKING_DIRECTORY}/{pattern}", folder),
        *([OutputFile(f"{WORKING_DIRECTORY}/logs/*", f"{folder}/logs")] if logs else []),
        OutputFile("../*.txt", folder),
    )


def judged(what: str, end: TaskEnd, fault: Callable[[], str | None]) -> Outcome:
    """Completed if the task succeeded and `fault` finds nothing wrong with its results; else why not, for users."""
    if not end.succeeded:
        return Outcome(Result.FAILED, failure_sentence(f"{what} failed", end), end.ended_at)
    sentence = fault()
    if sentence is not None:
        return Outcome(Result.FAILED, sentence, end.ended_at)
    return Outcome(Result.COMPLETED, f"{what} completed successfully", end.ended_at)


def failure_sentence(what: str, end: TaskEnd) -> str:
    """`what` with the exit code or Batch's code, which are safe to show."""
    if end.failure_code == "TaskEnded":  # of tasks that ended by themselves, only those that ran too long
        return f"{what}: it reached its maximum run time"
    if end.exit_code:
        return f"{what} (exit code {end.exit_code})"
    return f"{what} (Azure Batch reported {end.failure_code})" if end.failure_code else what

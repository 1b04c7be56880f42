"""A Batch task as a kind of work describes it, before credentials, user, pool and limits are added."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ResourceFile:
    """A blob to lay into the task's working directory. `url` is plain (no SAS); `file_path` is relative."""

    url: str
    file_path: str


@dataclass(frozen=True)
class OutputFile:
    """Files to upload when the task ends: `file_pattern` as Batch takes it, `path` = blob name prefix."""

    file_pattern: str
    path: str


@dataclass(frozen=True)
class TaskSpec:
    """A Batch task in HASTE's terms, before credentials, pool and limits are added."""

    command_line: str
    image_name: str
    resource_files: tuple[ResourceFile, ...]
    output_files: tuple[OutputFile, ...]
    environment: dict[str, str] = field(default_factory=dict)

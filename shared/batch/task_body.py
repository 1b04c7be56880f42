"""The Batch task of an attempt: HASTE's description of it, plus credentials, user and limits of the mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from shared.batch.task_spec import TaskSpec
from shared.batch.transfer import Transfer
from shared.batch.types import TaskBody
from shared.kinds import Kind

#: HASTE's own options: root, because the node's task directory belongs to it; much shared memory for data loaders.
_CONTAINER_RUN_OPTIONS = "--rm --shm-size=32g --user 0:0"


@dataclass(frozen=True)
class TaskBodies:
    """How tasks are made in this deployment.

    `isolated`: on pools shared with other tenants a task runs as a user of its own and sees its own directory only.
    `transfer` makes the credentials of one task; `max_run` is the longest run per kind (None = no limit).
    """

    isolated: bool
    retention_time: timedelta
    max_run: Mapping[Kind, timedelta | None]
    transfer: Callable[[Kind], Transfer]

    def body(self, task_id: str, kind: Kind, spec: TaskSpec, transfer: Transfer) -> TaskBody:
        """The task's body. Raises Refused if an input is not a blob of HASTE's container."""
        return TaskBody(
            task_id=task_id,
            command_line=spec.command_line,
            image_name=spec.image_name,
            container_run_options=_CONTAINER_RUN_OPTIONS,
            resource_files=tuple(transfer.resource_files(spec)),
            output_files=tuple(transfer.output_files(spec)),
            environment=spec.environment,
            retention_time=self.retention_time,
            user_scope="task" if self.isolated else "pool",
            max_run=self.max_run[kind],
            bind_mounts=("Task",) if self.isolated else (),
        )

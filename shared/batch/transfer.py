"""How a task reaches its blobs: the credentials added to a `TaskSpec`, in the shape that Azure Batch's REST API takes.

    IdentityTransfer   legacy mode: the identity of the pool's nodes, nothing in the task but its resource id
    SasTransfer        shared mode: SAS of the task's own, one per input and one to write results

One transfer is made per task. A SAS together with an identity is an error for Azure Batch, so it is one or the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from shared.batch.task_spec import TaskSpec
from shared.errors import Refused
from shared.storage.addresses import ContainerAddress, without_query
from shared.storage.delegation import Delegation

WireObject = dict[str, Any]


class Transfer(Protocol):
    """The credentials of one task."""

    def resource_files(self, spec: TaskSpec) -> list[WireObject]:
        """`resourceFiles` of the task. Raises Refused if one is not a blob of HASTE's container."""

    def output_files(self, spec: TaskSpec) -> list[WireObject]:
        """`outputFiles` of the task: uploaded when it completes, whether it succeeded or failed."""

    def resign(self, url: str) -> str:
        """A URL that goes into a config file, with the credentials the task may use."""


@dataclass(frozen=True)
class IdentityTransfer:
    """`identity_resource_id` is a user-assigned identity of the pool that may read and write the containers."""

    container: ContainerAddress
    output_container_url: str
    identity_resource_id: str

    def resource_files(self, spec: TaskSpec) -> list[WireObject]:
        """See `Transfer.resource_files`."""
        return _resource_files(spec, self.container, without_query, self._identity())

    def output_files(self, spec: TaskSpec) -> list[WireObject]:
        """See `Transfer.output_files`."""
        return _output_files(spec, self.output_container_url, self._identity())

    def resign(self, url: str) -> str:
        """Unchanged: the URL in the record works for as long as its stored policy says."""
        return url

    def _identity(self) -> WireObject:
        return {"identityReference": {"resourceId": self.identity_resource_id}}


@dataclass(frozen=True)
class SasTransfer:
    """`expiry` is when all SAS of the task end (UTC), see `lifetimes.sas_expiry`."""

    container: ContainerAddress
    output_container_url: str
    delegation: Delegation
    expiry: datetime

    def resource_files(self, spec: TaskSpec) -> list[WireObject]:
        """See `Transfer.resource_files`."""
        return _resource_files(spec, self.container, self.resign, {})

    def output_files(self, spec: TaskSpec) -> list[WireObject]:
        """See `Transfer.output_files`."""
        if not spec.output_files:
            return []
        return _output_files(spec, self.delegation.container_write(self.output_container_url, self.expiry), {})

    def resign(self, url: str) -> str:
        """See `Delegation.resign`."""
        return self.delegation.resign(url, self.expiry)


def _resource_files(
    spec: TaskSpec, container: ContainerAddress, with_access: Callable[[str], str], identity: WireObject
) -> list[WireObject]:
    for file in spec.resource_files:
        if container.blob_name(file.url) is None:
            raise Refused(f"The input {file.file_path} is not stored with the project's data.")
    return [{"httpUrl": with_access(file.url), "filePath": file.file_path, **identity} for file in spec.resource_files]


def _output_files(spec: TaskSpec, container_url: str, identity: WireObject) -> list[WireObject]:
    return [
        {
            "filePattern": output.file_pattern,
            "destination": {"container": {"path": output.path, "containerUrl": container_url, **identity}},
            "uploadOptions": {"uploadCondition": "taskcompletion"},
        }
        for output in spec.output_files
    ]

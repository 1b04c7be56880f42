"""Queue output bindings: what a function returns or sets goes to a queue."""

import json
from typing import Any

from local.functions_host.app_index import FunctionSpec
from local.functions_host.queue_encoding import encode_text
from local.functions_host.queue_port import QueueMissing, QueuePort, StorageFailure, send_creating_queue
from local.functions_host.runtime_adapter import RuntimeResult


class OutputError(Exception):
    """An output could not be sent; the invocation counts as failed."""


class QueueOutputs:
    """Sends queue outputs with host.json's encoding, creating a missing queue."""

    def __init__(self, queues: dict[tuple[str, str], QueuePort], *, base64_encoded: bool) -> None:
        self._queues = queues  # by function name and binding name
        self._base64_encoded = base64_encoded

    async def send(self, function: FunctionSpec, result: RuntimeResult) -> None:
        """Send all queue outputs of one invocation. Raises OutputError."""
        values = dict(result.outputs or {})
        if result.value is not None:
            values["$return"] = result.value
        for binding in function.queue_outputs:
            value = values.get(binding.name)
            if value is None:
                continue
            queue = self._queues[(function.name, binding.name)]
            try:
                for body in _bodies(value):
                    await send_creating_queue(queue, encode_text(body, base64_encoded=self._base64_encoded))
            except (StorageFailure, QueueMissing, UnicodeDecodeError) as error:
                raise OutputError(f"output {binding.name} to queue {queue.name}: {error}") from error


def _bodies(value: tuple[str | None, Any]) -> list[bytes]:
    kind, content = value
    if kind is None:  # the function returned None
        return []
    if kind == "string":
        return [content.encode()]
    if kind == "bytes":
        return [content]
    if kind == "json":
        items = json.loads(content)
        if isinstance(items, list) and all(isinstance(item, str) for item in items):
            return [item.encode() for item in items]
    raise OutputError("a queue output must be a str, bytes or a list of str")

"""Runs invocations: logs them, sends their outputs, and enforces the function timeout."""

import asyncio
import json
import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from local.functions_host import runtime_adapter
from local.functions_host.app_index import FunctionSpec
from local.functions_host.log import EventLog
from local.functions_host.queue_outputs import OutputError, QueueOutputs
from local.functions_host.queue_port import QueueItem
from local.functions_host.runtime_adapter import RuntimeResult
from local.functions_host.timer_listener import TimerCall


@dataclass(frozen=True)
class _Trigger:
    value: tuple[str, Any]
    metadata: Mapping[str, tuple[str, Any]]


class Invoker:
    """Invokes functions on the runtime.

    A function that outlasts the timeout cannot be ended, since a Python thread cannot: it and all others that run in
    this process count as failed from then on, and `worker_lost` is set so that the host ends the process.
    """

    def __init__(self, timeout_seconds: float | None, outputs: QueueOutputs, log: EventLog) -> None:
        self._timeout_seconds = timeout_seconds
        self._outputs = outputs
        self._log = log
        self.worker_lost = asyncio.Event()
        self.running: set[str] = set()

    async def run_queue(self, function: FunctionSpec, item: QueueItem, text: str) -> bool:
        """Run a queue function on one message; True when it succeeded."""
        metadata = {
            "QueueTrigger": ("string", text),
            "Id": ("string", item.id),
            "PopReceipt": ("string", item.pop_receipt),
            "DequeueCount": ("json", json.dumps(item.dequeue_count)),
            "InsertionTime": ("json", _json_time(item.insertion_time)),
            "ExpirationTime": ("json", _json_time(item.expiration_time)),
            "NextVisibleTime": ("json", _json_time(item.next_visible_time)),
        }
        fields = {"message": item.id, "dequeue_count": item.dequeue_count}
        return (await self._run(function, _Trigger(("string", text), metadata), fields)).succeeded

    async def run_timer(self, function: FunctionSpec, call: TimerCall) -> None:
        """Run a timer function once; a failure is logged."""
        trigger = _Trigger(("json", json.dumps(call.to_json())), {})
        await self._run(function, trigger, {"past_due": call.past_due})

    async def run_http(self, function: FunctionSpec, request: tuple[str, Any]) -> RuntimeResult:
        """Run an HTTP function on a request made by `runtime_adapter.http_request`."""
        return await self._run(function, _Trigger(request, {}), {})

    async def _run(self, function: FunctionSpec, trigger: _Trigger, fields: dict[str, object]) -> RuntimeResult:
        invocation_id = uuid.uuid4()
        loop = asyncio.get_running_loop()
        names: dict[str, object] = {"function": function.name, "invocation": str(invocation_id), **fields}
        self._log("function.started", level=logging.INFO, **names)
        self.running.add(str(invocation_id))
        started = loop.time()
        call = asyncio.create_task(self._call(function, invocation_id, trigger))
        result = await self._result(call, function)
        seconds = round(loop.time() - started, 3)
        if call.done():
            self.running.discard(str(invocation_id))
        if result.succeeded:
            self._log("function.succeeded", level=logging.INFO, seconds=seconds, **names)
        else:
            failure = {"error": result.error, "traceback": result.traceback}
            self._log("function.failed", level=logging.ERROR, seconds=seconds, **failure, **names)
        return result

    async def _call(self, function: FunctionSpec, invocation_id: uuid.UUID, trigger: _Trigger) -> RuntimeResult:
        result = await runtime_adapter.invoke(
            function.id, invocation_id, function.argument, trigger.value, trigger.metadata
        )
        if not result.succeeded:
            return result
        try:
            await self._outputs.send(function, result)
        except OutputError as error:
            return RuntimeResult(succeeded=False, error=str(error))
        return result

    async def _result(self, call: asyncio.Task[RuntimeResult], function: FunctionSpec) -> RuntimeResult:
        lost = asyncio.create_task(self.worker_lost.wait())
        await asyncio.wait({call, lost}, timeout=self._timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
        lost.cancel()
        if call.cancelled():
            return RuntimeResult(succeeded=False, error="the function was cancelled from within")
        if call.done():
            return call.result()
        if self.worker_lost.is_set():
            return RuntimeResult(succeeded=False, error="the worker process ends: another function timed out")
        self.worker_lost.set()
        message = f"{function.name} ran longer than the function timeout of {self._timeout_seconds:g} seconds"
        return RuntimeResult(succeeded=False, error=message)


def _json_time(value: datetime) -> str:
    return json.dumps(value.isoformat())

"""Starts what an app needs, runs it until told to stop, and drains."""

import asyncio
import logging
import os
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from local.functions_host.app_index import FunctionSpec, HttpTrigger, QueueTrigger, TimerTrigger, index_functions
from local.functions_host.azure_queue import AzureQueue
from local.functions_host.connections import StorageConnection
from local.functions_host.faults import HostFaults
from local.functions_host.host_id import CONTAINER, host_id
from local.functions_host.host_json import HostOptions, read_host_json
from local.functions_host.http_server import HttpServer
from local.functions_host.invoker import Invoker
from local.functions_host.log import EventLog
from local.functions_host.polling import PollingBackOff
from local.functions_host.queue_listener import QueueListener
from local.functions_host.queue_outputs import QueueOutputs
from local.functions_host.queue_port import QueuePort
from local.functions_host.queue_processor import QueueProcessor
from local.functions_host.runtime_adapter import load_app
from local.functions_host.schedule import fires_within_a_minute
from local.functions_host.settings import Settings
from local.functions_host.singleton import BlobLock, run_while_locked
from local.functions_host.storage_clients import StorageClients
from local.functions_host.timer_listener import TimerListener
from local.functions_host.timer_status import BlobStatusStore

WORKER_LOST_EXIT_CODE = 3
"""The process ended because a function outlasted the function timeout; start it again, as the real host would."""


@dataclass(frozen=True)
class HostPlan:
    """A checked app, ready to run."""

    host_id: str
    options: HostOptions
    functions: tuple[FunctionSpec, ...]

    @property
    def enabled(self) -> tuple[FunctionSpec, ...]:
        return tuple(function for function in self.functions if not function.disabled)


async def plan_host(app: Path, settings: Settings, only: tuple[str, ...] = ()) -> HostPlan:
    """Read host.json, import and check the app. Raises HostFaults with everything that is wrong.

    `only` names the functions to host, for one process per function as Flex Consumption has it.
    """
    faults: list[str] = []
    identifier, options = "", None
    try:
        identifier = host_id(settings, app)
    except HostFaults as error:
        faults += error.faults
    try:
        options = read_host_json(app / "host.json", settings, processors=len(os.sched_getaffinity(0)))
    except HostFaults as error:
        faults += error.faults
    try:
        indexed = await load_app(app)
    except HostFaults as error:
        raise HostFaults([*faults, *error.faults]) from error
    if options is None:
        raise HostFaults(faults)
    specs, function_faults = index_functions(indexed, settings, options, datetime.now())
    faults += function_faults
    known = {function.name for function in indexed}
    faults += [f"--only {name}: the app has no such function" for name in only if name not in known]
    if faults:
        raise HostFaults(faults)
    return HostPlan(identifier, options, tuple(spec for spec in specs if not only or spec.name in only))


class FunctionsHost:
    """Runs one planned app in this process."""

    def __init__(self, plan: HostPlan, *, lease_seconds: int, function_key: str, log: EventLog) -> None:
        self._plan = plan
        self._lease_seconds = lease_seconds
        self._log = log
        self._clients = StorageClients()
        self._state = "Starting"
        outputs: dict[tuple[str, str], QueuePort] = {
            (function.name, output.name): self._queue(output.connection, output.queue)
            for function in plan.functions
            for output in function.queue_outputs
        }
        self.invoker = Invoker(
            plan.options.function_timeout_seconds,
            QueueOutputs(outputs, base64_encoded=plan.options.queues.base64),
            log,
        )
        self._http = HttpServer(
            plan.enabled,
            self.invoker,
            route_prefix=plan.options.route_prefix,
            function_key=function_key,
            status=lambda: {"id": plan.host_id, "state": self._state},
        )
        self._listeners: list[asyncio.Task[None]] = []

    async def start(self, port: int, stop: asyncio.Event) -> dict[str, object]:
        """Start listening until `stop` is set; returns what is running, for the ready line."""
        await self._http.start(port)
        for function in self._plan.enabled:
            work = self._listen(function, stop)
            if work is not None:
                self._listeners.append(asyncio.create_task(self._guarded(function, work)))
        self._state = "Running"
        return {
            "event": "ready",
            "pid": os.getpid(),
            "host_id": self._plan.host_id,
            "url": self._http.url,
            "functions": [self._describe(function) for function in self._plan.functions],
        }

    async def finish(self, stop: asyncio.Event) -> int:
        """Wait for `stop` or a lost worker, drain, and return the exit code."""
        waits = [asyncio.create_task(stop.wait()), asyncio.create_task(self.invoker.worker_lost.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        self._state = "Stopping"
        lost = self.invoker.worker_lost.is_set()
        if lost:
            self._log("host.worker_lost", level=logging.ERROR, exit_code=WORKER_LOST_EXIT_CODE)
            stop.set()
        self._log("host.stopping", running=len(self.invoker.running))
        await self._http.stop()
        if self._listeners:
            await asyncio.wait(self._listeners)
        await self._clients.close()
        self._log("host.stopped", abandoned=len(self.invoker.running))
        return WORKER_LOST_EXIT_CODE if self.invoker.worker_lost.is_set() else 0

    def _listen(self, function: FunctionSpec, stop: asyncio.Event) -> Awaitable[None] | None:
        trigger = function.trigger
        if isinstance(trigger, QueueTrigger):
            return self._queue_listener(function, trigger).run(stop)
        if isinstance(trigger, TimerTrigger):
            return self._timer(function, trigger, stop)
        return None

    def _queue_listener(self, function: FunctionSpec, trigger: QueueTrigger) -> QueueListener:
        options = self._plan.options.queues
        queue = self._queue(trigger.connection, trigger.queue)
        poison = self._queue(trigger.connection, trigger.poison_queue) if trigger.poison_queue else None
        run = partial(self.invoker.run_queue, function)
        processor = QueueProcessor(function.name, queue, poison, options, self._lease_seconds, run, self._log)
        return QueueListener(queue, processor, PollingBackOff(options.max_polling_seconds), self._log)

    async def _timer(self, function: FunctionSpec, trigger: TimerTrigger, stop: asyncio.Event) -> None:
        container = self._clients.blob_service(trigger.connection).get_container_client(CONTAINER)
        monitored = trigger.use_monitor and not fires_within_a_minute(trigger.schedule, datetime.now())
        listener = TimerListener(
            function.name,
            trigger.schedule,
            BlobStatusStore(container, self._plan.host_id, function.name) if monitored else None,
            partial(self.invoker.run_timer, function),
            self._log,
            run_on_startup=trigger.run_on_startup,
        )
        lock = BlobLock(container, self._plan.host_id, f"{function.name}.Listener")
        await run_while_locked(lock, listener.run, stop, self._log, function.name)

    async def _guarded(self, function: FunctionSpec, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - a defect in one listener must not end the others unseen
            self._log("host.defect", level=logging.ERROR, function=function.name, error=repr(error))

    def _queue(self, connection: StorageConnection, name: str) -> AzureQueue:
        return AzureQueue(self._clients.queue_service(connection), name)

    def _describe(self, function: FunctionSpec) -> dict[str, object]:
        trigger = function.trigger
        described: dict[str, object] = {"name": function.name, "disabled": function.disabled}
        if isinstance(trigger, QueueTrigger):
            return described | {"type": "queue", "queue": trigger.queue, "poison_queue": trigger.poison_queue}
        if isinstance(trigger, TimerTrigger):
            return described | {"type": "timer", "schedule": trigger.expression}
        assert isinstance(trigger, HttpTrigger)
        methods = list(trigger.methods) or ["*"]
        return described | {
            "type": "http",
            "url": self._http.url_of(trigger),
            "methods": methods,
            "auth_level": trigger.auth_level.lower(),
        }

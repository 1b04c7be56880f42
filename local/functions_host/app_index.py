"""From the runtime's function metadata to what the host will listen to, with everything that is wrong."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from local.functions_host.connections import HOST_STORAGE, ConnectionFault, StorageConnection, find_connection
from local.functions_host.host_json import HostOptions
from local.functions_host.http_routes import HttpRoute, RouteError, parse_route
from local.functions_host.queue_names import QueueNameError, normalize_queue_name, poison_queue_name
from local.functions_host.runtime_adapter import IndexedFunction
from local.functions_host.schedule import ConstantSchedule, CronSchedule, ScheduleError, parse_schedule
from local.functions_host.settings import SettingError, Settings


@dataclass(frozen=True)
class QueueTrigger:
    queue: str
    poison_queue: str | None
    connection: StorageConnection


@dataclass(frozen=True)
class TimerTrigger:
    expression: str
    schedule: CronSchedule | ConstantSchedule
    run_on_startup: bool
    use_monitor: bool
    connection: StorageConnection


@dataclass(frozen=True)
class HttpTrigger:
    route: HttpRoute
    methods: tuple[str, ...]
    auth_level: str


@dataclass(frozen=True)
class QueueOutput:
    name: str
    queue: str
    connection: StorageConnection


@dataclass(frozen=True)
class FunctionSpec:
    """One function to host; `argument` is the parameter that takes the trigger's value."""

    name: str
    id: str
    argument: str
    trigger: QueueTrigger | TimerTrigger | HttpTrigger
    queue_outputs: tuple[QueueOutput, ...]
    disabled: bool


_FAULTS = (SettingError, QueueNameError, ScheduleError, ConnectionFault, RouteError)


def index_functions(
    functions: Sequence[IndexedFunction], settings: Settings, options: HostOptions, now: datetime
) -> tuple[list[FunctionSpec], list[str]]:
    """Check every function; returns the ones that can be hosted and one sentence for each fault."""
    specs: list[FunctionSpec] = []
    faults: list[str] = []
    if not functions:
        faults.append("no functions found: the app has no function_app.py with functions in it")
    for function in functions:
        indexer = _Indexer(function, settings, options, now)
        spec = indexer.spec()
        if spec is not None:
            specs.append(spec)
        faults += [f"{function.name}: {fault}" for fault in indexer.faults]
    return specs, faults


class _Indexer:
    def __init__(self, function: IndexedFunction, settings: Settings, options: HostOptions, now: datetime) -> None:
        self._function = function
        self._settings = settings
        self._options = options
        self._now = now.replace(tzinfo=None)
        self.faults: list[str] = []

    def spec(self) -> FunctionSpec | None:
        triggers = [binding for binding in self._function.bindings if binding["type"].lower().endswith("trigger")]
        if len(triggers) != 1:
            self.faults.append("needs exactly one trigger")
            return None
        binding = triggers[0]
        trigger = self._guard(self._trigger, binding)
        outputs = [self._guard(self._output, other) for other in self._function.bindings if other is not binding]
        if trigger is None:
            return None
        return FunctionSpec(
            name=self._function.name,
            id=self._function.id,
            argument=binding["name"],
            trigger=trigger,
            queue_outputs=tuple(output for output in outputs if output is not None),
            disabled=self._settings.is_disabled(self._function.name),
        )

    def _guard(self, read: Any, binding: dict[str, Any]) -> Any:
        try:
            return read(binding)
        except _FAULTS as error:
            self.faults.append(str(error))
            return None

    def _trigger(self, binding: dict[str, Any]) -> QueueTrigger | TimerTrigger | HttpTrigger | None:
        kind = binding["type"]
        if kind == "queueTrigger":
            return self._queue_trigger(binding)
        if kind == "timerTrigger":
            return self._timer_trigger(binding)
        if kind == "httpTrigger":
            return HttpTrigger(
                route=parse_route(binding.get("route") or self._function.name),
                methods=tuple(str(getattr(method, "value", method)).upper() for method in binding.get("methods") or ()),
                auth_level=str(binding.get("authLevel") or "FUNCTION").upper(),
            )
        self.faults.append(f"the trigger {kind} is not supported by this host")
        return None

    def _queue_trigger(self, binding: dict[str, Any]) -> QueueTrigger:
        if self._function.has_retry_policy:
            self.faults.append("queue triggers have no retry policies; host.json's queues section has the settings")
        if not self._options.has_extensions:
            self.faults.append("queue triggers need an extensionBundle in host.json")
        queue = normalize_queue_name(self._settings.resolve(binding.get("queueName") or ""))
        connection = find_connection(self._settings, binding.get("connection") or "")
        connection.check_queue()
        return QueueTrigger(queue, poison_queue_name(queue), connection)

    def _timer_trigger(self, binding: dict[str, Any]) -> TimerTrigger:
        expression = self._settings.resolve(binding.get("schedule") or "")
        schedule = parse_schedule(expression)
        schedule.next_occurrence(self._now)  # some dates never come
        connection = find_connection(self._settings, HOST_STORAGE)
        connection.check_blob()
        return TimerTrigger(
            expression=expression,
            schedule=schedule,
            run_on_startup=_flag(binding.get("runOnStartup"), default=False),
            use_monitor=_flag(binding.get("useMonitor"), default=True),
            connection=connection,
        )

    def _output(self, binding: dict[str, Any]) -> QueueOutput | None:
        kind = binding["type"]
        if kind == "http":
            return None
        if kind != "queue":
            self.faults.append(f"the binding {kind} is not supported by this host")
            return None
        queue = normalize_queue_name(self._settings.resolve(binding.get("queueName") or ""))
        connection = find_connection(self._settings, binding.get("connection") or "")
        connection.check_queue()
        return QueueOutput(binding["name"], queue, connection)


def _flag(value: object, *, default: bool) -> bool:
    return default if value is None else str(value).lower() == "true"

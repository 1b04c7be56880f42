"""The only module that knows Microsoft's azure-functions-runtime package (1.3.0).

The package keeps one app per process in module globals. Its native invocation path needs no protobuf; for indexing,
plain classes stand in for the message types.
"""

import json
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import azure_functions_runtime as runtime
from azure_functions_runtime.bindings.datumdef import Datum
from azure_functions_runtime.native_invocation import invocation_request_native

from local.functions_host.faults import HostFaults


@dataclass(frozen=True)
class IndexedFunction:
    """A function as the runtime reports it; `bindings` are the raw binding objects."""

    name: str
    id: str
    bindings: tuple[dict[str, Any], ...]
    has_retry_policy: bool


@dataclass(frozen=True)
class RuntimeResult:
    """What one invocation gave. `value` and `outputs` hold (type, value) pairs as the runtime encodes them."""

    succeeded: bool
    value: tuple[str | None, Any] | None = None
    outputs: Mapping[str, tuple[str | None, Any]] | None = None
    error: str = ""
    traceback: str = ""


class _Message:
    def __init__(self, **fields: object) -> None:
        self.__dict__.update(fields)


def _message_type(name: str, **constants: int) -> type[_Message]:
    return type(name, (_Message,), constants)


_PROTOS = SimpleNamespace(
    BindingInfo=_message_type("BindingInfo", undefined=0, inout=2, out=1),
    RpcFunctionMetadata=_message_type("RpcFunctionMetadata"),
    RpcRetryOptions=_message_type("RpcRetryOptions"),
    StatusResult=_message_type("StatusResult", Failure=0, Success=1),
    RpcException=_message_type("RpcException"),
    WorkerMetadata=_message_type("WorkerMetadata"),
    WorkerInitResponse=_message_type("WorkerInitResponse"),
    FunctionMetadataResponse=_message_type("FunctionMetadataResponse"),
    FunctionLoadResponse=_message_type("FunctionLoadResponse"),
)


async def load_app(directory: Path) -> list[IndexedFunction]:
    """Import the app and index its functions. Raises HostFaults with the runtime's message when that fails."""
    sys.path.insert(0, str(directory))
    runtime.start_threadpool_executor()
    response = await runtime.worker_init_request(
        SimpleNamespace(
            request=SimpleNamespace(
                worker_init_request=SimpleNamespace(capabilities={}, function_app_directory=str(directory))
            ),
            properties={"host": "127.0.0.1", "protos": _PROTOS},
        )
    )
    if response.result.status != _PROTOS.StatusResult.Success:
        failure = response.result.exception
        raise HostFaults([f"the app cannot be indexed: {failure.message}\n{failure.stack_trace}".rstrip()])
    metadata = await runtime.functions_metadata_request(None)
    return [
        IndexedFunction(
            name=function.name,
            id=function.function_id,
            bindings=tuple(json.loads(binding) for binding in function.raw_bindings),
            has_retry_policy=function.retry_options is not None,
        )
        for function in metadata.function_metadata_results or ()
    ]


async def invoke(
    function_id: str,
    invocation_id: uuid.UUID,
    argument: str,
    value: tuple[str, Any],
    metadata: Mapping[str, tuple[str, Any]],
) -> RuntimeResult:
    """Run a function: sync ones on the runtime's thread pool, async ones here.

    `value` is the trigger's (type, value): `string`, `json`, or `http` with a request as `http_request` makes it.
    """
    ok, returned, outputs, error, traceback = await invocation_request_native(
        str(invocation_id),
        function_id,
        [(argument, _datum(value))],
        {name: _datum(item) for name, item in metadata.items()},
    )
    return RuntimeResult(
        succeeded=ok,
        value=(returned.type, returned.value) if returned is not None else None,
        outputs={name: (datum.type, datum.value) for name, datum in outputs},
        error=error or "",
        traceback=traceback or "",
    )


def http_request(
    method: str,
    url: str,
    headers: Mapping[str, str],
    query: Mapping[str, str],
    route: Mapping[str, str],
    body: bytes,
) -> tuple[str, Any]:
    """The `http` value of a request."""
    return (
        "http",
        {
            "method": Datum(method, "string"),
            "url": Datum(url, "string"),
            "headers": {name: Datum(text, "string") for name, text in headers.items()},
            "query": {name: Datum(text, "string") for name, text in query.items()},
            "params": {name: Datum(text, "string") for name, text in route.items()},
            "body": Datum(body, "bytes"),
        },
    )


def _datum(pair: tuple[str, Any]) -> Datum:
    kind, value = pair
    return Datum(value, kind)

"""Runs azure-batch 14.2.0 for a test: reads one call per line, writes one answer per line, both JSON.

A call is {"endpoint": ..., "call": "job.add", "arguments": [...], "options": {...}}. An argument that is an object with
a "model", such as {"model": "JobAddParameter", "id": "j"}, becomes that model of the SDK. The answer is an object with
"result", models as Batch would send them, or with "error": status, code, message. Command line: account name and key.

Only what this file imports may be installed where it runs: it shares no code with the tests.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from typing import Any

_batch: Any = importlib.import_module("azure.batch")
_auth: Any = importlib.import_module("azure.batch.batch_auth")
_serialization: Any = importlib.import_module("msrest.serialization")


def main() -> None:
    credentials = _auth.SharedKeyCredentials(*sys.argv[1:])
    for line in sys.stdin:
        request = json.loads(line)
        with _batch.BatchServiceClient(credentials, request["endpoint"]) as client:
            client.config.retry_policy.policy.total = 0
            sys.stdout.write(json.dumps(_answer(client, request)) + "\n")
            sys.stdout.flush()


def _answer(client: Any, request: dict[str, Any]) -> dict[str, Any]:
    group, method = request["call"].split(".")
    call = getattr(getattr(client, group), method)
    arguments = [_value(argument) for argument in request["arguments"]]
    options = {name: _value(option) for name, option in request["options"].items()}
    try:
        return {"result": _plain(call(*arguments, **options))}
    except _batch.models.BatchErrorException as refused:
        error = refused.error
        body = {"code": error.code, "message": error.message.value} if error.code else {}
        return {"error": {"status": refused.response.status_code, **body}}


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return [_value(entry) for entry in value]
    if isinstance(value, dict) and "model" in value:
        properties = {name: _value(entry) for name, entry in value.items() if name != "model"}
        return getattr(_batch.models, value["model"])(**properties)
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, _serialization.Model):
        return value.serialize(keep_readonly=True)
    if isinstance(value, Iterator):
        parts = list(value)
        if parts and all(isinstance(part, bytes) for part in parts):
            return b"".join(parts).decode()
        return [_plain(part) for part in parts]
    return value


if __name__ == "__main__":
    main()

"""Runs in the clean environment, in the unpacked package: does with the app what a functions host does.

    index    prints the functions with their triggers, where modules came from, and what is installed
    health   prints the answer of the health function
    serve    gives the queues' messages to their functions and lets the timer tick, until stdin is closed

Only packages of `requirements.txt` can be imported here.
"""

from __future__ import annotations

import json
import os
import re
import select
import sys
from datetime import datetime
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path.cwd()))  # where Azure's Python worker looks for the app

import azure.functions as func
from azure.functions.meta import Datum
from azure.functions.queue import QueueMessageInConverter
from azure.functions.timer import TimerRequestConverter
from azure.storage.queue import QueueClient, QueueMessage, QueueServiceClient

from function_app import app

FUNCTIONS = {str(function.get_function_name()): function for function in app.get_functions()}


def index() -> None:
    """All on stdout as one JSON object."""
    paths = {str(path) for module in list(sys.modules.values()) if (path := getattr(module, "__file__", None))}
    report = {
        "triggers": {name: _trigger(name) for name in FUNCTIONS},
        "files": sorted(paths),
        "installed": sorted(one.name.lower() for one in distributions()),
        "paths": sys.path,
    }
    print(json.dumps(report, default=str))  # noqa: T201


def health() -> None:
    """Status and body on stdout as one JSON object."""
    answer = _called("health", func.HttpRequest(method="GET", url="/api/health", body=b""))
    print(json.dumps({"status": answer.status_code, "body": json.loads(answer.get_body())}))  # noqa: T201


def serve() -> None:
    """A functions host at its simplest: one message at a time, and what fails ends it all."""
    connection = os.environ["AzureWebJobsStorage"]  # noqa: SIM112  (Azure Functions' own name)
    with QueueServiceClient.from_connection_string(connection) as account:
        queues = {
            name: account.get_queue_client(_resolved(_trigger(name)["queueName"]))
            for name in FUNCTIONS
            if _trigger(name)["type"] == "queueTrigger"
        }
        while not select.select([sys.stdin], [], [], 0.2)[0]:
            for name, queue in queues.items():
                for message in queue.receive_messages(max_messages=1, visibility_timeout=60):
                    _give(name, queue, message)
            _called("watch", TimerRequestConverter.decode(Datum("{}", "json"), trigger_metadata=None))


def _give(name: str, queue: QueueClient, message: QueueMessage) -> None:
    metadata = {"Id": Datum(message.id, "string"), "InsertionTime": Datum(_json_time(message.inserted_on), "json")}
    decoded = QueueMessageInConverter.decode(Datum(message.content, "string"), trigger_metadata=metadata)
    _called(name, decoded)
    queue.delete_message(message)


def _called(name: str, argument: object) -> Any:
    return FUNCTIONS[name].get_user_function()(argument)


def _trigger(name: str) -> dict[str, Any]:
    trigger = FUNCTIONS[name].get_trigger()
    assert trigger is not None
    described: dict[str, Any] = trigger.get_dict_repr()
    return described


def _resolved(text: str) -> str:
    return re.sub(r"%(\w+)%", lambda found: os.environ[found[1]], text)


def _json_time(at: datetime | None) -> str:
    return json.dumps(at.isoformat() if at else None)


if __name__ == "__main__":
    {"index": index, "health": health, "serve": serve}[sys.argv[1]]()

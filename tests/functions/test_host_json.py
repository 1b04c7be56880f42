"""What host.json says to the host, and where the code relies on it."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.app import FUNCTION_TIMEOUT


@pytest.fixture(scope="module")
def host_json(app_folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((app_folder / "host.json").read_text(encoding="utf-8"))
    return content


def span(text: str) -> timedelta:
    hours, minutes, seconds = (int(part) for part in text.split(":"))
    return timedelta(hours=hours, minutes=minutes, seconds=seconds)


def test_messages_are_plain_text_as_haste_sends_them(host_json: dict[str, Any]) -> None:
    assert host_json["extensions"]["queues"]["messageEncoding"] == "none"


def test_batches_are_set_and_one_host_is_not_flooded(host_json: dict[str, Any]) -> None:
    queues = host_json["extensions"]["queues"]
    assert 1 <= queues["batchSize"] <= 32
    assert 0 <= queues["newBatchThreshold"] <= queues["batchSize"]


def test_a_failed_message_waits_before_it_comes_again(host_json: dict[str, Any]) -> None:
    queues = host_json["extensions"]["queues"]
    assert span(queues["visibilityTimeout"]) >= timedelta(seconds=30)
    assert queues["maxDequeueCount"] == 5


def test_no_log_line_is_left_out_of_the_telemetry(host_json: dict[str, Any]) -> None:
    """Alerts count them; other telemetry may be sampled."""
    sampling = host_json["logging"]["applicationInsights"]["samplingSettings"]
    assert set(sampling["excludedTypes"].split(";")) == {"Trace", "Exception"}


def test_bundle_and_version(host_json: dict[str, Any]) -> None:
    assert host_json["version"] == "2.0"
    assert host_json["extensionBundle"] == {
        "id": "Microsoft.Azure.Functions.ExtensionBundle",
        "version": "[4.*, 5.0.0)",
    }


def test_a_function_may_take_minutes_not_hours_and_the_code_knows_how_many(host_json: dict[str, Any]) -> None:
    timeout = span(host_json["functionTimeout"])
    assert timedelta(minutes=1) <= timeout <= timedelta(minutes=30)
    assert timeout == FUNCTION_TIMEOUT

"""host.json values are refused as in Microsoft's options, overridden by settings, and have the same defaults."""

from pathlib import Path
from typing import Any

import pytest

from local.functions_host.faults import HostFaults
from local.functions_host.host_json import HostOptions, parse_host_json, read_host_json
from local.functions_host.settings import Settings
from tests.functions_host.recordings import read_lines

ROWS = read_lines("queue-options.jsonl")


def parse(
    document: object, settings: dict[str, str] | None = None, *, processors: int = 2, development: bool = False
) -> HostOptions:
    return parse_host_json(document, Settings(settings or {}), processors=processors, development=development)


def queues(**values: object) -> dict[str, object]:
    return {"version": "2.0", "extensions": {"queues": values}}


@pytest.mark.parametrize("row", ROWS[:-1], ids=lambda row: f"{row['option']}={row['value']}")
@pytest.mark.parametrize("through", ["host.json", "setting"])
def test_recorded_values(row: dict[str, Any], through: str) -> None:
    option, value = row["option"], row["value"]
    document, settings = queues(), {f"AzureFunctionsJobHost__extensions__queues__{option}": value}
    if through == "host.json":
        number = value.lstrip("-").isdigit()
        document, settings = queues(**{option: int(value) if number else value}), {}
    if row["ok"]:
        parse(document, settings)
        return
    with pytest.raises(HostFaults, match=option):
        parse(document, settings)


def test_recorded_defaults() -> None:
    defaults = ROWS[-1]["defaults"]
    options = parse({"version": "2.0"}, processors=defaults["processors"]).queues
    assert options.batch_size == defaults["BatchSize"]
    assert options.new_batch_threshold == defaults["NewBatchThreshold"]
    assert options.max_dequeue_count == defaults["MaxDequeueCount"]
    assert options.visibility_timeout_seconds == 0
    assert options.max_polling_seconds == 60
    assert options.base64 is True


def test_development_polls_every_two_seconds_unless_told_otherwise() -> None:
    assert parse({"version": "2.0"}, development=True).queues.max_polling_seconds == 2
    assert parse(queues(maxPollingInterval="00:00:30"), development=True).queues.max_polling_seconds == 30


def test_new_batch_threshold_follows_the_batch_size() -> None:
    assert parse(queues(batchSize=5), processors=4).queues.new_batch_threshold == 8


def test_settings_win_and_names_ignore_case() -> None:
    settings = {"AzureFunctionsJobHost:Extensions:Queues:BatchSize": "7"}
    assert parse({"version": "2.0", "Extensions": {"Queues": {"batchsize": 3}}}).queues.batch_size == 3
    assert parse(queues(batchSize=3), settings).queues.batch_size == 7


@pytest.mark.parametrize(
    ("value", "seconds"), [(None, 1800.0), ("00:05:00", 300.0), ("-1", None), (-1, None), ("1.00:00:00", 86_400.0)]
)
def test_function_timeouts(value: object, seconds: float | None) -> None:
    assert parse({"version": "2.0", "functionTimeout": value}).function_timeout_seconds == seconds


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ([], "JSON object"),
        ({}, "version"),
        ({"version": "1.0"}, "version"),
        (queues(batchSize="many"), "batchSize"),
        (queues(batchSize=True), "batchSize"),
        (queues(batchSize=2.5), "batchSize"),
        (queues(visibilityTimeout="soon"), "visibilityTimeout"),
        (queues(messageEncoding="utf-16"), "messageEncoding"),
        ({"version": "2.0", "functionTimeout": "00:00:00"}, "functionTimeout"),
    ],
)
def test_other_refusals_name_the_value(document: object, named: str) -> None:
    with pytest.raises(HostFaults, match=named):
        parse(document)


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(HostFaults) as refusal:
        parse({"extensions": {"queues": {"batchSize": 0, "maxDequeueCount": 0}}})
    assert len(refusal.value.faults) == 3


@pytest.mark.parametrize(("content", "named"), [(None, "cannot be read"), ("{", "no valid JSON")])
def test_unreadable_files(content: str | None, named: str, tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(HostFaults, match=named):
        read_host_json(path, Settings({}), processors=1)

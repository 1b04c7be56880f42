"""The world file."""

import json
from pathlib import Path
from typing import Any

import pytest

from local.batch import World, WorldConfig
from local.batch.config import WorldFileError
from tests.batch_emulator.support import POOL, make_client, make_job, make_task


def test_a_pool_of_the_file_is_as_the_file_says() -> None:
    pool = {
        "id": POOL,
        "vmSize": "standard_nc6s_v3",
        "taskSlotsPerNode": 2,
        "targetDedicatedNodes": 1,
        "metadata": [{"name": "class", "value": "gpu"}],
        "start_seconds": 10,
    }
    world = World.from_json({"account": {"name": "acct"}, "pools": [pool]})

    shown = make_client(world).get_pool(POOL)

    assert (shown.vm_size, shown.task_slots_per_node, shown.target_dedicated_nodes) == ("standard_nc6s_v3", 2, 1)
    assert shown.metadata and shown.metadata[0].value == "gpu"
    assert shown.allocation_state == "steady"
    assert world.config.account.name == "acct"


@pytest.mark.parametrize(
    ("world", "name"),
    [
        ({"colour": 1}, "colour"),
        ({"timings": {"colour": 1}}, "colour"),
        ({"pools": [{"id": "p", "colour": 1}]}, "colour"),
        ({"pools": [{"vmSize": "x"}]}, "id"),
        ({"pools": [{"id": "p", "autoscale": {"bucket": "cheap"}}]}, "cheap"),
        ({"quotas": 5}, "quotas"),
        ({"account": {"key": "no key!"}}, "base64"),
        ({"account": {"name": ""}}, "name"),
    ],
)
def test_what_the_file_may_not_say_is_named(world: dict[str, Any], name: str) -> None:
    with pytest.raises(WorldFileError, match=name):
        WorldConfig.from_json(world)


def test_a_file_that_is_no_json(tmp_path: Path) -> None:
    path = tmp_path / "world.json"
    path.write_text("pools: []")

    with pytest.raises(WorldFileError, match=r"world\.json"):
        WorldConfig.from_file(path)


@pytest.mark.parametrize("name", ["world.yaml", "world.yml"])
def test_a_yaml_file_says_the_same_as_json(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(
        """
        speed: 60
        pools:
          - id: gpu
            vmSize: standard_nc6s_v3
            autoscale:
              formula: |
                // as many as there are tasks
                $TargetLowPriorityNodes = min(4, $PendingTasks.GetSample(1));
        images: {"example.azurecr.io/training:2.0.0": folder}
        events:
          - at 10m preempt node 0 of gpu for 5m
          - {from: 1h, to: 1h5m, fault: {operation: create_task, code: ServerBusy}}
        """
    )

    read = WorldConfig.from_file(path)

    formula = "// as many as there are tasks\n$TargetLowPriorityNodes = min(4, $PendingTasks.GetSample(1));\n"
    fault = {"operation": "create_task", "code": "ServerBusy"}
    assert read == WorldConfig.from_json(
        {
            "speed": 60,
            "pools": [{"id": "gpu", "vmSize": "standard_nc6s_v3", "autoscale": {"formula": formula}}],
            "images": {"example.azurecr.io/training:2.0.0": "folder"},
            "events": ["at 10m preempt node 0 of gpu for 5m", {"from": "1h", "to": "1h5m", "fault": fault}],
        }
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("pools: [", "world.yaml is not YAML"),
        ("!!python/object/apply:os.getcwd []", "world.yaml is not YAML"),
        ("task_environment: {DAY: 2026-11-30}", "date is not JSON"),
        ("", "not an object"),
        ("colour: 1", "colour"),
    ],
)
def test_a_yaml_file_that_is_no_world(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "world.yaml"
    path.write_text(text)

    with pytest.raises(WorldFileError, match=reason):
        WorldConfig.from_file(path)


def test_the_event_log_is_written_as_json_lines(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "events.jsonl"
    world = World.from_json({"event_log": str(log), "pools": [{"id": POOL, "targetDedicatedNodes": 1}]})
    client = make_client(world)
    make_job(client)
    make_task(client)

    written = [json.loads(line) for line in log.read_text().splitlines()]

    assert written == world.events.entries
    assert [entry["seq"] for entry in written] == list(range(1, len(written) + 1))
    assert {"task_created", "job_state", "node_state", "request"} <= {entry["event"] for entry in written}

"""What must hold for every prediction, whatever its parameters; each function raises AssertionError otherwise."""

from __future__ import annotations

import re
from datetime import timedelta

from shared.settings.load import setting_names
from tests.infra.scripted_loads import ScriptedPool
from tests.infra.snapshots import Json, app_settings, pools, resources

PULL = "7f951dda-4ed3-4680-a7ca-43fe172d538d"
BLOB_DATA_OWNER = "b7e6dc6d-f1e8-4753-8033-0f276bb0955b"
QUEUE_DATA_CONTRIBUTOR = "974c5e8b-45b9-4653-ba55-5f855dd0fb88"
BLOB_DELEGATOR = "db58b8e5-c6ad-4a2a-8342-4190687cbf4a"
NETWORK_CONTRIBUTOR = "4d97b98b-1d4f-4787-a291-c67834d212e7"
BATCH_JOB_SUBMITTER = "48e5e92e-a480-4e71-aa9c-2778f4c13781"
BATCH_DATA_CONTRIBUTOR = "6aaa78f1-f7de-44ca-8722-c64a23943cae"

#: Images and sizes that Azure Batch has announced the end of.
_RETIRED_AGENTS = re.compile(r"batch\.node\.(ubuntu (1\d|20|22)\.|centos|debian 1?\d$|el 7)")
_RETIRED_SIZES = re.compile(r"standard_(nc\d+r?s_v[123]|nc\d+r?|hb120\w*_v2|hc44\w*|np\d+\w*|ds?\d+(_v2)?)", re.I)
_OLDEST_API = "2025-06-01"


def nothing_retired(snapshot: Json) -> None:
    """Image, node agent, size and API version of every pool stay with us."""
    for name, pool in pools(snapshot).items():
        machine = pool["properties"]["deploymentConfiguration"]["virtualMachineConfiguration"]
        agent, sku = machine["nodeAgentSkuId"], machine["imageReference"]["sku"]
        assert not _RETIRED_AGENTS.match(agent), f"{name}: {agent} is retired"
        assert re.sub(r"\D", "", agent.split()[-1]) in sku, f"{name}: {agent} does not belong to {sku}"
        assert not _RETIRED_SIZES.fullmatch(pool["properties"]["vmSize"]), f"{name}: its size is retired"
        assert pool["apiVersion"] >= _OLDEST_API


def roles(snapshot: Json) -> set[tuple[str, str]]:
    """(type of the scope, role id) of every assignment."""
    found = set()
    for assignment in resources(snapshot, "Microsoft.Authorization/roleAssignments"):
        scope = re.search(r"(\w+\.\w+/\w+|subnets)/[\w-]+('|/providers/Microsoft\.Auth)", assignment["id"])
        assert scope, assignment["id"]
        role = assignment["properties"]["roleDefinitionId"].rpartition("/")[2]
        found.add((scope[1].rpartition("/")[2], role))
    return found


def roles_of_an_app(snapshot: Json, *, shares_pools: bool, batch_role: str | None) -> None:
    """Exactly what the mode needs, no more."""
    wanted = {("storageAccounts", BLOB_DATA_OWNER), ("storageAccounts", QUEUE_DATA_CONTRIBUTOR)}
    if shares_pools:
        wanted.add(("storageAccounts", BLOB_DELEGATOR))
    if batch_role:
        wanted.add(("batchAccounts", batch_role))
    assert roles(snapshot) == wanted


def every_setting(snapshot: Json) -> None:
    """The app has every setting of the worker. The connection string of the triggers is by identity instead."""
    assert set(setting_names()) - {"AzureWebJobsStorage"} - set(app_settings(snapshot)) == set()


def formula_scales(formula: str, bucket: str, *, slots: int, minimum: int, maximum: int, minutes: int) -> None:
    """Every promise of the formula, on scripted loads."""
    interval = timedelta(minutes=minutes)

    def pool() -> ScriptedPool:
        return ScriptedPool(formula, bucket, interval)

    assert pool().after(interval, samples=False) == minimum, "without samples the target stays, but within bounds"
    one = pool()
    assert one.after(interval, pending=1) == max(1, minimum), "from zero for one task"
    assert one.after(interval, pending=1) == max(1, minimum), "a running task keeps its node"
    assert one.after(2 * interval, pending=0) == minimum, "back when idle"
    for tasks in range(1, 3 * slots + 2):
        assert pool().after(interval, pending=tasks) == max(minimum, min(maximum, -(-tasks // slots))), "rounded up"
    assert pool().after(interval, pending=1000) == maximum
    burst = pool()
    burst.after(interval - timedelta(minutes=2), pending=0)
    assert burst.after(timedelta(minutes=2), pending=maximum * slots) == maximum, "new tasks count at once and in full"
    gap = pool()
    gap.after(2 * interval - timedelta(minutes=3), pending=1)
    assert gap.after(timedelta(minutes=3), pending=0) == max(1, minimum), "a node is kept for one more look"
    busy = pool()
    busy.after(interval, pending=slots)
    assert busy.after(interval, pending=slots, preempted=1) == max(minimum, min(maximum, 2)), (
        "a preempted node is replaced"
    )
    assert busy.after(interval, pending=slots, preempted=50) == maximum
    assert busy.after(2 * interval, pending=0, preempted=1) == minimum, "no replacement when there is nothing to do"
    silent = pool()
    silent.after(interval, pending=2 * slots)
    before = silent.target
    assert silent.after(2 * interval, samples=False) == before, "unknown load changes nothing"

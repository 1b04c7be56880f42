"""What the templates take: HASTE's names for the environment, neutral defaults, and no nonsense."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from infra import check
from infra.compiler import find_compiler
from tests.infra.snapshots import PROJECT, Json, load

#: HASTE's variable -> parameter and default; None = must be set.
HASTE = {
    "HASTE_RESOURCE_PREFIX": ("sharedPrefix", "haste"),
    "HASTE_SHARED_GROUP": ("sharedGroup", "dev"),
    "HASTE_SHARED_NODE_TYPE": ("sharedNodeType", "LowPriority"),
    "HASTE_SHARED_H100_SCALE_MODE": ("h100ScaleMode", "Autoscale"),
    "HASTE_SHARED_H100_MIN_NODES": ("h100MinNodes", "0"),
    "HASTE_SHARED_T4_MIN_NODES": ("t4MinNodes", "0"),
    "HASTE_SHARED_T4_MAX_NODES": ("t4MaxNodes", "2"),
    "HASTE_SHARED_BATCH_SUBNET_ID": ("sharedBatchSubnetId", ""),
    "HASTE_EXISTING_BATCH_ACCOUNT": ("batchAccountName", None),
    "HASTE_SHARED_ACR_NAME": ("acrName", None),
    "HASTE_SHARED_UMI_ID": ("umiResourceId", None),
}
COMPILED = json.loads((PROJECT / "infra/shared-pools.json").read_text("utf-8"))
COMPILER = find_compiler(os.environ)
READ = re.compile(r"^param (\w+) = \w*\(?readEnvironmentVariable\('(\w+)'(?:, '([^']*)')?\)", re.MULTILINE)


def _variables(file: str) -> dict[str, tuple[str, str | None]]:
    found = READ.findall((PROJECT / f"infra/{file}.bicepparam").read_text("utf-8"))
    text = (PROJECT / f"infra/{file}.bicepparam").read_text("utf-8")
    return {
        variable: (parameter, default if f"'{variable}', '" in text else None) for parameter, variable, default in found
    }


def test_shared_pools_read_hastes_variables() -> None:
    variables = _variables("shared-pools")
    assert {name: value for name, value in variables.items() if name in HASTE} == HASTE
    ours = {"HASTE_SHARED_H100_MAX_NODES", "HASTE_SHARED_H100_FIXED_NODES", "HASTE_TRAINING_IMAGE"}
    assert ours | {"HASTE_IMAGERYPREP_IMAGE", "HASTE_SHARED_NODE_IMAGE"} <= set(variables)


#: A value of each type that is no default, as the environment holds it and as the template gets it.
VALUES = {
    "string": ("value-7", "value-7"),
    "int": ("7", 7),
    "bool": ("true", True),
}
ONE_OF = {"HASTE_SHARED_NODE_TYPE": "Dedicated", "HASTE_SHARED_H100_SCALE_MODE": "Fixed"}
AS_JSON = {
    "HASTE_WORKER_SETTINGS": ('{"WORKER_TENANT": "b"}', {"WORKER_TENANT": "b"}),
    "HASTE_WORKER_FUNCTIONS_OFF": ('["training"]', ["training"]),
    "HASTE_ALERT_ACTION_GROUP_IDS": ('["group"]', ["group"]),
}


@pytest.mark.parametrize("file", ["shared-pools", "main", "platform"])
def test_each_variable_reaches_its_parameter(file: str) -> None:
    if COMPILER is None:
        pytest.skip("no Bicep compiler; that the files name variables and parameters is tested beside this")
    template = (PROJECT / f"infra/{file}.bicep").read_text("utf-8")
    types = dict(re.findall(r"^param (\w+) (\w+)", template, re.MULTILINE))
    environment, wanted = {}, {}
    for variable, (parameter, default) in _variables(file).items():
        value = ONE_OF.get(variable)
        given, taken = (value, value) if value else AS_JSON.get(variable) or VALUES[types[parameter]]
        if types.get(parameter) == "bool" and default == "true":
            given, taken = "false", False
        environment[variable], wanted[parameter] = str(given), taken
    answer = COMPILER.build_parameters(PROJECT / f"infra/{file}.bicepparam", environment)
    assert answer.complaints == ""
    parameters = json.loads(json.loads(answer.output)["parametersJson"])["parameters"]
    assert {name: one["value"] for name, one in parameters.items()} == wanted
    assert len(wanted) == (PROJECT / f"infra/{file}.bicepparam").read_text("utf-8").count("\nparam ")


@pytest.mark.parametrize("file", ["shared-pools", "main", "platform"])
def test_what_must_be_set_is_asked_for(file: str) -> None:
    must = {variable for variable, (_parameter, default) in _variables(file).items() if default is None}
    assert must <= check.REQUIRED.keys()
    if COMPILER:
        answer = COMPILER.build_parameters(PROJECT / f"infra/{file}.bicepparam", {})
        assert {name for name in check.REQUIRED if f'"{name}"' in answer.complaints} == must


@pytest.mark.parametrize("file", ["shared-pools", "main", "platform"])
def test_parameter_files_set_nothing_that_is_not_there(file: str) -> None:
    template = (PROJECT / f"infra/{file}.bicep").read_text("utf-8")
    set_here = set(re.findall(r"^param (\w+) =", (PROJECT / f"infra/{file}.bicepparam").read_text("utf-8"), re.M))
    there = dict(re.findall(r"^param (\w+) [^=\n]+?(=|$)", template, re.MULTILINE))
    assert set_here <= set(there)
    assert {name for name, has_default in there.items() if not has_default} <= set_here


@pytest.mark.parametrize("file", ["shared-pools", "main", "platform"])
def test_defaults_are_nobodys(file: str) -> None:
    text = "".join((PROJECT / f"infra/{file}{end}").read_text("utf-8") for end in (".bicep", ".bicepparam"))
    guids = set(re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", text))
    public = {"ddbf3205-c6bd-46ae-8127-60eb93363864"}  # Microsoft's application id of Azure Batch
    roles = set(re.findall(r"^var \w+ = '([0-9a-f-]{36})'$", text, re.MULTILINE))
    assert guids - roles - public == set()
    assert "/subscriptions/" not in text


def test_the_compiled_template_refuses_nonsense() -> None:
    parameters = COMPILED["parameters"]
    assert parameters["sharedNodeType"]["allowedValues"] == ["Dedicated", "LowPriority"]
    assert parameters["h100ScaleMode"]["allowedValues"] == ["Autoscale", "Fixed"]
    assert all(parameters[name]["minValue"] == 0 for name in ("h100MinNodes", "t4MinNodes", "h100FixedNodeCount"))
    assert all(parameters[name]["minValue"] == 1 for name in ("h100MaxNodes", "t4MaxNodes"))
    assert parameters["evaluationIntervalMinutes"]["minValue"] == 5
    assert parameters["batchAccountName"]["minLength"] == 3
    assert "fail(" in json.dumps(COMPILED)


@pytest.mark.parametrize(
    ("case", "before", "after", "said"),
    [
        ("pools-autoscale-spot", "'LowPriority'", "'Spot'", "BCP033"),
        ("pools-autoscale-spot", "'examplebatch'", "''", "BCP333"),
        ("pools-autoscale-spot", "h100MaxNodes = 4", "h100MaxNodes = 0", "BCP328"),
        ("pools-autoscale-spot", "h100MaxNodes = 4", "h100MaxNodes = 4\nparam h100MinNodes = 5", "minNodes (5)"),
        ("pools-autoscale-spot", "param acrName", "param acr", "BCP258"),
        ("pool-four-slots", "taskSlotsPerNode = 4", "taskSlotsPerNode = 257", "BCP327"),
        (
            "main-managed-pools",
            "param poolIdentityId = '",
            "param titilerPublicEndpoint = '",
            "poolIdentityId is needed",
        ),
        ("main-shared", "WORKER_TENANT:", "WORKER_TENNANT:", "not one to set here: WORKER_TENNANT"),
        ("main-shared", "WORKER_TENANT:", "AZURE_BATCH_USE_SAS:", "not one to set here: AZURE_BATCH_USE_SAS"),
        ("main-shared", "WORKER_TENANT:", "FUNCTIONS_WORKER_RUNTIME:", "to set here: FUNCTIONS_WORKER_RUNTIME"),
        ("main-shared", "'20'", "20", "BCP036"),
        ("main-shared", "worker-1'", "worker--1'", "workerName must not have two hyphens in a row"),
        (
            "main-from-nothing",
            "param createFunctionNetwork = true\n",
            "",
            "createStorageAccount needs both subnets or none",
        ),
        (
            "main-from-nothing",
            "param sharedBatchSubnetId = '",
            "param functionSubnetId = '",
            "HASTE_SHARED_BATCH_SUBNET_ID",
        ),
        ("main-legacy", "'training', ", "'treining', ", "BCP034"),
        (
            "platform-from-nothing",
            "param batchServicePrincipalId = '",
            "param existingAcrName = '",
            "createBatchNetwork",
        ),
    ],
)
def test_faulty_values_are_refused_before_anything_is_deployed(
    case: str, before: str, after: str, said: str, tmp_path: Path
) -> None:
    source = (PROJECT / f"infra/snapshots/{case}.bicepparam").read_text("utf-8")
    assert before in source
    if COMPILER is None:
        pytest.skip("no Bicep compiler; what the committed template refuses is tested above")
    faulty = _copied(tmp_path, case)
    faulty.write_text(source.replace(before, after), "utf-8")
    assert said in COMPILER.write_snapshot(faulty).complaints


def test_a_storage_account_that_was_made_here_is_an_existing_one_afterwards(tmp_path: Path) -> None:
    """As docs/deployment.md says to do: then the app stays as it is, and the account's rules are left alone."""
    if COMPILER is None:
        pytest.skip("no Bicep compiler")
    later = _copied(tmp_path, "main-from-nothing")
    source = later.read_text("utf-8")
    later.write_text(source.replace("createStorageAccount = true", "storageResourceGroup = 'example-rg'"), "utf-8")
    assert COMPILER.write_snapshot(later).complaints == ""
    first, then = load("main-from-nothing"), json.loads(check.snapshot_of(later).read_text("utf-8"))
    assert "Microsoft.Storage/storageAccounts" in {one["type"] for one in first["predictedResources"]}
    assert then["predictedResources"] == [one for one in first["predictedResources"] if not _of_the_account(one)]
    assert then["outputs"] == first["outputs"]


def test_a_network_that_was_made_here_is_an_existing_one_afterwards(tmp_path: Path) -> None:
    """As docs/deployment.md says to do: then the app stays in its subnet, and the network is left alone."""
    if COMPILER is None:
        pytest.skip("no Bicep compiler")
    later = _copied(tmp_path, "main-from-nothing")
    source, first = later.read_text("utf-8"), load("main-from-nothing")
    subnet = f"functionSubnetId = '{first['outputs']['functionSubnetId']}'"
    later.write_text(source.replace("createFunctionNetwork = true", subnet), "utf-8")
    assert COMPILER.write_snapshot(later).complaints == ""
    then = json.loads(check.snapshot_of(later).read_text("utf-8"))
    kept = [one for one in first["predictedResources"] if one["type"] != "Microsoft.Network/virtualNetworks"]
    assert then["predictedResources"] == kept != first["predictedResources"]
    assert then["outputs"] == first["outputs"]


def _copied(folder: Path, case: str) -> Path:
    """The parameter file of a case, among all that it needs, to be changed."""
    shutil.copytree(PROJECT / "infra", folder / "infra")
    shutil.copy(PROJECT / "bicepconfig.json", folder)
    return folder / f"infra/snapshots/{case}.bicepparam"


def _of_the_account(resource: Json) -> bool:
    is_package = resource["name"].endswith("/app-package-example-worker")
    return resource["type"].startswith("Microsoft.Storage/") and not is_package

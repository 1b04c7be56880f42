"""Commands for Azure in the pages are not run here; what they name in this project exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from shared.kinds import Kind
from shared.settings.load import setting_names
from tests.docs.pages import PROJECT, code, name, pages

PAGE = PROJECT / "docs/deployment.md"
#: Commands and options as the Azure CLI's reference and that of Core Tools have them.
OPTIONS = {
    "az ad sp show": {"--id", "--query", "--output"},
    "az acr build": {"--registry", "--image", "--file"},
    "az acr import": {"--name", "--source", "--image"},
    "az batch account login": {"--name", "--resource-group"},
    "az batch account show": {"--resource-group", "--name", "--query", "--output"},
    "az batch job delete": {"--job-id"},
    "az batch job list": {"--filter", "--query", "--output"},
    "az batch job task-counts show": {"--job-id"},
    "az batch pool resize": {"--pool-id", "--target-low-priority-nodes", "--target-dedicated-nodes"},
    "az batch pool supported-images list": {"--query"},
    "az bicep install": set(),
    "az deployment group create": {"--resource-group", "--name", "--parameters"},
    "az deployment group what-if": {"--resource-group", "--parameters"},
    "az deployment group show": {"--resource-group", "--name", "--query"},
    "az functionapp list-flexconsumption-locations": set(),
    "az functionapp config appsettings set": {"--resource-group", "--name", "--settings"},
    "az functionapp deployment source config-zip": {"--resource-group", "--name", "--src", "--build-remote"},
    "az functionapp function keys list": {"--resource-group", "--name", "--function-name"},
    "az group create": {"--name", "--location"},
    "az login": set(),
    "az provider register": {"--namespace"},
    "az role assignment delete": {"--assignee", "--role", "--scope"},
    "az role assignment list": {"--assignee", "--all"},
    "az storage account network-rule add": {"--resource-group", "--account-name", "--subnet"},
    "az storage account network-rule list": {"--resource-group", "--account-name"},
    "az storage account show": {"--resource-group", "--name", "--query"},
    "func azure functionapp fetch-app-settings": set(),
    "func azure functionapp publish": {"--build"},
    "func start": set(),
}
#: Functions of HASTE's own queue app, the last three of newer versions.
HASTE_FUNCTIONS = {
    "GetProcessImageLayerQueueTrigger",
    "ImagePoisonQueueTrigger",
    "GetCreateModelRunQueueTrigger",
    "GetRunInferenceQueueTrigger",
    "TrainingPoisonQueueTrigger",
    "InferencePoisonQueueTrigger",
    "ReconcileJobQueues",
}
OF_THE_HOST = {"AzureFunctionsWebHost__hostid"}
#: Variables of that form that no template reads.
ELSEWHERE = {"HASTE_LOCAL_FAIL", "HASTE_WORKER_WALKS"}

COMMANDS = sorted({piece for page in pages() for piece in code(page) if re.match(r"(az|func) [a-z]", piece)})
TEMPLATES = {path.name: path.read_text(encoding="utf-8") for path in (PROJECT / "infra").glob("*.bicep*")}


def _words(command: str) -> list[str]:
    """Placeholders may hold blanks and apostrophes."""
    return shlex.split(re.sub(r"<[^>]*>", "PLACEHOLDER", command))


def _values(command: str, option: str) -> list[str]:
    """What stands behind an option, each time it is given."""
    words = _words(command)
    found: list[str] = []
    for at, word in enumerate(words):
        if word == option:
            rest = words[at + 1 :]
            end = next((number for number, one in enumerate(rest) if one.startswith("--")), len(rest))
            found += rest[:end]
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_one_of_the_tools(command: str) -> None:
    words = _words(command)
    known = [one for one in OPTIONS if words[: len(one.split())] == one.split()]
    assert known, "a command that the reference has, and OPTIONS too?"
    options = {word for word in words if word.startswith("--")}
    assert options <= max((OPTIONS[one] for one in known), key=len)


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.startswith("az deployment group create")])
def test_a_template_takes_what_is_passed(command: str) -> None:
    file, *others = _values(command, "--parameters")
    assert file.startswith("infra/")
    values = TEMPLATES[file.removeprefix("infra/")]
    template = TEMPLATES[str(re.search(r"^using './([\w-]+\.bicep)'", values, re.MULTILINE)[1])]  # type: ignore[index]
    parameters = set(re.findall(r"^param (\w+)", template, re.MULTILINE))
    assert {one.partition("=")[0] for one in others} <= parameters
    must_be_set = set(re.findall(r"readEnvironmentVariable\('(\w+)'\)", values))
    shown = PAGE.read_text(encoding="utf-8").partition(command)[0]
    assert {one for one in must_be_set if f"export {one}=" not in shown} == set()


@pytest.mark.parametrize("page", pages(), ids=name)
def test_a_variable_is_read_by_a_template(page: Path) -> None:
    read = {one for text in TEMPLATES.values() for one in re.findall(r"readEnvironmentVariable\('(\w+)'", text)}
    named = set(re.findall(r"\bHASTE_[A-Z0-9_]*[A-Z0-9]\b", page.read_text(encoding="utf-8")))
    assert named - read - ELSEWHERE == set()


def _settings_shown() -> set[str]:
    of_commands = {one.partition("=")[0] for command in COMMANDS for one in _values(command, "--settings")}
    passed = re.findall(r"HASTE_WORKER_SETTINGS='(\{.*?\})'", PAGE.read_text(encoding="utf-8"))
    return of_commands | {key for text in passed for key in re.findall(r'"(\w+)":', text)}


def test_settings_that_are_set_exist() -> None:
    source = (PROJECT / "function_app.py").read_text(encoding="utf-8")
    functions = set(re.findall(r"^@app\.function_name\(\"(\w+)\"\)", source, re.MULTILINE)) | HASTE_FUNCTIONS
    flags = {f"AzureWebJobs.{function}.Disabled" for function in functions}
    shown = _settings_shown()
    assert "AzureWebJobs.watch.Disabled" in shown
    assert "TRAINING_BATCH_JOB_ID" in shown
    assert shown - flags - OF_THE_HOST - set(setting_names()) == set()


def test_alerts_are_those_of_the_template() -> None:
    template = (PROJECT / "infra/modules/alerts.bicep").read_text(encoding="utf-8")
    table = PAGE.read_text(encoding="utf-8").partition("### Alerts")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE) == re.findall(
        r"^    name: '([\w-]+)'$", template, re.MULTILINE
    )


def test_reasons_of_messages_from_poison_queues_are_the_workers() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("### Switching over")[2].partition("\n### ")[0]
    rows = [line.split(" | ")[1] for line in section.splitlines() if line.startswith("   | `")]
    said = [part for row in rows for reason in re.findall(r"`(.+?)`", row) for part in reason.split("; ")]
    source = (PROJECT / "shared/triggers/poison.py").read_text(encoding="utf-8")
    assert len(said) >= 15
    assert [part for part in said if part not in source] == []


def test_what_is_said_to_be_missing_is_missing() -> None:
    """Once the worker does these things, the page must not tell operators to do them."""
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert ("`ZIP_QUEUE_NAME` | stays" in text) == ("zip" not in {str(kind) for kind in Kind})

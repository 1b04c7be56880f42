"""The host refuses what Azure would refuse or silently not run, and names every fault."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.stack.environment import child_environment
from tests.functions_host.host_process import HostStarter

ACCOUNT = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=a2V5;QueueEndpoint=http://127.0.0.1:9/a"
BUNDLE = {"id": "Microsoft.Azure.Functions.ExtensionBundle", "version": "[4.*, 5.0.0)"}
HOST_JSON = {"version": "2.0", "extensionBundle": BUNDLE}
HEAD = "import azure.functions as func\napp = func.FunctionApp()\n"


@pytest.fixture
def starter(tmp_path: Path) -> Iterator[HostStarter]:
    with HostStarter(child_environment({"AzureWebJobsStorage": ACCOUNT}), tmp_path).running() as starter:
        yield starter


def refusal(
    starter: HostStarter, folder: Path, source: str, *arguments: str, host_json: object = None, **files: object
) -> list[str]:
    """Start a host that must refuse; returns its faults."""
    app = folder / "app"
    app.mkdir()
    (app / "function_app.py").write_text(source, encoding="utf-8")
    (app / "host.json").write_text(json.dumps(host_json or HOST_JSON), encoding="utf-8")
    for name, document in files.items():
        (app / name.replace("_", ".")).write_text(json.dumps(document), encoding="utf-8")
    host = starter.start(*arguments, app=app)
    assert host.exit_code() == 1
    (end,) = host.events("host.refused")
    faults = [str(event["fault"]) for event in host.events("host.fault")]
    assert end["faults"] == len(faults)
    return faults


def assert_names(faults: list[str], *named: tuple[str, ...]) -> None:
    """Each fault holds its words, in the order given."""
    assert len(faults) == len(named), faults
    for fault, words in zip(faults, named, strict=True):
        assert all(word in fault for word in words), (fault, words)


def test_all_faults_of_all_functions_are_listed(starter: HostStarter, tmp_path: Path) -> None:
    source = HEAD + (
        """
@app.queue_trigger(arg_name="msg", queue_name="q_bad", connection="")
def bad_name(msg: func.QueueMessage): ...

@app.queue_trigger(arg_name="msg", queue_name="%MISSING_QUEUE%", connection="")
def unresolved(msg: func.QueueMessage): ...

@app.queue_trigger(arg_name="msg", queue_name="jobs", connection="OtherStorage")
def unconnected(msg: func.QueueMessage): ...

@app.retry(strategy="fixed_delay", max_retry_count="3", delay_interval="00:00:01")
@app.queue_trigger(arg_name="msg", queue_name="jobs", connection="")
def retrying(msg: func.QueueMessage): ...

@app.timer_trigger(schedule="0 0 0 * * 7", arg_name="timer")
def bad_schedule(timer: func.TimerRequest): ...

@app.timer_trigger(schedule="0 0 0 31 2 *", arg_name="timer")
def never(timer: func.TimerRequest): ...

@app.blob_trigger(arg_name="blob", path="x/{name}", connection="")
def unsupported(blob: func.InputStream): ...

@app.queue_trigger(arg_name="msg", queue_name="fine", connection="")
@app.queue_output(arg_name="out", queue_name="bad.out", connection="")
def bad_output(msg: func.QueueMessage, out: func.Out[str]): ...
"""
    )
    faults = refusal(starter, tmp_path, source, "--only", "nobody")
    assert_names(
        faults,
        ("bad_name", "q_bad"),
        ("unresolved", "MISSING_QUEUE"),
        ("unconnected", "OtherStorage"),
        ("retrying", "retry"),
        ("bad_schedule", "0 0 0 * * 7"),
        ("never", "no date"),
        ("unsupported", "blobTrigger"),
        ("bad_output", "bad.out"),
        ("nobody", "no such function"),
    )


def test_no_functions(starter: HostStarter, tmp_path: Path) -> None:
    assert_names(refusal(starter, tmp_path, HEAD), ("no functions found",))


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("import a_module_that_is_not_there\n", "a_module_that_is_not_there"),
        (
            HEAD + '@app.queue_trigger(arg_name="msg", queue_name="jobs", connection="")\ndef fn(msg: int): ...\n',
            "msg",
        ),
    ],
)
def test_what_the_runtime_refuses(starter: HostStarter, tmp_path: Path, source: str, word: str) -> None:
    assert_names(refusal(starter, tmp_path, source), (word,))


def test_host_json_and_host_id_are_told_together_with_the_app(starter: HostStarter, tmp_path: Path) -> None:
    host_json = {"version": "2.0", "extensions": {"queues": {"batchSize": 33, "maxDequeueCount": 0}}}
    faults = refusal(starter, tmp_path, "import nothing_here\n", host_json=host_json)
    assert_names(faults, ("batchSize", "33"), ("maxDequeueCount", "0"), ("nothing_here",))


def test_queue_triggers_need_an_extension_bundle(starter: HostStarter, tmp_path: Path) -> None:
    source = HEAD + (
        '@app.queue_trigger(arg_name="msg", queue_name="jobs", connection="")\ndef fn(msg: func.QueueMessage): ...\n'
    )
    assert_names(refusal(starter, tmp_path, source, host_json={"version": "2.0"}), ("fn", "extensionBundle"))


def test_local_settings_that_the_tools_would_ignore(starter: HostStarter, tmp_path: Path) -> None:
    document = {"IsEncrypted": False, "Values": {"POOLS": {"a": 1}}}
    assert_names(refusal(starter, tmp_path, HEAD, local_settings_json=document), ("POOLS",))

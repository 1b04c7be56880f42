"""Plays the demo on a stack of its own, gathers the evidence, and judges it."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from azure.core.exceptions import AzureError

from local.demo import gather, summary
from local.demo.checks import Check, run_checks
from local.demo.deployed_pools import SNAPSHOT, demo_world, deployed_pools
from local.demo.emulator import Emulator
from local.demo.evidence import Evidence
from local.demo.neighbour import Neighbour
from local.demo.scenario import Scenario
from local.demo.storage import Storage
from local.demo.table import Screen, screen
from local.demo.user import User
from local.demo.watch import TroubleError, Watch
from local.producer import HasteApi, HasteApiError, QueueNames
from local.stack import Stack, StackError, StackOptions, running_stack
from local.stack.environment import no_proxy

TENANT = "tenanta"
_SETTINGS = {
    "WATCH_SCHEDULE": "*/2 * * * * *",
    "WORKER_LATE_SAVE": "PT3S",
    "WORKER_PROGRESS_EVERY": "PT2S",
}


@dataclass(frozen=True)
class DemoOptions:
    """`folder`: the run's files, the outputs and summary.json. `app_folder`: the Functions app.

    `task_seconds`: how long each task takes on top of its work. `step_seconds`: after that a step has taken too long.
    """

    folder: Path
    app_folder: Path
    task_seconds: float
    step_seconds: float


def run_demo(options: DemoOptions) -> dict[str, Any]:
    """The summary, as written to summary.json."""
    for part in ("run", "outputs"):
        shutil.rmtree(options.folder / part, ignore_errors=True)
    (options.folder / "summary.json").unlink(missing_ok=True)
    print("starting the local stack", flush=True)
    try:
        evidence = _play(options)
    except StackError as error:
        failed = Check("the local stack starts", False, str(error))
        result = {"ok": False, "jobs": [], "checks": [vars(failed)]}
    else:
        result = summary.summarize(evidence, run_checks(evidence))
    summary.write(result, options.folder / "summary.json")
    return result


def _play(options: DemoOptions) -> Evidence:
    pools = deployed_pools()
    stack_options = StackOptions(
        run_folder=options.folder / "run",
        app_folder=options.app_folder,
        tenants=(TENANT,),
        settings=_SETTINGS | pools.settings,
        world=demo_world(pools, options.task_seconds),
    )
    with running_stack(stack_options) as running, screen() as shown:
        stack = running.stack
        os.environ.update(stack.certificates.environment() | no_proxy(os.environ))  # the SDKs' clients look there
        shown.say(f"the local stack is up; its logs are in {stack.log_folder}")
        shown.say(f"its pools are those of {SNAPSHOT}, empty:")
        for pool_id, name in pools.short_names.items():
            shown.say(f"  {name} = {pool_id}")
        storage = Storage(stack.accounts[TENANT].connection_string)
        emulator = Emulator(stack.admin_url, stack.certificates.authority)
        command_lines = gather.CommandLines(stack.supervisor.mark)
        watch = Watch(storage, emulator, shown, command_lines.look, options.step_seconds, pools.short_names)
        neighbour = Neighbour(stack.batch)
        scenario = Scenario(User(_haste(stack)), neighbour, emulator, watch, pools, options.task_seconds)
        trouble = _played(scenario, shown)
        layers, models = watch.records("imageryprep"), watch.records("training")
        evidence = Evidence(
            tenant=TENANT,
            requests=tuple(watch.requests),
            layers=layers,
            model=models[0] if models else {},
            blob_names=storage.names(),
            events=gather.telling(emulator.events()),
            tasks=emulator.tasks(),
            texts=(
                *command_lines.texts(),
                *gather.task_texts(emulator.tasks()),
                *gather.record_texts(*layers, *models),
                *storage.task_logs(),
                *storage.worker_texts(),
            ),
            secrets=gather.secrets(stack),
            candidates=pools.candidates,
            trouble=trouble,
        )
        storage.download(options.folder / "outputs")
        shown.say(f"the outputs are in {options.folder / 'outputs'}")
        shown.say("stopping the local stack")
    logs = (*stack.log_folder.glob("*.log"), stack.event_log)
    return replace(evidence, texts=(*evidence.texts, *gather.file_texts(logs)))


def _played(scenario: Scenario, shown: Screen) -> str:
    """Why the story broke off; empty if it did not."""
    try:
        scenario.play()
    except (TroubleError, HasteApiError, AzureError, OSError) as trouble:
        shown.say(f"broken off: {trouble}")
        return str(trouble)
    return ""


def _haste(stack: Stack) -> HasteApi:
    settings = stack.settings(TENANT)
    return HasteApi.from_connection_string(
        settings["BLOB_CONNECTION_STRING"],
        container=settings["BLOB_CONTAINER"],
        queue_names=QueueNames.from_environment(settings),
    )

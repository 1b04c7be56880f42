"""A training that HASTE's own queue app has started, and left behind with its poll message."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from shared.batch.types import TaskBody
from tests.support.small_world import OUTPUT, TRAINING
from tests.support.story import Story

TASK = "trn-7e1a9c52-3d4b-4f80-b6a7-2c3d4e5f6a71"
JOB = "haste-demo-pool"


class Left(Story):
    """A training that HASTE's own app has started, and its poll message."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        account = self.world.account
        account.create_job(JOB, "h100", None, None)
        account.create_task(JOB, body(TASK))
        self.world.batch_world.tick()
        self.world.save_record(TRAINING, status="InProgress", taskId=TASK, jobStatus="InProgress")
        self.world.batch_world.advance(60)

    def poll(self, message_id: str = "p1", task: str = TASK) -> None:
        self.deliver(self.message(message_id, "InProgress", trainingJob={"jobId": JOB, "taskId": task}))


def body(task: str, output: str = OUTPUT) -> TaskBody:
    """A task whose results go to a container, as HASTE's own do."""
    destination = {"container": {"containerUrl": output, "path": "results"}}
    file = {"filePattern": "**/*", "destination": destination, "uploadOptions": {"uploadCondition": "taskcompletion"}}
    return TaskBody(task, "work", "image", "", (), (file,), {}, timedelta(hours=1), "pool")

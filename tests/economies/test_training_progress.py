"""A training with HASTE's own event files is followed to its last epoch, by one read of what is new at a look."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench.deployment import Deployment
from shared.batch.client import AzureBatch
from tests.support import event_samples
from tests.support.event_samples import FILES, LongFile
from tests.support.passing_waits import PassingWaits

READ = "Batch get_task_file"


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


class Training:
    """One training on a node of the emulator, and the bytes that the worker reads from there."""

    def __init__(self, patch: pytest.MonkeyPatch, max_epochs: int) -> None:
        self.deployment = Deployment([{"id": "h100", "targetLowPriorityNodes": 1, "start_seconds": 0}])
        self.entity = self.deployment.train(max_epochs=max_epochs)
        self.deployment.tick()
        ((self.job, self.task),) = self.deployment.runner.running()
        self.lengths: list[int] = []
        real = AzureBatch.read_task_file

        def noted(batch: AzureBatch, *arguments: Any) -> bytes | None:
            content = real(batch, *arguments)
            self.lengths.append(len(content or b""))
            return content

        patch.setattr(AzureBatch, "read_task_file", noted)

    @property
    def path(self) -> str:
        return f"wd/logs/model_{self.entity.entity_id}/version_0/events.out.tfevents.1.host.1.0"

    def look(self, content: bytes) -> list[int]:
        """A minute later, with this in the event file: the lengths of what was read."""
        self.deployment.runner.put_file(self.job, self.task, self.path, content)
        self.lengths.clear()
        self.deployment.tick(60)
        return list(self.lengths)

    @property
    def model(self) -> dict[str, Any]:
        """HASTE's record."""
        containers = self.deployment.storage.containers.values()
        name = f"model_{self.entity.entity_id}.json"
        (blob,) = [blob for blobs in containers for path, blob in blobs.items() if path.endswith(f"/{name}")]
        found = json.loads(blob.content)
        assert isinstance(found, dict)
        return found

    @property
    def logs(self) -> Any:
        return json.loads(self.model["trainingJob"]["logs"] or "[]")

    def upload(self, content: bytes) -> None:
        """What Batch does with the task's outputs when it has ended."""
        containers = self.deployment.storage.containers.values()
        (data,) = [
            blobs for blobs in containers if any(f"/model_{self.entity.entity_id}.json" in path for path in blobs)
        ]
        (record,) = [path for path in data if path.endswith(f"/model_{self.entity.entity_id}.json")]
        folder = f"{record.rpartition('/')[0]}/{self.task}"
        template = data[record]
        for name, blob in {self.path.removeprefix("wd/"): content, "checkpoint/last.ckpt": b"x"}.items():
            data[f"{folder}/{name}"] = type(template)(blob, '"0x1"', template.written_at)


def test_forty_epochs_of_haste_s_own_size_are_followed_to_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has 45 MiB in the end, of which a look reads what is new."""
    training = Training(monkeypatch, max_epochs=40)
    file = LongFile(training.deployment.clock.now().timestamp())
    for epoch in range(40):
        added = len(file.content) - 4 if epoch == 0 else 0
        added += len(file.add_epoch(minutes=2.0))
        assert training.look(file.content) == [added + 4]
        assert training.look(file.content) == [4]
        job = training.model["trainingJob"]
        assert (training.model["currentStep"], job["completedEpochs"]) == (epoch + 1, str(epoch))
        assert [one["epoch"] for one in training.logs] == list(range(epoch + 1))
        if 0 < epoch < 39:
            assert (job["timePerEpoch"], job["approxMinutesToComplete"]) == ("2.0", str(2.0 * (39 - epoch)))
    training.upload(file.content)
    training.deployment.runner.finish(training.job, training.task, 0)
    training.deployment.tick(60)
    training.deployment.tick(60)
    assert training.model["status"] == "Processed"
    assert len(training.logs) == 40


@pytest.mark.parametrize("name", FILES)
def test_haste_s_own_files_are_shown_as_tensorboard_reads_them(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """At the end of each record with a scalar, and in the middle of every picture."""
    training = Training(monkeypatch, max_epochs=5)
    content = event_samples.content(name)
    for start, end, _ in event_samples.records(name):
        length = (start + end) // 2 if end - start > 100_000 else end
        lengths = training.look(content[:length])
        assert len(lengths) == 1
        assert lengths[0] < 2 * 1024 * 1024
        assert training.logs == event_samples.epochs(event_samples.logged(name, length))


def test_a_new_process_never_shows_less_than_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(monkeypatch, max_epochs=40)
    file = LongFile(training.deployment.clock.now().timestamp())
    for _ in range(30):
        file.add_epoch()
        training.look(file.content)
    assert len(training.logs) == 30
    training.deployment.app = training.deployment.new_process()
    file.add_epoch()
    looks = 0
    while len(training.logs) == 30:
        lengths = training.look(file.content)
        looks += 1
        assert looks <= len(file.content) // (8 * 1024 * 1024) + 1
        assert len(lengths) <= 8
        assert sum(lengths) <= 8 * 1024 * 1024
        assert len(training.logs) in (30, 31)


def test_a_task_that_batch_runs_anew_is_followed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the same id; its file has the same name here, which is the worst case."""
    training = Training(monkeypatch, max_epochs=40)
    file = LongFile(training.deployment.clock.now().timestamp())
    for _ in range(3):
        file.add_epoch()
    training.look(file.content)
    again = LongFile(training.deployment.clock.now().timestamp())
    again.add_epoch()
    training.look(again.content)
    assert len(training.logs) == 1
    for _ in range(2):
        again.add_epoch()
        training.look(again.content)
    assert len(training.logs) == 3

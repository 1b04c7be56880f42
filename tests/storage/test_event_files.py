"""The end of a training: its uploaded event file is read by parts, against Azurite."""

from __future__ import annotations

import json

import pytest

from shared.haste.training import Training
from shared.protocol.outcome import Outcome, Result
from tests.storage.conftest import Tenant
from tests.support import event_samples, samples
from tests.support.event_samples import FILES, LongFile
from tests.support.haste_results import TRAINING_OUTPUT

RUN = samples.training_run()
COMPLETED = Outcome(Result.COMPLETED, "Training job completed successfully", samples.at("10:01:00"))
FOLDER = f"{TRAINING_OUTPUT}/logs/model_{samples.MODEL_ID}/version_0"


def final_epochs(tenant: Tenant, training: Training, patch: pytest.MonkeyPatch) -> tuple[object, list[int]]:
    """What HASTE's record shows in the end, and the lengths of what was read for it."""
    lengths: list[int] = []
    real = type(tenant.blobs).read_range

    def noted(name: str, offset: int, length: int) -> bytes | None:
        content = real(tenant.blobs, name, offset, length)
        lengths.append(len(content or b""))
        return content

    patch.setattr(tenant.blobs, "read_range", noted)
    record = training.finished(RUN, COMPLETED)(samples.sample("metadata/model.train-inprogress.json"))
    return json.loads(record["trainingJob"]["logs"]), lengths


@pytest.mark.parametrize("name", FILES)
def test_haste_s_own_files_are_shown_as_tensorboard_reads_them(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    tenant.blobs.write(f"{FOLDER}/{name}", event_samples.content(name))
    epochs, lengths = final_epochs(tenant, Training(tenant.blobs, image_name="image"), monkeypatch)
    assert epochs == event_samples.epochs(event_samples.logged(name))
    assert len(lengths) <= 2
    assert max(lengths) <= 4 * 1024 * 1024


def test_forty_epochs_are_read_in_few_parts_and_only_once(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """HASTE's API may save late, and then the end is shown once more."""
    file = LongFile(1_790_000_000)
    for _ in range(40):
        file.add_epoch()
    tenant.blobs.write(f"{FOLDER}/events.out.tfevents.1.host.1.0", file.content)
    training = Training(tenant.blobs, image_name="image")
    epochs, lengths = final_epochs(tenant, training, monkeypatch)
    assert isinstance(epochs, list)
    assert [one["epoch"] for one in epochs] == list(range(40))
    assert len(lengths) <= 12
    assert max(lengths) <= 4 * 1024 * 1024
    again, lengths = final_epochs(tenant, training, monkeypatch)
    assert again == epochs
    assert lengths == [4]

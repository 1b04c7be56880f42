"""What a job's records and results hold stops no other job, nor its own: the real kinds of work, by the timer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from structlog.testing import capture_logs

from bench.deployment import Deployment
from bench.storage_service import Blob
from local.producer import names
from shared.errors import Transient
from shared.haste.imageryprep import Imageryprep
from shared.haste.training import Training
from shared.kinds import Entity, Kind
from shared.triggers import messages
from shared.triggers.messages import QueueMessage
from tests.support.passing_waits import PassingWaits
from tests.support.rasters import geotiff
from tests.support.trainings import pool

HUGE = 10**400
LOCAL_GRID = geotiff((0, 0, 1, 1), 'LOCAL_CS["local grid",UNIT["metre",1]]')
METRES_AS_DEGREES = geotiff((537_000, 5_200_000, 538_000, 5_201_000))
OUTSIDE = geotiff((1e9, 1e9, 2e9, 2e9), "EPSG:32610")


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


@pytest.fixture
def deployment() -> Deployment:
    return Deployment([pool("h100", 4)])


def data(deployment: Deployment) -> dict[str, Blob]:
    found: dict[str, Blob] = deployment.storage.containers["data"]
    return found


def put(deployment: Deployment, name: str, content: bytes) -> None:
    data(deployment)[name] = Blob(content, '"by somebody"', deployment.clock.now(), {})


def record_name(entity: Entity) -> str:
    find = names.layer_blob if entity.kind is Kind.IMAGERYPREP else names.model_blob
    return find(entity.project_id, entity.entity_id)


def shown(deployment: Deployment, entity: Entity) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(data(deployment)[record_name(entity)].content)
    return found


def change(deployment: Deployment, entity: Entity, **fields: Any) -> None:
    put(deployment, record_name(entity), json.dumps(shown(deployment, entity) | fields).encode())


def nested(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


def end(deployment: Deployment, exit_code: int = 0) -> None:
    """Every task ends, the trainings having left a checkpoint."""
    deployment.world.advance(600)
    for job, task in deployment.runner.running():
        put(deployment, f"{names.partition(deployment.project_id)}/{task}/checkpoint/last.ckpt", b"x")
        deployment.runner.finish(job, task, exit_code)
    deployment.world.advance(1)


def live(deployment: Deployment) -> list[str]:
    return [one.key for one in deployment.app.worker.ledger.live()]


def results(deployment: Deployment, entity: Entity) -> list[str]:
    ends = deployment.app.worker.ledger.done(entity)
    return [one.outcome.result.value for one in ends if one.outcome is not None]


def ticks(deployment: Deployment, number: int = 5) -> list[dict[str, Any]]:
    """Runs of the timer, of which none may fail. What was logged as an error."""
    with capture_logs() as logs:
        for _ in range(number):
            deployment.tick(60)
    return [dict(line) for line in logs if line["log_level"] == "error"]


# --- HASTE's records --------------------------------------------------------------------------------------------

GARBAGE: dict[str, dict[str, Any]] = {
    "a huge step": {"currentStep": HUGE, "totalSteps": HUGE, "progressPct": HUGE},
    "no numbers": {"currentStep": float("nan"), "totalSteps": float("inf"), "progressPct": float("-inf")},
    "negative steps": {"currentStep": -1, "totalSteps": -5},
    "fractions": {"currentStep": 1e300, "totalSteps": 0.5},
    "huge epochs": {"maxEpochs": HUGE},
    "epochs as text": {"maxEpochs": "1" + "0" * 5000, "batchSize": "9" * 5000, "learningRate": "1e400"},
    "many epochs": {"maxEpochs": "1" + "0" * 300},
    "a log of half a character": {"statusMessage": "\ud800", "name": "\udfff"},
    "a status that is a list": {"status": [], "inferenceStatus": {}},
    "a task that is an object": {"trainingJob": {"taskId": {}, "status": [], "jobId": 7}},
    "a task of half a character": {"trainingJob": {"taskId": "\ud800", "status": "\ud800"}},
    "a job that is text": {"trainingJob": "x", "inferenceJobs": [1, None, {"taskId": []}]},
}


@pytest.mark.parametrize("fields", GARBAGE.values(), ids=GARBAGE)
@pytest.mark.parametrize("exit_code", [0, 1])
def test_garbage_in_haste_s_record_is_written_over(
    deployment: Deployment, fields: dict[str, Any], exit_code: int
) -> None:
    broken, other = deployment.train(), deployment.train()
    ticks(deployment, 2)
    change(deployment, broken, **fields)
    assert ticks(deployment, 2) == []
    change(deployment, broken, **fields)
    end(deployment, exit_code)
    assert ticks(deployment) == []
    assert live(deployment) == []
    for entity in (broken, other):
        after = shown(deployment, entity)
        assert after["status"] == ("Failed" if exit_code else "Processed")
        assert type(after["currentStep"]) is int and 0 <= after["currentStep"] <= after["totalSteps"] < 2**53
        assert 0 <= after["progressPct"] <= 100
        assert after["trainingJob"]["status"] == after["status"]
        _is_json(data(deployment)[record_name(entity)].content)


def _is_json(content: bytes) -> None:
    """As browsers read it."""

    def refuse(word: str) -> None:
        raise AssertionError(word)

    json.loads(content, parse_constant=refuse)


@pytest.mark.parametrize("fields", [{"trainingJob": {"taskId": "\ud800"}}, {"status": ["Queued"]}, {"name": HUGE}])
def test_a_request_about_a_record_with_garbage_is_taken_in(deployment: Deployment, fields: dict[str, Any]) -> None:
    entity = deployment.train()
    end(deployment, 1)
    ticks(deployment)
    change(deployment, entity, status="Queued")
    change(deployment, entity, **fields)
    body = json.dumps({"projectId": entity.project_id, "modelId": entity.entity_id, "status": "Queued"})
    message = QueueMessage("train-queue", "again", deployment.clock.now(), body.encode())
    messages.haste_message(deployment.app.worker, deployment.app.rejected, Kind.TRAINING, message)
    end(deployment)
    assert ticks(deployment) == []
    assert sorted(results(deployment, entity)) == ["completed", "failed"]
    assert shown(deployment, entity)["status"] == "Processed"


@pytest.mark.parametrize("content", [nested(600), b'{"currentStep": 1' + b"0" * 5000 + b"}", b"[]"])
def test_the_job_of_a_record_that_is_none_ends_all_the_same(deployment: Deployment, content: bytes) -> None:
    broken, other = deployment.train(), deployment.train()
    ticks(deployment, 2)
    put(deployment, record_name(broken), content)
    ticks(deployment, 2)
    end(deployment)
    told = ticks(deployment)
    assert shown(deployment, other)["status"] == "Processed"
    assert live(deployment) == []
    assert results(deployment, broken) == ["completed"]
    assert data(deployment)[record_name(broken)].content == content
    assert "HASTE's record is not a JSON object" in [line["event"] for line in told]


def test_a_record_of_many_levels_is_still_shown(deployment: Deployment) -> None:
    entity = deployment.train()
    change(deployment, entity, colours=json.loads(nested(90)))
    end(deployment)
    assert ticks(deployment) == []
    assert shown(deployment, entity)["status"] == "Processed"


# --- results ----------------------------------------------------------------------------------------------------


def prepare_imagery(deployment: Deployment, number: int) -> Entity:
    """HASTE's API asks for the preparation of a new layer."""
    layer_id = f"{number:08}-0000-4000-8000-000000000000"
    entity = Entity(Kind.IMAGERYPREP, deployment.project_id, layer_id)
    layer = {"projectId": entity.project_id, "imageLayerId": layer_id, "status": "Queued"}
    layer["postEventImageryUrls"] = ["https://elsewhere.example/x.tif"]  # type: ignore[assignment]
    put(deployment, record_name(entity), json.dumps(layer).encode())
    message = QueueMessage("image-layers", f"layer-{number}", deployment.clock.now(), json.dumps(layer).encode())
    messages.haste_message(deployment.app.worker, deployment.app.rejected, Kind.IMAGERYPREP, message)
    return entity


def leave_results(deployment: Deployment, entity: Entity, raster: bytes, **manifest: Any) -> None:
    """What the container of this layer uploads."""
    version = deployment.app.worker.ledger.read(entity.key)
    assert version is not None and version.record.placement is not None
    folder = f"{names.partition(entity.project_id)}/{version.record.placement.task_id}"
    suffix = f"_{entity.project_id}_{entity.entity_id}.tif"
    files = {
        "post_event_mosaic_filename": f"raw_imagery_post_event_mosaic_cog{suffix}",
        "post_event_processed_filename": f"processed_imagery_post_event_cog{suffix}",
    }
    for name in files.values():
        put(deployment, f"{folder}/{name}", raster)
    content = files | {"normalization_means": [1.5, 2, 3], "normalization_stds": [1, 1.5, 2]} | manifest
    put(deployment, f"{folder}/imagery_manifest.json", json.dumps(content).encode())


def two_layers(deployment: Deployment, raster: bytes, **manifest: Any) -> tuple[Entity, Entity, list[dict[str, Any]]]:
    """The task of the first leaves this; that of the second leaves good results. What was logged as an error."""
    first, second = prepare_imagery(deployment, 1), prepare_imagery(deployment, 2)
    ticks(deployment, 2)
    leave_results(deployment, first, raster, **manifest)
    leave_results(deployment, second, geotiff())
    end(deployment)
    return first, second, ticks(deployment)


@pytest.mark.parametrize("raster", [LOCAL_GRID, METRES_AS_DEGREES, OUTSIDE], ids=["local", "metres", "outside"])
def test_a_raster_without_a_position_fails_its_layer_at_once(deployment: Deployment, raster: bytes) -> None:
    first, second, told = two_layers(deployment, raster)
    assert told == []
    assert live(deployment) == []
    failed = shown(deployment, first)
    assert failed["status"] == "Failed" and "no position on the map" in failed["statusMessage"]
    assert shown(deployment, second)["status"] == "Processed"


@pytest.mark.parametrize("field", ["normalization_means", "normalization_stds"])
@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), HUGE, -HUGE, 1e300], ids=["nan", "inf", "huge", "-huge", "1e300"]
)
def test_normalization_values_that_are_none_fail_the_layer(deployment: Deployment, field: str, value: Any) -> None:
    first, _second, told = two_layers(deployment, geotiff(), **{field: [1, 2, value]})
    assert told == []
    failed = shown(deployment, first)
    assert failed["status"] == "Failed" and "no normalization values" in failed["statusMessage"]
    _is_json(data(deployment)[record_name(first)].content)


def test_a_deviation_of_zero_fails_the_layer(deployment: Deployment) -> None:
    first, _second, _told = two_layers(deployment, geotiff(), normalization_stds=[1, 0, 2])
    assert "no normalization values" in shown(deployment, first)["statusMessage"]


# --- exceptions that nobody foresaw -----------------------------------------------------------------------------


class Surprise(Exception):
    """What a library may raise some day."""


def surprise_about(monkeypatch: pytest.MonkeyPatch, kind: type, method: str, entity: Entity, error: Exception) -> None:
    """This method of this kind raises for this entity."""
    real = getattr(kind, method)

    def raises(self: Any, run: Any, *args: Any, **options: Any) -> Any:
        if run.entity == entity:
            raise error
        return real(self, run, *args, **options)

    monkeypatch.setattr(kind, method, raises)


@pytest.mark.parametrize("method", ["outcome", "finished", "_results"])
def test_a_surprise_in_the_results_is_a_sentence_about_that_layer(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    entity = Entity(Kind.IMAGERYPREP, deployment.project_id, f"{1:08}-0000-4000-8000-000000000000")
    surprise_about(monkeypatch, Imageryprep, method, entity, Surprise("of a library"))
    first, second, told = two_layers(deployment, geotiff())
    assert first == entity
    assert live(deployment) == []
    assert shown(deployment, second)["status"] == "Processed"
    after = shown(deployment, first)
    assert after["status"] == ("Failed" if method == "outcome" else "Processed")
    assert ("could not be read" in after["statusMessage"]) is (method == "outcome")
    assert after["preprocessJob"]["status"] == after["status"]
    assert {(line["event"], line["record"]) for line in told} == {("record not looked at", first.key)}
    if method == "outcome":
        assert told[0]["task"] in after["statusMessage"]


@pytest.mark.parametrize("method", ["submitted", "progress", "noted", "finished", "follow_up"])
def test_a_surprise_at_any_other_time_stops_no_training(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    broken, other = deployment.train(), deployment.train()
    surprise_about(monkeypatch, Training, method, broken, Surprise("of a library"))
    ticks(deployment, 3)
    end(deployment)
    ticks(deployment)
    assert live(deployment) == []
    assert results(deployment, broken) == ["completed"]
    assert {shown(deployment, one)["status"] for one in (broken, other)} == {"Processed"}


@pytest.mark.parametrize("error", [Transient("no answer"), ConnectionError("no network"), ImportError("rasterio")])
def test_what_is_not_the_job_s_fault_decides_nothing(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    entity = deployment.train()
    ticks(deployment, 2)
    with monkeypatch.context() as patch, capture_logs():
        surprise_about(patch, Training, "outcome", entity, error)
        end(deployment)
        for _ in range(3):
            if isinstance(error, Transient):
                deployment.tick()
            else:
                with pytest.raises(ExceptionGroup):
                    deployment.tick()
        assert shown(deployment, entity)["status"] == "InProgress"
    ticks(deployment)
    assert shown(deployment, entity)["status"] == "Processed"

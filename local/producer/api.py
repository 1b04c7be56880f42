"""The routes of HASTE's web application that concern the worker: what each stores and sends, and in which order.

Most routes send their message *before* they save the record. A reader of the queue can therefore be faster than the
record; that is HASTE's way and the reason why this module keeps the order.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

from local.producer import names
from local.producer.records import Record, new_stats, status_line
from local.producer.storage import READ_POLICY, HasteStorage

RUN_DELAY_SECONDS = 30
CANCEL_DELAY_SECONDS = 1
_LAYER_STEPS = 4
_INFERENCE_STEPS = 7
_ENDED = ("Processed", "Failed")


class HasteApiError(Exception):
    """HASTE's web application refuses the request: nothing was sent or stored."""


@dataclass(frozen=True)
class QueueNames:
    """HASTE's queues; the defaults are HASTE's."""

    image: str = "image-layers-queue"
    train: str = "train-queue"
    inference: str = "inference-queue"
    stats: str = "stats-queue"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read IMAGE_, TRAIN_, INFERENCE_ and STATS_QUEUE_NAME."""
        return cls(
            **{
                kind: environment[f"{kind.upper()}_QUEUE_NAME"]
                for kind in ("image", "train", "inference", "stats")
                if environment.get(f"{kind.upper()}_QUEUE_NAME")
            }
        )


class HasteApi:
    """One method per route; each returns the record as stored."""

    def __init__(
        self,
        blobs: BlobServiceClient,
        queues: QueueServiceClient,
        *,
        container: str = "data",
        queue_names: QueueNames | None = None,
        read_policy: str = READ_POLICY,
    ) -> None:
        self.storage = HasteStorage(blobs, queues, container, read_policy)
        self.queue_names = queue_names or QueueNames()

    @classmethod
    def from_connection_string(cls, connection_string: str, *, client_options: Any = None, **kwargs: Any) -> Self:
        """Connect with an account key; ``client_options`` go to both storage clients, the rest to the constructor."""
        options = client_options or {}
        return cls(
            BlobServiceClient.from_connection_string(connection_string, **options),
            QueueServiceClient.from_connection_string(connection_string, **options),
            **kwargs,
        )

    def create_project(self, project: Record) -> Record:
        """PutProject."""
        project_id = project["projectId"]
        stored = self.storage.save(names.project_blob(project_id), project)
        about = {key: project[key] for key in ("name", "description", "creationDate", "affectedCountries")}
        self._put_stats(new_stats(project_id, **about))
        return stored

    def upload_imagery(self, project_id: str, file_id: str, data: bytes, extension: str = "tif") -> str:
        """Store a file the user uploads; returns the signed URL that goes into a layer."""
        return self.storage.upload(names.uploaded_imagery_blob(project_id, file_id, extension), data)

    def put_layer(self, layer: Record, *, delay_seconds: int = 0) -> Record:
        """PutLayer: prepares a new layer. For a stored one it is an edit, which sends nothing to the image queue."""
        blob = names.layer_blob(layer["projectId"], layer["imageLayerId"])
        if self.storage.read(blob) is not None:
            return self.storage.save(blob, layer)
        layer = layer | {
            "status": "Queued",
            "statusMessage": layer["statusMessage"] + status_line("Queued for processing"),
            "currentStep": 0,
            "totalSteps": _LAYER_STEPS,
            "progressPct": 0.0,
        }
        self.storage.put_message(self.queue_names.image, layer, delay_seconds=delay_seconds)
        stored = self.storage.save(blob, layer)
        statistics = {"imageLayerId": layer["imageLayerId"], "labelsCount": 0}
        self._put_stats(new_stats(layer["projectId"], imageLayerStats=statistics))
        return stored

    def put_labels(self, project_id: str, labelproject_id: str, labels: list[Record]) -> Record:
        """PutLabels: replaces the labels of a stored label project. Raises HasteApiError if there is none."""
        blob = names.label_project_blob(project_id, labelproject_id)
        label_project = self._stored(blob, "label project")
        stored = self.storage.save(blob, label_project | {"labels": labels})
        statistics = {"imageLayerId": stored["imageLayerId"], "labelsCount": len(labels)}
        self._put_stats(new_stats(project_id, imageLayerStats=statistics))
        return stored

    def put_run_model(self, model: Record, *, delay_seconds: int = RUN_DELAY_SECONDS) -> Record:
        """PutRunModelQueueMessage: trains a new model, or a stored one again (send the stored record back).

        The "queued" line is in the stored record only, not in the message.
        """
        model = model | {
            "name": model["name"].replace(" ", "-"),
            "status": "Queued",
            "currentStep": 0,
            "progressPct": 0.0,
            "totalSteps": int(model["maxEpochs"]) + 1,
        }
        self.storage.put_message(self.queue_names.train, model, delay_seconds=delay_seconds)
        saved = model | {"statusMessage": model["statusMessage"] + status_line("Queued for training")}
        stored = self.storage.save(names.model_blob(model["projectId"], model["modelId"]), saved)
        self._put_stats(new_stats(model["projectId"], modelIds=[model["modelId"]]))
        return stored

    def put_run_inference(self, model: Record, *, delay_seconds: int = RUN_DELAY_SECONDS) -> Record:
        """PutRunInferenceQueueMessage: needs the whole record of a trained model, else HasteApiError."""
        if model["status"] != "Processed":
            raise HasteApiError(f"the model's status is {model['status']}, not Processed")
        model = model | {
            "inferenceStatus": "Queued",
            "inferenceCurrentStep": 0,
            "inferenceProgressPct": 0.0,
            "inferenceTotalSteps": _INFERENCE_STEPS,
            "inferenceStatusMessage": status_line("Queued for inference"),
        }
        self.storage.put_message(self.queue_names.inference, model, delay_seconds=delay_seconds)
        return self.storage.save(names.model_blob(model["projectId"], model["modelId"]), model)

    def put_cancel_model(self, project_id: str, model_id: str, *, delay_seconds: int = CANCEL_DELAY_SECONDS) -> Record:
        """PutCancelModelQueueMessage: HASTE's table of stored status and inference status.

        Raises HasteApiError where HASTE answers 500: a trained model whose inference has not ended
        (:meth:`put_cancel_inference` is what newer versions of HASTE do there).
        """
        blob = names.model_blob(project_id, model_id)
        model = self._stored(blob, "model")
        if model["status"] == "Failed":
            note = model["statusMessage"] + status_line("Training has already failed")
            return self.storage.save(blob, model | {"statusMessage": note})
        if model["status"] == "Processed" and model["inferenceStatus"] not in _ENDED:
            raise HasteApiError("HASTE's web application cannot cancel inference: HTTP 500")
        if model["inferenceStatus"] in _ENDED:
            note = model["inferenceStatusMessage"] + status_line("Inference has already ended")
            return self.storage.save(blob, model | {"inferenceStatusMessage": note})
        model = model | {"status": "Cancelled"}
        self.storage.put_message(self.queue_names.train, model, delay_seconds=delay_seconds)
        saved = model | {"statusMessage": model["statusMessage"] + status_line("Cancelling training")}
        return self.storage.save(blob, saved)

    def put_cancel_inference(self, project_id: str, model_id: str, *, delay_seconds: int = 0) -> Record:
        """How newer versions of HASTE cancel inference: the record is saved first, then sent as it is."""
        blob = names.model_blob(project_id, model_id)
        model = self._stored(blob, "model")
        if model["inferenceStatus"] not in ("Queued", "InProgress"):
            raise HasteApiError(f"inference is {model['inferenceStatus']}, there is nothing to cancel")
        note = model["inferenceStatusMessage"] + status_line("Cancelling inference")
        stored = self.storage.save(blob, model | {"inferenceStatus": "Cancelled", "inferenceStatusMessage": note})
        self.storage.put_message(self.queue_names.inference, stored, delay_seconds=delay_seconds)
        return stored

    def delete_model(self, project_id: str, model_id: str) -> None:
        """DeleteModel: the record, then what belongs to it, up to the first that is missing. No task is ended."""
        if not self.storage.delete(names.model_blob(project_id, model_id)):
            raise HasteApiError("there is no such model")
        all(self.storage.delete(blob) for blob in names.model_artifact_blobs(project_id, model_id))
        self._put_stats(new_stats(project_id, action="delete", modelIds=[model_id]))

    def delete_layer(self, project_id: str, image_layer_id: str) -> None:
        """DeleteLayer: the record, then its models with their config and labels. Its label project stays."""
        self.storage.delete(names.layer_blob(project_id, image_layer_id))
        deleted = []
        for blob in self.storage.blob_names(names.model_prefix(project_id)):
            model = self.storage.read(blob)
            if model is None or model["imageLayerId"] != image_layer_id:
                continue
            config, labels, _artifacts = names.model_artifact_blobs(project_id, model["modelId"])
            all(self.storage.delete(name) for name in (blob, config, labels))
            deleted.append(model["modelId"])
        statistics = {"imageLayerId": image_layer_id, "labelsCount": 0}
        self._put_stats(new_stats(project_id, action="delete", imageLayerStats=statistics, modelIds=deleted))

    def delete_project(self, project_id: str) -> None:
        """DeleteProject: every blob of the project, whatever it is."""
        for blob in self.storage.blob_names(f"{names.partition(project_id)}/"):
            self.storage.delete(blob)
        self._put_stats(new_stats(project_id, action="delete"))

    def layer(self, project_id: str, image_layer_id: str) -> Record:
        """The stored layer; HasteApiError if there is none."""
        return self._stored(names.layer_blob(project_id, image_layer_id), "layer")

    def label_project(self, project_id: str, labelproject_id: str) -> Record:
        """The stored label project; HasteApiError if there is none."""
        return self._stored(names.label_project_blob(project_id, labelproject_id), "label project")

    def model(self, project_id: str, model_id: str) -> Record:
        """The stored model; HasteApiError if there is none."""
        return self._stored(names.model_blob(project_id, model_id), "model")

    def _stored(self, blob: str, what: str) -> Record:
        record = self.storage.read(blob)
        if record is None:
            raise HasteApiError(f"there is no such {what}")
        return record

    def _put_stats(self, message: Record) -> None:
        self.storage.put_message(self.queue_names.stats, message, delay_seconds=0)

"""A user of HASTE: uploads imagery, draws labels, asks for a model and for inference."""

from __future__ import annotations

from local.demo.evidence import Record
from local.producer import HasteApi, synthetic
from local.producer.records import new_image_layer, new_model, new_project

_USER_ID = "analyst@example.org"
_EPOCHS = 3


class User:
    """Everything goes through HASTE's API, as its pages do it."""

    def __init__(self, api: HasteApi) -> None:
        self._api = api

    def uploads_a_layer(self, place: str) -> Record:
        """A project of its own with imagery from before and after an event; not asked to be prepared yet."""
        project = self._api.create_project(new_project(name=f"{place} flood drill", user_id=_USER_ID))
        project_id = project["projectId"]
        post = self._api.upload_imagery(project_id, "post01", synthetic.imagery(after_event=True))
        pre = self._api.upload_imagery(project_id, "pre01", synthetic.imagery(after_event=False))
        return new_image_layer(
            project_id, name=f"{place} 12 Aug", user_id=_USER_ID, post_event_urls=[post], pre_event_urls=[pre]
        )

    def asks_for_preparation(self, layer: Record) -> None:
        """The layer's imagery is to be prepared."""
        self._api.put_layer(dict(layer))

    def draws_labels(self, layer: Record) -> Record:
        """Labels on a prepared layer, and a model that is to learn from them and to be used at once."""
        project_id, label_project_id = layer["projectId"], layer["labelProjectId"]
        labels = self._api.put_labels(project_id, label_project_id, synthetic.labels())["labels"]
        return new_model(
            project_id,
            layer["imageLayerId"],
            name="cedar-valley-unet-1",
            user_id=_USER_ID,
            labelproject_id=label_project_id,
            labels_count=len(labels),
            max_epochs=_EPOCHS,
            learning_rate="0.0001",
            auto_run_inference=True,
        )

    def asks_for_training(self, model: Record) -> None:
        """The model is to be trained."""
        self._api.put_run_model(dict(model), delay_seconds=0)

    def asks_for_inference(self, model: Record) -> None:
        """The trained model is to be used again."""
        self._api.put_run_inference(dict(model), delay_seconds=0)

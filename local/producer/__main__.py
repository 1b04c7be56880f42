"""Sends HASTE's messages from a terminal: ``python -m local.producer layer|train|infer|cancel``.

Reads BLOB_CONNECTION_STRING, BLOB_CONTAINER, BLOB_CONTAINER_READ_POLICY and the *_QUEUE_NAME settings from the
environment and prints the ids as one JSON object.
"""

import argparse
import json
import os
import sys

from local.producer import synthetic
from local.producer.api import CANCEL_DELAY_SECONDS, RUN_DELAY_SECONDS, HasteApi, HasteApiError, QueueNames
from local.producer.records import new_image_layer, new_model, new_project
from local.producer.storage import READ_POLICY

USER_ID = "analyst@example.org"


def send_layer(api: HasteApi, arguments: argparse.Namespace) -> dict[str, str]:
    """A project (new unless --project-id is given), its imagery, and a layer to prepare."""
    project_id = arguments.project_id
    if project_id is None:
        project_id = api.create_project(new_project(name="Cedar Valley flood drill", user_id=USER_ID))["projectId"]
    post = api.upload_imagery(project_id, "post01", synthetic.imagery(after_event=True))
    pre = (
        []
        if arguments.no_pre_event
        else [api.upload_imagery(project_id, "pre01", synthetic.imagery(after_event=False))]
    )
    layer = new_image_layer(
        project_id, name=arguments.name, user_id=USER_ID, post_event_urls=[post], pre_event_urls=pre
    )
    stored = api.put_layer(layer, delay_seconds=arguments.delay_seconds)
    return {"projectId": project_id, "imageLayerId": stored["imageLayerId"]}


def send_train(api: HasteApi, arguments: argparse.Namespace) -> dict[str, str]:
    """Labels for the layer's label project if it has none, then a model to train; --model-id trains it again."""
    project_id = arguments.project_id
    if arguments.model_id is not None:
        model = api.model(project_id, arguments.model_id)
    else:
        layer = api.layer(project_id, arguments.layer_id)
        if layer["labelProjectId"] is None:
            raise HasteApiError(f"the layer is {layer['status']} and has no label project yet")
        label_project = api.label_project(project_id, layer["labelProjectId"])
        if not label_project["labels"]:
            label_project = api.put_labels(project_id, layer["labelProjectId"], synthetic.labels())
        model = new_model(
            project_id,
            arguments.layer_id,
            name=arguments.name,
            user_id=USER_ID,
            labelproject_id=layer["labelProjectId"],
            labels_count=len(label_project["labels"]),
            max_epochs=arguments.epochs,
            learning_rate=arguments.learning_rate,
            auto_run_inference=not arguments.no_inference,
        )
    stored = api.put_run_model(model, delay_seconds=arguments.delay_seconds)
    return {"projectId": project_id, "modelId": stored["modelId"]}


def send_infer(api: HasteApi, arguments: argparse.Namespace) -> dict[str, str]:
    """Inference with a trained model."""
    model = api.model(arguments.project_id, arguments.model_id)
    api.put_run_inference(model, delay_seconds=arguments.delay_seconds)
    return {"projectId": arguments.project_id, "modelId": arguments.model_id}


def send_cancel(api: HasteApi, arguments: argparse.Namespace) -> dict[str, str]:
    """Cancels training, or with --inference inference the way newer versions of HASTE do."""
    cancel = api.put_cancel_inference if arguments.inference else api.put_cancel_model
    cancel(arguments.project_id, arguments.model_id, delay_seconds=arguments.delay_seconds)
    return {"projectId": arguments.project_id, "modelId": arguments.model_id}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m local.producer", description="Plays HASTE's web application.")
    commands = parser.add_subparsers(dest="command", required=True)

    layer = commands.add_parser("layer", help=send_layer.__doc__)
    layer.add_argument("--project-id", help="an existing project")
    layer.add_argument("--name", default="Cedar Valley 12 Aug")
    layer.add_argument("--no-pre-event", action="store_true")
    layer.set_defaults(send=send_layer)

    train = commands.add_parser("train", help=send_train.__doc__)
    train.add_argument("--project-id", required=True)
    which = train.add_mutually_exclusive_group(required=True)
    which.add_argument("--layer-id", help="train a new model on this layer")
    which.add_argument("--model-id", help="train this model again")
    train.add_argument("--name", default="cedar-valley-unet-1")
    train.add_argument("--epochs", type=int, default=3)
    train.add_argument("--learning-rate", default="0.0001")
    train.add_argument("--no-inference", action="store_true", help="do not run inference after training")
    train.set_defaults(send=send_train)

    infer = commands.add_parser("infer", help=send_infer.__doc__)
    cancel = commands.add_parser("cancel", help=send_cancel.__doc__)
    cancel.add_argument("--inference", action="store_true")
    for command, send in ((infer, send_infer), (cancel, send_cancel)):
        command.add_argument("--project-id", required=True)
        command.add_argument("--model-id", required=True)
        command.set_defaults(send=send)

    delays = {layer: 0, train: RUN_DELAY_SECONDS, infer: RUN_DELAY_SECONDS, cancel: CANCEL_DELAY_SECONDS}
    for command, seconds in delays.items():
        command.add_argument(
            "--delay-seconds", type=int, default=seconds, help=f"message is visible after this time (HASTE: {seconds})"
        )
    return parser


def main() -> int:
    """Returns the exit code: 1 if HASTE would refuse the request."""
    arguments = _parser().parse_args()
    environment = os.environ
    if not environment.get("BLOB_CONNECTION_STRING"):
        print("BLOB_CONNECTION_STRING is not set", file=sys.stderr)
        return 2
    api = HasteApi.from_connection_string(
        environment["BLOB_CONNECTION_STRING"],
        container=environment.get("BLOB_CONTAINER") or "data",
        queue_names=QueueNames.from_environment(environment),
        read_policy=environment.get("BLOB_CONTAINER_READ_POLICY") or READ_POLICY,
    )
    try:
        print(json.dumps(arguments.send(api, arguments)))
    except HasteApiError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Azure Functions entry point: binds the triggers, nothing else. Importing it needs no setting and no network."""

from __future__ import annotations

import azure.functions as func

from shared import health
from shared.app import get_app
from shared.kinds import Kind
from shared.settings.load import setting_or_default
from shared.triggers import messages
from shared.triggers.messages import QueueMessage

app = func.FunctionApp(http_auth_level=func.AuthLevel.FUNCTION)


def _message(queue_name: str, msg: func.QueueMessage) -> QueueMessage:
    return QueueMessage(queue_name, str(msg.id), msg.insertion_time or get_app().worker.now(), msg.get_body())


def _haste_message(kind: Kind, msg: func.QueueMessage) -> None:
    worker_app = get_app()
    queue_name = worker_app.settings.of(kind).queue_name
    messages.haste_message(worker_app.worker, worker_app.rejected, kind, _message(queue_name, msg))


@app.function_name("imageryprep")
@app.queue_trigger(arg_name="msg", queue_name=setting_or_default("IMAGE_QUEUE_NAME"), connection="AzureWebJobsStorage")
def imageryprep(msg: func.QueueMessage) -> None:
    """HASTE asks for imagery preparation."""
    _haste_message(Kind.IMAGERYPREP, msg)


@app.function_name("training")
@app.queue_trigger(arg_name="msg", queue_name=setting_or_default("TRAIN_QUEUE_NAME"), connection="AzureWebJobsStorage")
def training(msg: func.QueueMessage) -> None:
    """HASTE asks for a training, or cancels one."""
    _haste_message(Kind.TRAINING, msg)


@app.function_name("inference")
@app.queue_trigger(
    arg_name="msg", queue_name=setting_or_default("INFERENCE_QUEUE_NAME"), connection="AzureWebJobsStorage"
)
def inference(msg: func.QueueMessage) -> None:
    """HASTE asks for an inference, or cancels one."""
    _haste_message(Kind.INFERENCE, msg)


@app.function_name("jobs")
@app.queue_trigger(arg_name="msg", queue_name=setting_or_default("WORKER_QUEUE_NAME"), connection="AzureWebJobsStorage")
def jobs(msg: func.QueueMessage) -> None:
    """The worker's own messages: take a waiting attempt up, look at a cancel again."""
    worker_app = get_app()
    queue_name = worker_app.settings.worker_queue_name
    messages.own_message(worker_app.worker, worker_app.rejected, _message(queue_name, msg))


@app.function_name("watch")
@app.timer_trigger(
    arg_name="timer", schedule=setting_or_default("WATCH_SCHEDULE"), run_on_startup=False, use_monitor=False
)
def watch(timer: func.TimerRequest) -> None:  # noqa: ARG001  (the trigger's argument)
    """Watches Batch, reports progress, finishes jobs, brings lost ones back."""
    get_app().tick()


@app.function_name("health")
@app.route(route="health", methods=["GET"])
def health_report(req: func.HttpRequest) -> func.HttpResponse:  # noqa: ARG001  (the trigger's argument)
    """What is reachable and what is misconfigured, without secrets. Needs the function key."""
    report = health.report()
    return func.HttpResponse(report.to_json(), status_code=200 if report.ok else 503, mimetype="application/json")

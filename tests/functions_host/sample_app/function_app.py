"""A tiny app with one function of each kind; what they did lands in the queue `sample-results` or in an answer."""

import json
import logging
import os
import time

import azure.functions as func

app = func.FunctionApp()


@app.function_name("work")
@app.queue_trigger(arg_name="msg", queue_name="%WORK_QUEUE%", connection="")
@app.queue_output(arg_name="out", queue_name="sample-results", connection="Storage")
def work(msg: func.QueueMessage, out: func.Out[str]) -> None:
    """Sleeps as long as the message says and reports the message's metadata."""
    request = json.loads(msg.get_body())
    logging.getLogger("sample").info("working on %s", request["id"])
    time.sleep(request.get("sleep", 0))
    assert msg.expiration_time and msg.insertion_time and msg.time_next_visible
    told = {
        "dequeue_count": msg.dequeue_count,
        "message": msg.id,
        "receipt": bool(msg.pop_receipt),
        "lifetime_days": (msg.expiration_time - msg.insertion_time).days,
        "hidden_until": msg.time_next_visible.isoformat(),
    }
    out.set(json.dumps({"id": request["id"], **told}))


@app.function_name("break_down")
@app.queue_trigger(arg_name="msg", queue_name="sample-failing", connection="AzureWebJobsStorage")
async def break_down(msg: func.QueueMessage) -> None:
    """Always fails."""
    raise RuntimeError("asked to fail")


@app.function_name("tick")
@app.timer_trigger(schedule="%TICK_SCHEDULE%", arg_name="timer", run_on_startup=False, use_monitor=True)
@app.queue_output(arg_name="out", queue_name="sample-ticks", connection="AzureWebJobsStorage")
def tick(timer: func.TimerRequest, out: func.Out[str]) -> None:
    """Reports every tick, after `TICK_SLEEP_SECONDS`."""
    time.sleep(float(os.environ.get("TICK_SLEEP_SECONDS", "0")))
    out.set(json.dumps({"past_due": timer.past_due}))


@app.function_name("echo")
@app.route(route="echo/{name}/{part?}", methods=["GET", "POST"], auth_level=func.AuthLevel.FUNCTION)
def echo(req: func.HttpRequest) -> func.HttpResponse:
    """Says what it was sent."""
    said = {
        "method": req.method,
        "name": req.route_params["name"],
        "part": req.route_params.get("part"),
        "query": req.params.get("q"),
        "header": req.headers.get("X-Sample"),
        "body": req.get_body().decode(),
    }
    return func.HttpResponse(
        json.dumps(said), status_code=201, headers={"X-Answer": "yes"}, mimetype="application/json"
    )


@app.function_name("open_door")
@app.route(route="open", auth_level=func.AuthLevel.ANONYMOUS)
async def open_door(req: func.HttpRequest) -> str:
    """Needs no key; fails when asked to."""
    if req.params.get("fail"):
        raise RuntimeError("asked to fail")
    return "open"

"""A whole host and its HTTP functions."""

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.functions_host.conftest import SETTINGS
from tests.functions_host.host_process import HostStarter

KEY = {"x-functions-key": SETTINGS["FUNCTIONS_HOST_KEY"]}


@pytest.fixture
def url(hosts: HostStarter) -> str:
    """Where a host of the sample app's HTTP functions listens."""
    return str(hosts.start("--only", "echo", "open_door").ready()["url"])


def call(
    url: str, *, method: str = "GET", headers: dict[str, str] | None = None, body: bytes | None = None
) -> tuple[int, dict[str, str], str]:
    """(status, headers in lower case, text), whatever the status."""
    request = urllib.request.Request(url, body, headers or {}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            status, answer_headers, text = response.status, response.headers, response.read().decode()
    except urllib.error.HTTPError as error:
        status, answer_headers, text = error.code, error.headers, error.read().decode()
    return status, {name.lower(): value for name, value in answer_headers.items()}, text


def test_requests_and_answers_pass_through(url: str) -> None:
    status, headers, text = call(
        f"{url}/api/echo/joe%20x/2?q=a%26b", method="POST", headers={**KEY, "X-Sample": "h"}, body="tür".encode()
    )
    assert status == 201
    assert (headers["x-answer"], headers["content-type"]) == ("yes", "application/json")
    expected: dict[str, Any] = {"method": "POST", "name": "joe x", "part": "2", "query": "a&b"}
    assert json.loads(text) == {**expected, "header": "h", "body": "tür"}


def test_keys(url: str) -> None:
    path = f"{url}/api/echo/joe"
    assert call(path)[0] == 401
    assert call(path, headers={"x-functions-key": "wrong"})[0] == 401
    assert call(path, headers=KEY)[0] == 201
    assert call(f"{path}?code={KEY['x-functions-key']}")[0] == 201


def test_anonymous_functions_need_no_key(url: str) -> None:
    status, headers, text = call(f"{url}/api/open")
    assert (status, text) == (200, "open")
    assert headers["content-type"].startswith("text/plain")


def test_unknown_routes_and_other_methods_are_not_found(url: str) -> None:
    assert call(f"{url}/api/nowhere", headers=KEY)[0] == 404
    assert call(f"{url}/echo/joe", headers=KEY)[0] == 404
    assert call(f"{url}/api/echo/joe", method="DELETE", headers=KEY)[0] == 404


def test_a_failing_function_answers_500_without_a_word(url: str) -> None:
    status, _, text = call(f"{url}/api/open?fail=1")
    assert (status, text) == (500, "")


def test_the_status_says_running(url: str) -> None:
    status, _, text = call(f"{url}/admin/host/status")
    assert (status, json.loads(text)["state"]) == (200, "Running")


def test_without_a_key_given_to_the_host_no_key_opens(hosts: HostStarter) -> None:
    ready = hosts.start("--only", "echo", settings={"FUNCTIONS_HOST_KEY": ""}).ready()
    assert call(f"{ready['url']}/api/echo/joe", headers={"x-functions-key": ""})[0] == 401


def test_the_route_prefix_comes_from_host_json(hosts: HostStarter) -> None:
    settings = {"AzureFunctionsJobHost__extensions__http__routePrefix": "v1/x"}
    url = hosts.start("--only", "open_door", settings=settings).ready()["url"]
    assert call(f"{url}/v1/x/open")[0] == 200
    assert call(f"{url}/api/open")[0] == 404


def test_the_ready_line_tells_what_is_hosted(hosts: HostStarter) -> None:
    ready = hosts.start(settings={"AzureWebJobs_tick_Disabled": "true"}).ready()
    functions = {function.pop("name"): function for function in ready["functions"]}
    assert functions["work"] == {
        "disabled": False,
        "type": "queue",
        "queue": "sample-work",
        "poison_queue": "sample-work-poison",
    }
    assert functions["tick"] == {"disabled": True, "type": "timer", "schedule": SETTINGS["TICK_SCHEDULE"]}
    assert functions["echo"]["url"] == f"{ready['url']}/api/echo/{{name}}/{{part?}}"
    assert set(functions) == {"work", "break_down", "tick", "echo", "open_door"}


def test_only_the_functions_named_are_hosted(hosts: HostStarter) -> None:
    ready = hosts.start("--only", "open_door").ready()
    assert [function["name"] for function in ready["functions"]] == ["open_door"]
    assert call(f"{ready['url']}/api/open")[0] == 200
    assert call(f"{ready['url']}/api/echo/joe", headers=KEY)[0] == 404

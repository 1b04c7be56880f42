"""The wire: versions, credentials, error bodies, conditions, paths."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from azure.batch import BatchClient
from azure.core import MatchConditions
from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError, ResourceModifiedError, ResourceNotFoundError

from local.batch import InProcessTransport, RealClock, World
from local.batch.auth import signature
from local.batch.config import Account
from local.batch.request import Request
from tests.batch_emulator.support import (
    BEARER,
    ENDPOINT,
    VERSION,
    make_client,
    make_job,
    make_task,
    make_world,
    refusal,
)


class _Tokens:
    """A token credential that notes what it is asked for."""

    def __init__(self) -> None:
        self.scopes: list[str] = []

    def get_token(self, *scopes: str, **_options: object) -> AccessToken:
        self.scopes += scopes
        return AccessToken("token", int(datetime.now(UTC).timestamp()) + 3600)


def test_the_api_version_is_needed(world: World) -> None:
    response = world.handle("GET", "/pools", {}, BEARER)

    assert (response.status, response.json()["code"]) == (400, "MissingRequiredQueryParameter")


def test_a_bearer_token_is_accepted(world: World) -> None:
    tokens = _Tokens()
    client = BatchClient(ENDPOINT, tokens, transport=InProcessTransport(world))

    assert client.pool_exists("pool")
    assert tokens.scopes == ["https://batch.core.windows.net//.default"]


def test_a_wrong_key_is_403_and_no_credentials_are_401(world: World) -> None:
    with pytest.raises(HttpResponseError) as refused:
        make_client(world, "d3Jvbmc=").get_pool("pool")
    assert refusal(refused.value) == (403, "AuthenticationFailed")

    assert world.handle("GET", "/pools", VERSION).status == 401
    assert world.handle("GET", "/pools", VERSION, {"authorization": "Basic x"}).status == 403


def test_the_signature_covers_query_body_conditions_and_escaped_paths(client: BatchClient) -> None:
    make_job(client, "job")
    make_task(client)
    task = client.get_task("job", "task")

    assert [found.id for found in client.list_tasks("job", filter="id eq 'task'", select=["id"], max_results=3)] == [
        "task"
    ]
    client.terminate_task("job", "task", etag=task.etag, match_condition=MatchConditions.IfNotModified)
    with pytest.raises(HttpResponseError) as missing:
        client.get_task_file_properties("job", "task", "wd/a b/ü%.txt")
    assert missing.value.status_code == 404


def test_the_example_of_the_shared_key_scheme() -> None:
    headers = {"if-match": '"0x1"', "ocp-date": "Mon, 30 Nov 2026 00:21:27 GMT"}
    request = Request("POST", "/jobs/j/tasks/t/terminate", VERSION, headers, b"", ENDPOINT)
    account = Account("acct", "c2VjcmV0")

    # HMAC-SHA256 with key "secret" over the canonical string that Azure Batch documents for this request
    import base64
    import hashlib
    import hmac

    canonical = (
        'POST\n\n\n0\n\n\n\n\n"0x1"\n\n\n\nocp-date:Mon, 30 Nov 2026 00:21:27 GMT\n'
        "/acct/jobs/j/tasks/t/terminate\napi-version:2025-06-01"
    )
    expected = base64.b64encode(hmac.new(b"secret", canonical.encode(), hashlib.sha256).digest()).decode()
    assert signature(request, account) == expected


def test_an_old_date_is_refused_where_the_world_checks_it() -> None:
    world = World.from_json({"check_date_skew": True}, clock=RealClock())
    assert list(make_client(world).list_pools()) == []

    date = format_datetime(datetime.now(UTC) - timedelta(minutes=16), usegmt=True)
    request = Request("GET", "/pools", VERSION, {"ocp-date": date}, b"", ENDPOINT)
    signed = {"ocp-date": date, "authorization": f"SharedKey localbatch:{signature(request, world.config.account)}"}
    response = world.handle("GET", "/pools", VERSION, signed)

    assert (response.status, response.json()["code"]) == (403, "AuthenticationFailed")


def test_unknown_paths_verbs_and_operations(world: World) -> None:
    def answer(method: str, path: str) -> tuple[int, str]:
        response = world.handle(method, path, VERSION, BEARER)
        return response.status, response.json()["code"]

    assert answer("GET", "/colours") == (404, "ResourceNotFound")
    assert answer("PUT", "/pools") == (405, "UnsupportedHttpVerb")
    assert answer("POST", "/pools/pool/nodes/n/users") == (501, "NotImplementedByEmulator")


def test_the_error_body(world: World) -> None:
    response = world.handle("GET", "/jobs/none", VERSION, BEARER)

    body = response.json()
    assert body["odata.metadata"].endswith(
        "$metadata#Microsoft.Azure.Batch.Protocol.Entities.Container.errors/@Element"
    )
    assert body["message"]["lang"] == "en-US"
    assert "\nRequestId:" in body["message"]["value"]
    assert "\nTime:" in body["message"]["value"]
    assert response.headers["request-id"]
    assert world.handle("HEAD", "/pools/none", VERSION, BEARER).body == b""


def test_etags_are_bare_change_with_every_write_and_are_checked(client: BatchClient, world: World) -> None:
    make_job(client)
    header = world.handle("GET", "/jobs/job", VERSION, BEARER).headers["ETag"]
    assert header.startswith("0x")
    assert client.get_job("job").etag == header
    old, new = header, None
    assert (
        world.handle("PATCH", "/jobs/job", VERSION, BEARER | {"if-match": f'"{old}"'}, b'{"priority":1}').status == 200
    )
    new = client.get_job("job").etag
    assert new != old

    def patch(**conditions: str) -> int:
        headers = {name.replace("_", "-"): value for name, value in conditions.items()}
        return world.handle("PATCH", "/jobs/job", VERSION, BEARER | headers, b"{}").status

    def get(**conditions: str) -> int:
        headers = {name.replace("_", "-"): value for name, value in conditions.items()}
        return world.handle("GET", "/jobs/job", VERSION, BEARER | headers).status

    assert patch(if_match=old) == 412
    assert patch(if_none_match="*") == 412
    assert patch(if_match="*") == 200
    assert get(if_none_match=client.get_job("job").etag) == 304
    assert get(if_none_match=old) == 200
    world.advance(3600)
    later = format_datetime(world.now, usegmt=True)
    earlier = format_datetime(world.now - timedelta(days=1), usegmt=True)
    assert (get(if_modified_since=later), get(if_modified_since=earlier)) == (304, 200)
    assert (patch(if_unmodified_since=earlier), patch(if_unmodified_since=later)) == (412, 200)
    assert get(if_modified_since="yesterday") == 400


def test_a_stale_etag_keeps_a_task_from_being_deleted(client: BatchClient) -> None:
    make_job(client)
    make_task(client)
    etag = client.get_task("job", "task").etag
    client.terminate_task("job", "task")

    with pytest.raises(ResourceModifiedError) as refused:
        client.delete_task("job", "task", etag=etag, match_condition=MatchConditions.IfNotModified)

    assert refusal(refused.value) == (412, "ConditionNotMet")


def test_ids_are_found_whatever_their_case(client: BatchClient) -> None:
    make_job(client, "Job")
    make_task(client, "Task", "JOB")

    assert client.get_task("jOB", "tASK").id == "Task"


def test_escaped_slashes_stay_in_their_segment(world: World) -> None:
    response = world.handle("GET", "/jobs/a%2Ftasks", VERSION, BEARER)

    assert response.json()["code"] == "JobNotFound"


def test_the_request_log_holds_no_query(client: BatchClient, world: World) -> None:
    with pytest.raises(ResourceNotFoundError):
        client.get_job("none", select=["id"])

    (entry,) = world.events.select("request")
    assert (entry["method"], entry["path"], entry["status"], entry["code"]) == ("GET", "/jobs/none", 404, "JobNotFound")


def test_secrets_stay_out_of_the_log() -> None:
    world = make_world()
    client = make_client(world)
    make_job(client)
    body = (
        b'{"id":"t","commandLine":"x --token secret","resourceFiles":'
        b'[{"httpUrl":"https://a.blob.core.windows.net/in/x?sig=secret","filePath":"x"}]}'
    )

    assert world.handle("POST", "/jobs/job/tasks", VERSION, BEARER, body).status == 201
    world.handle("GET", "/jobs/job/tasks", VERSION | {"$filter": "id eq 'sig=secret'"}, BEARER)

    assert world.events.select("task_started", task="t")
    assert "secret" not in str(world.events.entries)
    assert "token" not in str(world.events.entries)

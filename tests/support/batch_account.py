"""An emulated Batch account in this process, with the worker's adapter on the real SDK in front of it."""

from __future__ import annotations

import json
from typing import Any

from azure.core.credentials import AccessToken, AzureNamedKeyCredential
from azure.core.rest import HttpRequest, HttpResponse

from local.batch import ACCOUNT_KEY, InProcessTransport, ManualClock, ScriptedRunner, World
from shared.batch.client import AzureBatch, BatchCredential, connect
from shared.batch.tenant_batch import Tenant, TenantBatch

POOLS: list[dict[str, Any]] = [
    {"id": "h100", "targetLowPriorityNodes": 2, "start_seconds": 0, "return_after_seconds": None},
    {"id": "t4", "targetLowPriorityNodes": 1, "start_seconds": 0, "return_after_seconds": None},
]
KEY = AzureNamedKeyCredential("localbatch", ACCOUNT_KEY)


class Token:
    """A credential of Entra ID; remembers what it was asked for."""

    def __init__(self) -> None:
        self.scopes: list[str] = []

    def get_token(self, *scopes: str, **_options: Any) -> AccessToken:
        self.scopes += scopes
        return AccessToken("a-token", 4_000_000_000)


class NotingTransport(InProcessTransport):
    """Keeps every request as it is sent."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.sent: list[HttpRequest] = []

    def send(self, request: HttpRequest, **options: Any) -> HttpResponse:
        self.sent.append(request)
        return super().send(request, **options)


class Account:
    """`pools` as in a world file; other keys of the world file by name."""

    def __init__(
        self, pools: list[dict[str, Any]] | None = None, credential: BatchCredential = KEY, **world: Any
    ) -> None:
        self.runner = ScriptedRunner()
        self.clock = ManualClock()
        self.world = World.from_json({"pools": POOLS if pools is None else pools, **world}, self.clock, self.runner)
        self.world.advance(10)
        self.transport = NotingTransport(self.world)
        self.client = connect("https://batch.local", credential, transport=self.transport)
        self.batch = AzureBatch(self.client)

    def of_tenant(self, name: str = "contoso", storage: str = "contosostorage", *, shares: bool = True) -> TenantBatch:
        """The account as a worker of this tenant uses it, one whose ledger is empty."""
        is_own = f"https://{storage}.blob.local/data".__eq__
        return TenantBatch(self.client, Tenant(name, storage, lambda _job: (), is_own, self.clock.now, shares=shares))

    def raw(self, method: str, path: str, body: Any = None, expect: int = 200) -> Any:
        """What somebody else does to the account."""
        headers = {"authorization": "Bearer x", "content-type": "application/json"}
        content = b"" if body is None else json.dumps(body).encode()
        answer = self.world.handle(method, path, {"api-version": "2025-06-01"}, headers, content)
        assert answer.status == expect, answer.body
        self.world.advance(2)
        return answer.json() if answer.body else None

    def fault(self, **rule: Any) -> None:
        self.world.faults.add(rule)

    def requests(self, operation: str | None = None) -> list[dict[str, Any]]:
        """What reached the account through the adapter or otherwise."""
        return self.world.events.select("request", **({"operation": operation} if operation else {}))

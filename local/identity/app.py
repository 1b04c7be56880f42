"""The token endpoint of App Service, as Azure documents it: `GET /msi/token` with a secret header."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Collection

from aiohttp import web

from local.identity.tokens import make_token

API_VERSION = "2019-08-01"
DEFAULT_LIFE_SECONDS = 3600


def make_app(
    secret: str,
    life_seconds: int = DEFAULT_LIFE_SECONDS,
    clock: Callable[[], float] = time.time,
    client_ids: Collection[str] | None = None,
) -> web.Application:
    """The endpoint as an aiohttp application.

    `secret` is what callers must send in `X-IDENTITY-HEADER`. `client_ids` are the user-assigned identities that there
    are; None = whichever is asked for. Tokens are never logged; a refused request is answered with a reason that names
    the fault and not the value.
    """

    async def token(request: web.Request) -> web.Response:
        if not hmac.compare_digest(request.headers.get("X-IDENTITY-HEADER", "").encode(), secret.encode()):
            return _refuse(401, "X-IDENTITY-HEADER is missing or wrong")
        if request.query.get("api-version") != API_VERSION:
            return _refuse(400, f"api-version must be {API_VERSION}")
        resource = request.query.get("resource", "")
        if not resource.startswith("https://"):
            return _refuse(400, "resource must be an https URI")
        client_id = request.query.get("client_id")
        if client_ids is not None and client_id is not None and client_id not in client_ids:
            return _refuse(400, "No User Assigned or Delegated Managed Identity found for specified ClientId")
        now = int(clock())
        return web.json_response(
            {
                "access_token": make_token(resource, now, life_seconds),
                "expires_on": str(now + life_seconds),
                "resource": resource,
                "token_type": "Bearer",
            },
            headers={"Cache-Control": "no-store"},
        )

    app = web.Application()
    app.router.add_get("/msi/token", token)
    return app


def _refuse(status: int, message: str) -> web.Response:
    return web.json_response({"statusCode": status, "message": message}, status=status)

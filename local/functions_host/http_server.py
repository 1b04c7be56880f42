"""Serves HTTP triggers under the route prefix, and the host's own status."""

import hmac
from collections.abc import Callable, Sequence
from http.cookies import SimpleCookie
from typing import Any

from aiohttp import web

from local.functions_host import runtime_adapter
from local.functions_host.app_index import FunctionSpec, HttpTrigger
from local.functions_host.invoker import Invoker

_MAX_BODY_BYTES = 100 * 1024 * 1024


class HttpServer:
    """Listens on 127.0.0.1; `url` is known after `start`.

    A function whose auth level is not anonymous wants the function key in `x-functions-key` or `?code=`; without a key
    given to the host it answers 401. `/admin/host/status` answers 200 and tells the state without a key.
    """

    def __init__(
        self,
        functions: Sequence[FunctionSpec],
        invoker: Invoker,
        *,
        route_prefix: str,
        function_key: str,
        status: Callable[[], dict[str, object]],
    ) -> None:
        self._functions = [(function, function.trigger) for function in functions]
        self._invoker = invoker
        self._prefix = f"/{route_prefix}/" if route_prefix else "/"
        self._function_key = function_key
        self._status = status
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def start(self, port: int) -> None:
        """Listen on the port, 0 for a free one. Raises OSError when it is taken."""
        app = web.Application(client_max_size=_MAX_BODY_BYTES)
        app.router.add_get("/admin/host/status", self._host_status)
        app.router.add_route("*", "/{path:.*}", self._dispatch)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Stop listening; running requests get up to a minute."""
        if self._runner is not None:
            await self._runner.cleanup()

    def url_of(self, trigger: HttpTrigger) -> str:
        return f"{self.url}{self._prefix}{trigger.route.template}"

    async def _host_status(self, _request: web.Request) -> web.Response:
        return web.json_response(self._status())

    async def _dispatch(self, request: web.Request) -> web.Response:
        path = request.rel_url.raw_path
        if not path.lower().startswith(self._prefix.lower()):
            return web.Response(status=404)
        for function, trigger in self._functions:
            if not isinstance(trigger, HttpTrigger) or (trigger.methods and request.method not in trigger.methods):
                continue
            route = trigger.route.match(path[len(self._prefix) :])
            if route is not None:
                return await self._call(function, trigger, route, request)
        return web.Response(status=404)

    async def _call(
        self, function: FunctionSpec, trigger: HttpTrigger, route: dict[str, str], request: web.Request
    ) -> web.Response:
        if trigger.auth_level != "ANONYMOUS" and not self._has_key(request):
            return web.Response(status=401)
        value = runtime_adapter.http_request(
            request.method, str(request.url), request.headers, request.query, route, await request.read()
        )
        result = await self._invoker.run_http(function, value)
        if not result.succeeded:
            return web.Response(status=500)
        if result.value is None:
            return web.Response(status=204)
        return _response(*result.value)

    def _has_key(self, request: web.Request) -> bool:
        given = request.headers.get("x-functions-key") or request.query.get("code") or ""
        return bool(self._function_key) and hmac.compare_digest(given.encode(), self._function_key.encode())


def _response(kind: str | None, value: Any) -> web.Response:
    if kind != "http":
        return web.Response(text=str(value))
    headers = {name: datum.value for name, datum in value["headers"].items() if name.lower() != "content-length"}
    response = web.Response(status=int(value["status_code"].value), headers=headers, body=value["body"].value)
    cookies: list[SimpleCookie] = value.get("cookies") or []
    for cookie in cookies:
        for morsel in cookie.values():
            response.headers.add("Set-Cookie", morsel.OutputString())
    return response

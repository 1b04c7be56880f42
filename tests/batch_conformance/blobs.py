"""As much of blob storage as a node needs that brings a task's inputs and takes its outputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qsl, urlsplit

from local.batch.clock import Clock
from local.batch.iso8601 import parse_time

CONTENT = b"input"


@dataclass
class Blobs:
    """Every blob that is asked for is there. `stored` are the paths of those that were brought."""

    url: str
    stored: list[str] = field(default_factory=list)


@contextmanager
def blobs(clock: Clock) -> Iterator[Blobs]:
    """Storage that looks on the emulator's clock whether a signature (`se`) has run out, and then answers 403."""

    class Blob(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self._expired():
                self._answer(403)
            else:
                self._answer(206, {"Content-Range": f"bytes 0-{len(CONTENT) - 1}/{len(CONTENT)}"}, CONTENT)

        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            if self._expired():
                self._answer(403)
            else:
                storage.stored.append(urlsplit(self.path).path)
                self._answer(201)

        def _expired(self) -> bool:
            expiry = dict(parse_qsl(urlsplit(self.path).query)).get("se")
            return bool(expiry) and clock.now() >= parse_time(str(expiry))

        def _answer(self, status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> None:
            self.send_response(status)
            for name, value in {"ETag": '"0x1"', "Content-Length": str(len(body)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_words: object) -> None:
            """Nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Blob)
    storage = Blobs(f"http://127.0.0.1:{server.server_port}/account")
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield storage
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

"""A storage service that answers every request alike, over https, to see what the worker makes of the answer."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from local.certificates import Certificates
from local.stack.azurite import StorageAccount, account_key

NAME = "stubbed"


@dataclass
class Stub:
    """`account` is served with one answer, always the same; `requests` are the methods and paths seen."""

    account: StorageAccount
    requests: list[str] = field(default_factory=list)


@contextmanager
def answering(status: int, code: str, certificates: Certificates) -> Iterator[Stub]:
    """Answer with this status and Azure Storage's error code until the block ends; without a code as a proxy does."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            seen.append(f"{self.command} {self.path}")
            body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
            self.send_response(status)
            if code:
                self.send_header("x-ms-error-code", code)
                self.send_header("x-ms-request-id", "request-1")
                self.send_header("Content-Type", "application/xml")
            else:
                body = b"<html><body><h1>Not found</h1></body></html>"
                self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer

        def log_message(self, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.certificate, certificates.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    url = f"https://127.0.0.1:{server.server_address[1]}/{NAME}"
    try:
        yield Stub(StorageAccount(NAME, account_key(NAME), url, url, url), seen)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

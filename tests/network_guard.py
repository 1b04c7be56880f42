"""A pytest plugin: a test that reaches for another machine fails.

The attempt is refused at once, and it is remembered, so that a test fails also when the code under test takes the
refusal for an outage and goes on.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from typing import Any

import pytest


class NetworkReachedError(OSError):
    """A test tried to reach something that is not on this machine."""


class NetworkGuard:
    """Stands in for the socket functions that name another machine; loopback and Unix sockets pass."""

    def __init__(self) -> None:
        self.attempts: list[str] = []

    def install(self, patch: pytest.MonkeyPatch) -> None:
        for name in ("connect", "connect_ex"):
            patch.setattr(socket.socket, name, self._guarded(getattr(socket.socket, name)))
        patch.setattr(socket.socket, "sendto", self._guarded_sendto(socket.socket.sendto))
        patch.setattr(socket, "getaddrinfo", self._guarded_lookup(socket.getaddrinfo))

    def _guarded(self, real: Any) -> Any:
        def call(sock: socket.socket, address: Any) -> Any:
            self._check(sock.family, address)
            return real(sock, address)

        return call

    def _guarded_sendto(self, real: Any) -> Any:
        def call(sock: socket.socket, data: Any, *rest: Any) -> Any:
            self._check(sock.family, rest[-1])
            return real(sock, data, *rest)

        return call

    def _guarded_lookup(self, real: Any) -> Any:
        def call(host: Any, *rest: Any, **named: Any) -> Any:
            if _is_name(host) and not _is_here(host):
                self._refuse(host)
            return real(host, *rest, **named)

        return call

    def _check(self, family: int, address: Any) -> None:
        if family in (socket.AF_INET, socket.AF_INET6) and not _is_here(address[0]):
            self._refuse(address[0])

    def _refuse(self, host: Any) -> None:
        self.attempts.append(str(host))
        raise NetworkReachedError(f"tests reach this machine only, not {host}")


def _is_here(host: Any) -> bool:
    text = _text(host)
    return text in ("", "localhost") or (not _is_name(text) and ipaddress.ip_address(text).is_loopback)


def _is_name(host: Any) -> bool:
    """Whether it would have to be looked up; an address only gets a socket's form."""
    try:
        ipaddress.ip_address(_text(host))
    except ValueError:
        return True
    return False


def _text(host: Any) -> str:
    return host.decode() if isinstance(host, bytes) else str(host or "")


@pytest.fixture(autouse=True)
def network_guard(monkeypatch: pytest.MonkeyPatch) -> Iterator[NetworkGuard]:
    """Refuses every address outside this machine, and fails the test that tried one."""
    guard = NetworkGuard()
    guard.install(monkeypatch)
    yield guard
    if guard.attempts:
        pytest.fail(f"the test reached for {', '.join(sorted(set(guard.attempts)))}", pytrace=False)

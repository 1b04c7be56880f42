"""The environment of the stack's programs, apart from a tenant's settings."""

from __future__ import annotations

import os
from collections.abc import Mapping

_LOOPBACK = ("127.0.0.1", "localhost")


def child_environment(*added: Mapping[str, str]) -> dict[str, str]:
    """This process's environment plus `added`, with loopback among the hosts that no proxy is used for.

    A proxy that the developer needs stays set; it must only not stand between the local services. Output is not
    buffered, so that a log shows what a killed program said last.
    """
    environment = {**os.environ, **no_proxy(os.environ), "PYTHONUNBUFFERED": "1"}
    for variables in added:
        environment.update(variables)
    return environment


def no_proxy(base: Mapping[str, str]) -> dict[str, str]:
    """`NO_PROXY` and `no_proxy` with loopback in them; what `base` has in either stays."""
    hosts = list(_LOOPBACK)
    for name in ("NO_PROXY", "no_proxy"):
        hosts += [host.strip() for host in base.get(name, "").split(",") if host.strip()]
    value = ",".join(dict.fromkeys(hosts))
    return {"NO_PROXY": value, "no_proxy": value}

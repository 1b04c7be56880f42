"""What a person is told about a running stack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_RUN = "python -m local.stack run"


def report(state: Mapping[str, Any]) -> str:
    """What runs, where to look, and what to try next. The keys shown are well-known local ones."""
    lines = ["", "The local stack is up.", ""]
    lines += [f"  {label:22}{value}" for label, value in _services(state)]
    for tenant, settings in state["settings"].items():
        lines += ["", f"Tenant {tenant}", f"  connection string     {settings['BLOB_CONNECTION_STRING']}"]
        lines += [f"  output container      {settings['AZURE_BATCH_OUTPUT_CONTAINER_URL']}"]
    tenant = next(iter(state["settings"]))
    lines += [
        "",
        "Next",
        f"  send a message        {_RUN} --tenant {tenant} -- python -m local.producer layer",
        f"  watch the logs        tail -f {state['logs']}/*.log",
        f"  watch Batch           tail -f {state['event_log']}",
        "  see this again        python -m local.stack status",
        "  stop                  python -m local.stack down",
        "",
    ]
    return "\n".join(lines)


def _services(state: Mapping[str, Any]) -> list[tuple[str, str]]:
    hosts = [(host["name"], host["url"]) for host in state["hosts"]] or [("functions hosts", "none")]
    return [
        ("Batch", state["batch_url"]),
        ("Batch administration", state["admin_url"]),
        ("identity", state["identity_endpoint"]),
        *hosts,
        ("trusted authority", state["trust"]["SSL_CERT_FILE"]),
        ("event log", state["event_log"]),
        ("logs", state["logs"]),
    ]

"""The result of a demo: `.local/demo/summary.json` and what a person is told."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from local.demo.attempts import attempts
from local.demo.checks import Check
from local.demo.evidence import Evidence
from local.demo.rows import shortened


def summarize(evidence: Evidence, checks: Iterable[Check]) -> dict[str, Any]:
    """`ok`, the jobs with their attempts, and the checks. `seconds` counts from the request to `Processed`."""
    results = list(checks)
    return {
        "ok": bool(results) and all(check.ok for check in results),
        "jobs": [
            {
                "kind": request.kind,
                "tenant": evidence.tenant,
                "entity": request.entity_id,
                "state": evidence.status(request),
                "attempts": [asdict(attempt) for attempt in attempts(evidence, request)],
                "seconds": round((request.shown_at - request.asked_at).total_seconds(), 1)
                if request.shown_at
                else None,
            }
            for request in evidence.requests
        ],
        "checks": [asdict(check) for check in results],
    }


def write(summary: dict[str, Any], path: Path) -> None:
    """As JSON, for people and programs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")


def told(summary: dict[str, Any], short_names: Mapping[str, str]) -> str:
    """The summary in lines for a terminal, with pools called by `short_names` from their ids."""
    lines = []
    for job in summary["jobs"]:
        way = " -> ".join(f"{attempt['pool']} ({attempt['outcome']})" for attempt in job["attempts"]) or "not started"
        lines.append(f"  {job['kind']:12}{job['state']:11} {job['seconds'] or '-':>5} s  {way}")
    lines.append("")
    lines += [
        f"  {'ok  ' if check['ok'] else 'FAIL'}  {check['name']}: {check['detail']}" for check in summary["checks"]
    ]
    return shortened("\n".join(lines), short_names)

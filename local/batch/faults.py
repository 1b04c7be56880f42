"""Faults as data: which requests go wrong, and how.

A rule is a JSON object. What it applies to (absent: everything):

    operation     name of the operation, e.g. "create_task" (see `routes`)
    method        HTTP verb
    route         template such as "/jobs/{job}/tasks", or a regular expression for the whole decoded path
    pool, job, task    id of the resource in the path; for creations the id in the body

What happens:

    status, code, message    the error to answer with; code alone is enough when it is a known one
    retry_after      seconds, sent as Retry-After
    when             "before" (default): nothing is done; "after": the request is carried out, then the error is sent
    drop_connection  true: no answer at all
    delay_seconds    the answer comes so much later; without status, code or drop_connection it is the true answer

How often: `times` (absent: always), or `probability` with `seed`.
"""

import json
import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from local.batch.request import Call
from local.batch.world_file_error import WorldFileError


@dataclass
class Fault:
    """One rule; see the module."""

    operation: str = ""
    method: str = ""
    route: str = ""
    pool: str = ""
    job: str = ""
    task: str = ""
    status: int = 0
    code: str = ""
    message: str = ""
    retry_after: float | None = None
    when: str = "before"
    drop_connection: bool = False
    delay_seconds: float = 0.0
    times: int | None = None
    probability: float = 1.0
    seed: int = 0
    used: int = 0
    chance: random.Random = field(default_factory=random.Random, repr=False)

    def __post_init__(self) -> None:
        if self.when not in ("before", "after"):
            raise WorldFileError(f"a fault's `when` is before or after, not {self.when!r}")
        if not (self.status or self.code or self.drop_connection or self.delay_seconds):
            raise WorldFileError("a fault without status, code, drop_connection or delay_seconds does nothing")
        self.chance.seed(self.seed)

    @property
    def answers(self) -> bool:
        """Whether the true answer is replaced (or dropped)."""
        return bool(self.status or self.code or self.drop_connection)

    def hits(self, call: Call, template: str) -> bool:
        """Whether this request goes wrong; uses up one of `times`."""
        if self.times is not None and self.used >= self.times:
            return False
        if not self._concerns(call, template):
            return False
        if self.probability < 1.0 and self.chance.random() >= self.probability:
            return False
        self.used += 1
        return True

    def _concerns(self, call: Call, template: str) -> bool:
        if self.operation and self.operation != call.operation:
            return False
        if self.method and self.method.upper() != call.request.method:
            return False
        if self.route and not self._on_route(call, template):
            return False
        wanted = {"pool": self.pool, "job": self.job, "task": self.task}
        if not any(wanted.values()):
            return True
        found = call.names() | _id_in_body(call)
        return all(not id or found.get(name, "").lower() == id.lower() for name, id in wanted.items())

    def _on_route(self, call: Call, template: str) -> bool:
        if "{" in self.route and re.sub(r"\{.*?\}", "{}", self.route) == re.sub(r"\{.*?\}", "{}", template):
            return True
        try:
            return re.fullmatch(self.route, call.request.raw_path) is not None
        except re.error:
            return False

    def to_json(self) -> dict[str, Any]:
        """The rule and how often it has been used."""
        return {rule.name: getattr(self, rule.name) for rule in fields(self) if rule.name != "chance"}


class Faults:
    """All rules; the first that hits counts."""

    def __init__(self, rules: Iterable[Mapping[str, Any]] = ()) -> None:
        self.rules: list[Fault] = []
        for rule in rules:
            self.add(rule)

    def add(self, rule: Mapping[str, Any]) -> Fault:
        """Add a rule. WorldFileError names what is wrong with it."""
        unknown = set(rule) - {known.name for known in fields(Fault)} | set(rule) & {"used", "chance"}
        if unknown:
            raise WorldFileError(f"a fault has no property {sorted(unknown)[0]!r}")
        fault = Fault(**rule)
        self.rules.append(fault)
        return fault

    def clear(self) -> None:
        self.rules.clear()

    def hit(self, call: Call, template: str) -> Fault | None:
        """The rule that this request runs into."""
        return next((fault for fault in self.rules if fault.hits(call, template)), None)


def _id_in_body(call: Call) -> dict[str, str]:
    kind = {"create_pool": "pool", "create_job": "job", "create_task": "task"}.get(call.operation)
    if not kind:
        return {}
    try:
        id = json.loads(call.request.body)["id"]
    except (ValueError, KeyError, TypeError):
        return {}
    return {kind: str(id)}

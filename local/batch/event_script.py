"""What happens to an account by itself, as it is written down in the world file.

Each entry of `events` is a line, with times counted from the world's beginning (`90s`, `10m`, `1h30m`, `2d`):

    at TIME ACTION              once
    from TIME to TIME ACTION    begun at the first time and undone at the second; for actions marked with *

Actions. A node is given by its place in the pool, from 0, or as any-running:

    preempt node 0 of h100 [for TIME]       its machine is taken away; `for`: it comes back after that, else as the
    preempt task t1 of job-a [for TIME]     pool says
    node 0 of h100 becomes unusable [for TIME]      or unknown, starttaskfailed
    return node 0 of h100
  * low-priority capacity 0 [of h100]       so many low-priority machines, or `unlimited`; without a pool: for each
  * resize of h100 fails with AllocationFailed      nothing is allocated
    allocation of h100 fails [after 2 nodes]        the next growth, once
    allocation of h100 times out [after 2 nodes]
  * no samples of h100                      autoscale formulas find none

or an object, for a rule of `faults`: {"at": TIME, "fault": {...}} or {"from": TIME, "to": TIME, "fault": {...}}.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from local.batch.faults import Faults
from local.batch.world_file_error import WorldFileError

_UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TIME = r"(?:\d+(?:\.\d+)?[smhd])+"
_LINE = re.compile(rf"(?:at (?P<at>{_TIME})|from (?P<begin>{_TIME}) to (?P<end>{_TIME})) (?P<action>.+)")

_NODE = r"node (?P<node>\d+|any-running) of (?P<pool>[\w-]+)"
_FOR = rf"(?: for (?P<time>{_TIME}))?"
_STATE = r"(?P<state>unusable|unknown|starttaskfailed)"
_ACTIONS = {
    "preempt_node": rf"preempt {_NODE}{_FOR}",
    "preempt_task": rf"preempt task (?P<task>[\w-]+) of (?P<job>[\w-]+){_FOR}",
    "break_node": rf"{_NODE} becomes {_STATE}{_FOR}",
    "return_node": rf"return {_NODE}",
    "capacity": r"low-priority capacity (?P<machines>\d+|unlimited)(?: of (?P<pool>[\w-]+))?",
    "resize_errors": r"resize of (?P<pool>[\w-]+) fails with (?P<code>\w+)",
    "allocation": r"allocation of (?P<pool>[\w-]+) (?P<outcome>fails|times out)(?: after (?P<nodes>\d+) nodes?)?",
    "no_samples": r"no samples of (?P<pool>[\w-]+)",
}
_CAN_BE_UNDONE = ("capacity", "resize_errors", "no_samples")


@dataclass(frozen=True)
class ScriptedEvent:
    """One entry: what to do at `begin_seconds`, and when to undo it (None: never). `parts` are the words of the action
    that differ, "" where the line has none; `fault` is the rule of an action named fault."""

    text: str
    begin_seconds: float
    end_seconds: float | None
    action: str
    parts: Mapping[str, str] = field(default_factory=dict)
    fault: Mapping[str, Any] = field(default_factory=dict)


def read(entry: object) -> ScriptedEvent:
    """An entry of the world file. WorldFileError says what is wrong with it."""
    if isinstance(entry, Mapping):
        return _read_fault(entry)
    line = _LINE.fullmatch(entry) if isinstance(entry, str) else None
    if not line:
        raise WorldFileError(f"an event is 'at TIME ACTION' or 'from TIME to TIME ACTION', not {entry!r}")
    for action, pattern in _ACTIONS.items():
        found = re.fullmatch(pattern, line["action"])
        if found:
            if line["end"] and action not in _CAN_BE_UNDONE:
                raise WorldFileError(f"{entry!r} happens at one time, not from one to another")
            return ScriptedEvent(str(entry), *_period(line), action, found.groupdict(""))
    raise WorldFileError(f"there is no such action: {line['action']!r}")


def seconds(text: str) -> float:
    """`1h30m` in seconds."""
    return sum(float(amount) * _UNIT_SECONDS[unit] for amount, unit in re.findall(r"(\d+(?:\.\d+)?)([smhd])", text))


def _period(line: re.Match[str]) -> tuple[float, float | None]:
    if line["at"]:
        return seconds(line["at"]), None
    begin, end = seconds(line["begin"]), seconds(line["end"])
    if end <= begin:
        raise WorldFileError(f"an event cannot be over at {line['end']} when it begins at {line['begin']}")
    return begin, end


def _read_fault(entry: Mapping[str, Any]) -> ScriptedEvent:
    times = [f"{name} {entry[name]}" for name in ("at", "from", "to") if name in entry]
    line = _LINE.fullmatch(" ".join([*times, "fault"]))
    known = set(entry) <= {"at", "from", "to", "fault"} and isinstance(entry.get("fault"), Mapping)
    if not known or not line or line["action"] != "fault":
        raise WorldFileError("an event that is an object has `at`, or `from` and `to`, and `fault`")
    Faults([entry["fault"]])
    return ScriptedEvent("fault", *_period(line), "fault", fault=dict(entry["fault"]))

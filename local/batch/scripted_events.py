"""Lets the events of the world file happen; `event_script` says what they can be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from local.batch import control
from local.batch.errors import BatchError
from local.batch.event_script import ScriptedEvent, seconds

if TYPE_CHECKING:
    from local.batch.world import World

Parts = Mapping[str, str]


def schedule(world: World) -> None:
    """Plan all events of the world file, from now on."""
    for number, event in enumerate(world.config.events):
        world.after(event.begin_seconds, _begin, number)
        if event.end_seconds is not None:
            world.after(event.end_seconds, _end, number)


def _begin(world: World, number: int) -> None:
    event = world.config.events[number]
    if event.action == "fault":
        world.scripted_faults[number] = world.faults.add(event.fault)
        world.log("scripted_event", text=event.text)
    else:
        _carry_out(world, event, _ACTIONS[event.action], over=False)


def _end(world: World, number: int) -> None:
    event = world.config.events[number]
    if event.action == "fault":
        rule = world.scripted_faults.pop(number, None)
        world.faults.rules[:] = [other for other in world.faults.rules if other is not rule]
        world.log("scripted_event", text=event.text, over=True)
    else:
        _carry_out(world, event, _UNDO[event.action], over=True)


def _carry_out(world: World, event: ScriptedEvent, do: Callable[[World, Parts], None], over: bool) -> None:
    code = None
    try:
        do(world, event.parts)
    except BatchError as error:
        code = error.code  # there is nothing to do it to, such as a node that has left
    world.log("scripted_event", text=event.text, over=over or None, code=code)


def _node_id(world: World, parts: Parts) -> str:
    nodes = list(world.pool(parts["pool"]).nodes)
    if parts["node"] == control.ANY_RUNNING:
        return parts["node"]
    if int(parts["node"]) >= len(nodes):
        raise BatchError("NodeNotFound")
    return nodes[int(parts["node"])]


def _for(parts: Parts) -> dict[str, Any]:
    return {"return_after_seconds": seconds(parts["time"])} if parts["time"] else {}


def _preempt_node(world: World, parts: Parts) -> None:
    control.preempt_node(world, parts["pool"], _node_id(world, parts), **_for(parts))


def _break_node(world: World, parts: Parts) -> None:
    control.preempt_node(world, parts["pool"], _node_id(world, parts), state=parts["state"], **_for(parts))


def _preempt_task(world: World, parts: Parts) -> None:
    control.preempt_task(world, parts["job"], parts["task"], **_for(parts))


def _return_node(world: World, parts: Parts) -> None:
    control.bring_back(world, parts["pool"], _node_id(world, parts))


def _set_capacity(world: World, parts: Parts) -> None:
    machines = None if parts["machines"] == "unlimited" else int(parts["machines"])
    _capacity(world, parts, machines)


def _free_capacity(world: World, parts: Parts) -> None:
    _capacity(world, parts, None)


def _capacity(world: World, parts: Parts, machines: int | None) -> None:
    pools = [world.pool(parts["pool"])] if parts["pool"] else list(world.pools.values())
    for pool in pools:
        control.set_low_priority_available(world, pool.id, machines)


def _fail_resizes(world: World, parts: Parts) -> None:
    control.set_resize_errors(world, parts["pool"], [{"code": parts["code"]}], now=False, later=True)


def _allow_resizes(world: World, parts: Parts) -> None:
    control.set_resize_errors(world, parts["pool"], [], now=False, later=True)


def _script_allocation(world: World, parts: Parts) -> None:
    outcome = {"outcome": "timeout" if parts["outcome"] == "times out" else "fail", "nodes": int(parts["nodes"] or 0)}
    control.script_allocations(world, parts["pool"], [outcome])


def _lose_samples(world: World, parts: Parts) -> None:
    world.pool(parts["pool"]).sampled = False


def _take_samples(world: World, parts: Parts) -> None:
    world.pool(parts["pool"]).sampled = True


_ACTIONS: dict[str, Callable[[World, Parts], None]] = {
    "preempt_node": _preempt_node,
    "preempt_task": _preempt_task,
    "break_node": _break_node,
    "return_node": _return_node,
    "capacity": _set_capacity,
    "resize_errors": _fail_resizes,
    "allocation": _script_allocation,
    "no_samples": _lose_samples,
}
_UNDO: dict[str, Callable[[World, Parts], None]] = {
    "capacity": _free_capacity,
    "resize_errors": _allow_resizes,
    "no_samples": _take_samples,
}

"""The queue listener does what Microsoft's did, scenario by scenario."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

from tests.functions_host.queue_replay import Event, QueueReplay, options_of
from tests.functions_host.recordings import read_lines
from tests.functions_host.virtual_time import run_in_virtual_time

SCENARIOS = read_lines("queue-traces.jsonl")
# Here the recording itself is a race of two failing messages against the polls.
_RACING = {"base64"}


@pytest.fixture(params=SCENARIOS, ids=lambda scenario: scenario["scenario"], scope="module")
def replay(request: pytest.FixtureRequest) -> tuple[dict[str, Any], QueueReplay]:
    scenario: dict[str, Any] = request.param
    replayed = QueueReplay(scenario)
    run_in_virtual_time(replayed.run())
    return scenario, replayed


def test_each_message_has_the_same_life(replay: tuple[dict[str, Any], QueueReplay]) -> None:
    scenario, replayed = replay
    assert _lives(replayed.events) == _lives(scenario["events_ms"])


def test_each_message_lives_at_about_the_same_times(replay: tuple[dict[str, Any], QueueReplay]) -> None:
    scenario, replayed = replay
    recorded, ours = _times(scenario["events_ms"]), _times(replayed.events)
    assert recorded.keys() == ours.keys()
    for life, moments in recorded.items():
        assert ours[life] == pytest.approx(moments, rel=0.3, abs=1500), life


def test_functions_end_the_same_way(replay: tuple[dict[str, Any], QueueReplay]) -> None:
    scenario, replayed = replay
    assert _ends(replayed.events) == _ends(scenario["events_ms"])


def test_poison_messages_move_in_the_same_steps(replay: tuple[dict[str, Any], QueueReplay]) -> None:
    scenario, replayed = replay
    steps = ("max-dequeue-count", "send", "create-queue")
    assert _only(replayed.events, steps) == _only(scenario["events_ms"], steps)


def test_polls_ask_for_the_same(replay: tuple[dict[str, Any], QueueReplay]) -> None:
    scenario, replayed = replay
    for kinds in (("receive",), ("exists?",)):
        recorded = {tuple(map(str, event)) for event in _only(scenario["events_ms"], kinds)}
        assert {tuple(map(str, event)) for event in _only(replayed.events, kinds)} == recorded


def test_polls_find_the_same(replay: tuple[dict[str, Any], QueueReplay]) -> None:
    scenario, replayed = replay
    recorded, ours = _poll_runs(scenario["events_ms"]), _poll_runs(replayed.events)
    if scenario["scenario"] in _RACING:
        assert (ours[0], ours[-1][0]) == (recorded[0], recorded[-1][0])
        return
    assert [found for found, _ in ours] == [found for found, _ in recorded]
    for (found, our_count), (_, count) in zip(ours, recorded, strict=True):
        tolerance = 2 if found in (0, None) else 0  # jitter changes how many empty polls fit in
        assert abs(our_count - count) <= tolerance


def test_waits_follow_the_back_off(replay: tuple[dict[str, Any], QueueReplay]) -> None:
    scenario, replayed = replay
    maximum = options_of(scenario["settings"]).max_polling_seconds * 1000
    for events in (scenario["events_ms"], replayed.events):
        for row, milliseconds in _waits_in_a_row(events):
            low, high = _wait_bounds(row, maximum)
            assert low - 0.001 <= milliseconds <= high + 0.001, (row, milliseconds)


def test_as_many_functions_run_at_once(replay: tuple[dict[str, Any], QueueReplay]) -> None:
    scenario, replayed = replay
    recorded, ours = _most_at_once(scenario["events_ms"]), _most_at_once(replayed.events)
    if recorded > 3:  # else it is chance whether short runs overlap
        assert ours == recorded


def test_nothing_is_received_after_the_stop(replay: tuple[dict[str, Any], QueueReplay]) -> None:
    _, replayed = replay
    kinds = [event[1] for event in replayed.events]
    after = kinds[kinds.index("stopping") + 1 :]
    assert not {"receive", "exists?", "start"} & set(after)
    assert after[-1] == "stopped"


def test_queues_end_the_same(replay: tuple[dict[str, Any], QueueReplay]) -> None:
    scenario, replayed = replay
    assert [_sorted_state(state) for state in replayed.end] == [_sorted_state(state) for state in scenario["end"]]


def test_long_runs_are_renewed_at_half_the_lease() -> None:
    scenario = next(row for row in SCENARIOS if row["scenario"] == "long")
    replayed = QueueReplay(scenario)
    run_in_virtual_time(replayed.run())
    renewals = [event[0] for event in replayed.events if event[1] == "update"]
    assert renewals == pytest.approx([300_000, 600_000], abs=1000)


def _named(events: Iterable[Event]) -> dict[str, list[Event]]:
    """Events that name a message, by message."""
    lives: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event[1] in ("start", "delete", "update", "undecodable"):
            lives[event[2]].append(event)
    return lives


def _life(events: list[Event]) -> tuple[Any, ...]:
    """What happened to a message, in order, without its name and the moment's chance."""
    steps: list[Any] = []
    for event in events:
        if event[1] == "start":
            steps.append(("start", event[3], event[4]["dequeueCount"]))
        else:
            steps.append((event[1], *map(str, event[3:])))
    return tuple(steps)


def _lives(events: list[Event]) -> Counter[tuple[Any, ...]]:
    return Counter(_life(life) for life in _named(events).values())


def _times(events: list[Event]) -> dict[tuple[Any, ...], list[float]]:
    """The sorted moments of all messages that had the same life."""
    times: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for life in _named(events).values():
        times[_life(life)] += [event[0] for event in life]
    return {life: sorted(moments) for life, moments in times.items()}


def _ends(events: list[Event]) -> Counter[str]:
    return Counter(event[2].partition(":")[0] for event in events if event[1] == "ended")


def _only(events: list[Event], kinds: tuple[str, ...]) -> list[Event]:
    return [event[1:] for event in events if event[1] in kinds]


def _poll_runs(events: list[Event]) -> list[tuple[int | None, int]]:
    """(messages found, polls in a row that found as many); None stands for a missing queue."""
    polls: list[int | None] = []
    for event, following in itertools.pairwise(events):
        if event[1] == "stopping":
            break
        if event[1] == "received":
            polls.append(event[2])
        elif event[1] == "exists?" and following[1] == "wait":
            polls.append(None)
    return [(found, len(list(group))) for found, group in itertools.groupby(polls)]


def _waits_in_a_row(events: list[Event]) -> list[tuple[int, float]]:
    """(how many waits since a message was found, milliseconds)."""
    waits: list[tuple[int, float]] = []
    row = 0
    for event in events:
        if event[1] == "received" and event[2]:
            row = 0
        elif event[1] == "wait":
            row += 1
            waits.append((row, event[2]))
    return waits


def _wait_bounds(row: int, maximum: float) -> tuple[float, float]:
    if row == 1:
        return 100.0, 100.0
    growth = 100.0 * 2 ** (row - 2)
    return min(100 + growth * 0.8, maximum), min(100 + growth * 1.2, maximum)


def _most_at_once(events: list[Event]) -> int:
    return max((event[4]["running"] for event in events if event[1] == "start"), default=0)


def _sorted_state(state: list[Any]) -> list[Any]:
    return [*state[:3], sorted(state[3])] if len(state) > 3 else state

"""The demo's story: HASTE's three kinds of work on pools that others use, too, and whose nodes Azure takes away.

Nothing is done to the worker or its records: another tenant sends tasks, and Azure has nodes or has none.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from local.batch.iso8601 import parse_time
from local.demo.deployed_pools import DeployedPools
from local.demo.emulator import Emulator
from local.demo.evidence import entity_of
from local.demo.haste_log import WAITING, WAITING_AGAIN, said
from local.demo.neighbour import Neighbour
from local.demo.scenes import is_quota_error
from local.demo.user import User
from local.demo.watch import Watch


class Scenario:
    """Plays the story, scene by scene."""

    def __init__(
        self,
        user: User,
        neighbour: Neighbour,
        emulator: Emulator,
        watch: Watch,
        pools: DeployedPools,
        task_seconds: float,
    ) -> None:
        self._user = user
        self._neighbour = neighbour
        self._emulator = emulator
        self._watch = watch
        self._pools = pools
        self._task_seconds = task_seconds

    def play(self) -> None:
        """Raises TroubleError."""
        layer = self._prepare_imagery_beside_a_neighbour()
        second = self._ask_for_a_second_layer()
        self._watch.until_processed(layer)
        training = self._train_where_there_is_quota(layer)
        self._lose_its_node(training)
        self._lose_its_node_again(training)
        self._watch.until_processed(training)
        self._watch.until_processed(self._watch.note("inference", self._watch.record(training), follows=True))
        self._infer_again(training)
        self._watch.until_processed(second)

    def _prepare_imagery_beside_a_neighbour(self) -> int:
        h100 = self._pools.h100
        self._watch.say("the account's quota of spot cores is enough for one node of each pool")
        self._watch.say("another tenant sends two tasks to h100")
        self._neighbour.occupy(h100, 2)
        layer = self._user.uploads_a_layer("Cedar Valley")
        self._watch.say("HASTE asks for imagery preparation")
        number = self._watch.note("imageryprep", layer)
        self._user.asks_for_preparation(layer)
        self._watch.until("h100 to be at its quota", lambda: self._is_at_quota(h100))
        self._watch.say("h100 has one node, and no quota for a second one")
        self._watch.until("imageryprep to run on a node", lambda: self._runs("imageryprep"))
        return number

    def _ask_for_a_second_layer(self) -> int:
        """While no pool has a free node or the quota for one."""
        t4 = self._pools.t4
        self._watch.say("the other tenant sends two tasks to t4 as well")
        self._neighbour.occupy(t4, 2)
        self._watch.until("t4 to be at its quota", lambda: self._is_at_quota(t4))
        layer = self._user.uploads_a_layer("Alder Creek")
        self._watch.say("HASTE asks for imagery preparation of a second layer, with both pools at their quota")
        number = self._watch.note("imageryprep", layer, "imageryprep, layer 2")
        self._user.asks_for_preparation(layer)
        self._watch.until("the second layer to wait for capacity", lambda: self._said(number, WAITING))
        self._watch.say(
            "it waits and says why; it is tried again in a minute, or when a newer request would overtake it"
        )
        self._neighbour.leave(t4)
        self._watch.say("the other tenant ends its tasks on t4, not those on h100")
        return number

    def _train_where_there_is_quota(self, layer: int) -> int:
        t4 = self._pools.t4
        self._watch.until("t4 to go back to zero", lambda: self._is_empty(t4))
        self._watch.say("nothing to do on t4: its formula gives the node back")
        model = self._user.draws_labels(self._watch.record(layer))
        self._watch.say(
            f"the user draws {model['labelsCount']} labels; HASTE asks for training, and inference after it"
        )
        number = self._watch.note("training", model)
        self._user.asks_for_training(model)
        self._until_well_under_way(1)
        return number

    def _lose_its_node(self, training: int) -> None:
        """On t4, while h100 is busy; then h100 has a free node."""
        self._emulator.set_spot_nodes(self._pools.t4, 0)
        self._preempt()
        self._watch.say("Azure takes the training's node on t4 away, and has no other there")
        self._watch.until("the training to wait for a node", lambda: self._said(training, WAITING_AGAIN))
        self._neighbour.leave(self._pools.h100)
        self._watch.say("the other tenant ends its tasks on h100: a node is free")
        self._until_well_under_way(2)
        self._emulator.set_spot_nodes(self._pools.t4, None)

    def _lose_its_node_again(self, training: int) -> None:
        """On h100; a node comes, and Batch runs the same task once more."""
        h100 = self._pools.h100
        self._emulator.set_spot_nodes(h100, 0)
        node_id = self._preempt()
        self._watch.say("Azure takes the training's node away a second time, on h100, and has no other there")
        self._watch.until("the training to wait again", lambda: len(self._said(training, WAITING_AGAIN)) > 1)
        self._emulator.set_spot_nodes(h100, None)
        self._emulator.give_back(h100, node_id)
        self._watch.say("Azure has a node for h100 again; Batch runs the task there by itself")

    def _infer_again(self, training: int) -> None:
        self._watch.say("HASTE asks for inference")
        model = self._watch.record(training)
        number = self._watch.note("inference", model)
        self._user.asks_for_inference(model)
        self._watch.until_processed(number)

    def _preempt(self) -> str:
        """Take away the node that the training runs on; its id."""
        latest = self._runs("training")[-1]
        return self._emulator.preempt(str(latest["job"]), str(latest["task"]))

    def _until_well_under_way(self, run: int) -> None:
        """Of the training's first run on a node, its second and so on: a third of its time is over."""

        def is_there() -> bool:
            runs = self._runs("training")
            if len(runs) < run:
                return False
            return (datetime.now(UTC) - parse_time(runs[-1]["time"])).total_seconds() > self._task_seconds / 3

        self._watch.until("training to run on a node" if run == 1 else "training to run elsewhere", is_there)

    def _runs(self, kind: str) -> list[dict[str, str]]:
        """The beginnings of all runs of tasks of this kind."""
        mine = {task.task_id for task in self._emulator.tasks() if entity_of(task)[0] == kind}
        started = [event for event in self._emulator.events() if event["event"] == "task_started"]
        return [dict(event) for event in started if event["task"] in mine]

    def _is_at_quota(self, pool_id: str) -> bool:
        pool = self._emulator.pool(pool_id)
        return any(is_quota_error(error["code"]) for error in pool.get("resizeErrors") or ())

    def _is_empty(self, pool_id: str) -> bool:
        pool = self._emulator.pool(pool_id)
        return (pool["currentLowPriorityNodes"], pool["allocationState"]) == (0, "steady")

    def _said(self, number: int, sentence: re.Pattern[str]) -> list[datetime]:
        """When HASTE's page has said so of a request."""
        return said(self._watch.record(number), self._watch.requests[number], sentence)

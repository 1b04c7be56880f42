"""What goes wrong on a running stack. Each method is one kind of trouble and answers False if it had nothing to hit."""

from __future__ import annotations

import contextlib
import signal
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import requests

from local.stack import BlockingStack
from local.stack.supervisor import Child
from shared.kinds import Entity
from tests.faults.http_stack import POOLS, TENANT
from tests.support.gate import Gate, Hold, Matching, Request
from tests.support.outside import BatchAccount

_QUOTA = {"operation": "create_job", "code": "ActiveJobAndScheduleQuotaReached"}
_API_VERSION = "2025-06-01"
#: With hosts that die in between, a message is still delivered less often than poison is.
_MOST_REFUSALS = 1

#: (Batch job, task)
Place = tuple[str, str]


@dataclass(frozen=True)
class Target:
    """The work that a trouble is meant for. `place`: a live task of it or of another one, or at least a task."""

    entity: Entity
    place: Place | None


Later = Callable[[float, Callable[[], None]], None]


@dataclass(frozen=True)
class Deletions(Matching):
    """The deletions of messages, each of them once."""

    refused: Counter[str] = field(default_factory=Counter)

    def __call__(self, request: Request) -> bool:
        """Whether this one is refused."""
        message = request.path.rpartition("/")[2]
        if not super().__call__(request) or self.refused[message] >= _MOST_REFUSALS:
            return False
        self.refused[message] += 1
        return True


class FaultRules:
    """The emulator's rules, of which it can only forget all at once."""

    def __init__(self, batch: BatchAccount) -> None:
        self._batch = batch
        self._rules: list[dict[str, Any]] = []

    def add(self, rule: dict[str, Any]) -> None:
        """From now on."""
        self._rules.append(rule)
        self._batch.admin("POST", "/faults", rule)

    def remove(self, rule: dict[str, Any]) -> None:
        """The others stay, each with what is left of its times."""
        now = self._batch.admin("GET", "/faults")
        self._batch.admin("DELETE", "/faults")
        left = []
        for one, known in zip(self._rules, now, strict=True):
            if one is rule:
                continue
            if "times" in one:
                one["times"] = known["times"] - known["used"]
            if one.get("times", 1) > 0:
                left.append(one)
        self._rules = left
        if left:
            self._batch.admin("POST", "/faults", left)

    def clear(self) -> None:
        """Everything works again."""
        self._rules = []
        self._batch.admin("DELETE", "/faults")


class Troubles:
    """Everything that can go wrong around the hosts. `later` calls something after so many seconds."""

    def __init__(self, running: BlockingStack, gate: Gate, later: Later) -> None:
        self.batch = BatchAccount(running.stack)
        self.rules = FaultRules(self.batch)
        self.deletions = Deletions("DELETE", "/messages/")
        self._running = running
        self._stack = running.stack
        self._queue_door = gate.door(TENANT, "queue")
        self._blob_door = gate.door(TENANT, "blob")
        self._holds: dict[str, tuple[Hold, contextlib.ExitStack]] = {}
        self._later = later
        self._starter = ThreadPoolExecutor(1)  # a stack is worked on by one thread at a time
        self._down: set[int] = set()
        self._starts: list[Future[None]] = []
        self._standing: set[int] = set()

    # --- Batch

    def answers(self, _target: Target, rule: dict[str, Any], seconds: float) -> bool:
        """Batch answers so for a while, whoever asks."""
        rule = dict(rule)
        self.rules.add(rule)
        self._later(seconds, lambda: self.rules.remove(rule))
        return True

    def preempts(self, target: Target, options: dict[str, Any]) -> bool:
        """The node that the task runs on is taken away; without a return, until the faults stop."""
        if target.place is None:
            return False
        job, task = target.place
        return self._admin("POST", f"/jobs/{job}/tasks/{task}/preempt", options)

    preempts_unnoticed = preempts  # the plan says for how long

    def touches_task(self, target: Target, action: str) -> bool:
        """Somebody deletes or terminates the task."""
        place = target.place
        return place is not None and self._by_hand(action, f"/jobs/{place[0]}/tasks/{place[1]}")

    def touches_job(self, target: Target, action: str) -> bool:
        """Somebody deletes or terminates the task's Batch job, or another one, with all the tasks in it."""
        jobs = [str(job["id"]) for job in self.batch.world()["jobs"] if job["state"] == "active"]
        jobs.sort(key=lambda job: target.place is None or job != target.place[0])
        return bool(jobs) and self._by_hand(action, f"/jobs/{jobs[0]}")

    def ends_job_at_quota(self, target: Target, times: int) -> bool:
        """The job is terminated, and the quota of jobs is used up so often when another is to be made."""
        if not self.touches_job(target, "terminate"):
            return False
        self.rules.add({**_QUOTA, "times": times})
        return True

    def _admin(self, method: str, path: str, body: Any = None) -> bool:
        try:
            self.batch.admin(method, path, body)
        except AssertionError:  # it does not run any more
            return False
        return True

    def _by_hand(self, action: str, path: str) -> bool:
        """A call of somebody with access to the account; False if it failed, or had nothing to hit."""
        method, path = ("DELETE", path) if action == "delete" else ("POST", f"{path}/terminate")
        headers = {"authorization": "Bearer somebody", "content-type": "application/json; odata=minimalmetadata"}
        with contextlib.suppress(requests.RequestException):
            answer = requests.request(
                method,
                f"{self._stack.batch.url}{path}",
                params={"api-version": _API_VERSION},
                headers=headers,
                verify=str(self._stack.certificates.authority),
                timeout=20,
            )
            return answer.ok
        return False

    # --- queues and storage

    def messages_come_twice(self, _target: Target, seconds: float) -> bool:
        """Messages cannot be deleted for a while: each that was dealt with meanwhile comes again after its lease."""
        refusing = contextlib.ExitStack()
        refusing.enter_context(self._queue_door.refusing(self.deletions, 403, "AuthorizationFailure"))
        self._later(seconds, refusing.close)
        return True

    def write_comes_late(self, target: Target, state: str, seconds: float) -> bool:
        """The write that brings this work's record into a state is under way for so long, and others overtake it."""
        name = target.entity.key
        if name not in self._holds:
            matching = Matching("PUT", rf"/haste-worker/active/{name}\.json", {"x-ms-meta-state": state})
            holding = contextlib.ExitStack()
            self._holds[name] = holding.enter_context(self._blob_door.hold(matching, "before")), holding
        try:
            self._holds[name][0].wait(0)
        except TimeoutError:  # it has not come yet
            return False
        self._later(seconds, lambda: self._let_go(name))
        return True

    def _let_go(self, name: str) -> None:
        if name in self._holds:
            hold, holding = self._holds.pop(name)
            hold.release()
            holding.close()

    def storage_is_away(self, _target: Target, seconds: float) -> bool:
        """Storage does not answer for a while. HASTE's API cannot use it either, so nothing else happens meanwhile."""
        (azurite,) = (child for child in self._stack.supervisor.children if child.name == "azurite")
        azurite.signal_group(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            azurite.signal_group(signal.SIGCONT)
        return True

    # --- hosts

    def kills_host(self, _target: Target, host: int, down_seconds: float) -> bool:
        """SIGKILL; it is started again after a while."""
        if host in self._down:
            return False
        self._down.add(host)
        self._child(host).signal_group(signal.SIGKILL)
        self._later(down_seconds, lambda: self._start(host))
        return True

    def host_stands_still(self, _target: Target, host: int, seconds: float) -> bool:
        """It stops in the middle of what it does, and goes on later as if nothing had been."""
        if host in self._down or host in self._standing:
            return False
        child = self._child(host)
        self._standing.add(host)
        child.signal_group(signal.SIGSTOP)

        def end() -> None:
            child.signal_group(signal.SIGCONT)
            self._standing.discard(host)

        self._later(seconds, end)
        return True

    def _child(self, host: int) -> Child:
        return self._stack.hosts[host].service.child

    def _start(self, host: int) -> None:
        def start() -> None:
            self._running.restart_host(host)
            self._down.discard(host)

        self._starts.append(self._starter.submit(start))

    # --- the end

    def stop(self) -> None:
        """All that was taken comes back; what ends later by itself has ended before."""
        self.rules.clear()
        for name in list(self._holds):
            self._let_go(name)
        for start in self._starts:
            start.result(60)
        for node in self.batch.world()["nodes"]:
            if node["pool"] in POOLS and node["state"] in ("preempted", "unusable"):
                self._admin("POST", f"/pools/{node['pool']}/nodes/{node['id']}/return")

    def close(self) -> None:
        """No thread is left behind."""
        self._starter.shutdown()

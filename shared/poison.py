"""Empties the poison queues: every message is kept, and no request among them ends in silence.

A timer does this, not triggers: a failing trigger on a poison queue would hide its message for ten minutes.
"""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from shared import adopting
from shared.errors import InvalidMessage
from shared.haste.messages import Wish, parse_message
from shared.haste.workload import Outcome, Result, Run
from shared.kinds import Kind
from shared.rejected import Rejected
from shared.storage.queues import QueueReader
from shared.worker import Worker

log = structlog.get_logger(__name__)

_MOST_AT_ONCE = 32
_SENTENCE = "The request could not be taken in; please start it again"


def empty(worker: Worker, rejected: Rejected, queues: QueueReader, names: Mapping[str, Kind | None]) -> None:
    """Keep and account for what lies in the poison queues. `names`: queue -> HASTE kind, None for our own queue."""
    for queue_name, kind in names.items():
        poison_name = f"{queue_name}-poison"
        for message in queues.take(poison_name, _MOST_AT_ONCE):
            body = message.text.encode()
            reason = "it failed too often"
            if kind is not None:
                try:
                    reason = _account_for(worker, kind, message.message_id, body)
                except InvalidMessage as invalid:
                    reason = invalid.reason
            rejected.keep(queue_name, message.message_id, body, f"from {poison_name}: {reason}")
            queues.delete(message)


def _account_for(worker: Worker, kind: Kind, message_id: str, body: bytes) -> str:
    """What the message's request has come to; a request that never became a job is shown as failed."""
    parsed = parse_message(body, kind)
    if worker.ledger.read(parsed.entity.key) is not None:
        return "its job is live and goes on"
    if parsed.wish is Wish.POLL:
        # no live record, so that it does not matter how long the message has been on its way
        taken_over = adopting.adopt(worker, parsed, message_id, worker.now())
        return f"a poll message that failed too often; {'its task is taken over' if taken_over else 'nothing to do'}"
    if parsed.wish is Wish.CANCEL:
        return "a cancel message that failed too often; its job is not live"
    outcome = Outcome(Result.FAILED, _SENTENCE, worker.now())
    change = worker.workloads[parsed.entity.kind].finished(Run(parsed.entity, request_id=""), outcome)
    if worker.haste.show_failure(parsed.entity, change):
        return "it failed too often before it became a job; HASTE's record shows the failure"
    return "it failed too often; HASTE's record does not wait for it"

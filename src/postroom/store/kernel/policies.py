"""Delivery policies of queues: lease time, attempts, order, dead letters.

A queue without a policy uses the default lease time, free order, and unlimited attempts.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from postroom.limits import (
    BACKOFF_SECONDS_MAX,
    LEASE_SECONDS,
    WORKER_ATTEMPTS_AT_ONCE,
    WORKER_BACKOFF_SECONDS,
    WORKER_BACKOFF_SECONDS_MAX,
)
from postroom.model.moment import in_microseconds
from postroom.store.kernel.journal import JournaledTable
from postroom.store.kernel.queues import Queue

_FIND = "SELECT policy FROM policies WHERE queue = ?"
_ALL = "SELECT q.name, p.policy FROM policies p JOIN queues q ON q.id = p.queue ORDER BY q.name"
_SET = """
INSERT INTO policies (queue, policy, ordered, limited) VALUES (?, ?, ?, ?)
ON CONFLICT (queue) DO UPDATE SET policy = excluded.policy, ordered = excluded.ordered, limited = excluded.limited
"""
_REMOVE = "DELETE FROM policies WHERE queue = ?"
FREE, STRICT = ORDERS = ("free", "strict")
DEAD_LETTERS, DROP, REFUSE = "dead-letters", "drop", "refuse"
#: What of the engine's failures is tried again: those that may pass, or every one.
PASSING, EVERY = RETRIES = ("passing", "all")
#: The classes of failures that may pass: a worker that was ended, a queue or a partner that is not there now.
_PASSING = ("system", "network")


class Policy(NamedTuple):
    """The delivery policy of a queue. Times are in seconds."""

    lease: float = LEASE_SECONDS
    attempts: int | None = None  # None: as many as it takes
    backoff: float = 0.0  # before the second attempt; twice as long before each one after
    backoff_max: float = BACKOFF_SECONDS_MAX
    dead_letters: str | None = None  # the queue for what failed at its last attempt
    order: str = FREE  # strict: the next message waits while one is leased
    by: str | None = None  # a property: messages with the same value are delivered one after another
    expired: str = DROP  # or dead-letters: what becomes of a message that has expired
    max_messages: int | None = None
    max_bytes: int | None = None  # of the bodies of messages that are in it
    max_age: float | None = None  # of the oldest message that waits
    over: str = REFUSE  # or dead-letters: the oldest go there, until there is room
    retry: str = PASSING  # or all: what is tried again if a rule, an arc or a counter fails

    def dead_letters_of(self, queue: str) -> str:
        """The name of the queue for dead letters of a queue with this policy."""
        return self.dead_letters or f"{queue}.dead"

    @property
    def ordered(self) -> bool:
        """Whether delivery depends on leased messages."""
        return self.order != FREE or self.by is not None

    @property
    def limited(self) -> bool:
        """Whether a send must check for room."""
        return not (self.max_messages is self.max_bytes is self.max_age is None)

    def is_last(self, attempts: int) -> bool:
        """Whether a message with so many attempts is not delivered again."""
        return self.attempts is not None and attempts >= self.attempts

    def ends(self, failure: str, attempts: int) -> bool:
        """Whether the engine stops retrying a message after so many attempts and this class of failure."""
        return self.is_last(attempts) or (self.retry == PASSING and failure not in _PASSING)

    def delay(self, attempts: int) -> int:
        """Microseconds until the next attempt: random, between half and all of a doubling time."""
        from secrets import randbelow  # few programs need it

        whole = in_microseconds(min(self.backoff * 2 ** min(attempts - 1, 40), self.backoff_max)) if self.backoff else 0
        return whole // 2 + randbelow(whole // 2 + 1)

    def as_dict(self) -> dict[str, Any]:
        """The settings that differ from the defaults."""
        return {name: value for name, value in self._asdict().items() if value != self._field_defaults[name]}

    def text(self) -> str:
        """As it is stored."""
        return json.dumps(self.as_dict(), ensure_ascii=False, separators=(",", ":"), sort_keys=True)


NO_POLICY = Policy()
_OF_WORKERS = Policy(backoff=WORKER_BACKOFF_SECONDS, backoff_max=WORKER_BACKOFF_SECONDS_MAX)


def delay_of_worker(policy: Policy, attempts: int) -> int:
    """Microseconds until a worker's next attempt: it does not call its function again at once, for ever."""
    late = attempts - WORKER_ATTEMPTS_AT_ONCE
    if policy.backoff or policy.attempts is not None or late < 0:
        return policy.delay(attempts)
    return _OF_WORKERS.delay(late + 1)


class Policies(JournaledTable):
    def of(self, queue: Queue) -> Policy:
        text = self._session.value(_FIND, (queue.id,))
        return NO_POLICY if text is None else Policy(**json.loads(text))

    def all(self) -> dict[str, Policy]:
        return {row[0]: Policy(**json.loads(row[1])) for row in self._session.rows(_ALL)}

    def set(self, queue: Queue, policy: Policy) -> bool:
        """Set a queue's policy; False if unchanged."""
        if self.of(queue) == policy:
            return False
        if policy == NO_POLICY:
            self._session.run(_REMOVE, (queue.id,))
        else:
            self._session.run(_SET, (queue.id, policy.text(), int(policy.ordered), int(policy.limited)))
        self._journal.add("policy", target=queue.id, detail=policy.as_dict())
        return True

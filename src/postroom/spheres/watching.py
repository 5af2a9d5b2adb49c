"""Watched states: a queue gets a message for each entity that enters a state of a machine.

The message says which entity came, from where and why. It is made from the journal, so no entity is missed; the journal
position is stored in the same commit, so each is reported once.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import partial
from time import monotonic, perf_counter
from typing import Any

from postroom.engine.blocked import Blocked
from postroom.engine.holding import LEASE
from postroom.engine.steps.effects import Document
from postroom.engine.steps.failures import Failure, error_body, error_queue
from postroom.engine.steps.stage import Result, Stage, Turn
from postroom.errors import ArgumentInvalid, BodyError
from postroom.limits import PAGE_ROWS, RETRY_SECONDS
from postroom.model.message import NO_PROPERTIES, Draft
from postroom.store.kernel.base import Store
from postroom.store.kernel.batch import Batch
from postroom.store.kernel.queues import STATE, SYSTEM_ERRORS, Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.tokens import Come, Watch


class Watching(Stage):
    """A stage of the engine, without Spark."""

    def steps(self, turn: Turn) -> Generator[Result] | None:
        due = [watch for watch in turn.store.read(_due) if watch.target not in turn.waiting]
        return self._run(turn, due) if due else None

    def _run(self, turn: Turn, due: list[Watch]) -> Generator[Result]:
        for watch in due:
            began = perf_counter()
            with turn.store.acting(f"state {watch.state}"):
                result = turn.store.transact("watch", partial(_tell, turn=turn, watch=watch))
            if result.messages or result.blocked:
                result.seconds = {"commit": perf_counter() - began}
                yield result


def _due(tx: Transaction) -> list[Watch]:
    return [watch for watch in tx.tokens.watches() if tx.tokens.come(watch.state, watch.seen, 1)]


def _tell(tx: Transaction, turn: Turn, watch: Watch) -> Result:
    """Report the next arrivals in a state. The state's queue is locked, so all lower journal numbers are committed."""
    tx.leases.check(LEASE, turn.fence)
    queues = tx.queues.locked_all((watch.state, watch.target, SYSTEM_ERRORS))
    target = queues.get(watch.target)
    come = tx.tokens.come(watch.state, watch.seen, PAGE_ROWS)
    if not come:
        return Result()
    if target is None or target.retired or not target.accepts:
        return Result(blocked=Blocked(watch.state, come[0].token, watch.target))
    for arrival in come:
        _put(tx, turn, target, arrival, queues.get(SYSTEM_ERRORS))
    tx.tokens.see(watch, come[-1].seq)
    return Result(messages=len(come), created=len(come), claimed=len(come), more=len(come) == PAGE_ROWS)


def _put(tx: Transaction, turn: Turn, target: Queue, come: Come, errors: Queue | None) -> None:
    """Put one arrival; if the queue refuses it, because it is a space of another type, put an error message."""
    draft = Draft.of(told(come))
    if not target.admission:
        tx.messages.put(target, draft, come.token)
        return
    try:
        puts = turn.admit(tx, target, [draft])
    except BodyError as refusal:
        failure = Failure("message", refusal.code, str(refusal), f"state {come.state}")
        body = error_body(failure, target.name, come.token, Document(come.token, draft.format, None, draft.body))
        tx.messages.put(errors or error_queue(tx), Draft(body, "xml", None, NO_PROPERTIES), come.token)
        return
    Batch(tx).write([put._replace(cause=come.token) for put in puts], 0)


def told(come: Come) -> dict[str, Any]:
    """The content of the message about an arrival."""
    return {"entity": come.entity, "state": come.state, "before": come.before or "", "reason": come.reason or ""}


def watch(store: Store, state: str, target: str, *, wanted: bool) -> None:
    """Start or stop reporting arrivals in a state to a queue."""

    def work(tx: Transaction) -> None:
        if wanted:
            _check_state(tx, state)
            tx.tokens.watch(state, target, tx.journal.newest())
        else:
            tx.tokens.unwatch(state, target)

    store.transact("watch", work)


def follow(store: Store, state: str, wait: float | None) -> Iterator[dict[str, Any]]:
    """The entities in a state, and new arrivals, until none has come for ``wait`` seconds."""

    def now(tx: Transaction) -> list[Come]:
        _check_state(tx, state)
        return list(tx.tokens.waiting(state))

    with store.waiter() as waiter:
        arrivals, seen, last = store.read(now), 0, monotonic()
        while True:
            for arrival in arrivals:
                yield told(arrival)
                seen, last = max(seen, arrival.seq), monotonic()
            if wait is not None and monotonic() - last >= wait:
                return
            waiter.wait(RETRY_SECONDS)
            arrivals = store.read(partial(_come, state=state, after=seen))


def _come(tx: Transaction, state: str, after: int) -> list[Come]:
    return tx.tokens.come(state, after, PAGE_ROWS)


def _check_state(tx: Transaction, state: str) -> None:
    queue = tx.queues.named_to_read(state)
    if queue is None or queue.kind != STATE:
        raise ArgumentInvalid(argument="state", why=f"{state} is not a state of a machine, or nothing was ever in it")

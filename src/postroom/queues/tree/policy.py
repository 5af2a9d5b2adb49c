"""Policies of queues: validation, for descriptions and commands, and whether a queue can have one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from postroom.engine.steps import attempts
from postroom.errors import ArgumentInvalid, NameInvalid
from postroom.limits import (
    ATTEMPTS_MAX,
    BATCH_MESSAGES_MAX,
    BODY_BYTES_MAX,
    DELAY_SECONDS_MAX,
    LEASE_SECONDS_MAX,
    PROPERTY_BYTES_MAX,
)
from postroom.queues.tree.addressing import Names, live, names_of, queues_of, unowned
from postroom.queues.tree.administration import check_queue_name
from postroom.queues.tree.description import POLICY_CLAUSES
from postroom.store.kernel.base import Store
from postroom.store.kernel.policies import DEAD_LETTERS, DROP, NO_POLICY, ORDERS, REFUSE, RETRIES, STRICT, Policy
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.transaction import Transaction


def seconds(least: float, most: float) -> Callable[[Any], str | None]:
    def why(value: Any) -> str | None:
        fits = isinstance(value, (int, float)) and math.isfinite(value) and least <= value <= most
        return None if fits else f"seconds from {least:g} to {most:.0f}"

    return why


def whole(least: int, most: int) -> Callable[[Any], str | None]:
    def why(value: Any) -> str | None:
        fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        return None if fits else f"a whole number from {least} to {most}"

    return why


def word(*words: str) -> Callable[[Any], str | None]:
    def why(value: Any) -> str | None:
        return None if value in words else f"one of {', '.join(words)}"

    return why


def _property(value: Any) -> str | None:
    fits = isinstance(value, str) and value.strip() == value and value.isprintable() and value
    return None if fits and len(value.encode()) <= PROPERTY_BYTES_MAX else "the name of a property"


def _queue_name(value: Any) -> str | None:
    try:
        check_queue_name(value)
    except NameInvalid as error:
        return str(error)
    return None


#: Of each field why a value is none, unless it is.
_RULES: dict[str, Callable[[Any], str | None]] = {
    "lease": seconds(0.001, LEASE_SECONDS_MAX),
    "attempts": whole(1, ATTEMPTS_MAX),
    "backoff": seconds(0, DELAY_SECONDS_MAX),
    "backoff_max": seconds(0, DELAY_SECONDS_MAX),
    "dead_letters": _queue_name,
    "order": word(*ORDERS),
    "by": _property,
    "expired": word(DROP, DEAD_LETTERS),
    "max_messages": whole(1, 1_000 * BATCH_MESSAGES_MAX),
    "max_bytes": whole(1, 1_000_000 * BODY_BYTES_MAX),
    "max_age": seconds(0.001, DELAY_SECONDS_MAX),
    "over": word(REFUSE, DEAD_LETTERS),
    "retry": word(*RETRIES),
}
_NULLABLE = {name for name, value in Policy._field_defaults.items() if value is None}


def checked(policy: Policy) -> Policy:
    """A valid policy; raises and names what is not."""
    for name, value in policy._asdict().items():
        why = None if value is None and name in _NULLABLE else _RULES[name](value)
        if why is not None:
            raise ArgumentInvalid(argument=name, why=why)
    if policy.backoff > policy.backoff_max:
        why = f"the longest wait, {policy.backoff_max:g} seconds, is less than the first, {policy.backoff:g} (backoff)"
        raise ArgumentInvalid(argument="backoff_max", why=why)
    if policy.by is not None and policy.order == STRICT:
        raise ArgumentInvalid(argument="by", why="a strict order is one for all messages; use one of the two")
    return policy


def of_words(pairs: Iterable[tuple[str, str]]) -> Policy:
    """The policy in a description."""
    made: dict[str, Any] = {}
    for name, value in pairs:
        default = Policy._field_defaults[name]
        number = name in ("attempts", "max_messages", "max_bytes", "max_age") or isinstance(default, float)
        if number and not (value.isascii() and value.isdigit() and len(value) <= 12):
            raise ArgumentInvalid(argument=name, why=f"{value} is not a whole number")
        kind: Callable[[str], Any] = (
            float if isinstance(default, float) or name == "max_age" else int if number else str
        )
        made[name] = kind(value)
    return checked(Policy(**made))


def clauses(policy: Policy) -> Iterator[str]:
    """A policy as clauses of a description."""
    by_name = {clause.name: (word, clause) for word, clause in POLICY_CLAUSES.items()}
    for name, value in policy.as_dict().items():
        if name == "by":
            yield f'ORDER IS BY "{value}"'
            continue
        keyword, clause = by_name[name]
        words = f'"{value}"' if clause.quoted else f"{value:g} SECONDS" if clause.seconds else str(value).upper()
        yield f"{keyword} IS {words}"


def check_setting(tx: Transaction, queue: Queue, policy: Policy) -> None:
    """Raise if a queue cannot deliver so: the engine takes messages in its own order."""
    attempts.check_read(queue, policy, tx.queues.watcher(queue))
    if policy.dead_letters == queue.name:
        raise ArgumentInvalid(argument="dead_letters", why="a queue cannot be that of its own dead letters")
    before = tx.policies.of(queue)
    if (policy.order, policy.by) != (before.order, before.by) and tx.deliveries.aside(queue, 1):
        why = f"{queue.name} has messages that are leased or wait; change its order when it has none"
        raise ArgumentInvalid(argument="order", why=why)
    goal = None if policy.dead_letters is None else tx.queues.named_to_read(policy.dead_letters)
    if goal is not None:
        unowned(goal)
        if goal.admission:
            why = f"{goal.name} checks what enters it, and dead letters enter as they are; name another queue"
            raise ArgumentInvalid(argument="dead_letters", why=why)


class PolicySetting:
    """Reads and sets the policies of queues."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, queue: Names) -> dict[str, Policy]:
        """The policy of each queue of a reference."""
        names = names_of(queue)
        return self._store.read(lambda tx: {match.name: tx.policies.of(match) for match in queues_of(tx, names)})

    def change(self, queue: Names, changes: dict[str, Any]) -> list[str]:
        """Change the named settings only; returns the queues whose policy changed."""
        names = names_of(queue)

        def work(tx: Transaction) -> list[str]:
            changed = []
            for candidate in queues_of(tx, names):
                present = live(tx, candidate, names)
                policy = checked(tx.policies.of(present)._replace(**changes))
                check_setting(tx, present, policy)
                if tx.policies.set(present, policy):
                    changed.append(present.name)
            tx.wake()
            return changed

        return self._store.transact("policy", work)

    def reset(self, queue: Names) -> list[str]:
        """Remove the policies; returns the queues that changed."""
        return self.change(queue, NO_POLICY._asdict())

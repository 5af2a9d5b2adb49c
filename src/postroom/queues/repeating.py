"""Repeated sends of several messages: the first result is stored with its idempotency key, in the same commit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from itertools import chain
from typing import NamedTuple, TypeVar

from postroom.errors import ArgumentInvalid
from postroom.limits import IDEMPOTENCY_CHARS_MAX
from postroom.model.body import is_text
from postroom.model.key import KeyTexts, key_number
from postroom.model.message import Draft, draft_hash
from postroom.queues.results import Delivery, Distributed, SentMany
from postroom.queues.tree.addressing import Names
from postroom.store.kernel.transaction import Transaction

T = TypeVar("T", bound=SentMany | Distributed)


class Repeat(NamedTuple):
    """A send that may be repeated: its key, and a hash of its content."""

    name: str
    fingerprint: bytes

    @classmethod
    def of(cls, key: str | None, verb: str, given: Iterable[tuple[Names, Draft]]) -> Repeat | None:
        """The repeat of a send; None without a key."""
        if key is None:
            return None
        whole = blake2b(verb.encode(), digest_size=16)
        for names, draft in given:
            whole.update(draft_hash("/".join(names), draft))
        return cls(checked_key(key), whole.digest())


class UsersKey(str):
    """A key as the room stores it for a user of a server, who has keys of their own; errors show what the user gave."""

    given: str

    @classmethod
    def of(cls, user: str, key: str, stored: str | None = None) -> UsersKey:
        made = cls(f"{user}/{key}" if stored is None else stored)
        made.given = key
        return made

    def __repr__(self) -> str:
        return repr(self.given)


def checked_key(key: str) -> str:
    """A valid key; raises for any other."""
    given = key.given if isinstance(key, UsersKey) else key
    if not 0 < len(given) <= IDEMPOTENCY_CHARS_MAX or not is_text(given):
        raise ArgumentInvalid(argument="idempotency key", why=f"1 to {IDEMPOTENCY_CHARS_MAX} characters of text")
    return key


def once(tx: Transaction, repeat: Repeat | None, read: Callable[[str], T], send: Callable[[], T]) -> T:
    """Send, unless it was sent with this key; both calls return the same. ``read`` decodes the stored result."""
    if repeat is None:
        return send()
    answer = tx.receipts.answer(*repeat)
    if answer is not None:
        return read(answer)
    sent = send()
    first = _first(sent)
    if first is not None:  # where nothing was sent, there is nothing to repeat
        tx.receipts.add(repeat.name, key_number(first), repeat.fingerprint, _written(sent))
    return sent


def _first(sent: SentMany | Distributed) -> str | None:
    if isinstance(sent, SentMany):
        return sent.keys[0] if sent.keys else None
    return next((delivery.key for delivery in sent.deliveries if delivery.key), None)


def _written(sent: SentMany | Distributed) -> str:
    if isinstance(sent, Distributed):
        return json.dumps({"status": sent.status, "deliveries": [list(delivery) for delivery in sent.deliveries]})
    return json.dumps({"status": sent.status, "runs": _runs([key_number(key) for key in sent.keys])})


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    """Runs of consecutive numbers: a send usually has one."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == sum(runs[-1]):
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    return runs


def sent_many(answer: str) -> SentMany:
    told = json.loads(answer)
    return SentMany(
        KeyTexts([*chain.from_iterable(range(at, at + count) for at, count in told["runs"])]), told["status"]
    )


def distributed(answer: str) -> Distributed:
    told = json.loads(answer)
    return Distributed(tuple(Delivery(*delivery) for delivery in told["deliveries"]), told["status"])

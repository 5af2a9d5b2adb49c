"""The options of the Spark data source: which room and queue, and how to read or write there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from postroom.errors import ArgumentInvalid, QueueUnknown
from postroom.limits import BATCH_MESSAGES_MAX, SCAN_MESSAGES, SCAN_PARTITIONS_MAX
from postroom.model.definitions import nearest
from postroom.model.key import key_number
from postroom.model.moment import to_microseconds
from postroom.store import absolute, open_store
from postroom.store.kernel.base import Store
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.registry import check_actor
from postroom.store.tables.scans import END, Wanted

STATES = ("processed", "unprocessed")  # by their number in the store
READING = ("room", "path", "queue", "partitions", "corrupt", "key", "state", "type", "since", "until")
STREAMING = ("room", "path", "queue", "partitions", "corrupt", "maxPerBatch", "startingOffset")
WRITING = ("room", "path", "queue", "actor", "checkpointLocation")


@dataclass(frozen=True)
class Place:
    """A queue of a room, as a process elsewhere finds it."""

    url: str
    queue: str
    actor: str = "spark"

    def open(self) -> Store:
        return open_store(self.url, actor=self.actor, create=False)

    def find(self, tx: Transaction) -> Queue:
        """The queue by its name or path; a retired one can still be read."""
        present = tx.queues.named_to_read(self.queue)
        if present is None:
            present = next((queue for queue in tx.queues.below(self.queue) if queue.path == self.queue), None)
        if present is None:
            known = [name for pair in tx.queues.names() for name in pair]
            raise QueueUnknown(queue=self.queue, nearest=nearest(self.queue, known) or QueueUnknown.listing)
        return present


@dataclass(frozen=True)
class Choice:
    """A filter of messages."""

    states: tuple[str, ...]
    keys: tuple[int, ...] | None
    wanted: Wanted


def place(options: Mapping[str, str], known: tuple[str, ...]) -> Place:
    """Where to read or write. Raises for an unknown option, so that a misspelt one is not ignored."""
    names = {name.lower() for name in known}
    for name in options:
        if name.lower() not in names:
            close = nearest(name.lower(), sorted(names))
            raise ArgumentInvalid(argument=f"option {name}", why=f"there is none{close}")
    room = options.get("room") or options.get("path")
    if not room:
        raise ArgumentInvalid(argument="option room", why="give the path or the PostgreSQL URL of a room")
    queue = options.get("queue")
    if not queue:
        raise ArgumentInvalid(argument="option queue", why="give the name of a queue")
    actor = options.get("actor") or "spark"
    check_actor("option actor", actor)
    # Tasks may run in another folder than the one where the path was meant.
    return Place(absolute(room), queue, actor)


def choice(options: Mapping[str, str]) -> Choice:
    """The filters that the store applies, so that less is sent to Spark."""
    states = (word(options, "state", STATES),) if "state" in options else STATES
    keys = [key_number(key.strip()) for key in options.get("key", "").split(",")] if "key" in options else None
    since = _moment(options, "since")
    until = _moment(options, "until")
    created = (-END if since is None else since, END if until is None else until - 1)
    once = None if keys is None else tuple(dict.fromkeys(keys))
    return Choice(states, once, Wanted(created=created, type=options.get("type")))


def word(options: Mapping[str, str], name: str, known: tuple[str, ...]) -> str:
    """One of a few words; the first is the default."""
    value = options.get(name, known[0])
    if value not in known:
        raise ArgumentInvalid(argument=f"option {name}", why=f"{value!r} is not one of: {', '.join(known)}")
    return value


def partitions(options: Mapping[str, str]) -> int | None:
    return _count(options, "partitions", SCAN_PARTITIONS_MAX)


def batch_max(options: Mapping[str, str]) -> int | None:
    return _count(options, "maxPerBatch", BATCH_MESSAGES_MAX)


def parts(wish: int | None, messages: int) -> int:
    """The number of partitions: at most one for each message."""
    wanted = wish or min(-(-messages // SCAN_MESSAGES), SCAN_PARTITIONS_MAX)
    return max(1, min(wanted, messages))


def _moment(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    try:
        return to_microseconds(datetime.fromisoformat(text))
    except ValueError:
        why = f"{text!r} is not a time such as 2026-01-31T12:00:00Z"
        raise ArgumentInvalid(argument=f"option {name}", why=why) from None


def _count(options: Mapping[str, str], name: str, most: int) -> int | None:
    value = options.get(name)
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and len(value) < 10 and 1 <= int(value) <= most):
        raise ArgumentInvalid(argument=f"option {name}", why=f"{value!r} is not a number from 1 to {most}")
    return int(value)

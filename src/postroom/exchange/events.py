"""What happened to messages, in the order of the journal, read a page at a time.

Each page is a transaction of its own, so that a long export holds none open. Lines of a journal never change; later
lines are left out, and lines that are archived meanwhile are read from the archive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from postroom.limits import JOURNAL_PAGE_ROWS
from postroom.model.key import key_number, key_text
from postroom.model.moment import to_iso
from postroom.model.place import place_of
from postroom.model.progress import OnProgress
from postroom.store.kernel.archives import Archive
from postroom.store.kernel.base import Store
from postroom.store.kernel.causes import Origin
from postroom.store.kernel.journal import Event, archived_events
from postroom.store.kernel.transaction import Transaction

_ROOTS_KNOWN_MAX = 200_000


class Happening(NamedTuple):
    """One event of one message."""

    seq: int
    time: str
    verb: str
    message: int
    source: str | None
    target: str | None
    by: str
    partners: tuple[int, ...]  # messages that were handled together with it

    @property
    def activity(self) -> str:
        """The activity: verb and queue."""
        place = self.target or self.source
        return f"{self.verb} {place}" if place else self.verb

    @property
    def key(self) -> str:
        return key_text(self.message)


@dataclass
class Passed:
    """What an export has left out."""

    of_room: int = 0  # events that are about no message
    damaged: int = 0  # lines that no longer say what was written


def happenings(store: Store, passed: Passed, progress: OnProgress | None = None) -> Iterator[list[Happening]]:
    """All events of messages until now, page by page."""
    until = store.read(lambda tx: tx.journal.newest())
    for page in _events(store, until):
        yield [_happening(event) for event in page if _is_told(event, passed)]
        if progress is not None and page:
            progress(page[-1].seq, until)


def _events(store: Store, until: int) -> Iterator[list[Event]]:
    seq = 0
    while seq < until:
        archives, names, page = store.read(partial(_next_page, seq))
        if not archives and not page:
            return
        for events in [page] if page else archived_events(archives, names):
            fresh = [event for event in events if seq < event.seq <= until]
            if fresh:
                yield fresh
        seq = page[-1].seq if page else archives[-1].last


def _next_page(after: int, tx: Transaction) -> tuple[list[Archive], dict[int | None, str], list[Event]]:
    return tx.journal.next_page(after, JOURNAL_PAGE_ROWS)


def _is_told(event: Event, passed: Passed) -> bool:
    if event.damaged:
        passed.damaged += 1
    elif event.key is None:
        passed.of_room += 1
    return not event.damaged and event.key is not None


def _happening(event: Event) -> Happening:
    assert event.key is not None
    partners = (event.detail or {}).get("with", ())
    return Happening(
        event.seq,
        to_iso(event.time),
        event.verb,
        key_number(event.key),
        place_of(event.source),
        place_of(event.target),
        event.by,
        tuple(key_number(key) for key in partners),
    )


class Origins:
    """Looks up causes and types of many messages at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._roots: dict[int, int] = {}  # those that were asked for last

    def of(self, messages: set[int]) -> dict[int, Origin]:
        """Origins by message; messages that this store never had are missing."""
        return self._store.read(lambda tx: tx.causes.origins(messages))

    def roots(self, messages: set[int]) -> dict[int, int]:
        """The first message in the chain of causes of each."""
        known, above = self._roots, dict[int, int]()
        wanted = {message for message in messages if message not in known}
        while wanted:
            origins = self.of(wanted)
            above |= {message: _cause(origins.get(message), message) for message in wanted}
            wanted = {cause for cause in map(above.__getitem__, wanted) if cause not in above and cause not in known}
        roots = {message: self._climb(message, above) for message in messages}
        for message in messages:
            known.pop(message, None)  # what is used stays
            known[message] = roots[message]
        while len(known) > _ROOTS_KNOWN_MAX:
            del known[next(iter(known))]
        return roots

    def _climb(self, message: int, above: dict[int, int]) -> int:
        while message not in self._roots and above[message] != message:
            message = above[message]
        return self._roots.get(message, message)


def _cause(origin: Origin | None, message: int) -> int:
    """The cause of a message; itself if it has none. Raises if the cause is not older."""
    cause = origin.cause if origin is not None else None
    return cause if cause is not None and cause != message else message

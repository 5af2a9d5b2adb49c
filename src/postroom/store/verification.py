"""Whether the tables of a store are what its journal comes to, row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from postroom.errors import JournalTooOld
from postroom.limits import DIFFERENCES_MAX, JOURNAL_PAGE_ROWS
from postroom.model.key import key_text
from postroom.store.replay import Counts, Place, Settings, Told, told
from postroom.store.session import Row
from postroom.store.transaction import Transaction

_MESSAGES = """
SELECT key, queue, state, position, number, coalesce(last, position), processed FROM messages
WHERE key > ? ORDER BY key LIMIT ?
"""
_DEPARTED = "SELECT key, last FROM departed WHERE key > ? ORDER BY key LIMIT ?"
_QUEUES = "SELECT id, name, kind, path, ordinal, keep, command, command_seconds, hold, retired, door FROM queues"
_COUNTS = """
SELECT q.id, max/*scalar*/(q.arrived, coalesce((
    SELECT m.number FROM messages m WHERE m.queue = q.id AND m.state = 1 ORDER BY m.position DESC LIMIT 1
), 0)), q.departed, q.processed FROM queues q
"""
_LOCKS = "SELECT queue, message, segment FROM locks"
_TOKENS = "SELECT machine, entity, message FROM tokens"
_DOSSIERS = "SELECT message, station, name FROM dossiers"
_TIMERS = "SELECT id, kind, due FROM timers"
_OUTBOX = "SELECT id, state, attempts FROM outbox"
_NODES = "SELECT name FROM nodes"
_STATIONS = "SELECT name, node FROM stations"
_PRINCIPALS = "SELECT kind, name FROM principals"
_VERSION = "SELECT coalesce(max(version), 0), count(*) FROM versions"


class Difference(NamedTuple):
    """Something of which the journal and the tables say different things, or the journal itself."""

    what: str
    journal: str | None  # None if there is nothing of it
    tables: str | None

    def as_dict(self) -> dict[str, Any]:
        return self._asdict()


@dataclass(frozen=True, slots=True)
class Verified:
    """How much a journal tells of, and where the tables differ from it: the first differences, if there are many."""

    lines: int
    messages: int
    departed: int
    queues: int
    differences: tuple[Difference, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "lines": self.lines,
            "messages": self.messages,
            "departed": self.departed,
            "queues": self.queues,
            "differences": [each.as_dict() for each in self.differences],
        }


def verified(tx: Transaction) -> Verified:
    """Replay the journal and compare; ``tx`` must be one unchanging picture of the store."""
    known = told(tx.journal.lines())
    if known.older is not None:
        raise JournalTooOld(line=known.older)
    size = (known.lines, len(known.messages), len(known.departed), len(known.queues))
    return Verified(*size, tuple(islice(_differences(tx, known), DIFFERENCES_MAX)))


def _differences(tx: Transaction, known: Told) -> Iterator[Difference]:
    for line, why in known.broken:
        yield Difference(f"line {line}", why, None)
    session = tx.session
    yield from _compared("queue", known.queues, ((row[0], Settings(*row[1:])) for row in session.rows(_QUEUES)))
    yield from _compared("counts of queue", known.counts, ((row[0], Counts(*row[1:])) for row in session.rows(_COUNTS)))
    messages = ((row[0], Place(*row[1:])) for row in _pages(tx, _MESSAGES))
    yield from _compared("message", known.messages, messages, key_text)
    yield from _compared("departed message", known.departed, _pages(tx, _DEPARTED), key_text)
    yield from _compared("lock of queue", known.locks, ((row[0], row[1:]) for row in session.rows(_LOCKS)))
    yield from _compared("token", known.tokens, ((row[:2], row[2]) for row in session.rows(_TOKENS)))
    dossiers = {(message, *each): True for message, some in known.dossiers.items() for each in some}
    yield from _compared("dossier", dossiers, ((row, True) for row in session.rows(_DOSSIERS)))
    yield from _compared("timer", known.timers, ((row[0], row[1:]) for row in session.rows(_TIMERS)))
    yield from _compared("effect", known.outbox, ((row[0], row[1:]) for row in session.rows(_OUTBOX)))
    yield from _compared("node", dict.fromkeys(known.nodes), ((row[0], None) for row in session.rows(_NODES)))
    yield from _compared("station", known.stations, session.rows(_STATIONS))
    principals = dict.fromkeys(known.principals)
    yield from _compared("principal", principals, ((row, None) for row in session.rows(_PRINCIPALS)))
    versions = {"highest": known.version, "count": known.version}
    found = session.row(_VERSION) or (0, 0)
    yield from _compared("versions", versions, zip(("highest", "count"), found, strict=True))


def _compared(
    what: str, known: dict[Any, Any], rows: Iterable[Any], named: Callable[[Any], str] = str
) -> Iterator[Difference]:
    """Pass through the rows of a table as pairs; what is left of the known at the end is in no row."""
    for key, row in rows:
        if key not in known:
            yield Difference(f"{what} {named(key)}", None, _shown(row, None))
        else:
            expected = known.pop(key)
            if expected != row:
                yield Difference(f"{what} {named(key)}", _shown(expected, row), _shown(row, expected))
    for key, expected in known.items():
        yield Difference(f"{what} {named(key)}", _shown(expected, None), None)


def _shown(value: Any, other: Any) -> str:
    """A value; of one with names, those parts that another has otherwise."""
    if not hasattr(value, "_asdict"):
        return str(value)
    parts = value._asdict()
    others = {} if other is None else other._asdict()
    return ", ".join(f"{name} {part}" for name, part in parts.items() if other is None or part != others[name])


def _pages(tx: Transaction, statement: str) -> Iterator[Row]:
    after = 0
    while page := tx.session.rows(statement, (after, JOURNAL_PAGE_ROWS)):
        yield from page
        after = page[-1][0]

"""Compares the tables of a store with a replay of its journal, row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, NamedTuple

from postroom.errors import JournalTooOld
from postroom.limits import DIFFERENCES_MAX, JOURNAL_PAGE_ROWS
from postroom.model.key import key_text
from postroom.store.kernel.archive_folder import Digest
from postroom.store.kernel.archives import Archive
from postroom.store.kernel.journal import Line
from postroom.store.kernel.queues import ARRIVALS, DEPARTED, PROCESSED, TALLIED
from postroom.store.kernel.selections import Entry
from postroom.store.kernel.transaction import Transaction
from postroom.store.proof import snapshot
from postroom.store.proof.audit import Audit
from postroom.store.proof.replay import Broken, Counts, Place, Replay, Settings, Tables, Told, told

PLACES = """
SELECT key, queue, state, position, number, coalesce(last, position), processed, attempts, priority, due, expires, lane
FROM messages
WHERE key > ? ORDER BY key LIMIT ?
"""
_DEPARTED = "SELECT key, last FROM departed WHERE key > ? ORDER BY key LIMIT ?"
_QUEUES = "SELECT id, name, kind, path, ordinal, keep, command, command_seconds, hold, retired, door FROM queues"
COUNTS = "SELECT q.id, " + ARRIVALS + ", " + DEPARTED + ", " + PROCESSED + " FROM queues q" + TALLIED
_LOCKS = "SELECT queue, message, segment FROM locks"
_TOKENS = "SELECT machine, entity, message FROM tokens"
_DOSSIERS = "SELECT message, station, name FROM dossiers"
_TIMERS = "SELECT id, kind, due FROM timers"
_OUTBOX = "SELECT id, state, attempts FROM outbox"
_NODES = "SELECT name FROM nodes"
_GATEWAYS = "SELECT name, transport FROM endpoints"
_STATIONS = "SELECT name, node FROM stations"
_PRINCIPALS = "SELECT kind, name FROM principals"
_ARCHIVES = "SELECT last, digest FROM archives"
_RETENTIONS = "SELECT kind, microseconds FROM retentions"
_LEASES = "SELECT fence, message FROM deliveries"
_POLICIES = "SELECT queue, policy FROM policies"
_SCHEDULES = "SELECT name, due FROM schedules"
_VERSION = "SELECT coalesce(max(version), 0), count(*) FROM versions"


class Difference(NamedTuple):
    """A difference between journal and tables, or damage of the journal itself."""

    what: str
    journal: str | None  # None if there is nothing of it
    tables: str | None

    def as_dict(self) -> dict[str, Any]:
        return {"differs": self.what, "by_journal": self.journal, "by_tables": self.tables}


@dataclass(frozen=True, slots=True)
class Verified:
    """The size of a journal, and the first differences."""

    lines: int
    messages: int
    departed: int
    queues: int
    differences: tuple[Difference, ...]
    uncovered: int = 0  # lines from before digests: what they say is not checked
    archived: int = 0  # of the lines
    older: int = 0  # lines of earlier versions that did not say all: for the rest, the tables were believed

    def as_dict(self) -> dict[str, Any]:
        return {
            "lines": self.lines,
            "message_count": self.messages,
            "departed": self.departed,
            "queue_count": self.queues,
            "differences": [difference.as_dict() for difference in self.differences],
            "archived": self.archived,
            "older": self.older,
            "uncovered": self.uncovered,
        }


def verified(tx: Transaction, *, archives: bool = False) -> Verified:
    """Replay the journal and compare; ``tx`` must be a consistent snapshot.

    For the archived part the stored result is used; with ``archives`` it is read and replayed, too.
    """
    reading, audit = _Reading(tx), Audit(tx.journal.gapless())
    begin = reading.archives(audit) if archives else beginning(tx)
    known = told(audit.of(tx.journal.lines()), begin, tables(tx))
    if audit.broken:  # then it is the damage that an old line seems to lack something
        known.unknown = None
    outcome = compared(tx, known, chain(reading.differences, _of_lines(audit.broken), _unsound(tx)))
    return replace(outcome, uncovered=audit.uncovered)


def tables(tx: Transaction) -> Tables:
    """Stored data for lines of earlier versions."""
    queues = {row[0]: Settings(*row[1:]) for row in tx.session.rows(_QUEUES)}
    tokens = {row[2]: (row[0], row[1]) for row in tx.session.rows(_TOKENS)}
    return Tables(queues, lambda: dict(tx.session.pages(_DEPARTED, JOURNAL_PAGE_ROWS)), tokens)


def beginning(tx: Transaction) -> Told | None:
    """The result of the archived lines; None if there are none."""
    state = tx.journal.archives.state()
    return None if state is None else snapshot.read(state)


def compared(tx: Transaction, known: Told, before: Iterable[Difference] = ()) -> Verified:
    """Compare the result of a replay with the tables."""
    if known.unknown is not None:
        raise JournalTooOld(line=known.unknown)
    archived = tx.journal.archives.all()
    gone = len(known.departed) + sum(archive.departed for archive in archived)
    size = (known.lines, len(known.messages), gone, len(known.queues))
    differences = tuple(islice(chain(before, _of_lines(known.broken), _differences(tx, known)), DIFFERENCES_MAX))
    lines = sum(archive.lines for archive in archived)
    return Verified(*size, differences, archived=lines, older=len(known.older))


class _Reading:
    """Reads archives from their beginning: whether they are complete, and match the recorded result."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.differences: list[Difference] = []

    def archives(self, audit: Audit) -> Told:
        replay = Replay(None, tables(self._tx))
        for archive in self._tx.journal.archives.all():
            shelf, digest = archive.shelf(), Digest()
            for rows in shelf.every("lines"):
                digest.add(rows)
                for line in audit.of(Line(*row) for row in shelf.lines(rows)):
                    replay.hear(line)
            self._departed(replay.told, archive, digest)
            if digest.text() != archive.digest:
                self._differ(f"archive {archive.folder}", archive.digest, digest.text())
        noted = self._tx.journal.archives.state()
        if noted is not None and not snapshot.is_of(noted, replay.told):
            self._differ(f"line {archive.last}", "what the archives come to", "what is noted of them")
        return replay.told

    def _departed(self, told: Told, archive: Archive, digest: Digest) -> None:
        """An archive's messages that were deleted by its end; no table has them now."""
        for rows in archive.shelf().every("departed"):
            digest.add(rows)
            for key, last, *_ in rows:
                if told.departed.pop(key, None) != last:
                    self._differ(f"departed message {key_text(key)}", None, f"{last} in {archive.folder}")

    def _differ(self, what: str, journal: str | None, tables: str | None) -> None:
        self.differences.append(Difference(what, journal, tables))


def damaged(tx: Transaction) -> tuple[Difference, ...]:
    """Damage that the database finds in its own files, including indexes."""
    return tuple(Difference("the file", None, damage) for damage in tx.session.damage())


def _of_lines(broken: Iterable[Broken]) -> Iterator[Difference]:
    for line, why in broken:
        yield Difference(f"line {line}", why, None)


def _unsound(tx: Transaction) -> Iterator[Difference]:
    """What does not match its hash or digest."""
    for key, _ in tx.soundness.unsound(None, DIFFERENCES_MAX)[1]:
        yield Difference(f"message {key_text(key)}", None, "it no longer says what was sent")
    for definition in tx.definitions.unsound():
        yield Difference(f"definition {definition}", None, "it no longer says what was loaded")


def _differences(tx: Transaction, known: Told) -> Iterator[Difference]:
    session = tx.session
    yield from _compared("queue", known.queues, ((row[0], Settings(*row[1:])) for row in session.rows(_QUEUES)))
    yield from _compared("counts of queue", known.counts, ((row[0], Counts(*row[1:])) for row in session.rows(COUNTS)))
    yield from _compared("message", known.messages, places(tx, known), key_text)
    yield from _compared("departed message", known.departed, tx.session.pages(_DEPARTED, JOURNAL_PAGE_ROWS), key_text)
    yield from _compared("lock of queue", known.locks, ((row[0], row[1:]) for row in session.rows(_LOCKS)))
    yield from _compared("token", known.tokens, ((row[:2], row[2]) for row in session.rows(_TOKENS)))
    dossiers = {(message, *dossier): True for message, some in known.dossiers.items() for dossier in some}
    yield from _compared("dossier", dossiers, ((row, True) for row in session.rows(_DOSSIERS)))
    yield from _compared("timer", known.timers, ((row[0], row[1:]) for row in session.rows(_TIMERS)))
    yield from _compared("effect", known.outbox, ((row[0], row[1:]) for row in session.rows(_OUTBOX)))
    yield from _compared("node", dict.fromkeys(known.nodes), ((row[0], None) for row in session.rows(_NODES)))
    yield from _compared("gateway", known.gateways, session.rows(_GATEWAYS))
    yield from _compared("station", known.stations, session.rows(_STATIONS))
    principals = dict.fromkeys(known.principals)
    yield from _compared("principal", principals, ((row, None) for row in session.rows(_PRINCIPALS)))
    versions = {"highest": known.version, "count": known.version}
    archives = ((row[0], row[1]) for row in session.rows(_ARCHIVES))
    yield from _compared("archive that ends with line", known.archives, archives)
    yield from _compared("retention of", known.retentions, session.rows(_RETENTIONS))
    yield from _compared("lease", known.leases, session.rows(_LEASES))
    yield from _compared("policy of queue", known.policies, session.rows(_POLICIES))
    yield from _compared("schedule", known.schedules, session.rows(_SCHEDULES))
    counted = session.row(_VERSION) or (0, 0)
    yield from _compared("versions", versions, zip(("highest", "count"), counted, strict=True))
    missing, left_over = tx.selections.differences(DIFFERENCES_MAX)
    yield from _compared("selector entry", _entries(missing), _entries(left_over).items(), _entry_name)


def _entries(some: Iterable[Entry]) -> dict[tuple[int, str], Entry]:
    """By message and property."""
    return {(entry.message, entry.name): entry for entry in some}


def _entry_name(key: tuple[int, str]) -> str:
    message, name = key
    return f"{name} of {key_text(message)}"


def places(tx: Transaction, known: Told) -> Iterator[tuple[int, Place]]:
    """The place of each message.

    Its line number counts as its arrival number, because stores that do not count arrivals number messages so. For an
    archived arrival it is unknown.
    """
    for key, *row in tx.session.pages(PLACES, JOURNAL_PAGE_ROWS):
        place = Place(*row)
        expected = None if tx.session.counts_arrivals else known.messages.get(key)
        if expected is not None and place.number == known.came.get(key, place.number):
            place = place._replace(number=expected.number)
        yield key, place


def _compared(
    what: str, known: dict[Any, Any], rows: Iterable[Any], named: Callable[[Any], str] = str
) -> Iterator[Difference]:
    """Compare rows with the known pairs; those that remain are in no row."""
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
    """A value; for a record, only the parts that differ."""
    if not hasattr(value, "_asdict"):
        return str(value)
    parts = value._asdict()
    others = {} if other is None else other._asdict()
    return ", ".join(f"{name} {part}" for name, part in parts.items() if other is None or part != others[name])

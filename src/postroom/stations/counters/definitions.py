"""Counters, which connect queues and stations: from text to definitions, and how they are stored.

    counter north at North takes CLAIM from CLAIMS NORTH
    counter archive at Archive gives to settled

The first brings messages of a queue into a station's mailbox, as forms of a type; the second brings a station's mail
into a queue.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from postroom.engine.steps.attempts import check_reader
from postroom.engine.steps.failures import error_queue
from postroom.errors import DefinitionUnknown, FormInvalid, StationInUse
from postroom.model.definitions import Definition, Loaded, Position, Problem, nearest, refuse
from postroom.stations.places.names import mailbox
from postroom.stations.versions import ByVersion, load
from postroom.store.kernel.queues import CLOSED, MAILBOX, SYSTEM_ERRORS, Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.definitions import COUNTER

WATCHER = "counters"  # who takes the messages of a queue
_NOWHERE = Position("counter", 1)
_SHAPE = "counter NAME at STATION takes TYPE from QUEUE, or: counter NAME at STATION gives to QUEUE"
_COUNTER = re.compile(
    r"counter\s+(?P<name>[A-Za-z_]\w*)\s+at\s+(?P<station>\S.*?)\s+"
    r"(?:takes\s+(?P<type>\S.*?)\s+from|gives\s+to)\s+(?P<queue>\S.*)"
)


class Way(StrEnum):
    TAKES = "takes"  # from a queue
    GIVES = "gives"  # to a queue


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter as written. The queue is a name, or the names of a path separated by blanks."""

    name: str
    station: str
    queue: str
    type: str | None = None  # what it takes; one that gives takes whatever comes
    position: Position = field(default=_NOWHERE, compare=False)

    def __str__(self) -> str:
        what = f"gives to {self.queue}" if self.type is None else f"takes {self.type} from {self.queue}"
        return f"counter {self.name} at {self.station} {what}"

    @property
    def way(self) -> Way:
        return Way.GIVES if self.type is None else Way.TAKES


def parse(row: str, position: Position) -> Counter:
    """Parse a counter's line."""
    match = _COUNTER.fullmatch(" ".join(row.split()))
    if match is None:
        refuse(FormInvalid, [Problem(position, _SHAPE, "syntax")])
    return Counter(match["name"], match["station"], match["queue"], match["type"], position)


# --- checks ---


@dataclass(frozen=True)
class Subject:
    """All counters as proposed, with what they refer to. Without a room, only the files are known."""

    counters: Sequence[Counter]
    types: Collection[str]
    stations: Collection[str] | None = None
    queues: Mapping[str, Queue | None] = field(default_factory=dict)  # by what is written; None: there is none
    watched: Mapping[str, str] = field(default_factory=dict)  # queues whose messages others take, and who
    busy: Mapping[str, str] = field(default_factory=dict)  # stations with procedures, and one of them
    paths: Collection[str] = ()  # known names of queues, for advice

    def place(self, counter: Counter) -> str:
        """The queue of a counter by its physical name."""
        queue = self.queues.get(counter.queue)
        return counter.queue if queue is None else queue.name


Found = Iterator[tuple[Counter, str]]


def counter_stations(subject: Subject) -> Found:
    """A counter's station exists."""
    for counter in subject.counters:
        if subject.stations is not None and counter.station not in subject.stations:
            name = counter.station
            advice = nearest(name, subject.stations) or f"; make it with: postroom station add {name}"
            yield counter, f"there is no station {name}{advice}"


def counter_types(subject: Subject) -> Found:
    """A counter that takes messages has a message type for them."""
    for counter in subject.counters:
        if counter.type is not None and counter.type not in subject.types:
            yield counter, f"there is no type {counter.type}{nearest(counter.type, subject.types)}"


def counter_queues(subject: Subject) -> Found:
    """The other side is one queue that is not owned by others."""
    for counter in subject.counters:
        if counter.queue not in subject.queues:
            continue
        queue = subject.queues[counter.queue]
        if queue is None:
            advice = f"{nearest(counter.queue, subject.paths)}; name one, not a level"
            yield counter, f"there is no queue {counter.queue}{advice}"
        elif queue.kind in CLOSED:
            yield counter, f"{counter.queue} is not for everyone's messages: it is a queue of kind {queue.kind}"


def counter_sources(subject: Subject) -> Found:
    """Messages of a queue, and mail of a station, have only one counter that takes them."""
    seen: dict[tuple[Way, str], Counter] = {}
    for counter in subject.counters:
        takes = counter.way is Way.TAKES
        source = subject.place(counter) if takes else counter.station
        first = seen.setdefault((counter.way, source), counter)
        if first is not counter:
            what = f"the messages of {counter.queue}" if takes else f"the mail of {counter.station}"
            yield counter, f"{what} are taken by counter {first.name}"
        elif takes and source in subject.watched:
            yield counter, f"the messages of {counter.queue} are taken by {subject.watched[source]}"
        elif not takes and counter.station in subject.busy:
            yield counter, f"the mail of {counter.station} is handled by procedure {subject.busy[counter.station]}"


def counter_loops(subject: Subject) -> Found:
    """Messages do not circulate through counters alone."""
    ways: dict[tuple[str, str], list[tuple[tuple[str, str], Counter]]] = {}
    for counter in subject.counters:
        queue, station = ("queue", subject.place(counter)), ("station", counter.station)
        source, goal = (queue, station) if counter.way is Way.TAKES else (station, queue)
        ways.setdefault(source, []).append((goal, counter))

    def reached(start: tuple[str, str]) -> set[tuple[str, str]]:
        goals, left = set(), [start]
        while left:
            for goal, _ in ways.get(left.pop(), ()):
                if goal not in goals:
                    goals.add(goal)
                    left.append(goal)
        return goals

    for source, some in ways.items():
        for goal, counter in some:
            if counter.way is Way.GIVES and (source == goal or source in reached(goal)):
                way = f"{counter.queue} would come back to {counter.station}"
                yield counter, f"what it gives to {way} by counters, for ever"


CHECKS: tuple[Callable[[Subject], Found], ...] = (
    counter_stations,
    counter_types,
    counter_queues,
    counter_sources,
    counter_loops,
)


def check(subject: Subject) -> None:
    """Raise for counters that break a rule."""
    problems = [
        Problem(counter.position, f"counter {counter.name}: {what}", check.__name__.replace("_", "-"))
        for check in CHECKS
        for counter, what in check(subject)
    ]
    if problems:
        refuse(FormInvalid, problems)


# --- as they are kept ---


@dataclass(frozen=True, slots=True)
class Kept:
    """A counter in force."""

    counter: Counter
    queue: str  # its name: paths may change
    since: int

    @property
    def source(self) -> str:
        """The queue that messages are taken from."""
        return self.queue if self.counter.way is Way.TAKES else mailbox(self.counter.station)

    @property
    def goal(self) -> str:
        """The queue that messages are put into."""
        return mailbox(self.counter.station) if self.counter.way is Way.TAKES else self.queue


class Counters(ByVersion[tuple[int, list[Kept]]]):
    """The counters of a room, with their version."""

    def __init__(self) -> None:
        super().__init__(lambda tx: (tx.definitions.version(), kept(tx)))


def kept(tx: Transaction, version: int | None = None) -> list[Kept]:
    """Every counter, in the order of definition."""
    return [_kept(definition) for definition in tx.definitions.of_kind(COUNTER, version)]


def named(tx: Transaction, name: str) -> Kept:
    known = {present.counter.name: present for present in kept(tx)}
    if name not in known:
        raise DefinitionUnknown(name=f"counter {name}", nearest=nearest(name, known))
    return known[name]


def check_no_counter(tx: Transaction, station: str) -> None:
    """Raise if a station to be removed has a counter."""
    at = [present.counter.name for present in kept(tx) if present.counter.station == station]
    if at:
        raise StationInUse(name=station, why=f"counter {at[0]} is there; postroom counter remove {at[0]}")


def _kept(definition: Definition) -> Kept:
    counter = parse(definition.body["text"], definition.position or _NOWHERE)
    return Kept(counter, definition.body["queue"], definition.since)


def proposed(
    tx: Transaction | None, new: Sequence[Counter], types: Collection[str], busy: Mapping[str, str]
) -> Subject:
    """The counters after a load, with new ones replacing those of the same name."""
    names = {counter.name for counter in new}
    if tx is None:
        return Subject(new, types, busy=busy)
    old = [present for present in kept(tx) if present.counter.name not in names]
    # A queue that has gone under a counter that is there is told of by its state: it is no reason to refuse a load.
    there = {present.counter.queue: tx.queues.named_to_read(present.queue) for present in old}
    queues: dict[str, Queue | None] = {
        path: queue for path, queue in there.items() if queue is not None and not queue.retired
    }
    queues |= {counter.queue: _queue(tx, counter.queue) for counter in new}
    takers = {queue.name: tx.queues.watcher(queue) for queue in queues.values() if queue is not None}
    watched = {
        name: f"{taker}; put a queue in between" for name, taker in takers.items() if taker not in (None, WATCHER)
    }
    watched[SYSTEM_ERRORS] = "people alone: it is the end of all errors"
    paths = [path.replace("/", " ") for _, path in tx.queues.names()]
    counters = [*(present.counter for present in old), *new]
    return Subject(counters, types, tx.nodes.stations(), queues, watched, busy, paths)


def _queue(tx: Transaction, name: str) -> Queue | None:
    """The queue, by name or by path."""
    queue = tx.queues.named_to_read(name)
    if queue is not None and not queue.retired:
        return queue
    path = "/".join(name.replace("/", " ").split())
    below = tx.queues.below(path)
    return below[0] if below and below[0].path == path else None


def load_within(tx: Transaction, new: Sequence[Counter], subject: Subject, files: Sequence[str]) -> Loaded:
    """Add counters, and new versions of them; others stay."""
    check(subject)
    before = _sources(tx)
    bodies = {counter.name: {"text": str(counter), "queue": subject.place(counter)} for counter in new}
    wanted = [Definition(COUNTER, counter.name, bodies[counter.name], counter.position) for counter in new]
    loaded = load(tx, COUNTER, wanted, files, "counter ")
    if loaded.added or loaded.changed:
        _watch(tx, before)
        _furnish(tx, [mailbox(counter.station) for counter in new])
    return loaded


def _furnish(tx: Transaction, boxes: Sequence[str]) -> None:
    """Create the queues that steps need, so that they can be locked in one order."""
    error_queue(tx)
    for box in boxes:
        if tx.queues.named_to_read(box) is None:
            tx.queues.create(box, MAILBOX, path=box)


def remove(tx: Transaction, name: str) -> None:
    """Remove a counter; messages stay where they are."""
    named(tx, name)
    before = _sources(tx)
    tx.definitions.change(COUNTER, [name], [], {"removed": name})
    _watch(tx, before)
    tx.wake()


def _sources(tx: Transaction) -> set[str]:
    return {present.queue for present in kept(tx) if present.counter.way is Way.TAKES}


def _watch(tx: Transaction, before: set[str]) -> None:
    """Mark the queues whose messages counters take, and unmark others."""
    after = _sources(tx)
    for name, queue in tx.queues.locked_all(before | after).items():
        if name in after:
            check_reader(tx, queue, WATCHER)
        tx.queues.set_watcher(queue, WATCHER, name in after)

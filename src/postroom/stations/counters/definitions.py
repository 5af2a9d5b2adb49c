"""Counters: where queues and stations meet. What they are, from text to frozen definitions, and how they are kept.

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

from postroom.engine.steps.failures import SYSTEM_ERRORS, error_queue
from postroom.errors import DefinitionUnknown, FormInvalid
from postroom.model.definitions import Definition, Loaded, Position, Problem, compared, nearest, refuse
from postroom.stations.places.names import mailbox
from postroom.store.kernel.queues import CLOSED, MAILBOX, Queue
from postroom.store.kernel.transaction import Transaction

KIND = "counter"
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
    """As it is written. The queue is a name, or the names of a path with blanks between them."""

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
    """A counter from its line."""
    match = _COUNTER.fullmatch(" ".join(row.split()))
    if match is None:
        refuse(FormInvalid, [Problem(position, _SHAPE, "syntax")])
    return Counter(match["name"], match["station"], match["queue"], match["type"], position)


# --- checks ---


@dataclass(frozen=True)
class Subject:
    """All counters as they would be, with what they need. Without a room, only what files say is known."""

    counters: Sequence[Counter]
    types: Collection[str]
    stations: Collection[str] | None = None
    queues: Mapping[str, Queue | None] = field(default_factory=dict)  # by what is written; None: there is none
    watched: Mapping[str, str] = field(default_factory=dict)  # queues whose messages others take, and who
    busy: Mapping[str, str] = field(default_factory=dict)  # stations with procedures, and one of them
    paths: Collection[str] = ()  # known names of queues, for advice

    def place(self, counter: Counter) -> str:
        """The queue that is meant, by the one name that it always has."""
        found = self.queues.get(counter.queue)
        return counter.queue if found is None else found.name


Found = Iterator[tuple[Counter, str]]


def counter_stations(subject: Subject) -> Found:
    """A counter is at a station."""
    for each in subject.counters:
        if subject.stations is not None and each.station not in subject.stations:
            advice = nearest(each.station, subject.stations) or f"; make it with: postroom station add {each.station}"
            yield each, f"there is no station {each.station}{advice}"


def counter_types(subject: Subject) -> Found:
    """What is taken becomes a message of a type."""
    for each in subject.counters:
        if each.type is not None and each.type not in subject.types:
            yield each, f"there is no type {each.type}{nearest(each.type, subject.types)}"


def counter_queues(subject: Subject) -> Found:
    """The other side is one queue, which anyone may use."""
    for each in subject.counters:
        if each.queue not in subject.queues:
            continue
        queue = subject.queues[each.queue]
        if queue is None:
            yield each, f"there is no queue {each.queue}{nearest(each.queue, subject.paths)}; name one, not a level"
        elif queue.kind in CLOSED:
            yield each, f"{each.queue} is not for everyone's messages: it is a queue of kind {queue.kind}"


def counter_sources(subject: Subject) -> Found:
    """The messages of a queue, and the mail of a station, have one taker."""
    seen: dict[tuple[Way, str], Counter] = {}
    for each in subject.counters:
        takes = each.way is Way.TAKES
        source = subject.place(each) if takes else each.station
        first = seen.setdefault((each.way, source), each)
        if first is not each:
            what = f"the messages of {each.queue}" if takes else f"the mail of {each.station}"
            yield each, f"{what} are taken by counter {first.name}"
        elif takes and source in subject.watched:
            yield each, f"the messages of {each.queue} are taken by {subject.watched[source]}"
        elif not takes and each.station in subject.busy:
            yield each, f"the mail of {each.station} is handled by procedure {subject.busy[each.station]}"


def counter_loops(subject: Subject) -> Found:
    """What a counter gives does not come back to it by counters alone."""
    ways: dict[tuple[str, str], list[tuple[tuple[str, str], Counter]]] = {}
    for each in subject.counters:
        queue, station = ("queue", subject.place(each)), ("station", each.station)
        source, goal = (queue, station) if each.way is Way.TAKES else (station, queue)
        ways.setdefault(source, []).append((goal, each))

    def reached(start: tuple[str, str]) -> set[tuple[str, str]]:
        found, left = set(), [start]
        while left:
            for goal, _ in ways.get(left.pop(), ()):
                if goal not in found:
                    found.add(goal)
                    left.append(goal)
        return found

    for source, some in ways.items():
        for goal, each in some:
            if each.way is Way.GIVES and (source == goal or source in reached(goal)):
                yield each, f"what it gives to {each.queue} would come back to {each.station} by counters, for ever"


CHECKS: tuple[Callable[[Subject], Found], ...] = (
    counter_stations,
    counter_types,
    counter_queues,
    counter_sources,
    counter_loops,
)


def check(subject: Subject) -> None:
    """Refuse counters that break a rule."""
    problems = [
        Problem(counter.position, f"counter {counter.name}: {what}", each.__name__.replace("_", "-"))
        for each in CHECKS
        for counter, what in each(subject)
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


class Counters:
    """The counters of a room, read once per version of its definitions."""

    def __init__(self) -> None:
        self._known: dict[int, list[Kept]] = {}

    def now(self, tx: Transaction) -> tuple[int, list[Kept]]:
        """With the version since which it is so."""
        version = tx.definitions.version()
        found = self._known.get(version)
        if found is None:
            found = kept(tx)
            if not tx.definitions.changing:
                self._known = {version: found}
        return version, found


def kept(tx: Transaction) -> list[Kept]:
    """Every counter, in the order of definition."""
    return [_kept(each) for each in tx.definitions.of_kind(KIND)]


def named(tx: Transaction, name: str) -> Kept:
    known = {each.counter.name: each for each in kept(tx)}
    if name not in known:
        raise DefinitionUnknown(name=f"counter {name}", nearest=nearest(name, known))
    return known[name]


def _kept(definition: Definition) -> Kept:
    counter = parse(definition.body["text"], definition.position or _NOWHERE)
    return Kept(counter, definition.body["queue"], definition.since)


def proposed(
    tx: Transaction | None, new: Sequence[Counter], types: Collection[str], busy: Mapping[str, str]
) -> Subject:
    """What there would be with new counters, each in the place of the one of its name."""
    names = {each.name for each in new}
    if tx is None:
        return Subject(new, types, busy=busy)
    old = [each for each in kept(tx) if each.counter.name not in names]
    # A queue that has gone under a counter that is there is told of by its state: it is no reason to refuse a load.
    there = {each.counter.queue: tx.queues.named_to_read(each.queue) for each in old}
    queues: dict[str, Queue | None] = {
        said: queue for said, queue in there.items() if queue is not None and not queue.retired
    }
    queues |= {each.queue: _queue(tx, each.queue) for each in new}
    takers = {queue.name: tx.queues.watcher(queue) for queue in queues.values() if queue is not None}
    watched = {
        name: f"{taker}; put a queue in between" for name, taker in takers.items() if taker not in (None, WATCHER)
    }
    watched[SYSTEM_ERRORS] = "people alone: it is the end of all errors"
    paths = [path.replace("/", " ") for _, path in tx.queues.names()]
    counters = [*(each.counter for each in old), *new]
    return Subject(counters, types, tx.nodes.stations(), queues, watched, busy, paths)


def _queue(tx: Transaction, said: str) -> Queue | None:
    """The one queue that is meant: by its name, or by its path."""
    queue = tx.queues.named_to_read(said)
    if queue is not None and not queue.retired:
        return queue
    path = "/".join(said.replace("/", " ").split())
    found = tx.queues.below(path)
    return found[0] if found and found[0].path == path else None


def load_within(tx: Transaction, new: Sequence[Counter], subject: Subject, files: Sequence[str]) -> Loaded:
    """Add counters, and new versions of them; what is not named stays."""
    check(subject)
    was = {each.name: each.body for each in tx.definitions.of_kind(KIND)}
    before = _sources(tx)
    wanted = [
        Definition(KIND, each.name, {"text": str(each), "queue": subject.place(each)}, each.position) for each in new
    ]
    changed = [each for each in wanted if was.get(each.name) != each.body]
    version = tx.definitions.version()
    if changed:
        version = tx.definitions.change(KIND, [], changed, {"files": list(files)})
        _watch(tx, before)
        _furnish(tx, [mailbox(each.station) for each in new])
        tx.wake()
    present = {each.name: was[each.name] for each in wanted if each.name in was}
    return compared(version, _worded(present), _worded({each.name: each.body for each in wanted}))


def _furnish(tx: Transaction, boxes: Sequence[str]) -> None:
    """See to it that the queues which steps need are there: then they can be locked in one order."""
    error_queue(tx)
    for box in boxes:
        if tx.queues.named_to_read(box) is None:
            tx.queues.create(box, MAILBOX, path=box)


def _worded(bodies: Mapping[str, object]) -> dict[str, object]:
    return {f"counter {name}": body for name, body in bodies.items()}


def remove(tx: Transaction, name: str) -> None:
    """Messages stay where they are."""
    named(tx, name)
    before = _sources(tx)
    tx.definitions.change(KIND, [name], [], {"removed": name})
    _watch(tx, before)
    tx.wake()


def _sources(tx: Transaction) -> set[str]:
    return {each.queue for each in kept(tx) if each.counter.way is Way.TAKES}


def _watch(tx: Transaction, before: set[str]) -> None:
    """Have the messages of queues taken by counters, and those of others no longer."""
    after = _sources(tx)
    for name, queue in tx.queues.locked_all(before | after).items():
        tx.queues.set_watcher(queue, WATCHER, name in after)

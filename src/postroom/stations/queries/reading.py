"""Finding messages by a sketch in one store: by an index if possible, with further tests during the scan.

Independent of Spark and other stores: a local query runs it directly, a query over nodes once for each node.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from postroom.limits import INDEXED_CHARS_MAX
from postroom.model.message import Stored
from postroom.model.order import HIGHEST
from postroom.model.place import place_of
from postroom.model.types import Kind, scalars, text
from postroom.stations.places.indexing import indexed
from postroom.stations.places.names import database, station_of
from postroom.stations.places.postmarks import postmarks
from postroom.stations.queries.conditions import EMPTY, FILLED, Condition, any_holds
from postroom.store.kernel.queues import MAILBOX, STATION, Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.field_index import IndexedField, Span, Test, Tests
from postroom.store.tables.images import KeptImage
from postroom.store.tables.scans import END
from postroom.store.tables.tracking import MAILBOXES, STATIONS

#: Values of these kinds stand in a body as they are compared: the database can look at them.
_TEXTS = (Kind.STRING, Kind.DATE)
_NUMBERS = (Kind.INT, Kind.FLOAT)
_ANY_NUMBER = (float("-inf"), float("inf"))


class Asked(NamedTuple):
    """A field of a sketch."""

    name: str
    kind: Kind
    testable: bool  # in every version of the type it had this kind, and one value
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A query as plain data for workers."""

    type: str
    fields: tuple[Asked, ...]

    def packed(self) -> list[Any]:
        """As JSON."""
        return [self.type, [[field.name, field.kind, field.testable, _said(field.conditions)] for field in self.fields]]

    @classmethod
    def unpacked(cls, packed: Sequence[Any]) -> Plan:
        type, fields = packed
        return cls(
            type, tuple(Asked(name, Kind(kind), ok, _meant(Kind(kind), value)) for name, kind, ok, value in fields)
        )

    def matches(self, body: str) -> bool:
        """Whether a message matches; True for an unreadable one, so that it is reported."""
        if not self.fields:
            return True
        try:
            fields = json.loads(body)
        except ValueError:
            return True
        return all(any_holds(field.conditions, scalars(field.kind, fields.get(field.name))) for field in self.fields)


def _said(conditions: Iterable[Condition]) -> list[list[str | None]]:
    parts = [(condition.sign, condition.value, condition.until) for condition in conditions]
    return [[sign, text(value), None if until is None else text(until)] for sign, value, until in parts]


def _meant(kind: Kind, packed: Iterable[Sequence[str | None]]) -> tuple[Condition, ...]:
    conditions = []
    for sign, value, until in packed:
        assert sign is not None
        # A text that is empty is no value of a field, but may be compared with.
        start, end = next(iter(scalars(kind, value)), ""), next(iter(scalars(kind, until)), None)
        conditions.append(Condition(sign, start, end, kind))
    return tuple(conditions)


class TooMany(Exception):
    """There are more messages than allowed."""


def find(
    tx: Transaction, plan: Plan, queues: Iterable[Queue | tuple[int, str]], until: int = END, most: int = END
) -> Iterator[Stored]:
    """The messages of these queues that match a plan, now or as they were at a journal number."""
    way = route(tx.field_index.of_type(plan.type), plan)
    if way is None:
        return
    read = 0
    for queue in queues:
        seen: set[int] = set()
        for span in way.spans:
            for page in tx.field_index.search((queue[0], queue[1]), span, until, way.tests):
                read += len(page)
                if read > most:
                    raise TooMany
                for stored in page:
                    if way.by.field:  # several conditions, or values of a list, may lead to one message
                        if stored.key in seen:
                            continue
                        seen.add(stored.key)
                    if way.exact or plan.matches(stored.body):
                        yield stored


class Route(NamedTuple):
    """How a store executes a plan."""

    by: IndexedField
    spans: tuple[Span, ...]
    tests: Tests
    exact: bool = False  # what the database finds is what is asked for: nobody need look again


def route(indexed_fields: Sequence[IndexedField], plan: Plan) -> Route | None:
    """The execution by the most selective index; None if there was never a message of the type."""
    by_key = next((index for index in indexed_fields if not index.field), None)
    if by_key is None:
        return None
    ready = {(index.field, index.kind): index for index in indexed_fields if index.ready and index.field}
    ways = [(_width(asked), asked) for asked in plan.fields if (asked.name, str(asked.kind)) in ready]
    width, best = min(ways, default=(_ALL, None), key=lambda way: way[0])
    if best is None or width >= _ALL:
        return Route(by_key, (Span(by_key.id, "", HIGHEST),), _tests(plan.fields), _exact(plan.fields))
    indexed_field = ready[best.name, str(best.kind)]
    bounds = dict.fromkeys(condition.bounds for condition in best.conditions)
    spans = tuple(Span(indexed_field.id, indexed(low), indexed(high)) for low, high in bounds)
    others = [field for field in plan.fields if field is not best]
    return Route(indexed_field, spans, _tests(others), _exact(others) and _indexed_exactly(best))


_ALL = 9


def _width(asked: Asked) -> int:
    """How selective conditions are: a value, a prefix, a range, an open range, everything."""
    signs = {"=": 0, "~": 1, "..": 2, "<": 3, "<=": 3, ">": 3, ">=": 3}
    kinds = [(condition.sign, condition.bounds[0]) for condition in asked.conditions]
    return max(_ALL if sign == "~" and not low else signs.get(sign, _ALL) for sign, low in kinds)


def _exact(fields: Iterable[Asked]) -> bool:
    """Whether the tests of fields are exact, except for damaged messages."""
    return all(
        field.testable and field.kind in _TEXTS and all(condition.closed for condition in field.conditions)
        for field in fields
    )


def _indexed_exactly(asked: Asked) -> bool:
    """Whether the index range of a field's conditions is exact."""
    return all(
        condition.closed and all(len(bound) < INDEXED_CHARS_MAX for bound in condition.bounds)
        for condition in asked.conditions
    )


def _tests(fields: Iterable[Asked]) -> list[list[Test]]:
    """The tests that the database can do; they may pass non-matching messages, but never reject matching ones."""
    tests = []
    for field in fields:
        if any(condition.sign in (EMPTY, FILLED) for condition in field.conditions):
            continue  # what a body lacks, no test of its values finds
        if field.testable and field.kind in _TEXTS:
            tests.append([Test(field.name, *condition.bounds) for condition in field.conditions])
        elif field.testable and field.kind in _NUMBERS:
            tests.append([Test(field.name, *_numbers(condition)) for condition in field.conditions])
    return tests


def _numbers(condition: Condition) -> tuple[float, float]:
    low, high = _ANY_NUMBER
    value = condition.value
    assert isinstance(value, (int, float)), "conditions are of their field's kind"
    near = _near(value)
    if condition.sign in ("=", "..", ">", ">="):
        low = _below(near)
    if condition.sign in ("=", "<", "<="):
        high = -_below(-near)
    if condition.sign == "..":
        assert isinstance(condition.until, (int, float)), "conditions are of their field's kind"
        high = -_below(-_near(condition.until))
    return low, high


def _near(value: float) -> float:
    """A float near a whole number, which may have more digits than the database compares."""
    try:
        return float(value)
    except OverflowError:
        return _ANY_NUMBER[value > 0]


def _below(value: float) -> float:
    """A slightly smaller number, so that rounding misses nothing."""
    return value if value in _ANY_NUMBER else value - abs(value) * 1e-12


# --- a query over nodes, at one of them ---


def read_stations(
    tx: Transaction, number: int, plan: Plan, stations: frozenset[str] | None, most: int = END
) -> list[Stored]:
    """The matches at stations of a node, as they were when the query was opened there."""
    opened = tx.tracking.opened(number, STATIONS)
    queues = [queue for queue in tx.queues.of_kind(STATION) if stations is None or station_of(queue.name) in stations]
    hidden = tx.tracking.hidden_from(number, STATIONS)
    held = [queue for queue in queues if queue.unprocessed]
    messages = [stored for stored in find(tx, plan, held, opened, most) if stored.key not in hidden]
    names = {queue.name for queue in queues}
    ghosts = tx.tracking.ghosts(number, STATIONS, opened)
    return messages + _matching(plan, [ghost for ghost in ghosts if ghost.queue in names])


def read_mailboxes(
    tx: Transaction, number: int, plan: Plan, stations: frozenset[str] | None, most: int = END
) -> list[Stored]:
    """The matches at the control node: mail, unless stations are named, and mail that moved on too early."""
    opened = tx.tracking.opened(number, MAILBOXES)
    shown = [stored for stored in tx.tracking.shown(number, opened) if stations is None or stored.queue in stations]
    late = [stored._replace(queue=database(stored.queue)) for stored in shown]
    if stations is not None:
        return _matching(plan, late)
    hidden = tx.tracking.hidden_from(number, MAILBOXES)
    held = [queue for queue in tx.queues.of_kind(MAILBOX) if queue.unprocessed]
    messages = [stored for stored in find(tx, plan, held, opened, most) if stored.key not in hidden]
    return messages + _matching(plan, tx.tracking.ghosts(number, MAILBOXES, opened)) + _matching(plan, late)


def _matching(plan: Plan, some: Iterable[Stored]) -> list[Stored]:
    return [stored for stored in some if stored.type == plan.type and plan.matches(stored.body)]


# --- images ---


def kept(stored: Stored) -> KeptImage:
    """The image of a stored message."""
    return KeptImage(
        stored.key, place_of(stored.queue), stored.type or "", form_version(stored.properties), stored.body
    )


def form_version(properties: str) -> int:
    """The version of the form with which a message was created."""
    return postmarks(properties).form

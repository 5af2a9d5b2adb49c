"""Plans: conditions of sketches, joins, and the search order from each sketch to the others.

Equalities are looked up. Candidates are stored by the values of their compared fields (a *slot*). Equality is
transitive: with a = b and b = c, c is found by a.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, log2
from typing import Any, NamedTuple

from postroom.limits import INDEXED_CHARS_MAX
from postroom.model.order import plain_number, sortable
from postroom.model.types import Kind, scalars
from postroom.stations.forms.form import Form
from postroom.stations.places.indexing import indexed
from postroom.stations.procedures.definitions import Procedure, Written, calls, references
from postroom.stations.procedures.goals import Goals, goals
from postroom.stations.procedures.ordering import ordered
from postroom.stations.queries import conditions
from postroom.stations.queries.conditions import Condition, any_holds
from postroom.store.tables.working_sets import APART

_ATOMS = (int, str, float, bool)  # what JSON has for one value; a list is from a time when the field was one
_decode = json.JSONDecoder().raw_decode
_GOALS_KEPT = 1_000
_COMPARED: Mapping[str, Callable[[str, str], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def joined(values: Sequence[str]) -> str:
    """Several values as one lookup key; long ones are shortened."""
    value = values[0] if len(values) == 1 else APART.join(values)
    return value if len(value) < INDEXED_CHARS_MAX else indexed(value)


def value_at(places: Sequence[int], values: Sequence[str]) -> str:
    """The lookup key of a slot."""
    if len(places) != 1:
        return joined([values[place] for place in places])
    value = values[places[0]]
    return value if len(value) < INDEXED_CHARS_MAX else indexed(value)


def compare(ours: str, sign: str, theirs: str) -> bool:
    """Compare two sortable texts."""
    return _COMPARED[sign](ours, theirs)


class Check(NamedTuple):
    """A comparison of a sketch's value with a bound value of another."""

    ours: int  # which of the compared fields
    sign: str
    sketch: int
    theirs: int


class Find(NamedTuple):
    """A step of a search: the next sketch, the slot of its candidates, and the checks."""

    sketch: int
    slot: int
    name: str  # of the slot
    probe: tuple[tuple[int, int], ...]  # sketches and values that are bound, by which it is looked up
    checks: tuple[Check, ...]
    is_sure: bool  # whether all that a look-up finds agrees with what is bound, unless the value was too long


@dataclass(frozen=True)
class Picked:
    """A compiled precondition."""

    name: str
    type: str
    conditions: tuple[tuple[str, Kind, tuple[Condition, ...]], ...]
    relations: tuple[tuple[str, Kind, str, str, Kind], ...]  # between fields of the message
    compared: tuple[tuple[str, Kind], ...]  # the fields that joins compare
    stations: frozenset[str] | None = None  # it comes from these
    refused: frozenset[str] = frozenset()  # and not from these

    @cached_property
    def takes_all(self) -> bool:
        """Whether it selects every message of the type."""
        return not (self.conditions or self.relations or self.refused) and self.stations is None

    def selects(self, fields: Mapping[str, Any], origins: frozenset[str]) -> bool:
        """Whether a message matches: conditions first, then the origin."""
        for name, kind, wanted in self.conditions:
            if not any_holds(wanted, scalars(kind, fields.get(name))):
                return False
        for name, kind, sign, other, other_kind in self.relations:
            ours, theirs = _value(fields, name, kind), _value(fields, other, other_kind)
            if ours is None or theirs is None or not compare(ours, sign, theirs):
                return False
        return self.refused.isdisjoint(origins) and (self.stations is None or not self.stations.isdisjoint(origins))

    def values(self, fields: Mapping[str, Any]) -> tuple[str, ...] | None:
        """The values for joins; None if a joined field is empty, because it matches nothing."""
        values = []
        for name, kind in self.compared:
            given = fields.get(name)
            value = _keyed(kind, given) if type(given) in _ATOMS else None
            if value is None:
                return None
            values.append(value)
        return tuple(values)


def _value(fields: Mapping[str, Any], name: str, kind: Kind) -> str | None:
    given = fields.get(name)
    return _keyed(kind, given) if type(given) in _ATOMS else None


@lru_cache(maxsize=100_000, typed=True)
def _keyed(kind: Kind, given: Any) -> str | None:
    """A sortable text of a value; cached, because joined values repeat."""
    if kind is Kind.INT and type(given) is int:
        return sortable(kind, given)
    if kind is Kind.DECIMAL and type(given) is str:
        plain = plain_number(given)
        if plain is not None:
            return plain
    atoms = scalars(kind, given)
    return sortable(kind, atoms[0]) if atoms else None


@dataclass(frozen=True)
class Plan:
    """A compiled procedure."""

    procedure: Procedure
    sketches: tuple[Picked, ...]
    slots: tuple[tuple[tuple[int, ...], ...], ...]  # of each sketch: the compared fields of each of its slots
    searches: tuple[tuple[Find, ...], ...]  # from each sketch to all others
    order: tuple[tuple[str, Written], ...]  # of actions
    functions: tuple[str, ...]
    new_messages: int  # copies and creations: each needs a key
    slot_names: tuple[tuple[str, ...], ...]  # of each sketch
    used: tuple[int, ...]  # the sketches whose messages actions read or write, or make copies of
    links: tuple[str, ...]  # the join graph, to be read

    @cached_property
    def name(self) -> str:
        return self.procedure.name

    @cached_property
    def weight(self) -> int:
        """Its weight in a chain: a procedure that makes two messages of one counts six, which limits growth to about
        2**17."""
        return max(1, ceil(6 * log2(1 + self.new_messages / len(self.sketches))))

    @cached_property
    def slot_places(self) -> tuple[tuple[tuple[str, tuple[int, ...]], ...], ...]:
        """For each sketch: its slots by name, and the positions of their values."""
        return tuple(tuple(zip(*both, strict=True)) for both in zip(self.slot_names, self.slots, strict=True))

    @cached_property
    def own_probes(self) -> tuple[tuple[tuple[str, tuple[int, ...]], ...], ...]:
        """For each sketch: the slots reached from its own values, and their positions."""
        return tuple(
            tuple(
                (find.name, tuple(place for _, place in find.probe))
                for find in way
                if find.probe and all(sketch == start for sketch, _ in find.probe)
            )
            for start, way in enumerate(self.searches)
        )

    def goals(self, where: tuple[str | None, ...]) -> Goals:
        """The goals for destinations; cached, because most sets of a procedure have the same."""
        known: dict[tuple[str | None, ...], Goals] = self.__dict__.setdefault("_goals", {})
        where_to = known.get(where)
        if where_to is None:
            if len(known) > _GOALS_KEPT:
                known.clear()
            where_to = known[where] = goals(self.procedure, where)
        return where_to


def planned(procedure: Procedure, forms: Mapping[str, Form]) -> Plan:
    """Compile a checked procedure."""
    joins = _Joins(procedure, forms)
    picked = tuple(_picked(procedure, forms, number, joins) for number in range(len(procedure.preconditions)))
    slots: list[list[tuple[int, ...]]] = [[] for _ in picked]
    searches = tuple(joins.search(start, slots) for start in range(len(picked)))
    functions = dict.fromkeys(name for _, value in procedure.expressions() for name in calls(value))
    copied = [goal.sketch for goal in procedure.destinations if goal.copy]
    names = [sketch.name for sketch in picked]
    used = {*copied, *(action.sketch for action in procedure.actions)}
    used |= {reference.sketch for _, value in procedure.expressions() for reference in references(value)}
    return Plan(
        procedure,
        picked,
        tuple(map(tuple, slots)),
        searches,
        tuple(ordered(procedure, forms)),
        tuple(functions),
        len(copied) + len(procedure.creations),
        tuple(tuple(joins.slot_name(sketch, slot) for slot in range(len(some))) for sketch, some in enumerate(slots)),
        tuple(place for place, name in enumerate(names) if name in used),
        joins.links(),
    )


def _picked(procedure: Procedure, forms: Mapping[str, Form], number: int, joins: _Joins) -> Picked:
    sketch = procedure.preconditions[number]
    form = forms[sketch.type]
    asked: list[tuple[str, Kind, tuple[Condition, ...]]] = []
    relations = []
    for line in sketch.lines:
        ours = form.field(line.field)
        assert ours is not None
        if line.other is None:
            asked.append((ours.name, ours.kind, conditions.parse(ours, line.conditions)))
        elif line.other.sketch == sketch.name:
            theirs = form.field(line.other.field)
            assert theirs is not None
            relations.append((ours.name, ours.kind, line.sign, theirs.name, theirs.kind))
    named: frozenset[str] | None = None
    refused: frozenset[str] = frozenset()
    for origin in procedure.origins:
        if origin.sketch == sketch.name:
            stations = frozenset(origin.stations)
            named, refused = (named, stations) if origin.refused else (stations, refused)
    return Picked(
        sketch.name, sketch.type, tuple(asked), tuple(relations), tuple(joins.fields[number].values()), named, refused
    )


TURNED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


class _Joins:
    """The comparisons between sketches, and the classes of equal fields."""

    def __init__(self, procedure: Procedure, forms: Mapping[str, Form]) -> None:
        self._procedure = procedure.name
        self._names = [sketch.name for sketch in procedure.preconditions]
        self._forms = [forms[sketch.type] for sketch in procedure.preconditions]
        self.fields: list[dict[str, tuple[str, Kind]]] = [{} for _ in self._names]
        self._joins: list[tuple[int, int, str, int, int]] = []
        for number, sketch in enumerate(procedure.preconditions):
            for line in sketch.lines:
                if line.other is not None and line.other.sketch != sketch.name:
                    other = self._names.index(line.other.sketch)
                    ours, theirs = self._place(number, line.field), self._place(other, line.other.field)
                    self._joins.append((number, ours, line.sign, other, theirs))
        self._classes = self._equal()

    def _place(self, sketch: int, name: str) -> int:
        """The index of a compared field in its sketch."""
        known = self.fields[sketch]
        if name not in known:
            field = self._forms[sketch].field(name)
            assert field is not None
            known[name] = (name, field.kind)
        return list(known).index(name)

    def _equal(self) -> dict[tuple[int, int], int]:
        """The class of equal values for each sketch and field."""
        roots_of = {
            (sketch, place): (sketch, place)
            for sketch in range(len(self._names))
            for place in range(len(self.fields[sketch]))
        }

        def root(field: tuple[int, int]) -> tuple[int, int]:
            while roots_of[field] != field:
                field = roots_of[field]
            return field

        for ours, place, sign, theirs, other in self._joins:
            if sign == "=":
                roots_of[root((theirs, other))] = root((ours, place))
        roots = sorted({root(field) for field in roots_of})
        return {field: roots.index(root(field)) for field in roots_of}

    def search(self, start: int, slots: list[list[tuple[int, ...]]]) -> tuple[Find, ...]:
        """The search order from one sketch: next is the one with most bound values."""
        bound, way = [start], []
        while len(bound) < len(self._names):
            left = [sketch for sketch in range(len(self._names)) if sketch not in bound]
            chosen = max(left, key=lambda one: (len(self._keys(one, bound)), self._is_compared(one, bound), -one))
            keys = self._keys(chosen, bound)
            shape = tuple(keys)
            if shape not in slots[chosen]:
                slots[chosen].append(shape)
            slot = slots[chosen].index(shape)
            checks = tuple(check for check in self._checks(chosen) if check.sketch in bound)
            # One message does not match two sketches of a set, and one of another type cannot.
            is_other = all(self._forms[sketch].name != self._forms[chosen].name for sketch in bound)
            is_sure = is_other and all(
                check.sign == "=" and keys.get(check.ours) == (check.sketch, check.theirs) for check in checks
            )
            name = self.slot_name(chosen, slot)
            way.append(Find(chosen, slot, name, tuple(keys.values()), checks, is_sure))
            bound.append(chosen)
        return tuple(way)

    def slot_name(self, sketch: int, slot: int) -> str:
        return f"{self._procedure}.{self._names[sketch]}.{slot}"

    def _keys(self, sketch: int, bound: Sequence[int]) -> dict[int, tuple[int, int]]:
        """The fields of a sketch that equal something bound, and what."""
        keys = {}
        for place in range(len(self.fields[sketch])):
            own = self._classes[sketch, place]
            same = [field for field in self._classes if field[0] in bound and self._classes[field] == own]
            if same:
                keys[place] = min(same)
        return keys

    def _is_compared(self, sketch: int, bound: Sequence[int]) -> bool:
        return any(check.sketch in bound for check in self._checks(sketch))

    def _checks(self, sketch: int) -> list[Check]:
        checks = [
            Check(ours, sign, theirs, other) for number, ours, sign, theirs, other in self._joins if number == sketch
        ]
        checks += [
            Check(other, TURNED[sign], number, ours)
            for number, ours, sign, theirs, other in self._joins
            if theirs == sketch
        ]
        return checks

    def links(self) -> tuple[str, ...]:
        def said(sketch: int, place: int) -> str:
            return f"{self._names[sketch]}.{list(self.fields[sketch])[place]}"

        return tuple(
            f"{said(number, ours)} {sign} {said(theirs, other)}" for number, ours, sign, theirs, other in self._joins
        )


class Selected(NamedTuple):
    """A sketch that a message matches, with its values for joins."""

    plan: int  # among the plans of the station
    sketch: int
    values: tuple[str, ...]


@dataclass(frozen=True)
class Desk:
    """The procedures of a station in the order in which they get a message."""

    station: str
    plans: tuple[Plan, ...]
    edition: str  # what they are, in short: another one has other candidates

    def wants(self, type: str, handled: Sequence[str]) -> Sequence[tuple[int, int, Picked]]:
        """The sketches of a type. A procedure does not get messages that it has left itself."""
        wanted = self._by_type.get(type, ())
        return [sketch for sketch in wanted if self.plans[sketch[0]].name not in handled] if handled else wanted

    def only_sketch(self, type: str) -> tuple[int, int] | None:
        """The plan and sketch of a type if there is exactly one: then a candidate's values are enough."""
        wanted = self._by_type.get(type, ())
        return wanted[0][:2] if len(wanted) == 1 else None

    @cached_property
    def _by_type(self) -> dict[str, list[tuple[int, int, Picked]]]:
        known: dict[str, list[tuple[int, int, Picked]]] = {}
        for number, plan in enumerate(self.plans):
            for place, picked in enumerate(plan.sketches):
                known.setdefault(picked.type, []).append((number, place, picked))
        return known


def selected(wanted: Sequence[tuple[int, int, Picked]], body: str, origins: frozenset[str]) -> list[Selected]:
    """The sketches that a message matches."""
    fields, _ = _decode(body)  # it is ours, so there is nothing before it or behind
    fits = []
    for number, place, picked in wanted:
        if picked.takes_all or picked.selects(fields, origins):
            values = picked.values(fields)
            if values is not None:
                # the constructor's half cost counts here
                fits.append(tuple.__new__(Selected, (number, place, values)))
    return fits

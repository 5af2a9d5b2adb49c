"""Plans: what a sketch selects, how sketches are joined, and the search from each sketch to the others.

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
    """Several values as one, by which candidates are kept; a long one by its beginning."""
    value = values[0] if len(values) == 1 else APART.join(values)
    return value if len(value) < INDEXED_CHARS_MAX else indexed(value)


def value_at(places: Sequence[int], values: Sequence[str]) -> str:
    """The values that a slot compares, joined into one."""
    if len(places) != 1:
        return joined([values[place] for place in places])
    value = values[places[0]]
    return value if len(value) < INDEXED_CHARS_MAX else indexed(value)


def compare(ours: str, sign: str, theirs: str) -> bool:
    """Of two values in the one order of all values."""
    return _COMPARED[sign](ours, theirs)


class Check(NamedTuple):
    """A value of one sketch against a value of another that is bound already."""

    ours: int  # which of the compared fields
    sign: str
    sketch: int
    theirs: int


class Find(NamedTuple):
    """A step of a search: the sketch to fill next, where its candidates are, and what they must agree with."""

    sketch: int
    slot: int
    name: str  # of the slot
    probe: tuple[tuple[int, int], ...]  # sketches and values that are bound, by which it is looked up
    checks: tuple[Check, ...]
    is_sure: bool  # whether all that a look-up finds agrees with what is bound, unless the value was too long


@dataclass(frozen=True)
class Picked:
    """A precondition, as messages are tested by it."""

    name: str
    type: str
    conditions: tuple[tuple[str, Kind, tuple[Condition, ...]], ...]
    relations: tuple[tuple[str, Kind, str, str, Kind], ...]  # between fields of the message
    compared: tuple[tuple[str, Kind], ...]  # the fields that joins compare
    stations: frozenset[str] | None = None  # it comes from these
    refused: frozenset[str] = frozenset()  # and not from these

    @cached_property
    def takes_all(self) -> bool:
        """Whether every message of the type is selected."""
        return not (self.conditions or self.relations or self.refused) and self.stations is None

    def selects(self, fields: Mapping[str, Any], origins: frozenset[str]) -> bool:
        """Selection first, then the origin."""
        for name, kind, wanted in self.conditions:
            if not any_holds(wanted, scalars(kind, fields.get(name))):
                return False
        for name, kind, sign, other, other_kind in self.relations:
            ours, theirs = _value(fields, name, kind), _value(fields, other, other_kind)
            if ours is None or theirs is None or not compare(ours, sign, theirs):
                return False
        return self.refused.isdisjoint(origins) and (self.stations is None or not self.stations.isdisjoint(origins))

    def values(self, fields: Mapping[str, Any]) -> tuple[str, ...] | None:
        """What joins compare; None if one of these fields is empty: then nothing agrees with it."""
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
    """A value in the one order of all values; those that join messages come several times."""
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
    """A procedure, ready to run."""

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
        """What it adds to a chain: who makes two of one counts for six, so that no chain makes more than some 2**17."""
        return max(1, ceil(6 * log2(1 + self.new_messages / len(self.sketches))))

    @cached_property
    def slot_places(self) -> tuple[tuple[tuple[str, tuple[int, ...]], ...], ...]:
        """Of each sketch: its slots by name, and which of the compared values each is about."""
        return tuple(tuple(zip(*both, strict=True)) for both in zip(self.slot_names, self.slots, strict=True))

    @cached_property
    def own_probes(self) -> tuple[tuple[tuple[str, tuple[int, ...]], ...], ...]:
        """From each sketch: the slots that its own values lead to, and which of them."""
        return tuple(
            tuple(
                (find.name, tuple(place for _, place in find.probe))
                for find in way
                if find.probe and all(sketch == start for sketch, _ in find.probe)
            )
            for start, way in enumerate(self.searches)
        )

    def goals(self, where: tuple[str | None, ...]) -> Goals:
        """Where messages go, by what destinations say; most sets of a procedure go the same ways."""
        known: dict[tuple[str | None, ...], Goals] = self.__dict__.setdefault("_goals", {})
        where_to = known.get(where)
        if where_to is None:
            if len(known) > _GOALS_KEPT:
                known.clear()
            where_to = known[where] = goals(self.procedure, where)
        return where_to


def planned(procedure: Procedure, forms: Mapping[str, Form]) -> Plan:
    """A procedure that has passed its checks."""
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
    """The comparisons between sketches, and the classes of fields that are equal by them."""

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
        """The number of a field among those of its sketch that are compared."""
        known = self.fields[sketch]
        if name not in known:
            field = self._forms[sketch].field(name)
            assert field is not None
            known[name] = (name, field.kind)
        return list(known).index(name)

    def _equal(self) -> dict[tuple[int, int], int]:
        """By sketch and field: the class of values that are equal."""
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
        """The way from one sketch to all others: next comes what is looked up by most values."""
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
        """The fields of a sketch that equal something bound, and what that is."""
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
    """A sketch that a message fits, and what joins compare of it."""

    plan: int  # among the plans of the station
    sketch: int
    values: tuple[str, ...]


@dataclass(frozen=True)
class Desk:
    """The procedures of a station in the order in which a message is offered to them."""

    station: str
    plans: tuple[Plan, ...]
    edition: str  # what they are, in short: another one has other candidates

    def wants(self, type: str, handled: Sequence[str]) -> Sequence[tuple[int, int, Picked]]:
        """The sketches of a type. What a procedure has left it has dealt with: it is not offered to it again."""
        wanted = self._by_type.get(type, ())
        return [sketch for sketch in wanted if self.plans[sketch[0]].name not in handled] if handled else wanted

    def only_sketch(self, type: str) -> tuple[int, int] | None:
        """The plan and sketch of a type, if there is one only: then a candidate's values are all there is of it."""
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
    """Those of the sketches that a message fits."""
    fields, _ = _decode(body)  # it is ours, so there is nothing before it or behind
    fits = []
    for number, place, picked in wanted:
        if picked.takes_all or picked.selects(fields, origins):
            values = picked.values(fields)
            if values is not None:
                # the constructor's half cost counts here
                fits.append(tuple.__new__(Selected, (number, place, values)))
    return fits

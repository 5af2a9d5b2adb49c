"""Procedures one message at a time: a plain executor of what the paper says, and random offices to run it on.

Nothing here is indexed, planned or remembered: who is a candidate is asked anew for every message at every look, and a
working set is the first of all combinations. What it shares with the engine is the text of procedures, forms,
conditions and typed values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from itertools import product
from math import ceil, log2
from typing import Any, NamedTuple, TypeVar

from hypothesis import strategies as st

import postroom
from postroom.errors import ArgumentInvalid, BodyMismatch, FieldRefused, FunctionFailed, StationUnknown
from postroom.model.types import FieldValue, Kind, text
from postroom.stations.forms.form import Form, FormField, Rule
from postroom.stations.office import read
from postroom.stations.procedures.definitions import (
    ME,
    Constant,
    Creation,
    Destination,
    Expression,
    Operation,
    Precondition,
    Procedure,
    Reference,
)
from postroom.stations.procedures.errors import ERROR
from postroom.stations.queries import conditions

T = TypeVar("T")

FAILED, CHAIN = "PP0001", "PP0002"
LOOKS_MAX = 2_000  # of one run
NEW = "99999"  # the keys of messages that procedures make begin so, until it is known how the engine calls them


# --- functions that procedures name ----------------------------------------------------------------------------------


@postroom.function
def turned(*values: Any) -> Any:
    """Another of the few values: numbers count, texts go round."""
    first = next((each for each in values if each is not None), None)
    if isinstance(first, (int, Decimal)):
        return (first + 1) % 3
    return TEXTS[(TEXTS.index(first) + 1) % len(TEXTS)] if first in TEXTS else first


@postroom.function
def fussy(*values: Any) -> Any:
    """The last value; some of them are too much for it."""
    if values[-1] in (2, "a"):
        raise ValueError(f"not {values[-1]}")
    return values[-1]


@postroom.function
def summary(others: Any) -> Any:
    """An automatic field, made of two others; one combination it refuses."""
    if others["K"] == "a" and others["N"] == 2:
        raise ValueError("a and 2")
    return f"{others['K'] or ''}{others['N'] or ''}"


FUNCTIONS: Mapping[str, Callable[..., Any]] = {"turned": turned, "fussy": fussy, "summary": summary}


# --- what there is ---------------------------------------------------------------------------------------------------


@dataclass
class Message:
    key: str
    type: str
    said: dict[str, FieldValue]  # without what is empty
    station: str
    mail: bool
    position: int
    sender: str | None = None
    fetched: bool = False  # by a procedure, out of the mailbox, and no person has written on it since
    depth: int = 0
    handled: tuple[str, ...] = ()  # procedures that have left it where it is
    turn: int | None = None  # when it was looked at as it is; None if it was not


@dataclass
class Desk:
    """What is in force at a station, and how many looks it has had since."""

    procedures: tuple[str, ...] = ()
    turn: int = 0
    since: tuple[int, ...] = ()  # the version that each procedure has been enabled with


class Refused(Exception):
    """A value cannot stand where it is to stand, or a message cannot go where it is to go."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Failure(NamedTuple):
    """A working set that could not be handled; what is told of it is any of the codes."""

    procedure: str
    station: str
    keys: list[str]
    codes: set[str]
    depth: int


class Oracle:
    """Stations, their messages and procedures. People act by the verbs; ``run`` is what the engine does."""

    def __init__(self, office: str, stations: Sequence[str], chain_max: int, today: str) -> None:
        known = read(office, "office.form")
        self.forms: dict[str, Form] = {ERROR.name: ERROR, **{form.name: form for form in known.forms}}
        self.known = {each.name: each for each in known.procedures}
        self.enabled = list(self.known)
        self.since = dict.fromkeys(self.known, 0)
        self.stations = tuple(stations)
        self.chain_max = chain_max
        self.today = today
        self.messages: dict[str, Message] = {}
        self.dossiers: dict[tuple[str, str], list[str]] = {}
        self.codes: dict[str, set[str]] = {}  # of error messages: what may be told
        self._desks = {name: Desk() for name in stations}
        self._withdrawn: set[tuple[str, str, int]] = set()  # procedure, message and position
        self._position = 0
        self._made = 0
        self._looks = 0

    def at(self, station: str, *, mail: bool) -> list[Message]:
        """Of a station's database or mailbox, in the order of their coming."""
        found = [each for each in self.messages.values() if each.station == station and each.mail == mail]
        return sorted(found, key=lambda each: each.position)

    # --- what people do ---

    def create(self, station: str, type: str, given: Mapping[str, Any], key: str) -> None:
        self._put(Message(key, type, self.says(station, type, given, key), station, False, 0))

    def modify(self, key: str, given: Mapping[str, Any]) -> None:
        message = self.messages[key]
        said = written(self.forms[message.type], message.said, given)
        if said != message.said:
            message.said, message.fetched = said, False
            self._touch(message, depth=0, handled=())

    def copy(self, key: str, new: str) -> None:
        message = self.messages[key]
        self._put(Message(new, message.type, self._copied(message.type, message.said, new), message.station, False, 0))

    def ship(self, key: str, to: str) -> None:
        message = self.messages[key]
        self._ship(message, message.station, to, 0)

    def get(self, station: str, limit: int | None) -> None:
        for message in self.at(station, mail=True)[:limit]:
            message.mail = False
            self._touch(message, depth=message.depth, handled=message.handled)

    def add_to_dossier(self, station: str, name: str, key: str) -> None:
        kept = self.dossiers.setdefault((station, name), [])
        if key not in kept:
            kept.append(key)

    def rename(self, names: Mapping[str, str]) -> None:
        """Messages that procedures have made have other keys: those that the engine has given them."""

        def new(value: FieldValue) -> FieldValue:
            if isinstance(value, tuple):
                return tuple(names.get(each, each) if isinstance(each, str) else each for each in value)
            return names.get(value, value) if isinstance(value, str) else value

        messages = self.messages.values()
        self.messages = {
            names.get(each.key, each.key): replace(
                each,
                key=names.get(each.key, each.key),
                said={name: new(value) for name, value in each.said.items()},
            )
            for each in messages
        }
        self.dossiers = {place: [names.get(key, key) for key in kept] for place, kept in self.dossiers.items()}
        self.codes = {names.get(key, key): codes for key, codes in self.codes.items()}
        self._withdrawn = {(name, names.get(key, key), position) for name, key, position in self._withdrawn}

    # --- what procedures do ---

    def run_serially(self) -> None:
        """One message at a time until all were looked at: what a run of steps of any size must equal."""
        self._looks = 0
        self._open()
        while True:
            left = [each for station in self._awake() for each in self._unseen(station)]
            if not left:
                return
            failed = self._look(min(left, key=lambda each: each.position))
            if failed is not None:
                self._tell(failed)

    def follow(self, steps: Sequence[Sequence[tuple[str, int]]]) -> None:
        """The same in an order of stations that is given: step by step, so many looks at each station.

        Which station goes first is the engine's business. What it ships in a step others find after it, and what could
        not be handled is told at the end of the step.
        """
        self._looks = 0
        self._open()
        for step in steps:
            failures = []
            for station, count in step:
                for _ in range(count):
                    left = self._unseen(station)
                    assert left, f"there is nothing at {station} that was not looked at"
                    failed = self._look(left[0])
                    failures += [] if failed is None else [failed]
            for each in failures:
                self._tell(each)

    def is_idle(self) -> bool:
        return not self._awake()

    def candidates(self) -> dict[tuple[str, str], list[str]]:
        """By procedure and sketch, who waits for others there, in the order of looks."""
        found: dict[tuple[str, str], list[str]] = {}
        for procedure in self._in_force():
            for sketch in procedure.preconditions if len(procedure.preconditions) > 1 else ():
                waiting = self._waiting(procedure, sketch)
                if waiting:
                    found[procedure.name, sketch.name] = [each.key for each in waiting]
        return found

    def in_force_at(self, station: str) -> tuple[str, ...]:
        return tuple(name for name in self.enabled if self.known[name].station == station)

    def _in_force(self) -> list[Procedure]:
        return [self.known[name] for desk in self._desks.values() for name in desk.procedures]

    def _open(self) -> None:
        """A station whose procedures are others now looks at everything again."""
        for station, desk in self._desks.items():
            now = self.in_force_at(station)
            since = tuple(self.since[name] for name in now)
            if (now, since) != (desk.procedures, desk.since):
                self._desks[station] = Desk(now, since=since)
                here = [each for each in self.messages.values() if each.station == station]
                for each in here:
                    each.turn = None
                keys = {each.key for each in here}
                self._withdrawn = {each for each in self._withdrawn if each[1] not in keys}

    def _awake(self) -> list[str]:
        """Stations with something to look at, in the order of their first procedures."""
        stations = dict.fromkeys(self.known[name].station for name in self.enabled)
        return [each for each in stations if each in self._desks and self._unseen(each)]

    def _unseen(self, station: str) -> list[Message]:
        found = [each for each in self.messages.values() if each.station == station and each.turn is None]
        return sorted([each for each in found if self._is_wanted(each)], key=lambda each: each.position)

    def _is_wanted(self, message: Message) -> bool:
        """Whether anyone asks for its type: a look at another changes nothing, whether it is taken or not."""
        return any(
            sketch.type == message.type
            for name in self._desks[message.station].procedures
            if name not in message.handled
            for sketch in self.known[name].preconditions
        )

    def _look(self, message: Message) -> Failure | None:
        """One turn: what the message completes is handled at once."""
        self._looks += 1
        assert self._looks <= LOOKS_MAX, "the engine has come to rest before"
        desk = self._desks[message.station]
        desk.turn += 1
        message.turn = desk.turn
        for name in desk.procedures:
            procedure = self.known[name]
            for sketch in procedure.preconditions:
                if self._fits(procedure, sketch, message):
                    members = self._complete(procedure, sketch, message)
                    if members is not None:
                        return self._handle(procedure, members, message)
        return None

    # --- who is a candidate ---

    def _waiting(self, procedure: Procedure, sketch: Precondition) -> list[Message]:
        found = [
            each
            for each in self.messages.values()
            if each.station == procedure.station and each.turn is not None and self._fits(procedure, sketch, each)
        ]
        return sorted(found, key=lambda each: each.turn or 0)

    def _fits(self, procedure: Procedure, sketch: Precondition, message: Message) -> bool:
        """What a procedure has left it has dealt with, and what it has failed with is not for it either."""
        if message.type != sketch.type or procedure.name in message.handled:
            return False
        if message.type == ERROR.name and message.depth > self.chain_max:
            return False  # errors about errors come to an end
        if (procedure.name, message.key, message.position) in self._withdrawn:
            return False
        return (
            all(self._holds(sketch, line.field, line.conditions, message) for line in sketch.lines if not line.other)
            and all(
                related(message.said.get(line.field), line.sign, message.said.get(line.other.field))
                for line in sketch.lines
                if line.other is not None and line.other.sketch == sketch.name
            )
            and _comes_from(procedure, sketch, message)
            and all(message.said.get(name) is not None for name in compared(procedure, sketch.name))
        )

    def _holds(self, sketch: Precondition, name: str, asked: str, message: Message) -> bool:
        about = self.forms[sketch.type].field(name)
        assert about is not None
        value = message.said.get(name)
        values = value if isinstance(value, tuple) else () if value is None else (value,)
        return any(each.holds(one) for each in conditions.parse(about, asked) for one in values)

    def _complete(self, procedure: Procedure, sketch: Precondition, message: Message) -> dict[str, Message] | None:
        """Of all combinations the one with the oldest messages, in the order in which they are looked for."""
        order = search_order(procedure, sketch.name)
        by_name = {each.name: each for each in procedure.preconditions}
        best: tuple[list[int], dict[str, Message]] | None = None
        for others in product(*(self._waiting(procedure, by_name[name]) for name in order)):
            members = {sketch.name: message, **dict(zip(order, others, strict=True))}
            if len({each.key for each in members.values()}) == len(members) and agree(procedure, members):
                turns = [each.turn or 0 for each in others]
                if best is None or turns < best[0]:
                    best = turns, members
        return None if best is None else best[1]

    # --- what follows ---

    def _handle(self, procedure: Procedure, members: Mapping[str, Message], last: Message) -> Failure | None:
        depth = min(each.depth for each in members.values())
        codes: set[str] = {CHAIN} if depth >= self.chain_max else set()
        work = Work(self, procedure, members)
        if not codes:
            codes = work.try_all()
        if codes:
            last.turn = None  # it is looked at again, without this procedure
            names = [procedure.name]
            if CHAIN in codes:  # then no procedure of the station may go on with them
                names = list(self.in_force_at(procedure.station))
            self._withdrawn |= {(name, each.key, each.position) for name in names for each in members.values()}
            return Failure(procedure.name, procedure.station, [each.key for each in members.values()], codes, depth + 1)
        after = {name: work.after(name) for name in members}
        more = len(work.made) / len(members)  # who makes two of one counts for six
        deeper = depth + max(1, ceil(6 * log2(1 + more)))
        for sketch in procedure.preconditions:
            message = members[sketch.name]
            message.said = after[sketch.name]
            self._send(procedure, message, work.goals.get((sketch.name, 0)), deeper)
        for name, copy, type, said in work.made:
            key = self.fresh_key()
            message = Message(key, type, self._copied(type, said, key), procedure.station, False, 0)
            self.messages[key] = message
            self._send(procedure, message, work.goals.get((name, copy)), deeper)
        return None

    def _send(self, procedure: Procedure, message: Message, goal: tuple[Operation, str] | None, depth: int) -> None:
        operation, where = goal or (Operation.LEAVE, "")
        if operation is Operation.SHIP:
            self._ship(message, procedure.station, where, depth)
            return
        message.mail, message.fetched = False, message.mail or message.fetched
        failed = [name for name, key, position in self._withdrawn if (key, position) == (message.key, message.position)]
        handled = (*(name for name in message.handled if name != procedure.name), procedure.name)
        self._touch(message, depth=depth, handled=handled)
        self._withdrawn |= {(name, message.key, message.position) for name in failed}  # no person has changed that
        if operation is Operation.DOSSIER:
            self.add_to_dossier(procedure.station, where, message.key)

    def _ship(self, message: Message, station: str, to: str, depth: int) -> None:
        for kept in self.dossiers.values():
            if message.key in kept:
                kept.remove(message.key)
        message.station, message.mail, message.sender, message.fetched = to, True, station, False
        self._touch(message, depth=depth, handled=())

    def _touch(self, message: Message, *, depth: int, handled: tuple[str, ...]) -> None:
        """It is the newest now, and nobody has looked at it."""
        self._position += 1
        message.position, message.depth, message.handled, message.turn = self._position, depth, handled, None

    def _put(self, message: Message) -> None:
        self.messages[message.key] = message
        self._touch(message, depth=message.depth, handled=())

    def _tell(self, failed: Failure) -> None:
        key = self.fresh_key()
        given = {"Procedure": failed.procedure, "Code": "?", "Description": "?", "Messages": failed.keys}
        said = self.says(failed.station, ERROR.name, given, key)
        self._put(Message(key, ERROR.name, said, failed.station, False, 0, depth=failed.depth))
        self.codes[key] = failed.codes
        self.add_to_dossier(failed.station, "errors", key)

    def fresh_key(self) -> str:
        self._made += 1
        return f"{NEW}.{self._made:05d}"

    def says(self, station: str, type: str, given: Mapping[str, Any], key: str) -> dict[str, FieldValue]:
        """What a new message says."""
        form = self.forms[type]
        if any(each.rule is Rule.REQUIRED and given.get(each.name) in (None, "") for each in form.fields):
            raise Refused(FieldRefused.code)
        fits = {name: fitted(form, name, raw) for name, raw in given.items()}
        said: dict[str, FieldValue] = {name: value for name, value in fits.items() if value is not None}
        for each in form.fields:
            if each.rule is Rule.AUTOMATIC and each.kind is Kind.DATE:
                said[each.name] = form.type.value(each.name, self.today)
            if each.function == "signature":
                said[each.name] = station
        return worked_out(form, self._copied(type, said, key))

    def _copied(self, type: str, said: Mapping[str, FieldValue], key: str) -> dict[str, FieldValue]:
        own = [each.name for each in self.forms[type].fields if each.rule is Rule.AUTOMATIC and each.kind is Kind.KEY]
        return {**said, **dict.fromkeys(own, key)}


# --- values ----------------------------------------------------------------------------------------------------------


def fitted(form: Form, name: str, raw: Any) -> FieldValue:
    """A value as its field holds it; None if it is empty."""
    about = form.field(name)
    assert about is not None
    if about.many and isinstance(raw, str):
        raw = [part.strip() for part in raw.split(",") if part.strip()]
    several = list(raw) if isinstance(raw, (list, tuple)) else [] if raw is None else [raw]
    as_text = about.kind is Kind.STRING
    plain = [text(each) if as_text or isinstance(each, Decimal) else each for each in several]
    if len(plain) != 1 and not about.many and plain:
        raise Refused(FieldRefused.code)
    try:
        value = form.type.value(name, plain if about.many or not plain else plain[0])
    except BodyMismatch:
        raise Refused(FieldRefused.code) from None
    return None if value == "" or value == () else value


def written(form: Form, before: Mapping[str, FieldValue], given: Mapping[str, Any]) -> dict[str, FieldValue]:
    """What a message says after something was written on it."""
    said = dict(before)
    for name, raw in given.items():
        new, old, about = fitted(form, name, raw), before.get(name), form.field(name)
        if new == old:
            continue
        assert about is not None
        if about.rule in (Rule.AUTOMATIC, Rule.REQUIRED) or (about.rule is Rule.ONCE and old is not None):
            raise Refused(FieldRefused.code)
        if new is None:
            del said[name]
        else:
            said[name] = new
    return worked_out(form, said) if said != before else said


def worked_out(form: Form, said: dict[str, FieldValue]) -> dict[str, FieldValue]:
    """With what a function makes of the other fields."""
    for each in form.fields:
        if each.function is not None and each.function in FUNCTIONS:
            others = {other.name: said.get(other.name) for other in form.fields if other is not each}
            try:
                value = fitted(form, each.name, FUNCTIONS[each.function](others))
            except ValueError:
                raise Refused(FunctionFailed.code) from None
            said = {name: known for name, known in said.items() if name != each.name}
            if value is not None:
                said[each.name] = value
    return said


# --- comparisons -----------------------------------------------------------------------------------------------------


def related(ours: FieldValue, sign: str, theirs: FieldValue) -> bool:
    a: Any = ours
    b: Any = theirs
    if a is None or b is None:
        return False
    return bool({"=": a == b, "<>": a != b}[sign] if sign in ("=", "<>") else _ordered(a, sign, b))


def _ordered(a: Any, sign: str, b: Any) -> bool:
    return bool({"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[sign])


Place = tuple[str, str]  # a sketch and a field


def joins(procedure: Procedure) -> Iterator[tuple[Place, str, Place]]:
    for sketch in procedure.preconditions:
        for line in sketch.lines:
            if line.other is not None and line.other.sketch != sketch.name:
                yield (sketch.name, line.field), line.sign, (line.other.sketch, line.other.field)


def compared(procedure: Procedure, sketch: str) -> set[str]:
    """The fields of a sketch that other sketches are compared with."""
    places = [place for ours, _, theirs in joins(procedure) for place in (ours, theirs)]
    return {name for owner, name in places if owner == sketch}


def agree(procedure: Procedure, members: Mapping[str, Message]) -> bool:
    return all(
        related(members[ours[0]].said.get(ours[1]), sign, members[theirs[0]].said.get(theirs[1]))
        for ours, sign, theirs in joins(procedure)
    )


def search_order(procedure: Procedure, start: str) -> list[str]:
    """In which order the others are looked for: by most fields that are known to be equal, then any comparison."""
    edges = list(joins(procedure))
    equal: list[set[Place]] = [{ours, theirs} for ours, sign, theirs in edges if sign == "="]
    for _ in edges:
        equal = [set().union(one, *(other for other in equal if one & other)) for one in equal]
    bound, order = {start}, []

    def rank(name: str) -> tuple[int, bool]:
        known = [each for each in compared(procedure, name) if _known((name, each), equal, bound)]
        met = any({ours[0], theirs[0]} <= {name, *bound} and name in (ours[0], theirs[0]) for ours, _, theirs in edges)
        return len(known), met

    names = [each.name for each in procedure.preconditions]
    while len(bound) < len(names):
        left = [name for name in names if name not in bound]
        best = max(rank(name) for name in left)
        chosen = next(name for name in left if rank(name) == best)
        order.append(chosen)
        bound.add(chosen)
    return order


def _known(place: Place, equal: Sequence[set[Place]], bound: set[str]) -> bool:
    return any(place in one and any(owner in bound for owner, _ in one) for one in equal)


def _comes_from(procedure: Procedure, sketch: Precondition, message: Message) -> bool:
    by_mail = message.mail or message.fetched
    shipper = message.sender or ("" if by_mail else procedure.station)
    for each in procedure.origins:
        if each.sketch == sketch.name:
            named = any(name == shipper or (name == ME and not by_mail) for name in each.stations)
            if named == each.refused:
                return False
    return True


# --- actions ---------------------------------------------------------------------------------------------------------


class Work:
    """A complete working set: every value asked for when it is needed, so that any order of actions will do."""

    def __init__(self, oracle: Oracle, procedure: Procedure, members: Mapping[str, Message]) -> None:
        self._oracle = oracle
        self._procedure = procedure
        self._members = members
        self._lines = {(each.sketch, line.field): line.value for each in procedure.actions for line in each.lines}
        self.goals: dict[tuple[str, int], tuple[Operation, str]] = {}
        self.made: list[tuple[str, int, str, dict[str, FieldValue]]] = []

    def try_all(self) -> set[str]:
        """Everything that goes wrong, by code; nothing if all of it can be done."""
        parts: list[Callable[[], Any]] = [partial(self._value, value) for value in self._lines.values()]
        parts += [partial(self.after, name) for name in self._members]
        parts += [partial(self._create, each) for each in self._procedure.creations]
        parts += [partial(self._aim, each) for each in self._procedure.destinations]
        codes = set()
        for part in parts:
            try:
                part()
            except Refused as refused:
                codes.add(refused.code)
        if not codes:
            self._copy()
        return codes

    def after(self, sketch: str) -> dict[str, FieldValue]:
        """What a message of the set will say."""
        message = self._members[sketch]
        given = {name: self._value(value) for (owner, name), value in self._lines.items() if owner == sketch}
        return written(self._oracle.forms[message.type], message.said, given)

    def _value(self, expression: Expression) -> Any:
        if isinstance(expression, Constant):
            return expression.value
        if isinstance(expression, Reference):
            return self._updated(expression) if expression.updated else self._original(expression)
        arguments = [self._value(each) for each in expression.arguments]
        try:
            return FUNCTIONS[expression.function](*arguments)
        except ValueError:
            raise Refused(FAILED) from None

    def _original(self, reference: Reference) -> FieldValue:
        return self._members[reference.sketch].said.get(reference.field)

    def _updated(self, reference: Reference) -> FieldValue:
        """A field that a function makes depends on the whole message, another one on what is written into it."""
        message = self._members[reference.sketch]
        form = self._oracle.forms[message.type]
        about = form.field(reference.field)
        assert about is not None
        if about.function in FUNCTIONS:
            return self.after(reference.sketch).get(reference.field)
        line = self._lines.get((reference.sketch, reference.field))
        if line is None:
            return message.said.get(reference.field)
        plain = replace(form, fields=tuple(each for each in form.fields if each.function not in FUNCTIONS))
        return written(plain, message.said, {reference.field: self._value(line)}).get(reference.field)

    def _create(self, creation: Creation) -> None:
        given = {line.field: self._value(line.value) for line in creation.lines}
        given = {name: value for name, value in given.items() if value is not None}
        said = self._oracle.says(self._procedure.station, creation.type, given, "")
        self.made.append((creation.name, 0, creation.type, said))

    def _aim(self, goal: Destination) -> None:
        operation = goal.operation
        if goal.where is None:
            return
        value = self._value(goal.where)
        if value is None or value == "" or isinstance(value, (tuple, list)):
            raise Refused(FAILED)
        if operation is Operation.SHIP and text(value) not in self._oracle.stations:
            raise Refused(StationUnknown.code)
        if operation is Operation.DOSSIER and not text(value).isprintable():
            raise Refused(ArgumentInvalid.code)
        self.goals[goal.sketch, goal.copy] = operation, text(value)

    def _copy(self) -> None:
        new = {name: (type, said) for name, _, type, said in self.made}
        for each in self._procedure.destinations:
            if each.copy:
                known = new.get(each.sketch)
                type, said = known or (self._members[each.sketch].type, self.after(each.sketch))
                self.made.append((each.sketch, each.copy, type, said))


# --- random offices --------------------------------------------------------------------------------------------------

STATIONS = ("X", "Y", "Z", "W")
TEXTS = ("X", "Y", "a")  # values that are stations now and then
_VALUES = {
    Kind.STRING: TEXTS,
    Kind.INT: ("1", "0", "2"),
    Kind.DECIMAL: ("1", "1.5", "1.50", "0", "2"),
    Kind.KEY: ("00001.00001",),
}
_CONDITIONS = {
    Kind.STRING: ("X", '"X" "Y"', "<> X", "?", "< Y", "a", "X*"),
    Kind.INT: ("1", ">= 1", "0..1", "<> 2", "<1 >1", "> 0"),
    Kind.DECIMAL: ("1", ">= 1", "1..1.5", "<> 1.5", "< 2"),
}
TYPES = """\
type A
| K: ____ N: ____ D: ____ O: ____ L: ____ |
| Ref: ____________ R: ____ KEY: ____________ T: ____ |
field K string free
field N int free
field D decimal free
field O string once
field L list of string free
field Ref key free
field R string required
field KEY key automatic
field T string automatic summary
index K
index N

type B
| K: ____ N: ____ O: ____ S: ____ KEY: ____________ G: ____ |
field K string free
field N decimal free
field O int once
field S string free
field KEY key automatic
field G string automatic signature
index S

type C
| K: ____ N: ____ S: ____ KEY: ____________ |
field K string required
field N int free
field S string free
field KEY key automatic
"""
FORMS = {form.name: form for form in read(TYPES, "types.form").forms}
_OPEN = (Rule.FREE, Rule.ONCE)
_NUMBERS = (Kind.INT, Kind.DECIMAL)


@dataclass(frozen=True)
class Deed:
    """Something that happens: a verb of a person or a run of the engine."""

    verb: str
    station: str = ""
    which: int = 0  # a message of the station, or a number that the verb needs
    type: str = ""
    given: tuple[tuple[str, str], ...] = ()
    where: str = ""
    steps: int | None = None


@dataclass(frozen=True)
class Case:
    """An office, and its history."""

    procedures: str
    stations: tuple[str, ...]
    history: tuple[Deed, ...]
    chain_max: int

    @property
    def office(self) -> str:
        return f"{TYPES}\n{self.procedures}"

    def __repr__(self) -> str:
        head = f"stations={self.stations} chain_max={self.chain_max}"
        return "\n".join([head, self.procedures, *(f"    {each}" for each in self.history)])


class _Pick:
    """What hypothesis chooses, in few words."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self._draw = draw

    def one(self, some: Sequence[T]) -> T:
        return self._draw(st.sampled_from(some))  # type: ignore[no-any-return]  # one of them

    def chance(self, percent: int) -> bool:
        """Rarer than not: a smaller case is one without."""
        return bool(self._draw(st.integers(0, 99)) >= 100 - percent)

    def number(self, low: int, high: int) -> int:
        return int(self._draw(st.integers(low, high)))


class _Sketch(NamedTuple):
    name: str
    form: Form


@dataclass
class _Writer:
    """A procedure as it comes to be written."""

    pick: _Pick
    name: str
    station: str
    stations: Sequence[str]
    sketches: list[_Sketch] = field(default_factory=list)
    ranks: dict[Place, int] = field(default_factory=dict)  # an updated value is made of lower ones

    def text(self) -> str:
        pick = self.pick
        types = ["A", "B", "A", "C"]
        for number in range(pick.one((1, 2, 2, 3))):
            form = ERROR if pick.chance(3) else FORMS[pick.one(types)]
            self.sketches.append(_Sketch(f"s{number}", form))
        lines = [f"procedure {self.name} at {self.station}"]
        for number in range(len(self.sketches)):
            lines += self._precondition(number)
        lines += [f"  {each}" for sketch in self.sketches for each in self._origin(sketch)]
        lines += self._actions()
        created = [_Sketch(f"c{number}", FORMS[pick.one(types)]) for number in range(pick.one((0, 0, 0, 1, 2)))]
        for sketch in created:
            lines += self._creation(sketch)
        lines += [f"  {each}" for sketch in [*self.sketches, *created] for each in self._destinations(sketch)]
        return "\n".join(lines)

    # --- preconditions ---

    def _precondition(self, number: int) -> list[str]:
        pick, sketch = self.pick, self.sketches[number]
        lines = [f"  precondition {sketch.name} : {sketch.form.name}"]
        asked = [each for each in sketch.form.fields if each.kind in _CONDITIONS and each.name not in _UNTOLD]
        for _ in range(pick.one((0, 0, 0, 1, 2))):
            about = pick.one(asked)
            lines.append(f"    {about.name}: {pick.one(_CONDITIONS[about.kind])}")
        if pick.chance(15):
            lines += self._join(sketch, sketch)
        for _ in range(pick.one((1, 1, 1, 0, 2)) if number else 0):
            lines += self._join(sketch, self.sketches[pick.number(0, number - 1)])
        if number + 1 < len(self.sketches) and pick.chance(20):
            lines += self._join(sketch, self.sketches[number + 1])
        return lines

    def _join(self, ours: _Sketch, theirs: _Sketch) -> list[str]:
        pairs = [
            (a, b)
            for a in ours.form.fields
            for b in theirs.form.fields
            if _comparable(a, b) and (ours is not theirs or a is not b)
        ]
        if not pairs:
            return []
        same = [pair for pair in pairs if pair[0].name == pair[1].name == "K"]
        one, other = self.pick.one(pairs) if self.pick.chance(40) else self.pick.one(same or pairs)
        signs = ("= ", "", "<> ") if one.kind is Kind.KEY else ("= ", "", "= ", "", "<> ", "< ", ">= ", "> ", "<= ")
        return [f"    {one.name}: {self.pick.one(signs)}?{theirs.name}.{other.name}"]

    def _origin(self, sketch: _Sketch) -> list[str]:
        if not self.pick.chance(15):
            return []
        others = [each for each in self.stations if each != self.station]
        named = self.pick.one([ME, *others, *([f"{ME}, {others[0]}"] if others else [])])
        return [f"origin o_{sketch.name} on {sketch.name} {self.pick.one(('from', 'not from'))} {named}"]

    # --- actions ---

    def _actions(self) -> list[str]:
        written = [
            (sketch, about)
            for sketch in self.sketches
            for about in sketch.form.fields
            if sketch.form is not ERROR and about.rule in _OPEN and self.pick.chance(25)
        ]
        numbers = list(range(len(written)))
        for sketch, about in written:
            rank = self.pick.one(numbers)
            numbers.remove(rank)
            self.ranks[sketch.name, about.name] = rank
        lines = []
        for sketch in self.sketches:
            mine = [about for other, about in written if other is sketch]
            if mine:
                lines.append(f"  action a_{sketch.name} on {sketch.name}")
                for about in mine:
                    value = self._value(about, self.ranks[sketch.name, about.name])
                    lines.append(f"    {about.name}: {value}")
        return lines

    def _creation(self, sketch: _Sketch) -> list[str]:
        lines = [f"  create {sketch.name} : {sketch.form.name}"]
        for about in sketch.form.fields:
            if about.rule is Rule.REQUIRED or (about.rule in _OPEN and self.pick.chance(30)):
                lines.append(f"    {about.name}: {self._value(about, len(self.ranks))}")
        return lines

    def _value(self, about: FormField, rank: int) -> str:
        """What is written into a field: a constant, a field, or what a function makes."""
        found = self._references(rank, lambda each: _takes(about, each))
        way = self.pick.one(("constant", "field", "field", "call", "call"))
        if way == "field" and found:
            return self.pick.one(found)
        if way == "call" and about.kind is not Kind.KEY:
            strange = self.pick.chance(15)
            return self._call(self._references(rank, lambda each: _plain(each) and (strange or _takes(about, each))))
        constants = ("X, Y", "a") if about.many else _VALUES[about.kind]
        return self.pick.one(constants)

    def _call(self, found: Sequence[str], depth: int = 0) -> str:
        name = self.pick.one(("turned", "turned", "turned", "fussy"))
        arguments = []
        for _ in range(self.pick.one((1, 1, 2))):
            if depth < 2 and self.pick.chance(10):
                arguments.append(self._call(found, depth + 1))
            else:
                arguments.append(self.pick.one([*found, *found, '"X"', "1"]))
        return f"{name}({', '.join(arguments)})"

    def _references(self, rank: int, wanted: Callable[[FormField], bool]) -> list[str]:
        found = []
        for sketch in self.sketches:
            for about in sketch.form.fields:
                if about.name not in _UNTOLD and wanted(about):
                    found.append(f"?{sketch.name}.{about.name}")
                    if self._is_settled(sketch, about, rank):
                        found.append(f"?{sketch.name}.{about.name}'")
        return found

    def _is_settled(self, sketch: _Sketch, about: FormField, rank: int) -> bool:
        """Whether the updated value is known before what is written at a rank."""
        places = [place for place in self.ranks if place[0] == sketch.name]
        if about.function is None:
            places = [place for place in places if place[1] == about.name]
        return all(self.ranks[place] < rank for place in places)

    # --- destinations ---

    def _destinations(self, sketch: _Sketch) -> list[str]:
        lines = []
        for copy in range(self.pick.one((1, 1, 1, 2, 3))):
            if copy or self.pick.chance(60):
                where = self._where()
                lines.append(f"destination d{copy}_{sketch.name} on {sketch.name} copy {copy} {where}")
        return lines

    def _where(self) -> str:
        pick = self.pick
        operation = pick.one(("leave", "dossier", "ship", "ship"))
        if operation == "leave":
            return operation
        found = self._references(len(self.ranks), _plain)
        named = pick.one(self.stations if operation == "ship" else ("one", "two"))
        way = pick.one(("constant", "constant", "field", "call"))
        if way == "constant" or not found:
            return f"{operation} {named}"
        texts = self._references(len(self.ranks), lambda each: _plain(each) and each.kind is Kind.STRING)
        return f"{operation} {pick.one(texts or found) if way == 'field' else self._call(texts or found)}"


_UNTOLD = ("Code", "Description", "Messages", "DATE")  # of error messages: how they are worded is not ours to say


def _plain(about: FormField) -> bool:
    return not about.many and about.kind is not Kind.KEY


def _comparable(one: FormField, other: FormField) -> bool:
    if one.many or other.many or one.name in _UNTOLD or other.name in _UNTOLD:
        return False
    return one.kind == other.kind or (one.kind in _NUMBERS and other.kind in _NUMBERS)


def _takes(about: FormField, value: FormField) -> bool:
    """Whether a field takes what another one holds; a key is not said as a text, as keys are given by the engine."""
    if value.many and not about.many:
        return False
    if Kind.KEY in (about.kind, value.kind):
        return about.kind == value.kind and not value.many
    return about.kind == value.kind or about.kind is Kind.STRING or (value.kind is Kind.INT and about.kind in _NUMBERS)


def _given(pick: _Pick, form: Form, percent: int) -> tuple[tuple[str, str], ...]:
    found = []
    for about in form.fields:
        if about.rule is Rule.REQUIRED or (about.rule in _OPEN and pick.chance(percent)):
            values = ("X, Y", "a") if about.many else _VALUES[about.kind]
            found.append((about.name, pick.one(values)))
    return tuple(found)


def _deed(pick: _Pick, stations: Sequence[str], procedures: int) -> Deed:
    station = pick.one(stations)
    verb = pick.one(
        ("create",) * 14 + ("run",) * 5 + ("ship",) * 3 + ("modify",) * 3 + ("get", "copy", "file", "switch")
    )
    which = pick.number(0, 5)
    if verb == "create":
        form = FORMS[pick.one(("A", "B", "A", "B", "C"))]
        return Deed(verb, station, type=form.name, given=_given(pick, form, 90))
    if verb == "modify":
        form = FORMS[pick.one(("A", "B", "C"))]
        open_fields = [each for each in form.fields if each.rule in _OPEN]
        return Deed(verb, station, which, given=_given(pick, replace(form, fields=tuple(open_fields)), 40))
    if verb == "ship":
        return Deed(verb, station, which, where=pick.one(stations))
    if verb == "run":
        return Deed(verb, which=pick.one((1, 2, 3, 5, 100)), steps=pick.one((None, None, 1, 2)))
    if verb == "switch":
        return Deed(verb, which=pick.number(0, procedures - 1))
    return Deed(verb, station, which, where=pick.one(("one", "two")))


@st.composite
def cases(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Case:
    pick = _Pick(draw)
    stations = STATIONS[: pick.one((1, 1, 2, 3, 4))]
    names = [(station, number) for station in stations for number in range(pick.one((1, 1, 2, 3, 4)))]
    if len(stations) > 2 and pick.chance(50):
        names = [each for each in names if each[0] != stations[-1]]  # someone who only gets mail
    procedures = [_Writer(pick, f"p{station}{number}", station, stations).text() for station, number in names]
    history = [_deed(pick, stations, len(names)) for _ in range(pick.number(10, 36))]
    return Case("\n".join(procedures), stations, tuple(history), pick.one((3, 2, 6)))

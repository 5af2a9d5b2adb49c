"""What a complete working set leads to: what is written on its messages, the new ones, and where each goes.

It runs in a worker, with the set and the plan, without a store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, time
from decimal import Decimal
from typing import Any, NamedTuple, Self

from postroom.errors import PostroomError
from postroom.model.body import check_text
from postroom.model.types import FieldValue, Kind, text
from postroom.model.xmltext import in_xml
from postroom.stations.forms.catalog import Edition
from postroom.stations.forms.filling import copied, created, modified, values
from postroom.stations.forms.form import Form
from postroom.stations.procedures.definitions import Call, Constant, Expression, Operation, Reference
from postroom.stations.procedures.plan import Plan

CODE = "PP0001"  # of what a procedure cannot do
SLOW, LATER = "slow", "later"  # not worked out: it takes its time; or others took it
Functions = Mapping[str, Callable[..., Any]]
Find = Callable[[str], Callable[..., Any] | None]


class Member(NamedTuple):
    """A message of a working set."""

    sketch: str
    type: str
    form: int
    body: str  # or the message's key, for executors that fetch it


class Complete(NamedTuple):
    """A complete working set."""

    order: int
    plan: str  # the procedure's name
    members: tuple[Member, ...]  # those that are read, written on or copied
    keys: tuple[int, ...]  # for copies and new messages
    now: int
    failure: str | None = None  # why it cannot be evaluated: it killed its worker

    def failing(self, why: str) -> Self:
        return self._replace(failure=why)


class Made(NamedTuple):
    """A new message: a copy, or one that was created."""

    sketch: str
    copy: int
    type: str
    form: int
    body: str


class Outcome(NamedTuple):
    """The result of a working set, or why there is none."""

    written: Mapping[str, tuple[str, tuple[str, ...]]] = {}  # by sketch, the new body, and which fields changed
    made: tuple[Made, ...] = ()  # in the order of the keys
    where: tuple[str | None, ...] = ()  # of each destination
    code: str = ""
    why: str = ""

    @property
    def failed(self) -> bool:
        return bool(self.code)

    @property
    def is_open(self) -> bool:
        """Whether it is not evaluated yet."""
        return self.code in (SLOW, LATER)


def read(plain: Any) -> tuple[int, Outcome]:
    """The number of a set and its outcome, from JSON."""
    order, (written, made, where, code, why) = plain
    for sketch, (body, fields) in written.items():
        written[sketch] = (body, tuple(fields))
    new = tuple([Made(*message) for message in made]) if made else ()
    return order, tuple.__new__(Outcome, (written, new, tuple(where), code, why))  # the constructor's half cost counts


class _Failed(Exception):
    pass


@dataclass(frozen=True)
class Bench:
    """The inputs for evaluating working sets: plain data, and the functions that procedures name."""

    plans: Mapping[str, Plan]
    editions: Mapping[tuple[str, int], Form]  # by type and version
    present: Mapping[str, Edition]  # the forms that new messages are made with
    functions: Functions

    def outcome(self, complete: Complete) -> Outcome:
        """The outcome, all or nothing: if a value cannot be computed, every message stays as it was."""
        if complete.failure is not None:
            return Outcome(code=CODE, why=complete.failure)
        try:
            return _Work(self, complete).done()
        except _Failed as failed:
            return Outcome(code=CODE, why=_told(failed))
        except PostroomError as refusal:
            return Outcome(code=refusal.code, why=_told(refusal))
        except Exception as error:  # values that cannot be written, such as whole numbers of 5,000 digits
            return Outcome(code=CODE, why=_told(f"a value cannot be written: {type(error).__name__}: {error}"))


class _Work:
    """The evaluation of one working set."""

    def __init__(self, bench: Bench, complete: Complete) -> None:
        self._bench = bench
        self._complete = complete
        self._plan = bench.plans[complete.plan]
        self._members = {member.sketch: member for member in complete.members}
        self._original: dict[str, dict[str, FieldValue]] = {}
        self._bodies: dict[str, str] = {}
        self._fields: dict[str, list[str]] = {}
        self._updated: dict[str, dict[str, FieldValue]] = {}
        self._given: dict[str, dict[str, Any]] = {}

    def done(self) -> Outcome:
        for sketch, line in self._plan.order:
            value = _sayable(self._value(line.value), self._form(sketch), line.field)
            self._given.setdefault(sketch, {})[line.field] = value
            self._updated.pop(sketch, None)
        for sketch in self._given:
            self._write(sketch)
        made = self._made()
        where = tuple(
            self._where(destination.operation, destination.where) for destination in self._plan.procedure.destinations
        )
        written = {
            sketch: (self._bodies[sketch], tuple(changed)) for sketch, changed in self._fields.items() if changed
        }
        return Outcome(written, made, where)

    def _form(self, sketch: str) -> Form:
        member = self._members[sketch]
        return self._bench.editions[member.type, member.form]

    def _write(self, sketch: str) -> None:
        """Write the given fields of a message."""
        body, changed = modified(self._form(sketch), self._members[sketch].body, self._given[sketch])
        check_text(body)
        self._bodies[sketch], self._fields[sketch] = body, changed

    # --- values ---

    def _value(self, expression: Expression) -> Any:
        if isinstance(expression, Constant):
            return expression.value
        if isinstance(expression, Reference):
            return self._read(expression)
        return self._called(expression)

    def _read(self, reference: Reference) -> FieldValue:
        sketch, known = reference.sketch, self._original
        if reference.updated and sketch in self._given:
            field = self._form(sketch).field(reference.field)
            if field is None or field.registered is None:
                return self._written(sketch, reference.field)
            known = self._updated
            if sketch not in known:
                self._write(sketch)
                known[sketch] = values(self._form(sketch), self._bodies[sketch])
        elif sketch not in known:
            known[sketch] = values(self._form(sketch), self._members[sketch].body)
        return known[sketch].get(reference.field)

    def _written(self, sketch: str, name: str) -> FieldValue:
        """One field's new value. Other fields may not be written yet, so functions of the message come later."""
        form, body = self._form(sketch), self._members[sketch].body
        plain = replace(form, fields=tuple(field for field in form.fields if field.registered is None))
        if name in self._given[sketch]:
            body, _ = modified(plain, body, {name: self._given[sketch][name]})
        return values(plain, body).get(name)

    def _called(self, call: Call) -> Any:
        function = self._bench.functions.get(call.function)
        if function is None:
            raise _Failed(f"no function is registered as {call.function}")
        arguments = [self._value(argument) for argument in call.arguments]
        try:
            return function(*arguments)
        except Exception as error:
            try:
                text = str(error)
            except Exception:  # someone else's code, too
                text = "it does not say why"
            raise _Failed(f"the function {call.function} failed: {type(error).__name__}: {text}") from error

    def _where(self, operation: Operation, expression: Expression | None) -> str | None:
        if expression is None:
            return None
        place = self._value(expression)
        if place is None or place == "":
            raise _Failed(f"{operation} {expression}: there is no value")
        if isinstance(place, str) and not in_xml(place):
            raise _Failed(f"{operation} {expression}: there is a character that no name has")
        if not isinstance(place, str) and not _is_scalar(place):
            raise _Failed(f"{operation} {expression}: a name is one value, not {type(place).__name__}")
        return text(place)

    # --- new messages ---

    def _made(self) -> tuple[Made, ...]:
        keys = iter(self._complete.keys)
        procedure = self._plan.procedure
        made = []
        for creation in procedure.creations:
            edition = self._bench.present[creation.type]
            given = {line.field: _sayable(self._value(line.value), edition.form, line.field) for line in creation.lines}
            given = {name: value for name, value in given.items() if value is not None}
            body = created(edition, given, next(keys), procedure.station, self._complete.now)
            check_text(body)
            made.append(Made(creation.name, 0, creation.type, edition.version, body))
        bodies = {message.sketch: message for message in made}
        for goal in procedure.destinations:
            if not goal.copy:
                continue
            new = bodies.get(goal.sketch)
            if new is not None:
                form, body, type, version = self._bench.present[new.type].form, new.body, new.type, new.form
            else:
                member = self._members[goal.sketch]
                body = self._bodies.get(goal.sketch, member.body)
                form, type, version = self._form(goal.sketch), member.type, member.form
            made.append(Made(goal.sketch, goal.copy, type, version, copied(form, body, next(keys))))
        return tuple(made)


def _sayable(value: Any, form: Form, name: str) -> Any:
    """A value for a field: text fields accept any value as text."""
    field = form.field(name)
    if field is None or field.kind is not Kind.STRING or value is None:
        return value
    if isinstance(value, (list, tuple)):
        return [_sayable(item, form, name) for item in value]
    if isinstance(value, str):
        return value
    return text(value) if _is_scalar(value) else value  # what is no value at all, the field refuses


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal, date, time))


def _told(why: object) -> str:
    """Foreign text made safe for an error message."""
    return "".join(character if in_xml(character) else "\N{REPLACEMENT CHARACTER}" for character in str(why))


def functions_of(plans: Iterable[Plan], forms: Iterable[Form], find: Find) -> Functions:
    """The functions that procedures name, and those of automatic fields in their messages."""
    names = [name for plan in plans for name in plan.functions]
    names += [field.function for form in forms for field in form.fields if field.function]
    functions = {name: find(name) for name in dict.fromkeys(names)}
    return {name: function for name, function in functions.items() if function is not None}

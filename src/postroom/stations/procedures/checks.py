"""The checks of a procedure, as named rules; a procedure that passes them needs no analysis at run time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from postroom.errors import FormInvalid
from postroom.limits import DOSSIER_CHARS_MAX, PROCEDURE_COPIES_MAX, PROCEDURE_SKETCHES_MAX
from postroom.model.definitions import Position, Problem, nearest
from postroom.model.types import Kind
from postroom.stations.forms.filling import fitting
from postroom.stations.forms.form import Form, FormField, Rule
from postroom.stations.procedures.definitions import (
    ME,
    Action,
    Constant,
    Creation,
    Operation,
    Origin,
    Precondition,
    Procedure,
    Reference,
    Written,
    references,
)
from postroom.stations.procedures.ordering import cycle
from postroom.stations.queries import conditions

Found = Iterator[tuple[Position, str]]
_NUMBERS = (Kind.INT, Kind.DECIMAL, Kind.FLOAT)


@dataclass(frozen=True)
class Subject:
    """A procedure, and the types that its sketches may have."""

    procedure: Procedure
    forms: Mapping[str, Form]
    stations: Collection[str] | None = None  # that there are; None if that is not known

    def lacks(self, station: str) -> bool:
        """Whether a station certainly does not exist. The procedure's own may be added later."""
        return self.stations is not None and station not in self.stations and station != self.procedure.station

    def form(self, sketch: str) -> Form | None:
        type = self.procedure.type_of(sketch)
        return None if type is None else self.forms.get(type)

    def field(self, sketch: str, name: str) -> FormField | None:
        form = self.form(sketch)
        return None if form is None else form.field(name)


def problems(procedure: Procedure, forms: Mapping[str, Form], stations: Collection[str] | None = None) -> list[Problem]:
    """Every rule that a procedure breaks, with the place."""
    subject = Subject(procedure, forms, stations)
    return [
        Problem(position, f"procedure {procedure.name}: {what}", check.__name__.replace("_", "-"))
        for check in CHECKS
        for position, what in check(subject)
    ]


def procedure_size(subject: Subject) -> Found:
    """A procedure has sketches to collect, up to a limit."""
    procedure = subject.procedure
    count = len(procedure.preconditions) + len(procedure.creations)
    if not procedure.preconditions:
        yield procedure.position, "it has no precondition, so it would never begin"
    if count > PROCEDURE_SKETCHES_MAX:
        yield procedure.position, f"{count} messages; at most {PROCEDURE_SKETCHES_MAX}"


def sketch_names(subject: Subject) -> Found:
    """Names of sketches are unique."""
    seen: set[str] = set()
    for sketch in subject.procedure.sketches:
        if sketch.name in seen:
            yield sketch.position, f"there are two sketches {sketch.name}"
        seen.add(sketch.name)


def sketch_types(subject: Subject) -> Found:
    """Sketches have known types."""
    several: list[Precondition | Creation] = [*subject.procedure.preconditions, *subject.procedure.creations]
    for sketch in several:
        if sketch.type not in subject.forms:
            yield sketch.position, f"there is no type {sketch.type}{nearest(sketch.type, subject.forms)}"


def sketch_fields(subject: Subject) -> Found:
    """Every line names a field of the sketch's type."""
    collected = subject.procedure.preconditions
    lines = [(sketch.name, line.field, line.position) for sketch in collected for line in sketch.lines]
    lines += [(sketch, line.field, line.position) for sketch, line in subject.procedure.writings()]
    for sketch, name, position in lines:
        form = subject.form(sketch)
        if form is not None and form.field(name) is None:
            known = [field.name for field in form.fields]
            yield position, f"type {form.name} has no field {name}{nearest(name, known)}; it has {', '.join(known)}"


def sketch_bound(subject: Subject) -> Found:
    """An action, origin or destination refers to a message that is collected, or (a destination) created."""
    procedure = subject.procedure
    collected = [sketch.name for sketch in procedure.preconditions]
    about: list[Action | Origin] = [*procedure.actions, *procedure.origins]
    for sketch in about:
        if sketch.sketch not in collected:
            yield sketch.position, f"there is no precondition {sketch.sketch}{nearest(sketch.sketch, collected)}"
    known = [*collected, *(creation.name for creation in procedure.creations)]
    for goal in procedure.destinations:
        if goal.sketch not in known:
            yield goal.position, f"there is no precondition or create {goal.sketch}{nearest(goal.sketch, known)}"
    for place, one in enumerate(about):
        if any(other.sketch == one.sketch and type(other) is type(one) for other in about[:place]):
            yield one.position, f"{one.sketch} has an {type(one).__name__.lower()} already: write both as one"


def reference_bound(subject: Subject) -> Found:
    """Every reference names a message that is collected, and a field of its type."""
    procedure = subject.procedure
    named = [(line.position, line.other) for sketch in procedure.preconditions for line in sketch.lines if line.other]
    named += [(position, reference) for position, value in procedure.expressions() for reference in references(value)]
    collected = [sketch.name for sketch in procedure.preconditions]
    for position, reference in named:
        sketch, name = reference.sketch, reference.field
        form = subject.form(sketch)
        if sketch not in collected:
            yield position, f"{reference}: there is no precondition {sketch}{nearest(sketch, collected)}"
        elif form is not None and form.field(name) is None:
            known = [field.name for field in form.fields]
            yield position, f"{reference}: type {form.name} has no field {name}{nearest(name, known)}"


def condition_value(subject: Subject) -> Found:
    """Conditions are valid for their fields."""
    for sketch in subject.procedure.preconditions:
        for line in sketch.lines:
            field = subject.field(sketch.name, line.field)
            if field is None or line.other is not None:
                continue
            try:
                conditions.parse(field, line.conditions)
            except FormInvalid as error:
                yield line.position, f"{line.field}: {error.facts['what']}"


def join_kind(subject: Subject) -> Found:
    """Compared fields have one kind, or are numbers; lists are not compared."""
    for sketch in subject.procedure.preconditions:
        for line in sketch.lines:
            if line.other is None:
                continue
            ours, theirs = subject.field(sketch.name, line.field), subject.field(line.other.sketch, line.other.field)
            if ours is None or theirs is None:
                continue
            if ours.many or theirs.many:
                yield line.position, f"{line.field} and {line.other}: a list is not compared"
            elif not (ours.kind == theirs.kind or {ours.kind, theirs.kind} <= set(_NUMBERS)):
                yield line.position, f"{line.field} is a {ours.kind}, {line.other} a {theirs.kind}"


def origin_stations(subject: Subject) -> Found:
    """An origin lists existing stations, each once."""
    for origin in subject.procedure.origins:
        if len(set(origin.stations)) < len(origin.stations):
            yield origin.position, "a station is named twice"
        for name in origin.stations:
            if name != ME and subject.lacks(name):
                yield origin.position, f"there is no station {name}{nearest(name, subject.stations or ())}"


def field_fixed(subject: Subject) -> Found:
    """An action writes no automatic fields, and none that are fixed at creation."""
    for sketch, line in subject.procedure.writings():
        field = subject.field(sketch, line.field)
        made = subject.procedure.creation(sketch) is not None
        if field is None:
            continue
        if field.rule is Rule.AUTOMATIC:
            yield line.position, f"field {field.name} is automatic: the system writes it"
        elif field.rule is Rule.REQUIRED and not made:
            yield line.position, f"field {field.name} is fixed since the message was made"


def field_written(subject: Subject) -> Found:
    """A field is written once, and a new message has all required fields."""
    sketches: tuple[Action | Creation, ...] = (*subject.procedure.actions, *subject.procedure.creations)
    for sketch in sketches:
        names = [line.field for line in sketch.lines]
        for line in {line.field: line for line in sketch.lines if names.count(line.field) > 1}.values():
            yield line.position, f"field {line.field} is written {names.count(line.field)} times"
        form = subject.forms.get(sketch.type) if isinstance(sketch, Creation) else None
        for field in () if form is None else form.fields:
            if field.rule is Rule.REQUIRED and field.name not in names:
                yield sketch.position, f"field {field.name} of {sketch.name} is required"


def value_kind(subject: Subject) -> Found:
    """Values have the kind of their field; results of functions are checked at run time."""
    for sketch, line in subject.procedure.writings():
        field = subject.field(sketch, line.field)
        form = subject.form(sketch)
        if field is not None and form is not None:
            why = _misfit(subject, form, field, line)
            if why is not None:
                yield line.position, why


def _misfit(subject: Subject, form: Form, field: FormField, line: Written) -> str | None:
    value = line.value
    if isinstance(value, Constant):
        return fitting(form, field, value.value)
    if isinstance(value, Reference):
        other = subject.field(value.sketch, value.field)
        if other is not None and not _fits(other, field):
            return f"{value} is a {_kind(other)}, field {field.name} takes a {_kind(field)}"
    return None


def _fits(value: FormField, field: FormField) -> bool:
    if value.many and not field.many:
        return False
    same = value.kind == field.kind
    return same or field.kind is Kind.STRING or (value.kind is Kind.INT and field.kind in _NUMBERS)


def _kind(field: FormField) -> str:
    return f"list of {field.kind}" if field.many else str(field.kind)


def destination_copies(subject: Subject) -> Found:
    """The copies of a message are numbered 0, 1, 2 …, each once."""
    by_sketch: dict[str, list[int]] = {}
    for goal in subject.procedure.destinations:
        copies = by_sketch.setdefault(goal.sketch, [])
        if goal.copy in copies:
            yield goal.position, f"copy {goal.copy} of {goal.sketch} has a destination already"
        elif goal.copy > PROCEDURE_COPIES_MAX:
            yield goal.position, f"copy {goal.copy}; at most {PROCEDURE_COPIES_MAX} are made"
        copies.append(goal.copy)
    there = {sketch: set(copies) for sketch, copies in by_sketch.items()}
    for goal in subject.procedure.destinations:
        known = there[goal.sketch]
        missing = next((number for number in range(1, min(goal.copy, PROCEDURE_COPIES_MAX)) if number not in known), 0)
        if missing:
            yield goal.position, f"copy {goal.copy} of {goal.sketch}, and there is no copy {missing}"


def destination_value(subject: Subject) -> Found:
    """A station or dossier is named by one value, and a named station exists."""
    for goal in subject.procedure.destinations:
        if goal.operation is Operation.SHIP and isinstance(goal.where, Constant):
            to = str(goal.where.value)
            if subject.lacks(to):
                yield goal.position, f"there is no station {to}{nearest(to, subject.stations or ())}"
        field = subject.field(goal.where.sketch, goal.where.field) if isinstance(goal.where, Reference) else None
        if field is not None and field.many:
            yield goal.position, f"{goal.where} is a list"
        name = str(goal.where.value) if isinstance(goal.where, Constant) else ""
        if goal.operation is Operation.DOSSIER and len(name) > DOSSIER_CHARS_MAX:
            yield goal.position, f"the name of a dossier has at most {DOSSIER_CHARS_MAX} characters"


def action_order(subject: Subject) -> Found:
    """The values can be ordered so that each is computed after those that it uses."""
    circle = cycle(subject.procedure, subject.forms)
    if circle is not None:
        yield circle[0], f"no order of actions: {circle[1]}"


CHECKS: tuple[Callable[[Subject], Found], ...] = (
    procedure_size,
    sketch_names,
    sketch_types,
    sketch_fields,
    sketch_bound,
    reference_bound,
    condition_value,
    join_kind,
    origin_stations,
    field_fixed,
    field_written,
    value_kind,
    destination_copies,
    destination_value,
    action_order,
)

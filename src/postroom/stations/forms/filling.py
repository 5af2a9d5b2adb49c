"""Filling in a form: the user's values, and those of the system."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from postroom.errors import BodyMismatch, FieldRefused, FormInvalid, FunctionFailed
from postroom.limits import INT_MAX, INT_MIN
from postroom.model.body import json_text
from postroom.model.definitions import Position, Problem, nearest, refuse
from postroom.model.key import key_text
from postroom.model.moment import to_datetime
from postroom.model.types import FieldValue, Kind, plain
from postroom.stations.forms import functions
from postroom.stations.forms.catalog import Edition
from postroom.stations.forms.dates import exact
from postroom.stations.forms.drawing import Piece
from postroom.stations.forms.form import Form, FormField, Rule

Given = Mapping[str, Any]  # values as text, as JSON has them, or as Python does
_MISSING = "it is required: it must be entered when the message is created"


def created(edition: Edition, given: Given, key: int, station: str, now: int) -> str:
    """The body of a new message."""
    form = edition.form
    fields = _readable(form, given)
    for field in form.fields:
        if field.rule is Rule.REQUIRED and _is_blank(fields.get(field.name)):
            raise _refused(form, field, _MISSING)
        if field.rule is Rule.AUTOMATIC and field.name in fields:
            raise _refused(form, field, "it is automatic: the system writes it")
    moment = to_datetime(now)
    for field in form.fields:
        if field.rule is Rule.AUTOMATIC:
            fields[field.name] = _written(field, key, station, moment)
    return body_of(_worked_out(form, fields))


def drawn(form: Form, text: str, file: str) -> tuple[Given, Piece | None]:
    """The fields of a new message from a drawn form, and the line above it.

    An invalid value raises with its place.
    """
    drawing = form.drawing(text, file)
    given = form.values_in(drawing, file)
    problems = [
        Problem(Position(file, blank.line, blank.column), f"{name}: {why}", rule)
        for name, blank in drawing.blanks.items()
        if (field := form.field(name)) is not None
        for why, rule in _flaws(form, field, given.get(name))
    ]
    if problems:
        refuse(FormInvalid, [min(problems, key=lambda problem: problem.position)])
    return given, drawing.heading


def _flaws(form: Form, field: FormField, value: Any) -> Iterator[tuple[str, str]]:
    """Why a value is invalid for a blank of a new form, and the broken rule."""
    if field.rule is Rule.AUTOMATIC and value is not None:
        yield "it is automatic: leave it empty, the system writes it", "field-fixed"
    elif field.rule is Rule.REQUIRED and _is_blank(value):
        yield _MISSING, "field-written"
    elif value is not None:
        try:
            _value(form, field, _readable(form, {field.name: value})[field.name])
        except FieldRefused as refusal:
            yield str(refusal.facts["why"]), "value-kind"


def _is_blank(value: Any) -> bool:
    """Whether a value is empty or blank."""
    if isinstance(value, list):
        return all(map(_is_blank, value))
    return value is None or (isinstance(value, str) and not value.strip())


def copied(form: Form, body: str, key: int) -> str:
    """The body with another key."""
    fields = json.loads(body)
    for field in form.fields:
        if field.kind is Kind.KEY and field.rule is Rule.AUTOMATIC:
            fields[field.name] = key_text(key)
    return json_text(fields)


def modified(form: Form, body: str, given: Given) -> tuple[str, list[str]]:
    """The body with new values, and the names of the changed fields."""
    before = _known(form, json.loads(body))
    wanted, changed = dict(before), list[str]()
    for name, value in _readable(form, given).items():
        field = form.field(name)
        assert field is not None
        new, old = _value(form, field, value), _value(form, field, before.get(name))
        if new == old or (new in (None, "") and old in (None, "")):
            continue
        if field.rule is Rule.AUTOMATIC:
            raise _refused(form, field, "it is automatic: the system writes it")
        if field.rule is Rule.REQUIRED:
            raise _refused(form, field, "it was entered when the message was created, and cannot be modified")
        if field.rule is Rule.ONCE and old not in (None, ""):
            raise _refused(form, field, "it has been entered, and cannot be modified once it is")
        wanted[name] = plain(new)
        changed.append(name)
    if not changed:
        return body, []
    if asks_functions(form):
        record, past = _worked_out(form, wanted), form.type.record(before)
        return body_of(record), [name for name in record if record[name] != past[name]]
    kept = {field.name: wanted.get(field.name) for field in form.fields}
    named = [name for name in kept if name in changed]
    return json_text({name: value for name, value in kept.items() if value not in (None, "", [])}), named


def values(form: Form, body: str) -> dict[str, FieldValue]:
    """The values of a message by field; missing fields are empty."""
    return form.type.record(_known(form, json.loads(body)))


def fitting(form: Form, field: FormField, value: Any) -> str | None:
    """Why a value is invalid for a field; None if it is valid."""
    try:
        _value(form, field, _readable(form, {field.name: value})[field.name])
    except FieldRefused as refusal:
        return str(refusal)
    return None


def _known(form: Form, fields: Mapping[str, Any]) -> dict[str, Any]:
    names = {field.name for field in form.fields}
    return {name: value for name, value in fields.items() if name in names}


def _readable(form: Form, given: Given) -> dict[str, Any]:
    """Values by the form's field names; text for a list is split at commas."""
    fields: dict[str, Any] = {}
    for name, value in given.items():
        field = form.field(name)
        if field is None:
            known = [known_field.name for known_field in form.fields]
            raise FieldRefused(
                type=form.name,
                field=name,
                why=f"there is no such field{nearest(name, known)}; it has {', '.join(known)}",
            )
        if field.many and isinstance(value, str):
            value = [part.strip() for part in value.split(",") if part.strip()]
        fields[name] = _plain(value, field.kind)
    return fields


def _plain(value: Any, kind: Kind = Kind.STRING) -> Any:
    """Python values as JSON, with dates in ISO format."""
    if isinstance(value, (list, tuple)):
        return [_plain(item, kind) for item in value]
    if isinstance(value, str):
        return exact(kind, value)
    return plain(value) if isinstance(value, (Decimal, date, time)) else value


def _value(form: Form, field: FormField, value: Any) -> FieldValue:
    try:
        typed = form.type.value(field.name, value)
    except BodyMismatch as error:
        raise _refused(form, field, str(error.facts["why"])) from None
    if field.kind is Kind.INT:
        for number in typed if isinstance(typed, tuple) else (typed,):
            if isinstance(number, int) and not INT_MIN <= number <= INT_MAX:
                raise _refused(form, field, f"it takes whole numbers from {INT_MIN} to {INT_MAX}")
    return typed


def _written(field: FormField, key: int, station: str, moment: datetime) -> Any:
    """The system's value of a field at creation; functions are called later, with the other fields."""
    what = field.function or str(field.kind)
    if what == "key":
        return key_text(key)
    if what == "date":
        return moment.date().isoformat()
    if what == "time":
        return moment.time().replace(microsecond=0).isoformat()
    return station if what == "signature" else None


def _worked_out(form: Form, given: dict[str, Any]) -> dict[str, FieldValue]:
    """The typed values of all fields; those of functions are computed from the others."""
    record = {field.name: _value(form, field, given.get(field.name)) for field in form.fields}
    for field in form.fields:
        function = field.registered
        if function is None:
            continue
        known = functions.find(function)
        if known is None:
            raise FunctionFailed(type=form.name, field=field.name, function=function, why="it is not registered")
        others = {name: value for name, value in record.items() if name != field.name}
        try:
            answer = _plain(functions.called(function, known, others))
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise FunctionFailed(type=form.name, field=field.name, function=function, why=why) from error
        record[field.name] = _value(form, field, answer)
    return record


def asks_functions(form: Form) -> bool:
    """Whether filling it in runs users' functions, which may be slow."""
    return any(field.registered for field in form.fields)


def body_of(record: Mapping[str, FieldValue]) -> str:
    """The stored JSON, without empty fields."""
    return json_text({name: plain(value) for name, value in record.items() if value not in (None, "", ())})


def _refused(form: Form, field: FormField, why: str) -> FieldRefused:
    return FieldRefused(type=form.name, field=field.name, why=why)

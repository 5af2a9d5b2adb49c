"""Message types in the form language (.form): from text to frozen forms with their places, and back.

    type MEETING ANNOUNCEMENT
    | To: ______________  KEY: __________ |
    | Subject: __________________________ |
    field To      string required
    field KEY     key    automatic
    field Subject string required
    index Subject

One statement a line; ``#`` begins a comment. Text between bars is part of the drawing. Other statements are parsed in
``postroom.stations.office``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NoReturn, Protocol

from postroom.errors import FormInvalid
from postroom.limits import FORM_COLUMNS_MAX, FORM_FIELDS_MAX
from postroom.model.definitions import Position, Problem, refuse
from postroom.model.types import Kind
from postroom.stations.forms.drawing import Line
from postroom.stations.forms.form import AUTOMATIC, Form, FormField, Rule
from postroom.stations.forms.quoting import INSIDE

_LIST = ("list", "of")
_UNCOMMENTED = re.compile(rf'(?:[^#"]|"{INSIDE}"|")*')


def without_comment(row: str) -> str:
    """A line without its comment; a ``#`` in quotes starts none."""
    return _UNCOMMENTED.match(row)[0]  # type: ignore[index]  # it matches every line


def parse(text: str, file: str) -> tuple[Form, ...]:
    """The forms of a text, in their order, checked."""
    forms = tuple(_forms(text, file))
    problems = [Problem(position, what, rule) for form in forms for position, what, rule in _problems(form)]
    refuse_if(problems + twice("type", forms))
    return forms


def unfinished(text: str, file: str) -> Form | None:
    """The first form of an incomplete text, for a live preview.

    Lines with errors are left out, and a blank without a field is free text. Not for creating messages.
    """
    name = ""
    lines: list[Line] = []
    fields: dict[str, FormField] = {}
    for number, row in enumerate(text.splitlines(), 1):
        words, position = without_comment(row).split(), Position(file, number)
        if row.strip().startswith("|"):
            with suppress(FormInvalid):
                lines.append(_line(row.strip(), position))
        elif words[:1] == ["type"]:
            if name:
                break
            name = " ".join(words[1:])
        elif words[:1] == ["field"]:
            with suppress(FormInvalid):
                field = _field(words[1:], position)
                fields.setdefault(field.name, field)
    drawn = dict.fromkeys(blank.name for line in lines for blank in line.blanks)
    every = [fields.get(label) or FormField(label, Kind.STRING, Rule.FREE) for label in drawn]
    return Form(name, tuple(lines), tuple(every)) if lines else None


class Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def position(self) -> Position: ...


def twice(what: str, defined: Sequence[Named]) -> list[Problem]:
    """Problems with names that are defined more than once."""
    names: dict[str, Position] = {}
    problems = []
    for definition in defined:
        first = names.setdefault(definition.name, definition.position)
        if first is not definition.position:
            why = f"{what} {definition.name} is already at {first}"
            problems.append(Problem(definition.position, why, "name-twice"))
    return problems


def refuse_if(problems: Sequence[Problem]) -> None:
    """Raise if there are problems."""
    if problems:
        refuse(FormInvalid, problems)


def _fail(position: Position, what: str, rule: str) -> NoReturn:
    refuse(FormInvalid, [Problem(position, what, rule)])


def _forms(text: str, file: str) -> Iterator[Form]:
    name, start = "", Position(file, 1)
    lines: list[Line] = []
    fields: list[FormField] = []
    indexes: list[str] = []
    for number, row in enumerate(text.splitlines(), 1):
        position = Position(file, number, len(row) - len(row.lstrip()) + 1)
        if row.strip().startswith("|"):
            _check_inside(name, position, "a template")
            lines.append(_line(row.strip(), position))
            continue
        words = without_comment(row).split()
        if not words:
            continue
        if words[0] == "type":
            if name:
                yield Form(name, tuple(lines), tuple(fields), tuple(indexes), start)
            name, start, lines, fields, indexes = " ".join(words[1:]), position, [], [], []
            if not name:
                _fail(position, "a type has a name", "syntax")
        elif words[0] == "field":
            _check_inside(name, position, "a field")
            fields.append(_field(words[1:], position))
        elif words[0] == "index":
            _check_inside(name, position, "an index")
            indexes.append(" ".join(words[1:]))
        else:
            what = f"type, field, index, procedure, counter or a line of a template, not {words[0]!r}"
            _fail(position, what, "syntax")
    if name:
        yield Form(name, tuple(lines), tuple(fields), tuple(indexes), start)


def _check_inside(name: str, position: Position, what: str) -> None:
    if not name:
        _fail(position, f"{what} belongs to a type: begin with type NAME", "type-missing")


def _line(row: str, position: Position) -> Line:
    if len(row) < 2 or not row.endswith("|"):
        _fail(position, "a line of a template stands between two bars", "syntax")
    if len(row) > 10 * FORM_COLUMNS_MAX:  # looking for blanks would take long
        what = f"a line of the template has {len(row)} characters; at most {FORM_COLUMNS_MAX}"
        _fail(position, what, "form-size")
    return Line.of(row[1:-1])


def _field(words: Sequence[str], position: Position) -> FormField:
    """``NAME KIND RULE [FUNCTION]``; a name may have blanks, so it is parsed from the end."""
    for place in range(1, len(words) - 1):
        many = tuple(words[place : place + 2]) == _LIST
        kind, *rest = words[place + 2 * many :] or [""]
        if kind in list(Kind) and rest and rest[0] in list(Rule):
            function = " ".join(rest[1:]) or None
            return FormField(" ".join(words[:place]), Kind(kind), Rule(rest[0]), function, many, position)
    what = f"field NAME KIND RULE: a kind is one of {', '.join(Kind)}, a rule one of {', '.join(Rule)}"
    _fail(position, what, "syntax")


def _problems(form: Form) -> Iterator[tuple[Position, str, str]]:
    for check in CHECKS:
        for position, what in check(form):
            yield position, f"type {form.name}: {what}", check.__name__.replace("_", "-")


def blank_fields(form: Form) -> Iterator[tuple[Position, str]]:
    """Every blank of the template is a field, each once."""
    drawn = [blank.name for line in form.lines for blank in line.blanks]
    for name in dict.fromkeys(drawn):
        if form.field(name) is None:
            yield form.position, f"the template has a blank {name}, and there is no such field"
        if drawn.count(name) > 1:
            yield form.position, f"the blank {name} is drawn {drawn.count(name)} times"


def field_blanks(form: Form) -> Iterator[tuple[Position, str]]:
    """Every field has a blank in the template."""
    drawn = {blank.name for line in form.lines for blank in line.blanks}
    for field in form.fields:
        if field.name not in drawn:
            yield field.position, f"field {field.name} has no blank in the template"


def field_twice(form: Form) -> Iterator[tuple[Position, str]]:
    """A field is defined once."""
    for place, field in enumerate(form.fields):
        if any(other.name == field.name for other in form.fields[:place]):
            yield field.position, f"field {field.name} is already defined"


def automatic_kind(form: Form) -> Iterator[tuple[Position, str]]:
    """Automatic fields have the kind that the system writes, and only they have a function."""
    for field in form.fields:
        written = field.function or field.kind
        if field.rule is not Rule.AUTOMATIC:
            if field.function is not None:
                yield field.position, f"field {field.name} is {field.rule}, so it has no function {field.function}"
        elif field.function is None and field.kind not in (Kind.KEY, Kind.DATE, Kind.TIME):
            yield field.position, f"field {field.name} is automatic: say what it is, such as signature"
        elif AUTOMATIC.get(written, field.kind) != field.kind:
            yield field.position, f"field {field.name}: {written} is a {AUTOMATIC[written]}, not a {field.kind}"


def index_fields(form: Form) -> Iterator[tuple[Position, str]]:
    """An index is on a field."""
    for name in form.indexes:
        if form.field(name) is None:
            yield form.position, f"there is no field {name} to index"


def form_size(form: Form) -> Iterator[tuple[Position, str]]:
    """The size of a form is limited, to about a screen."""
    if len(form.fields) > FORM_FIELDS_MAX:
        yield form.position, f"{len(form.fields)} fields; at most {FORM_FIELDS_MAX}"
    if not form.fields:
        yield form.position, "a type has fields"
    width = max((len(line.drawn) for line in form.lines), default=0)
    if width > FORM_COLUMNS_MAX:
        yield form.position, f"a line of the template has {width} characters; at most {FORM_COLUMNS_MAX}"


CHECKS: tuple[Callable[[Form], Iterator[tuple[Position, str]]], ...] = (
    form_size,
    field_twice,
    blank_fields,
    field_blanks,
    automatic_kind,
    index_fields,
)

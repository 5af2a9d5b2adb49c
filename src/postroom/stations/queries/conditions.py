"""Conditions of a query by example: the text in a field of a sketch, and the values that it matches.

``>10``, ``<> "rm 211"``, ``1981-08-01..1981-08-31``, ``off*``, ``Fausto``; several of them mean any, as in ``"office*"
"distributed*"``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from postroom.errors import BodyMismatch, FormInvalid
from postroom.limits import CONDITION_CHARS_MAX, CONDITIONS_MAX
from postroom.model.definitions import Position, Problem, refuse
from postroom.model.order import HIGHEST, sortable
from postroom.model.pattern import looks_like
from postroom.model.types import Field, Kind, MessageType, Scalar, text
from postroom.model.xmltext import in_xml
from postroom.stations.forms.dates import exact
from postroom.stations.forms.drawing import Piece
from postroom.stations.forms.form import Form, FormField
from postroom.stations.forms.quoting import INSIDE, quoted, unquoted

_PIECE = re.compile(
    rf"""\s*(?:
        (?P<sign><>|<=|>=|<|>|=)\s*
      )?(?:
        "(?P<quoted>{INSIDE})"(?:\s*\.\.\s*(?:"(?P<until>{INSIDE})"|(?P<last>[^\s"<>=][^"<>=]*?)(?=\s*(?:$|"|<|>|=))))?
      | (?P<bare>[^\s"<>=][^"<>=]*?)(?:\s*\.\.\s*"(?P<end>{INSIDE})"|(?=\s*(?:$|"|<|>|=)))
      )\s*""",
    re.VERBOSE,
)
_OPENING = re.compile(rf'\s*(?:<>|<=|>=|<|>|=)?\s*"(?!{INSIDE}")')
_WILD = re.compile(r"[*?]")


EMPTY, FILLED = "empty", "filled"  # what is written = "" and <> "": an empty text is no value of a field


@dataclass(frozen=True, slots=True)
class Condition:
    """A range or a pattern."""

    sign: str  # a comparison, ".." for a range, "~" for a pattern, EMPTY, FILLED
    value: Scalar
    until: Scalar | None = None  # the end of a range, which is in it
    kind: Kind = Kind.STRING

    def holds(self, value: Scalar) -> bool:
        if self.sign in (EMPTY, FILLED):
            return self.sign == FILLED
        if self.sign == "~":
            return looks_like(str(self.value), str(value))
        key, low, high = sortable(self.kind, value), *self.bounds
        if self.sign == "<>":
            return key != sortable(self.kind, self.value)
        return (low < key if self.sign == ">" else low <= key) and (key < high if self.sign == "<" else key <= high)

    @property
    def closed(self) -> bool:
        """Whether everything within the bounds satisfies it."""
        return self.sign in ("=", "..", "<=", ">=")

    @property
    def bounds(self) -> tuple[str, str]:
        """Sortable lower and upper bounds of all matching values."""
        if self.sign == "~":
            known = _WILD.split(str(self.value), maxsplit=1)[0]
            return known, known + HIGHEST
        if self.sign in (EMPTY, FILLED):
            return "", HIGHEST
        low = "" if self.sign in ("<", "<=", "<>") else sortable(self.kind, self.value)
        if self.sign == "..":
            assert self.until is not None
            return low, sortable(self.kind, self.until)
        return low, HIGHEST if self.sign in (">", ">=", "<>") else sortable(self.kind, self.value)

    def __str__(self) -> str:
        if self.sign == "~":
            return quoted(str(self.value))
        if self.sign in (EMPTY, FILLED):
            return f'{"=" if self.sign == EMPTY else "<>"} ""'
        return (
            f"{_shown(self.value)}..{_shown(self.until)}" if self.sign == ".." else f"{self.sign} {_shown(self.value)}"
        )


def _shown(value: Scalar | None) -> str:
    return quoted(value) if isinstance(value, str) else text(value)


Sketch = Mapping[str, tuple[Condition, ...]]


class Place(Position):
    """A place in the text of a field; ``file`` is the field."""

    def __str__(self) -> str:
        return f"field {self.file}" if self.column == 1 else f"field {self.file}, character {self.column}"


def sketch(form: Form, given: Mapping[str, str | Scalar]) -> dict[str, tuple[Condition, ...]]:
    """The conditions in a partly filled form; raises with the place of a syntax error."""
    conditions_of = {}
    for name, condition_text in given.items():
        field = form.field(name)
        if field is None:
            known = ", ".join(field.name for field in form.fields)
            _fail(name, 1, f"type {form.name} has no field {name!r}; it has {known}", "field-unknown")
        conditions = parse(field, condition_text if isinstance(condition_text, str) else text(condition_text))
        if conditions:
            conditions_of[name] = conditions
    return conditions_of


def drawn(form: Form, text: str, file: str) -> tuple[dict[str, str], Piece | None]:
    """The conditions of a drawn form as they are written, and the line above it.

    Raises with the place of a syntax error. A backslash has its own meaning here.
    """
    drawing = form.drawing(text, file)
    given: dict[str, str] = {}
    for name, pieces in drawing.found.items():
        given[name] = " ".join(piece.said for piece in pieces)
        try:
            sketch(form, {name: given[name]})
        except FormInvalid as error:
            (problem,) = error.facts["problems"]
            line, column = _place(pieces, problem.position.column - 1)
            refuse(FormInvalid, [Problem(Position(file, line, column), f"{name}: {problem.what}", problem.rule)])
    return given, drawing.heading


def _place(pieces: Sequence[Piece], at: int) -> tuple[int, int]:
    """Line and column of a character in text that spans rows."""
    for piece in pieces[:-1]:
        if at <= len(piece.said):
            return piece.line, piece.column + at
        at -= len(piece.said) + 1
    return pieces[-1].line, pieces[-1].column + at


def any_holds(conditions: Sequence[Condition], values: Sequence[Scalar]) -> bool:
    """Whether a field satisfies its conditions: a list by any of its values."""
    if not values:
        return any(condition.sign == EMPTY for condition in conditions)
    return any(condition.holds(value) for condition in conditions for value in values)


def parse(field: FormField, text: str) -> tuple[Condition, ...]:
    """Parse the text in one field of a sketch. Without quotes and operators it is one value, blanks included."""
    if len(text) > CONDITION_CHARS_MAX:
        _fail(field.name, CONDITION_CHARS_MAX, f"more than {CONDITION_CHARS_MAX} characters", "condition-size")
    if not in_xml(text):
        _fail(field.name, 1, "there is a character that no field has", "condition-type")
    conditions: list[Condition] = []
    at = 0
    while text[at:].strip():
        if len(conditions) == CONDITIONS_MAX:
            _fail(field.name, at + 1, f"more than {CONDITIONS_MAX} conditions", "condition-size")
        match = _PIECE.match(text, at)
        if match is None or match.end() == at:
            opening = _OPENING.match(text, at)
            if opening is not None:
                _fail(field.name, opening.end(), "this quote is not closed", "syntax")
            _fail(field.name, at + 1, f"a condition is expected here, not {text[at:].strip()[:20]!r}", "syntax")
        conditions.append(_condition(field, match))
        at = match.end()
    return tuple(conditions)


def _condition(field: FormField, match: re.Match[str]) -> Condition:
    sign, column = match["sign"], match.start("bare" if match["quoted"] is None else "quoted") + 1
    first, last, is_text = _ends(match)
    if last is not None:
        if sign not in (None, "="):
            what = f"a range is asked for with = or without a sign, not with {sign}; put a text with .. in quotes"
            _fail(field.name, column, what, "condition-type")
        low, high = (_value(field, part, column) for part in (first, last))
        condition = Condition("..", low, high, field.kind)
        if condition.bounds[0] > condition.bounds[1]:
            _fail(field.name, column, "the range ends before it begins; put a text with .. in quotes", "condition-type")
        return condition
    if is_text and not first and sign in (None, "=", "<>"):
        return Condition(FILLED if sign == "<>" else EMPTY, "", None, field.kind)
    is_pattern = sign is None or (sign == "=" and not is_text)  # after a sign, a text in quotes is meant as it is
    if is_pattern and field.kind is Kind.STRING and _WILD.search(first):
        return Condition("~", first)
    return Condition(sign or "=", _value(field, first, column), None, field.kind)


def _ends(match: re.Match[str]) -> tuple[str, str | None, bool]:
    """A value, or both ends of a range; and whether it was quoted."""
    if match["quoted"] is not None:
        until = match["last"] if match["until"] is None else unquoted(match["until"])
        return unquoted(match["quoted"]), until, True
    bare = match["bare"].strip()
    if match["end"] is not None:
        return bare, unquoted(match["end"]), False
    first, dots, last = bare.partition("..")
    return (first.strip(), last.strip(), False) if dots else (bare, None, False)


def _value(field: FormField, text: str, column: int) -> Scalar:
    """A value of the field's kind, because comparisons are typed."""
    try:
        one = MessageType("sketch", (Field(field.name, field.kind),))
        value = one.value(field.name, exact(field.kind, text))
    except BodyMismatch as error:
        _fail(field.name, column, str(error.facts["why"]), "condition-type")
    if value is None or isinstance(value, tuple):
        _fail(field.name, column, "there is no value to compare with", "condition-type")
    return value


def _fail(field: str, column: int, what: str, rule: str) -> NoReturn:
    refuse(FormInvalid, [Problem(Place(field, 1, column), what, rule)])

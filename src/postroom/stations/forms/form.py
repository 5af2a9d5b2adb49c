"""Forms: message types with a template, which is printed, filled in, and parsed.

Each line of a template stands between bars. A field is its name, a colon and a blank for the value. ``drawing`` shows
and reads templates, ``writing`` the values in blanks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from postroom.errors import FormInvalid
from postroom.model.definitions import Position, Problem, refuse
from postroom.model.types import Field, FieldValue, Kind, MessageType, text
from postroom.stations.forms import drawing
from postroom.stations.forms.drawing import Drawing, Line
from postroom.stations.forms.writing import Unreadable, joined, laid_out, listed, written


class Rule(StrEnum):
    """Who writes a field, and when."""

    REQUIRED = "required"  # entered at creation, then fixed
    ONCE = "once"  # may be empty; fixed once entered
    FREE = "free"
    AUTOMATIC = "automatic"  # by the system


#: What an automatic field may be, with the kind that its values have. Others are registered functions.
AUTOMATIC = {"key": Kind.KEY, "date": Kind.DATE, "time": Kind.TIME, "signature": Kind.STRING}


@dataclass(frozen=True, slots=True)
class FormField:
    name: str
    kind: Kind
    rule: Rule
    function: str | None = None  # what an automatic field is
    many: bool = False
    position: Position = field(default=Position("form", 1), compare=False)

    @property
    def registered(self) -> str | None:
        """Its registered function, if it has one."""
        return self.function if self.rule is Rule.AUTOMATIC and self.function not in AUTOMATIC else None

    def __str__(self) -> str:
        kind = f"list of {self.kind}" if self.many else str(self.kind)
        return " ".join(["field", self.name, kind, self.rule, *([self.function] if self.function else [])])


@dataclass(frozen=True, slots=True)
class Form:
    """A message type with its template."""

    name: str
    lines: tuple[Line, ...]
    fields: tuple[FormField, ...]
    indexes: tuple[str, ...] = ()
    position: Position = field(default=Position("form", 1), compare=False)
    _type: MessageType | None = field(default=None, init=False, repr=False, compare=False)
    _by_name: dict[str, FormField] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __str__(self) -> str:
        drawn = [f"|{line.drawn}|" for line in self.lines]
        indexes = [f"index {name}" for name in self.indexes]
        return "\n".join([f"type {self.name}", *drawn, *map(str, self.fields), *indexes]) + "\n"

    @property
    def type(self) -> MessageType:
        """The message type of the form; cached."""
        if self._type is None:
            required = Rule.REQUIRED
            fields = tuple(Field(field.name, field.kind, field.many, field.rule is required) for field in self.fields)
            object.__setattr__(self, "_type", MessageType(self.name, fields))
        assert self._type is not None
        return self._type

    def field(self, name: str) -> FormField | None:
        if not self._by_name:
            self._by_name.update({field.name: field for field in reversed(self.fields)})
        return self._by_name.get(name)

    def shown(self, values: Mapping[str, FieldValue] | None = None) -> str:
        """The template filled in, or empty. Parsing it gives the same values."""
        filled = {name: value for name, value in (values or {}).items() if value not in (None, "", ())}
        for without, in_rows in (("", True), (":", True), (":", False)):
            texts = {name: _written(value, without) for name, value in filled.items()}
            drawn = self._drawn(texts, in_rows=in_rows)
            if self._is_read_as(drawn, texts):
                break
        return drawn

    def read(self, filled: str, file: str = "form") -> dict[str, str | list[str]]:
        """Parse a filled-in template: values by field, without empty ones."""
        return self.values_in(self.drawing(filled, file), file)

    def drawing(self, filled: str, file: str = "form") -> Drawing:
        """Parse a filled-in template, keeping texts and places."""
        return drawing.read(self.name, self.lines, filled, file)

    def values_in(self, drawn: Drawing, file: str) -> dict[str, str | list[str]]:
        """The values of a parsed drawing."""
        fields: dict[str, str | list[str]] = {}
        for name, pieces in drawn.found.items():
            row, field = joined([piece.said for piece in pieces]), self.field(name)
            try:
                fields[name] = row.read_list() if field is not None and field.many else row.read()
            except Unreadable as error:
                piece = pieces[error.row]
                position = Position(file, piece.line, piece.column + error.offset)
                refuse(FormInvalid, [Problem(position, f"{name}: {error}", "row-text")])
        return fields

    def _drawn(self, texts: Mapping[str, str], *, in_rows: bool) -> str:
        """The template with texts in its blanks, or below it where they do not fit."""
        rows, below = {}, {}
        for blank in (blank for line in self.lines for blank in line.blanks):
            if blank.name in texts:
                lines = laid_out(texts[blank.name], blank.width, blank.reach) if in_rows else None
                if lines is None:
                    below[blank.name] = texts[blank.name]
                else:
                    rows[blank.name] = lines
        return drawing.shown(self.name, self.lines, rows, below)

    def _is_read_as(self, drawn: str, texts: Mapping[str, str]) -> bool:
        try:
            pieces_by_name = self.drawing(drawn).found
        except FormInvalid:
            return False
        plain = {name: joined([piece.said for piece in pieces]).said for name, pieces in pieces_by_name.items()}
        names = {blank.name for line in self.lines for blank in line.blanks}
        return {name: _plainly(text) for name, text in plain.items()} == {
            name: _plainly(text) for name, text in texts.items() if name in names
        }


def _written(value: FieldValue, without: str) -> str:
    if isinstance(value, tuple):
        return listed([text(item) for item in value], without=without)
    return written(text(value), without=without)


def _plainly(text: str) -> str:
    return joined([text]).read()

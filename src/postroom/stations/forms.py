"""Forms: a message type by its display template. Empty, filled in, and read again as it was filled in.

A template is drawn: each line stands between bars, a field's name is followed by a colon and the blank that takes its
value. A value that is longer than its blank goes on in lines below.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from textwrap import wrap

from postroom.model.definitions import Position
from postroom.model.types import Field, FieldValue, Kind, MessageType, text

_BLANK = re.compile(r"(?P<name>[^:_|]+?):\s*(?P<blank>_+)")


class Rule(StrEnum):
    """Who writes a field, and how often."""

    REQUIRED = "required"  # entered at creation, then fixed
    ONCE = "once"  # may be empty; fixed once entered
    FREE = "free"
    AUTOMATIC = "automatic"  # by the system


@dataclass(frozen=True, slots=True)
class FormField:
    name: str
    kind: Kind
    rule: Rule
    function: str | None = None  # what an automatic field is
    many: bool = False
    position: Position = field(default=Position("form", 1), compare=False)

    def __str__(self) -> str:
        kind = f"list of {self.kind}" if self.many else str(self.kind)
        return " ".join(["field", self.name, kind, self.rule, *([self.function] if self.function else [])])


@dataclass(frozen=True, slots=True)
class Blank:
    """Where a field's value stands in a line of the template: from one column on, so many characters."""

    name: str
    start: int
    width: int
    reach: int  # with the free space behind it, for a value that is a little longer


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the template as it was drawn, without its bars, and the blanks in it."""

    drawn: str
    blanks: tuple[Blank, ...]

    @classmethod
    def of(cls, drawn: str) -> Line:
        found = []
        for match in _BLANK.finditer(drawn):
            rest = drawn[match.end() :]
            free = len(rest) - len(rest.lstrip(" "))
            reach = len(match["blank"]) + (free if free == len(rest) else max(free - 1, 0))
            found.append(Blank(match["name"].strip(), match.start("blank"), len(match["blank"]), reach))
        return cls(drawn, tuple(found))

    def is_kept_in(self, row: str) -> bool:
        """Whether a filled-in line has the labels where they were drawn."""
        labels = [(start, end) for start, end, _ in self._columns()]
        return bool(labels) and all(row[start:end] == self.drawn[start:end] for start, end in labels)

    def read(self, row: str) -> list[str]:
        """What stands in the blanks of such a line; a value may say what looks like a label."""
        columns = self._columns()
        ends = [start for start, _, _ in columns[1:]] + [len(row)]
        return [row[end:until].strip(" _") for (_, end, _), until in zip(columns, ends, strict=True)]

    def _columns(self) -> list[tuple[int, int, Blank]]:
        """Where the label of each blank begins, and where the blank does."""
        return [(self.drawn.rindex(f"{blank.name}:", 0, blank.start), blank.start, blank) for blank in self.blanks]

    def filled(self, values: Mapping[str, Sequence[str]]) -> list[str]:
        """The line with the values of its fields, and as many more as the longest of them needs."""
        height = max([len(values.get(blank.name, ())) for blank in self.blanks], default=1) or 1
        rows = [self.drawn, *[" " * len(self.drawn)] * (height - 1)]
        for blank in self.blanks:
            parts = values.get(blank.name, ())
            for number, part in enumerate(parts):
                end = blank.start + max(blank.width, len(part))
                rows[number] = rows[number][: blank.start] + part.ljust(blank.width, "_") + rows[number][end:]
        return rows


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
        """What the form says, as the model's type; made once, as every field of every message asks for it."""
        if self._type is None:
            fields = tuple(Field(each.name, each.kind, each.many, each.rule is Rule.REQUIRED) for each in self.fields)
            object.__setattr__(self, "_type", MessageType(self.name, fields))
        assert self._type is not None
        return self._type

    def field(self, name: str) -> FormField | None:
        if not self._by_name:
            self._by_name.update({each.name: each for each in reversed(self.fields)})
        return self._by_name.get(name)

    def shown(self, values: Mapping[str, FieldValue] | None = None) -> str:
        """The template, filled in with values; without any it is empty."""
        said = {
            blank.name: _parts((values or {}).get(blank.name), blank) for line in self.lines for blank in line.blanks
        }
        rows = [row for line in self.lines for row in line.filled(said)]
        bar = f"+{'-' * max(len(row) for row in rows)}+"
        title = f"|{f' {self.name} '.center(len(bar) - 2)}|"
        return "\n".join([bar, title, bar, *(f"|{row}|" for row in rows), bar]) + "\n"

    def read(self, filled: str) -> dict[str, str]:
        """What someone has written into the template: values by field, those that are empty left out."""
        found: dict[str, list[str]] = {}
        starts = {blank.name: blank for line in self.lines for blank in line.blanks}
        current: tuple[Blank, ...] = ()
        for row in filled.splitlines():
            inside = row.strip().strip("|")
            line = next((each for each in self.lines if each.is_kept_in(inside)), None)
            if line is not None:
                current = line.blanks
                for blank, said in zip(line.blanks, line.read(inside), strict=True):
                    found.setdefault(blank.name, []).append(said)
                continue
            names = [name for name in starts if re.search(rf"(^|\s){re.escape(name)}:", inside)]
            if names:
                current = self._read_line(inside, names, starts, found)
            elif current and inside.strip(" _-+"):  # the line goes on with what did not fit above
                for blank in current:
                    more = inside[blank.start : blank.start + max(blank.reach, 1)]
                    found[blank.name].append(more.strip(" _"))
        joined = {name: " ".join(part for part in parts if part) for name, parts in found.items()}
        return {name: value for name, value in joined.items() if value}

    @staticmethod
    def _read_line(
        inside: str, names: Sequence[str], starts: Mapping[str, Blank], found: dict[str, list[str]]
    ) -> tuple[Blank, ...]:
        places = sorted((match.start("name"), match.end(), name) for name in names for match in _labels(inside, name))
        for number, (_, end, name) in enumerate(places):
            until = places[number + 1][0] if number + 1 < len(places) else len(inside)
            found.setdefault(name, []).append(inside[end:until].strip(" _"))
        return tuple(starts[name] for _, _, name in places)


def _labels(inside: str, name: str) -> list[re.Match[str]]:
    return list(re.finditer(rf"(?:^|(?<=\s))(?P<name>{re.escape(name)}):", inside))[:1]


def _parts(value: FieldValue, blank: Blank) -> list[str]:
    """A value as lines that fit a blank."""
    said = ", ".join(map(text, value)) if isinstance(value, tuple) else text(value)
    if len(said) <= blank.reach and "\n" not in said:
        return [said] if said else []
    return wrap(said, blank.width)

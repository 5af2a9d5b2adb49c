"""A form as text: lines between bars, with labels and blanks; written and parsed.

Each row must have the labels of one line of the template. A long value continues in the next row, under its blank. A
row whose labels an editor has shifted is accepted if it is unambiguous. Anything else is an error with its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from postroom.errors import FormInvalid
from postroom.model.definitions import Position, Problem, refuse
from postroom.model.spelling import close

_BLANK = re.compile(r"(?P<name>[^:_|]+?):\s*(?P<blank>_+)")
_FRAME = re.compile(r"\+-*\+")
_HEADING = re.compile(r"[0-9]{5,}\.[0-9]{5}( at .*)?")  # what show and next say above a form
_FILL = " _"


@dataclass(frozen=True, slots=True)
class Blank:
    """The position of a field's value in a line of the template: column and width."""

    name: str
    start: int
    width: int
    reach: int  # with the free space behind it, for a value that is a little longer


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the template without its bars, and its blanks."""

    drawn: str
    blanks: tuple[Blank, ...]
    labels: tuple[tuple[int, int], ...] = field(repr=False, compare=False, default=())  # all that is no blank

    @classmethod
    def of(cls, drawn: str) -> Line:
        blanks: list[Blank] = []
        labels: list[tuple[int, int]] = []
        at = 0
        for match in _BLANK.finditer(drawn):
            rest = drawn[match.end() :]
            free = len(rest) - len(rest.lstrip(" "))
            reach = len(match["blank"]) + (free if free == len(rest) else max(free - 1, 0))
            blanks.append(Blank(match["name"].strip(), match.start("blank"), len(match["blank"]), reach))
            labels.append((at, match.start("blank")))
            at = match.start("blank") + reach
        return cls(drawn, tuple(blanks), (*labels, (at, len(drawn))))

    def cells(self, row: str) -> Iterator[tuple[Blank, int, int]]:
        """Each blank with the start and end of its content in a row; after the last one a row may be longer."""
        for blank in self.blanks:
            end = blank.start + blank.reach
            yield blank, blank.start, max(len(row), end) if end >= len(self.drawn) else end

    def is_kept_in(self, row: str) -> bool:
        """Whether a row has all labels at their columns."""
        padded = row.ljust(len(self.drawn))
        if not self.blanks:
            return row.rstrip(" ") == self.drawn.rstrip(" ")
        return all(padded[start:end] == self.drawn[start:end] for start, end in self.labels)

    def first_strange(self, row: str) -> int | None:
        """The first column of a continuation row with text under no blank."""
        inside = {at for _, start, end in self.cells(row) for at in range(start, end)}
        return next((at for at, sign in enumerate(row) if sign != " " and at not in inside), None)

    def moved(self, row: str) -> list[tuple[Blank, int, int]] | None:
        """The contents for a row with shifted labels, each once and in order; None if it is no such row."""
        cells: list[tuple[Blank, int, int]] = []
        texts = [self.drawn[start:end].strip(" ") for start, end in self.labels]
        at = 0
        for number, label in enumerate(texts):
            matches = re.finditer(rf"(?<![^ _]){re.escape(label)}", row)
            places = [match.start() for match in matches] if label else [len(row)]
            if len(places) != 1 or places[0] < at or (not number and row[: places[0]].strip(" ")):
                return None
            if number:
                cells.append((self.blanks[number - 1], at, places[0]))
            at = places[0] + len(label)
        return None if row[at:].strip(" ") else cells

    def filled(self, rows: Mapping[str, Sequence[str]]) -> list[str]:
        """The line filled in, with as many rows as the longest value needs."""
        height = max([len(rows.get(blank.name, ())) for blank in self.blanks], default=1) or 1
        lines = [self.drawn, *[" " * len(self.drawn)] * (height - 1)]
        for blank in self.blanks:
            for number, part in enumerate(rows.get(blank.name, ())):
                end = blank.start + max(blank.width, len(part))
                lines[number] = lines[number][: blank.start] + part.ljust(blank.width, "_") + lines[number][end:]
        return lines


@dataclass(frozen=True, slots=True)
class Piece:
    """The content of a blank in one row, with its place."""

    said: str
    line: int
    column: int


class Drawing(NamedTuple):
    """The content of a drawn form."""

    found: dict[str, list[Piece]]  # by blank, row by row; those that are empty left out
    blanks: dict[str, Piece]  # where each one begins, empty or not
    heading: Piece | None  # the line above it


def shown(title: str, lines: Sequence[Line], rows: Mapping[str, Sequence[str]], below: Mapping[str, str]) -> str:
    """A filled-in form, with values that do not fit below it."""
    drawn = [row for line in lines for row in line.filled(rows)]
    bar = f"+{'-' * max(len(row) for row in drawn)}+"
    head = f"|{f' {title} '.center(len(bar) - 2)}|"
    more = [f"{name}: {text}" for name, text in below.items()]
    return "\n".join([bar, head, bar, *(f"|{row}|" for row in drawn), bar, *more]) + "\n"


def read(title: str, lines: Sequence[Line], text: str, file: str) -> Drawing:
    """Parse a filled-in form: the content of each blank, and the text above the form."""
    reader = _Reader(title, lines, file)
    for number, row in enumerate(text.split("\n"), 1):
        reader.row(row.removesuffix("\r"), number)
    return Drawing(reader.found, reader.blanks, reader.heading)


class _Reader:
    def __init__(self, title: str, lines: Sequence[Line], file: str) -> None:
        self._title, self._lines, self._file = title, lines, file
        self._names = [blank.name for line in lines for blank in line.blanks]
        self._frames = 0
        self._done: set[int] = set()  # lines of the template that were there
        self._current: Line | None = None  # that may go on
        self.found: dict[str, list[Piece]] = {}
        self.blanks: dict[str, Piece] = {}
        self.heading: Piece | None = None

    def row(self, row: str, number: int) -> None:
        text = row.strip(" \t")
        column = len(row) - len(row.lstrip(" \t")) + 1
        if not text:
            self._current = None
        elif _FRAME.fullmatch(text):
            self._frames += 1
            self._current = None
        elif text.startswith("|"):
            if len(text) < 2 or not text.endswith("|"):
                self._fail(number, column + len(text), "a row of a form ends with a bar", "row-bars")
            self._inside(text[1:-1], number, column + 1)
        elif self._is_begun or not _HEADING.fullmatch(text):
            self._loose(text, number, column)
        else:
            self.heading = Piece(text, number, column)

    @property
    def _is_begun(self) -> bool:
        return bool(self._frames or self._done or self.blanks or self.heading)

    def _inside(self, inside: str, number: int, column: int) -> None:
        if not inside.strip(" "):
            return
        if self._frames == 1:
            self._heading(inside, number, column)
        elif (
            self._kept(inside, number, column)
            or self._goes_on(inside, number, column)
            or (not self._done and inside.strip(" ") == self._title)
        ):
            return
        elif not self._moved(inside, number, column):
            self._strange(inside, number, column)

    def _heading(self, inside: str, number: int, column: int) -> None:
        text = inside.strip(" ")
        if text != self._title:
            at = column + len(inside) - len(inside.lstrip(" "))
            self._fail(number, at, f"this is the form {text[:60]!r}, and {self._title!r} is asked for", "form-title")

    def _kept(self, inside: str, number: int, column: int) -> bool:
        """Whether the row has the labels of a line at their columns."""
        fitting = [place for place, line in enumerate(self._lines) if line.is_kept_in(inside)]
        if not fitting:
            return False
        left = [place for place in fitting if place not in self._done]
        # Lines without a blank may be alike; and one that has all labels of another, and more, is meant.
        place = max(left or fitting, key=lambda line: sum(end - start for start, end in self._lines[line].labels))
        line = self._lines[place]
        if line.blanks and len(inside) > len(line.drawn):  # something was put in
            self._label_in(inside[line.blanks[-1].start :], number, column + line.blanks[-1].start)
        self._take(place, list(line.cells(inside)), inside, number, column)
        return True

    def _goes_on(self, inside: str, number: int, column: int) -> bool:
        line = self._current
        if line is None or line.first_strange(inside) is not None:
            return False
        for blank, start, end in line.cells(inside):
            piece = _piece(inside, start, end, number, column)
            if not piece.said:
                continue
            before = self.found.get(blank.name, [])
            if not before or before[-1].line != number - 1:
                self._fail(number, piece.column, f"the blank {blank.name} is empty above: begin there", "row-below")
            before.append(piece)
        return True

    def _moved(self, inside: str, number: int, column: int) -> bool:
        """Whether a row with shifted labels matches exactly one line."""
        readings = [
            (place, cells) for place, line in enumerate(self._lines) if line.blanks and (cells := line.moved(inside))
        ]
        if len(readings) != 1:
            return False
        ((place, cells),) = readings
        for _, start, end in cells:
            self._label_in(inside[start:end], number, column + start)
        self._take(place, cells, inside, number, column)
        return True

    def _take(self, place: int, cells: Sequence[tuple[Blank, int, int]], inside: str, number: int, column: int) -> None:
        line = self._lines[place]
        if place in self._done:
            what = f"{line.blanks[0].name} appears twice" if line.blanks else "this line appears twice"
            self._fail(number, column, what, "row-twice")
        self._done.add(place)
        self._current = line
        for blank, start, end in cells:
            self._enter(blank.name, _piece(inside, start, end, number, column))

    def _loose(self, text: str, number: int, column: int) -> None:
        """Parse a row without bars: a line of the form, or one field."""
        self._current = None
        name = next((name for name in self._names if text.startswith(f"{name}:")), None)
        start = len(name or "") + 1
        if name is None or self._second_label(text[start:]):
            if self._moved(text, number, column):
                return
            if name is None:
                self._strange(text, number, column)
            self._label_in(text[start:], number, column + start)
        self._enter(name, _piece(text, start, len(text), number, column))

    def _enter(self, name: str, piece: Piece) -> None:
        if piece.said and self.found.get(name):
            self._fail(piece.line, piece.column, f"{name} appears twice", "row-twice")
        if piece.said:
            self.found[name] = [piece]
        if piece.said or name not in self.blanks:
            self.blanks[name] = piece

    def _label_in(self, text: str, number: int, column: int) -> None:
        """Raise for a row with a possible second label, which may also be part of a value."""
        match = self._second_label(text)
        if match is not None:
            what = rf"is this the label {match[0]} or part of a value? There a colon is written \u{{3a}}"
            self._fail(number, column + match.start(), what, "row-labels")

    def _second_label(self, text: str) -> re.Match[str] | None:
        matches = (re.search(rf"(?<![^ _]){re.escape(name)}:", text) for name in self._names)
        return next((match for match in matches if match is not None), None)

    def _strange(self, text: str, number: int, column: int) -> NoReturn:
        blanks = len(text) - len(text.lstrip(" "))
        label = re.match(r"([^:_|]*):", text.strip(" "))
        meant = close(label[1], self._names) if label else []
        hint = f"; did you mean {meant[0]}:?" if meant else ""
        at = column + blanks
        if self._current is not None and not label:
            at = column + (self._current.first_strange(text) or blanks)
        self._fail(
            number, at, f"this is no line of the form {self._title}, nor below a blank of one{hint}", "row-labels"
        )

    def _fail(self, number: int, column: int, what: str, rule: str) -> NoReturn:
        refuse(FormInvalid, [Problem(Position(self._file, number, column), what, rule)])


def _piece(row: str, start: int, end: int, number: int, column: int) -> Piece:
    cell = row[start:end]
    text = cell.strip(_FILL)
    blanks = len(cell) - len(cell.lstrip(_FILL if text else " "))
    return Piece(text, number, column + start + blanks)

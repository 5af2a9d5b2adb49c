"""The lines of a COBOL program, fixed or free, as lines of free text that keep their numbers and columns.

Comments are left out, continued literals and words are put together on the line where they begin, comment entries of
the IDENTIFICATION DIVISION are left out. The rest of a line keeps its columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, NoReturn

from postroom.errors import CobolInvalid
from postroom.model.definitions import Position, Problem, refuse

_COMMENT_ENTRIES = {"AUTHOR", "INSTALLATION", "DATE-WRITTEN", "DATE-COMPILED", "SECURITY", "REMARKS"}
_DIVISIONS = {"ENVIRONMENT", "DATA", "PROCEDURE", "IDENTIFICATION", "ID"}
_FIRST = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)(?:\s+([A-Za-z]+))?")
DEBUGGING = ">>D    "  # begins a line that is compiled in debugging mode only
_DEBUGGING_MODE = re.compile(r"\bDEBUGGING\b", re.IGNORECASE)
_WIDTH = 65  # of the text of a fixed line, in columns 8 to 72
_WORD = re.compile(r"\"[^\"]*\"?|'[^']*'?|[A-Za-z0-9_-]+")


class Layout(StrEnum):
    """The format of lines: fixed or free."""

    FIXED = "fixed"  # a number in columns 1 to 6, an indicator in 7, text in 8 to 72
    FREE = "free"


class Line(NamedTuple):
    """A line, or a part of one."""

    file: str
    number: int
    text: str

    def position(self, column: int) -> Position:
        return Position(self.file, self.number, column + 1)


def fail(position: Position, what: str, rule: str = "syntax") -> NoReturn:
    refuse(CobolInvalid, [Problem(position, what, rule)])


def layout_of(text: str) -> Layout:
    """The format of a program, detected by the column of its first division."""
    for line in text.splitlines():
        match = re.search(r"\b(IDENTIFICATION|ID)\s+DIVISION\b", line, re.IGNORECASE)
        if match and line[6:7] not in ("*", "/"):
            return Layout.FREE if match.start() < 7 else Layout.FIXED
        if re.match(r"\s*>>\s*SOURCE\b.*\bFREE\b", line, re.IGNORECASE):
            return Layout.FREE
    return Layout.FIXED


def read_lines(text: str, file: str, layout: Layout, cards: Mapping[str, str] | None = None) -> list[Line]:
    """The lines of a program. ``cards`` has words that an installation replaces."""
    lines = _without_entries(_fixed(text, file) if layout is Layout.FIXED else _free(text, file))
    for line in lines:
        if layout is Layout.FIXED and (quote := _open_quote(line.text)):
            fail(line.position(line.text.rindex(quote)), "a literal does not end", "literal")
    if not cards:
        return lines
    return [line._replace(text=_WORD.sub(lambda match: cards.get(match[0], match[0]), line.text)) for line in lines]


def _free(text: str, file: str) -> Iterable[Line]:
    for number, raw in enumerate(text.splitlines(), 1):
        yield Line(file, number, raw if raw.lstrip().startswith(">>") else _uncommented(raw.expandtabs(8)).rstrip())


def _fixed(text: str, file: str) -> list[Line]:
    lines: list[Line] = []
    begun = -1  # the line that a continuation goes on
    for number, raw in enumerate(text.splitlines(), 1):
        expanded = raw.expandtabs(8)
        indicator, content = expanded[6:7], expanded[7:72]
        if raw.lstrip().startswith(">>"):
            lines.append(Line(file, number, raw))
        elif indicator in ("*", "/"):
            lines.append(Line(file, number, ""))
        elif indicator == "-":
            if begun < 0:
                fail(Position(file, number, 7), "a continuation without a line before it", "continuation")
            lines[begun] = _continued(lines[begun], content, Position(file, number, 8))
            lines.append(Line(file, number, ""))
        elif indicator in ("", " ", "D", "d"):
            text_of = _uncommented(content)
            mark = DEBUGGING if indicator in ("D", "d") else " " * 7
            lines.append(Line(file, number, mark + (text_of.ljust(_WIDTH) if _open_quote(text_of) else text_of)))
            begun = len(lines) - 1 if text_of.strip() else begun
        else:
            what = f"the indicator {indicator!r} in column 7 is none of *, /, - and D; is the program in free format?"
            fail(Position(file, number, 7), what, "indicator")
    return [line._replace(text=line.text.rstrip()) for line in lines]


def _continued(line: Line, content: str, place: Position) -> Line:
    quote = _open_quote(line.text)
    rest = content.lstrip()
    if quote:
        if not rest.startswith(quote):
            fail(place, f"the literal goes on here, and {quote} must come first", "continuation")
        text = _uncommented(line.text + rest[1:].rstrip())
        if _open_quote(text):  # it goes on once more: up to its last column, this line belongs to the literal
            text = line.text + content.ljust(_WIDTH).lstrip()[1:]
        return line._replace(text=text)
    return line._replace(text=_uncommented(line.text.rstrip() + rest).rstrip())


def _open_quote(text: str) -> str:
    """The quote of an unterminated literal; empty if there is none."""
    quote = ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
    return quote


def _uncommented(text: str) -> str:
    """A line without a ``*>`` comment; inside a literal it is no comment."""
    at = text.find("*>")
    while at >= 0 and _open_quote(text[:at]):
        at = text.find("*>", at + 2)
    return text if at < 0 else text[:at]


def _without_entries(lines: Iterable[Line]) -> list[Line]:
    """Blank the comment entries, which need not be COBOL."""
    kept, inside, over = [], False, False
    for line in lines:
        match = _FIRST.match(line.text)
        word, second = (match[1].upper(), (match[2] or "").upper()) if match else ("", "")
        header = word == "PROGRAM-ID" or (second == "DIVISION" and word in _DIVISIONS)
        if header:
            over = word in ("ENVIRONMENT", "DATA", "PROCEDURE")
        if not over and word in _COMMENT_ENTRIES:
            inside = True
        elif header:
            inside = False
        kept.append(line._replace(text="") if inside else line)
    return kept


def without_debugging(lines: Sequence[Line]) -> list[Line]:
    """Treat debugging lines as code in debugging mode, else as comments."""
    kept, debugging, division = [], False, ""
    for line in lines:
        if line.text.startswith(DEBUGGING):
            text = line.text.replace(DEBUGGING, " " * len(DEBUGGING), 1) if debugging else ""
            kept.append(line._replace(text=text))
            continue
        match = _FIRST.match(line.text)
        if match and (match[2] or "").upper() == "DIVISION":
            division = match[1].upper()
            debugging = debugging and division not in ("IDENTIFICATION", "ID")
        debugging |= division == "ENVIRONMENT" and bool(_DEBUGGING_MODE.search(line.text))
        kept.append(line)
    return kept

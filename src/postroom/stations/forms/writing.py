r"""Writes values into blanks and parses them: every text can be written, and is read back unchanged.

Special characters are escaped by a backslash: ``\n`` is the end of a line, ``\\`` a backslash, ``\u{a0}`` a character
by its number, ``\u{}`` nothing. Rows are joined by a blank, unless one ends with a backslash or ``\n``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_CUT_MIN = 12  # a narrower blank takes no part of a word; the longest escape has 10 characters
_EDGES = " _"
_ESCAPE = re.compile(r"\\(?:n|\\|u\{(?P<number>[0-9A-Fa-f]{0,6})\})")
_BREAK = re.compile(r"(?<=[^ _]) (?=[^ _])")  # a blank between words, which the end of a row stands for


class Unreadable(Exception):
    """Invalid text in a blank: what, and where."""

    def __init__(self, what: str, row: int, offset: int) -> None:
        super().__init__(what)
        self.row, self.offset = row, offset


def written(text: str, *, without: str = "") -> str:
    r"""A text in one row; characters of ``without`` are escaped by their numbers.

    >>> print(written(" two\nlines_"))
    \u{20}two\nlines\u{5f}
    """
    inside = "".join(_token(character, without) for character in text)
    head = _begun(inside) if inside else ""
    return head[:-1] + _number(head[-1]) if head[-1:] and head[-1] in _EDGES else head


def listed(several: Sequence[str], *, without: str = "") -> str:
    """A list in one row, with commas between its values."""
    return ", ".join(written(value, without=without + ",") or _number("") for value in several)


def laid_out(row: str, width: int, reach: int) -> list[str] | None:
    """Wrap a written text into rows for a blank; None if it does not fit."""
    if len(row) <= reach and all(match[0] != r"\n" for match in _ESCAPE.finditer(row)):
        return [row] if row else []
    rows: list[str] = []
    for paragraph in _paragraphs(row):
        for piece in _wrapped(paragraph, width):
            if piece is None:
                return None
            rows.append(piece)
    return rows


def joined(rows: Sequence[str]) -> Row:
    """The rows of a blank joined, without filler; it knows where each began."""
    text, starts = "", []
    for number, row in enumerate(rows):
        if number:
            if _goes_on(text):
                text = text[:-1]
            elif not _ends_line(text):
                text += " "
        starts.append(len(text))
        text += row
    return Row(text, tuple(starts))


class Row(NamedTuple):
    said: str
    starts: tuple[int, ...]

    def read(self) -> str:
        """The text that was written."""
        return self._read(0, len(self.said))

    def read_list(self) -> list[str]:
        """The values of a list."""
        values, at = [], 0
        for part in self.said.split(","):  # an escape has no comma in it
            inside = part.strip(" ")
            if inside:
                start = at + len(part) - len(part.lstrip(" "))
                values.append(self._read(start, start + len(inside)))
            at += len(part) + 1
        return values

    def _read(self, at: int, end: int) -> str:
        pieces = []
        while at < end:
            backslash = self.said.find("\\", at, end)
            if backslash < 0:
                pieces.append(self.said[at:end])
                break
            pieces.append(self.said[at:backslash])
            match = _ESCAPE.match(self.said, backslash, end)
            number = None if match is None or match["number"] is None else int(match["number"] or "0", 16)
            if match is None or (number is not None and number > 0x10FFFF):
                what = r"a backslash is written \\, the end of a line \n, another character \u{number}"
                raise Unreadable(what, *self._place(backslash))
            if number is None:
                pieces.append("\n" if match[0] == r"\n" else "\\")
            elif match["number"]:
                pieces.append(chr(number))
            at = match.end()
        return "".join(pieces)

    def _place(self, at: int) -> tuple[int, int]:
        row = max(number for number, start in enumerate(self.starts) if start <= at)
        return row, at - self.starts[row]


def _token(character: str, without: str) -> str:
    if character in ("\n", "\\"):
        return r"\n" if character == "\n" else r"\\"
    return _number(character) if character in without or not character.isprintable() else character


def _number(character: str) -> str:
    return f"\\u{{{format(ord(character), 'x') if character else ''}}}"


def _paragraphs(row: str) -> Iterator[str]:
    """The parts of a row between line ends of the text."""
    start = 0
    for match in _ESCAPE.finditer(row):
        if match[0] == r"\n":
            yield row[start : match.end()]
            start = match.end()
    if row[start:]:
        yield row[start:]


def _wrapped(paragraph: str, width: int) -> Iterator[str | None]:
    """Rows of a paragraph, wrapped at words; None if a word is longer and cannot be cut."""
    line = ""
    for word in _BREAK.split(_begun(paragraph)):
        if line and len(line) + 1 + len(word) <= width:
            line += f" {word}"
            continue
        if line:
            yield line
        line = word
        while len(line) > width:
            if width < _CUT_MIN:
                yield None
                return
            part, line = _cut(line, width)
            yield part
    if line:
        yield line


def _cut(word: str, width: int) -> tuple[str, str]:
    """As much of a word as fits in a row, and the rest."""
    at = 0
    for match in re.finditer(rf"{_ESCAPE.pattern}|.", word):
        if match.end() >= width:
            break
        at = match.end()
    return word[:at] + "\\", _begun(word[at:])


def _begun(row: str) -> str:
    """A row whose beginning cannot be taken for filler."""
    return _number(row[0]) + row[1:] if row[0] in _EDGES else row


def _goes_on(row: str) -> bool:
    return (len(row) - len(row.rstrip("\\"))) % 2 == 1


def _ends_line(row: str) -> bool:
    return row.endswith("n") and _goes_on(row[:-1])

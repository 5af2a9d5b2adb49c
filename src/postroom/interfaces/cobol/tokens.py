"""The tokens of a program with lines and columns, and edits of lines by tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from postroom.interfaces.cobol.source import DEBUGGING, Line, fail
from postroom.model.definitions import Position

_TOKEN = re.compile(
    r"""(?P<blank>[\s,;]+) | (?P<literal>"(?:[^"]|"")*"|'(?:[^']|'')*') | (?P<pseudo>==)
      | (?P<period>\.(?=\s|$)) | (?P<word>[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?) | (?P<other>.)""",
    re.VERBOSE,
)


class Token(NamedTuple):
    kind: str
    text: str
    at: int  # the place of its line among the lines
    start: int
    end: int
    position: Position

    @property
    def word(self) -> str:
        """The upper-case word; empty for other tokens."""
        return self.text.upper() if self.kind == "word" else ""


def scan(lines: Sequence[Line]) -> list[Token]:
    """All tokens of some lines, without directives but with debugging lines."""
    tokens = []
    for at, line in enumerate(lines):
        debugging = line.text.startswith(DEBUGGING)
        if line.text.lstrip().startswith(">>") and not debugging:
            continue
        for match in _TOKEN.finditer(line.text, len(DEBUGGING) if debugging else 0):
            kind = str(match.lastgroup)
            if kind == "other" and match[0] in "\"'":
                fail(line.position(match.start()), "a literal does not end", "literal")
            if kind != "blank":
                tokens.append(Token(kind, match[0], at, *match.span(), line.position(match.start())))
    return tokens


class Edits:
    """Replacements of tokens by text. Line numbers after a text of several lines stay the same."""

    def __init__(self) -> None:
        self._edits: dict[int, list[tuple[int, int, str]]] = {}

    def replace(self, tokens: Sequence[Token], text: str) -> None:
        """Put a text at the first token, and remove the others."""
        first, last = tokens[0], tokens[-1]
        for at in range(first.at, last.at + 1):
            start = first.start if at == first.at else 0
            end = last.end if at == last.at else 1_000_000
            self._edits.setdefault(at, []).append((start, end, text if at == first.at else ""))

    def insert_after(self, token: Token, text: str) -> None:
        self._edits.setdefault(token.at, []).append((token.end, token.end, text))

    def applied(self, lines: Sequence[Line]) -> list[list[Line]]:
        """Each line with its replacements; a text of several lines makes several lines with one number."""
        done = []
        for at, line in enumerate(lines):
            text = line.text
            for start, end, new in sorted(self._edits.get(at, ()), reverse=True):
                text = text[:start] + new + text[end:]
            first, *more = text.split("\n")
            mark = DEBUGGING if line.text.startswith(DEBUGGING) else ""
            done.append([line._replace(text=first), *(line._replace(text=mark + piece) for piece in more)])
        return done


def printed(lines: Iterable[Line]) -> str:
    """Text in free format for the compiler, with directives for the origin of each line."""
    parts: list[str] = []
    expected: tuple[str, int] | None = None
    for line in lines:
        if (line.file, line.number) != expected:
            parts.append(f'#line {line.number} "{line.file}"')
        parts.append(line.text)
        expected = line.file, line.number + 1
    return "\n".join(parts) + "\n"

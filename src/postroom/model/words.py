"""Tokens of a definition text with their places, and a reader that takes them one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NoReturn

from postroom.errors import DefinitionError
from postroom.model.definitions import Position, Problem, refuse

END = "end"  # the kind of the last word, which stands for the end of the text


@dataclass(frozen=True, slots=True)
class Word:
    """A token and its place; its language defines the kinds."""

    kind: str
    text: str
    position: Position

    def __str__(self) -> str:
        return "the end" if self.kind == END else repr(self.text)


@dataclass(frozen=True)
class Lexicon:
    """How a language splits its text into tokens.

    ``pieces`` has one named group for each kind of token, and one named ``blank`` for separators. ``unclosed`` has, by
    first character, the error for a token that does not end.
    """

    pieces: re.Pattern[str]
    error: type[DefinitionError]
    unclosed: Mapping[str, str]

    def words(self, text: str, file: str) -> Iterator[Word]:
        """The tokens, then an end token; raises for text that is no token."""
        at, line, line_start = 0, 1, 0
        while at < len(text):
            match = self.pieces.match(text, at)
            position = Position(file, line, at - line_start + 1)
            if match is None:
                what = self.unclosed.get(text[at], f"the character {text[at]!r} is not in the language")
                self.fail(position, what, "syntax")
            kind = match.lastgroup or ""
            if kind == "blank":
                line += match.group().count("\n")
                line_start = max(line_start, text.rfind("\n", 0, match.end()) + 1)
            else:
                yield Word(kind, match.group(), position)
            at = match.end()
        yield Word(END, "", Position(file, line, at - line_start + 1))

    def fail(self, position: Position, what: str, rule: str) -> NoReturn:
        refuse(self.error, [Problem(position, what, rule)])


class WordReader:
    """Takes tokens one by one, with a lookahead of two. After the last comes the end token, again and again."""

    def __init__(self, words: Iterator[Word]) -> None:
        self._words = words
        self.next = next(words)
        self._later: Word | None = None

    @property
    def after_next(self) -> Word:
        if self._later is None:
            self._later = next(self._words, self.next)
        return self._later

    @property
    def done(self) -> bool:
        return self.next.kind == END

    def take(self) -> Word:
        word = self.next
        if not self.done:
            self.next, self._later = self.after_next, None
        return word

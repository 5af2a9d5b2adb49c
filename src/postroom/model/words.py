"""The words of a definition text with their places, and a reader that takes them one by one."""

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
    """A piece of the text, and where it stands. The language says which kinds there are."""

    kind: str
    text: str
    position: Position

    def __str__(self) -> str:
        return "the end" if self.kind == END else repr(self.text)


@dataclass(frozen=True)
class Lexicon:
    """How a language divides its text into words.

    ``pieces`` has one named group for each kind of word, and one named ``blank`` for what only separates them.
    ``unclosed`` tells, by a character that begins a word, what is wrong if the word does not end.
    """

    pieces: re.Pattern[str]
    error: type[DefinitionError]
    unclosed: Mapping[str, str]

    def words(self, text: str, file: str) -> Iterator[Word]:
        """The words, then one for the end; raises where the text is not in the language."""
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
    """Takes words one by one; the next two can be looked at. Behind the end there is always the end."""

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

"""The tokens of the flow language, and a reader that takes them one by one; types, values and patterns use it, too."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import islice
from typing import NoReturn, TypeVar

from postroom.errors import FlowInvalid
from postroom.limits import FLOW_DEPTH_MAX, FLOW_WORDS_MAX
from postroom.model.body import is_text
from postroom.model.definitions import Problem, refuse
from postroom.model.words import END, Lexicon, Word, WordReader

T = TypeVar("T")
_PIECES = re.compile(
    r"""(?P<blank>[ \t\r\f\ufeff\n]+ | \#[^\n]*)
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
      | (?P<name>[^\W\d]\w*)
      | (?P<sign>->|=>|>=|<=|!=|<>|[\[\]{}(),:+\-*/%<>=])""",
    re.VERBOSE,
)


#: A name, and nothing else.
WORD = re.compile(r"[^\W\d]\w*\Z")


LEXICON = Lexicon(_PIECES, FlowInvalid, {'"': "a text has no closing quote"})
fail = LEXICON.fail


def fail_all(problems: list[Problem]) -> NoReturn:
    refuse(FlowInvalid, problems)


class Words(WordReader):
    """The tokens of a text; raises at once if any part of it is no token."""

    def __init__(self, text: str, file: str) -> None:
        words = list(islice(LEXICON.words(text, file), FLOW_WORDS_MAX + 1))
        if len(words) > FLOW_WORDS_MAX and words[-1].kind != END:
            fail(words[-1].position, f"more than {FLOW_WORDS_MAX} words", "size")
        super().__init__(iter(words))
        self._text = text
        self._lines: list[str] = []  # of the text, once somebody asks
        self._last = self.next
        self._depth = 0

    def take(self) -> Word:
        self._last = super().take()
        return self._last

    def since(self, first: Word) -> str:
        """What is written from a word that was taken to the last one, as it is written."""
        self._lines = self._lines or self._text.split("\n")
        begin, end = first.position, self._last.position
        lines = self._lines[begin.line - 1 : end.line]
        lines[-1] = lines[-1][: end.column - 1 + len(self._last.text)]
        lines[0] = lines[0][begin.column - 1 :]
        return "\n".join(lines)

    def is_sign(self, *signs: str) -> bool:
        return self.next.kind == "sign" and self.next.text in signs

    def is_name(self, *names: str) -> bool:
        return self.next.kind == "name" and (not names or self.next.text in names)

    def sign(self, *signs: str) -> Word | None:
        """Take one of these signs, if it comes next."""
        return self.take() if self.is_sign(*signs) else None

    def flag(self, name: str) -> bool:
        """Take a name, if it comes next."""
        follows = self.is_name(name)
        if follows:
            self.take()
        return follows

    def expect(self, sign: str, what: str) -> Word:
        if not self.is_sign(sign):
            self.refuse(f"{sign!r} {what}")
        return self.take()

    def name(self, what: str) -> Word:
        if self.next.kind != "name":
            self.refuse(what)
        return self.take()

    def keyword(self, *words: str) -> Word:
        if not self.is_name(*words):
            self.refuse(" or ".join(words))
        return self.take()

    def end(self) -> None:
        if not self.done:
            self.refuse("the end")

    def refuse(self, wanted: str) -> NoReturn:
        fail(self.next.position, f"{wanted} is expected here, not {self.next}", "syntax")

    def deeper(self) -> None:
        self._depth += 1
        if self._depth > FLOW_DEPTH_MAX:
            fail(self.next.position, f"more than {FLOW_DEPTH_MAX} things inside one another", "depth")

    def higher(self) -> None:
        self._depth -= 1


def whole(text: str, file: str, read: Callable[[Words], T]) -> T:
    """Parse a whole text; raises if something is left."""
    words = Words(text, file)
    value = read(words)
    words.end()
    return value


def string(word: Word) -> str:
    """The value of a quoted string, which is written as in JSON."""
    try:
        text: str = json.loads(word.text)  # the quotes make it one
    except ValueError:
        fail(word.position, f"{word.text} is not a text as JSON has it", "syntax")
    if not is_text(text):
        fail(word.position, f"{word.text} has characters that no text may have", "syntax")
    return text

"""The words of the flow language, and a reader that takes them one by one. Types, values and patterns use the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from postroom.errors import FlowInvalid
from postroom.limits import FLOW_DEPTH_MAX, FLOW_WORDS_MAX
from postroom.model.body import is_text
from postroom.model.definitions import Position, Problem, refuse

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


@dataclass(frozen=True, slots=True)
class Word:
    """A piece of the text, and where it stands."""

    kind: str  # name, string, number, sign, or end
    text: str
    position: Position

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text)


def fail(position: Position, what: str, rule: str) -> NoReturn:
    fail_all([Problem(position, what, rule)])


def fail_all(problems: list[Problem]) -> NoReturn:
    refuse(FlowInvalid, problems)


class Words:
    """The words of a text, with one of foresight."""

    def __init__(self, text: str, file: str) -> None:
        self._words = list(_split(text, file))
        self._at = 0
        self._depth = 0

    @property
    def next(self) -> Word:
        return self._words[self._at]

    @property
    def after_next(self) -> Word:
        return self._words[min(self._at + 1, len(self._words) - 1)]

    @property
    def done(self) -> bool:
        return self.next.kind == "end"

    def take(self) -> Word:
        word = self.next
        if word.kind != "end":
            self._at += 1
        return word

    def is_sign(self, *signs: str) -> bool:
        return self.next.kind == "sign" and self.next.text in signs

    def is_name(self, *names: str) -> bool:
        return self.next.kind == "name" and (not names or self.next.text in names)

    def sign(self, *signs: str) -> Word | None:
        """Take one of these signs, if it comes next."""
        return self.take() if self.is_sign(*signs) else None

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


def string(word: Word) -> str:
    """What a quoted text says; it is written as in JSON."""
    try:
        said: str = json.loads(word.text)  # the quotes make it one
    except ValueError:
        fail(word.position, f"{word.text} is not a text as JSON has it", "syntax")
    if not is_text(said):
        fail(word.position, f"{word.text} has characters that no text may have", "syntax")
    return said


def _split(text: str, file: str) -> Iterator[Word]:
    at, line, line_start, count = 0, 1, 0, 0
    while at < len(text):
        match = _PIECES.match(text, at)
        position = Position(file, line, at - line_start + 1)
        if match is None:
            closed = text[at] != '"'
            what = f"the character {text[at]!r} is not in the language" if closed else "a text has no closing quote"
            fail(position, what, "syntax")
        kind = match.lastgroup or ""
        if kind == "blank":
            line += match.group().count("\n")
            line_start = max(line_start, text.rfind("\n", 0, match.end()) + 1)
        else:
            count += 1
            if count > FLOW_WORDS_MAX:
                fail(position, f"more than {FLOW_WORDS_MAX} words", "size")
            yield Word(kind, match.group(), position)
        at = match.end()
    yield Word("end", "", Position(file, line, at - line_start + 1))

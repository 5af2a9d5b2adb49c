"""Selectors: which messages a receiver wants, by their properties: ``region = 'EU' and total > 100``.

Conditions are those of queries by example: comparisons, ``10..20``, ``off*``, and alternatives for one property. A
missing property satisfies only ``= ''``. ``or`` joins conditions on one property and binds closer than ``and``; so
there are no parentheses, and there is no ``not``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, nextafter
from typing import NoReturn

from postroom.errors import ArgumentInvalid
from postroom.limits import CONDITION_CHARS_MAX, CONDITIONS_MAX
from postroom.model.message import Value
from postroom.model.order import HIGHEST, written_number
from postroom.model.pattern import looks_like
from postroom.store.kernel.selections import Span

_PIECE = r"""\s*(?:
      (?P<sign><>|!=|<=|>=|<|>|=)
    | '(?P<single>(?:[^']|'')*)'
    | "(?P<double>(?:[^"]|"")*)"
    | (?P<dots>\.\.)
    | (?P<bare>(?:(?!\.\.)[^\s'"<>=!()])+)
    )"""
_LOWEST = "\x01"  # no text has a character before it
_PARENTHESES = "conditions have no parentheses; put a name or a text that has one in quotes"
EMPTY, FILLED, RANGE, PATTERN = "empty", "filled", "..", "~"
Operand = str | int | float


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one value."""

    sign: str
    value: Operand = ""
    until: Operand = ""  # the end of a range, which is in it

    def holds(self, given: Value) -> bool:
        """Whether an existing property satisfies it."""
        if self.sign in (EMPTY, FILLED):
            return self.sign == FILLED
        value = _number(given) if not isinstance(self.value, str) else _text(given)
        if value is None:
            return self.sign == "<>"
        if self.sign == PATTERN:
            return looks_like(str(self.value), str(value))
        low, high = self.value, self.until
        outcome: bool = {
            "=": lambda a, b, c: a == b,
            "<>": lambda a, b, c: a != b,
            "<": lambda a, b, c: a < b,
            "<=": lambda a, b, c: a <= b,
            ">": lambda a, b, c: a > b,
            ">=": lambda a, b, c: a >= b,
            RANGE: lambda a, b, c: b <= a <= c,
        }[self.sign](value, low, high)
        return outcome

    def span(self, name: str) -> Span | None:
        """A range that contains all matching values; None if a missing property matches, too."""
        if self.sign == EMPTY:
            return None
        if self.sign in (FILLED, "<>"):
            return Span(name)
        if self.sign == PATTERN:
            known = re.split("[*?]", str(self.value), maxsplit=1)[0]
            return Span(name, known, known + HIGHEST)
        value, until = (end if isinstance(end, str) else float(end) for end in (self.value, self.until))
        least, most = ("", HIGHEST) if isinstance(value, str) else (-inf, inf)
        if self.sign == RANGE:
            return Span(name, value, until)
        low, high = least if self.sign in ("<", "<=") else value, most if self.sign in (">", ">=") else value
        if self.sign == ">" and low != least:
            low = f"{low}{_LOWEST}" if isinstance(low, str) else _beside(low, inf)
        elif self.sign == "<" and not isinstance(high, str):
            high = _beside(high, -inf)
        return Span(name, low, high)


@dataclass(frozen=True, slots=True)
class Selector:
    """Conditions on properties; for each property one of its conditions must hold."""

    wanted: Mapping[str, Sequence[Sequence[Condition]]]
    text: str  # as it was written

    @classmethod
    def of(cls, text: str | None) -> Selector | None:
        """Parse a selector; raises with the place of an error; None for None."""
        return None if text is None else cls(_Reader(text).conditions(), text)

    def chooses(self, text: str) -> bool:
        """Whether a message with these properties matches."""
        properties = json.loads(text)
        return all(_any_holds(properties.get(name), some) for name, every in self.wanted.items() for some in every)

    def spans(self) -> list[list[Span]]:
        """The ranges for an index, by group of conditions: a matching message has a value in one of them."""
        ranges = []
        for name, every in self.wanted.items():
            for some in every:
                spans = [condition.span(name) for condition in some]
                if None not in spans:
                    ranges.append([span for span in spans if span is not None])
        return ranges


def _beside(bound: float, towards: float) -> float:
    """The next number; for large whole numbers it may skip some."""
    return nextafter(bound, towards) if abs(bound) < 2**53 else bound


def _any_holds(value: Value, conditions: Sequence[Condition]) -> bool:
    if value is None or value == "":
        return any(condition.sign == EMPTY for condition in conditions)
    return any(condition.holds(value) for condition in conditions)


def _number(value: Value) -> int | float | None:
    """A number, also written as text, because properties set by commands are texts."""
    if isinstance(value, str):
        return written_number(value)
    return None if isinstance(value, bool) else value


def _text(value: Value) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else None


class _Reader:
    """Parses a selector from left to right."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str) or len(text) > CONDITION_CHARS_MAX:
            raise ArgumentInvalid(argument="where", why=f"text of at most {CONDITION_CHARS_MAX} characters")
        self._text = text
        self._at = 0
        self._tokens: list[tuple[str, str, int]] = []
        token = re.compile(_PIECE, re.VERBOSE)
        while text[self._at :].strip():
            match = token.match(text, self._at)
            if match is None:
                place = len(text) - len(text[self._at :].lstrip())
                what = "this can be neither a name nor a value; put texts in quotes"
                self._fail(place, _PARENTHESES if text[place] in "()" else what)
            kind = str(match.lastgroup)
            quote = {"single": "'", "double": '"'}.get(kind, "")
            word = match[kind].replace(quote * 2, quote) if quote else match[kind]
            self._tokens.append((kind, word, match.start(kind)))
            self._at = match.end()
        self._next = 0
        self._named = ("", 0)

    def conditions(self) -> dict[str, list[list[Condition]]]:
        wanted: dict[str, list[list[Condition]]] = {}
        count = 0
        while True:
            name, some = self._name(), [self._condition()]
            while self._word("or"):
                some.append(self._condition())
            wanted.setdefault(name, []).append(some)
            count += len(some)
            if count > CONDITIONS_MAX:
                self._fail(0, f"more than {CONDITIONS_MAX} conditions")
            if self._next == len(self._tokens):
                return wanted
            if not self._word("and"):
                self._fail(self._place(), f"'and' or 'or' is expected here, not {self._shown()}")

    def _name(self) -> str:
        kind, word, _ = self._peek()
        if kind not in ("bare", "double") or not word:
            self._fail(self._place(), f"the name of a property is expected here, not {self._shown()}")
        self._named = (word, self._place() - (kind == "double"))
        self._next += 1
        return word

    def _second_name(self, written: Operand) -> str:
        """Why a name after 'or' is none, and what to write if it is the name once more."""
        name, begin = self._named
        if written != name:
            return "'or' joins conditions on one property; of several properties all must hold"
        sign, place = self._tokens[self._next][1:]
        after = self._tokens[self._next + 2 :]
        end = after[0][2] if after else len(self._text)
        value = self._text[place:end][len(sign) if sign == "=" else 0 :].strip()
        head = self._text[begin : self._tokens[self._next - 2][2]]
        return f"'or' is followed by the next value, without the name; write: {head}or {value}"

    def _condition(self) -> Condition:
        kind, word, _ = self._peek()
        sign = "="
        if kind == "sign":
            sign = "<>" if word == "!=" else word
            self._next += 1
        elif self._next == 1 or self._tokens[self._next - 1][1].lower() != "or":
            self._fail(self._place(), f"one of = <> < <= > >= is expected here, not {self._shown()}")
        place = self._place()
        value, quoted = self._value()
        if self._peek()[0] == "sign":
            self._fail(place, self._second_name(value))
        if self._peek()[0] == "dots":
            return self._range(sign, value, place)
        if value == "" and sign in ("=", "<>"):
            return Condition(FILLED if sign == "<>" else EMPTY)
        if sign == "=" and not quoted and isinstance(value, str) and re.search("[*?]", value):
            return Condition(PATTERN, value)
        return Condition(sign, value)

    def _range(self, sign: str, value: Operand, place: int) -> Condition:
        self._next += 1
        until, _ = self._value()
        if sign != "=":
            self._fail(place, f"a range is asked for with =, not with {sign}")
        if isinstance(value, str) != isinstance(until, str):
            self._fail(place, "both ends of a range are numbers, or both are texts")
        if value > until:  # type: ignore[operator]  # both are texts, or both numbers
            self._fail(place, "the range ends before it begins")
        return Condition(RANGE, value, until)

    def _value(self) -> tuple[Operand, bool]:
        """A value, and whether it was quoted."""
        kind, word, _ = self._peek()
        if kind not in ("bare", "single", "double"):
            self._fail(self._place(), f"a value is expected here, not {self._shown()}")
        self._next += 1
        number = written_number(word) if kind == "bare" else None
        return (word if number is None else number), kind != "bare"

    def _word(self, word: str) -> bool:
        kind, text, _ = self._peek()
        if kind != "bare" or text.lower() != word:
            return False
        self._next += 1
        return True

    def _peek(self) -> tuple[str, str, int]:
        return self._tokens[self._next] if self._next < len(self._tokens) else ("end", "", len(self._text))

    def _place(self) -> int:
        return self._peek()[2]

    def _shown(self) -> str:
        kind, word, _ = self._peek()
        return "the end" if kind == "end" else repr(word[:20])

    def _fail(self, at: int, what: str) -> NoReturn:
        raise ArgumentInvalid(argument="where", why=f"character {at + 1}: {what}")

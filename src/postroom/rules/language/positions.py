"""The exact place of an error that a processor reports approximately."""

from __future__ import annotations

from functools import lru_cache

from postroom.rules.language.markup import Token
from postroom.rules.language.tokens import tokens_before


def begin_of(text: str, offset: int) -> int:
    """The start of the word at an offset, or of the call that closes there.

    >>> begin_of("1 + xs:date('x')", 15), begin_of("1 + abcd", 6), begin_of("(1, 2) ", 5)
    (4, 4, 0)
    """
    words = _found(text)
    number = next((number for number in range(len(words) - 1, -1, -1) if words[number].start <= offset), None)
    if number is None:
        return offset
    if words[number].text == ")":
        depth = 0
        while number > 0 and (depth := depth + _opens(words[number])) < 0:
            number -= 1
        number -= number > 0 and words[number - 1].kind == "name" and words[number - 1].end == words[number].start
    return words[number].start


def _opens(token: Token) -> int:
    return ((token.text == "(") - (token.text == ")")) if token.kind == "symbol" else 0


@lru_cache(maxsize=16)
def _found(text: str) -> list[Token]:
    return tokens_before(text, 0, len(text))[0]

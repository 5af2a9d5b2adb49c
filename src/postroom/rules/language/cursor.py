"""A position in a list of tokens, with lookahead and required tokens."""

from __future__ import annotations

from typing import NoReturn

from postroom.rules.language.body import Span
from postroom.rules.language.tokens import Token, Unreadable


class Cursor:
    def __init__(self, tokens: list[Token], end: int) -> None:
        self.tokens = tokens
        self.end = Token("end", "", end, end)
        self.at = 0

    def peek(self, ahead: int = 0) -> Token:
        index = self.at + ahead
        return self.tokens[index] if index < len(self.tokens) else self.end

    def symbol(self, text: str, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token.kind == "symbol" and token.text == text

    def word(self, text: str, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token.kind == "name" and token.text == text

    def symbol_at(self, index: int, text: str) -> bool:
        token = self.tokens[index]
        return token.kind == "symbol" and token.text == text

    def take(self) -> Token:
        token = self.peek()
        self.at += 1
        return token

    def skip_symbol(self, text: str) -> bool:
        if self.symbol(text):
            self.at += 1
            return True
        return False

    def skip_word(self, text: str) -> bool:
        if self.word(text):
            self.at += 1
            return True
        return False

    def need_symbol(self, text: str) -> Token:
        if not self.symbol(text):
            self.unexpected(text)
        return self.take()

    def need_word(self, text: str) -> Token:
        if not self.word(text):
            self.unexpected(text)
        return self.take()

    def need_name(self, what: str) -> Token:
        token = self.peek()
        if token.kind != "name" or "*" in token.text:
            self.unexpected(what)
        return self.take()

    def need_variable(self) -> str:
        if self.peek().kind != "variable":
            self.unexpected("a variable")
        return self.take().text

    def unexpected(self, wanted: str) -> NoReturn:
        token = self.peek()
        shown = "the end" if token.kind == "end" else token.text[:40]
        raise Unreadable(f"{wanted} is expected here, not {shown}", token.start)

    def since(self, first: int) -> Span:
        """From a token to the last one read."""
        return Span(self.tokens[first].start, self.tokens[self.at - 1].end)

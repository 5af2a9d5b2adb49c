"""The lexer for definitions and rule bodies: text → tokens, each with its offsets.

XQuery has no reserved words, and ``<`` opens an element or compares. Both are decided by tracking whether an operand or
an operator comes next. A direct constructor gives ``open-constructor`` and ``close-constructor``; between them only
``{`` … ``}`` and their content are tokens. There is no recursion and no backtracking, so hostile text costs linear
time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NoReturn

from postroom.limits import PROGRAM_TOKENS_MAX
from postroom.model.xmltext import in_xml
from postroom.rules.language.lazy import lazy
from postroom.rules.language.markup import (
    BLANK,
    NCNAME,
    OPERAND,
    OPERATOR,
    TYPE,
    TYPE_ENDED,
    Frame,
    Markup,
    Namespace,
    Next,
    Token,
    Unreadable,
)

__all__ = [
    "CLOSERS",
    "DECLARING",
    "OBJECTS",
    "OPERATOR_WORDS",
    "Namespace",
    "Statement",
    "Token",
    "Unreadable",
    "decoded",
    "namespaces",
    "parted",
    "statements",
    "tokens",
    "tokens_before",
    "word_at",
]

_NAME: Final = rf"Q\{{[^{{}}]*\}}(?:{NCNAME}|\*)|{NCNAME}(?::(?:{NCNAME}|\*))?|\*:{NCNAME}"
# No quantifier here is possessive: Python 3.11 before 3.11.5 reads nested ones wrongly. A string that is not closed
# would end at an earlier quote, if a doubled one could be its last.
_PIECE: Final = lazy(
    rf"""[ \t\r\n]*(?:(?P<name>{_NAME})
      | (?P<symbol>::|:=|//|>>|>=|!=|\|\||=>|\.\.|[,;:/>=!|@?\#%*+\-]|\.(?![0-9]))
      | (?P<variable>\$)
      | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<string>"[^"]*(?:""[^"]*)*"(?!")|'[^']*(?:''[^']*)*'(?!'))
      | (?P<comment>\(:) | (?P<pragma>\(\#)
      | (?P<open>[(\[{{]) | (?P<close>[)\]}}])
      | (?P<less><) | (?P<template>``\[)
      | (?P<stray>.))?""",
    re.VERBOSE | re.DOTALL,
)
_VARIABLE_NAME: Final = lazy(rf"Q\{{[^{{}}]*\}}{NCNAME}|{NCNAME}(?::{NCNAME})?")
_REFERENCE: Final = re.compile(r"&(?:(lt|gt|amp|quot|apos)|#([0-9]{1,7})|#x([0-9A-Fa-f]{1,6}));")
_ENTITIES: Final = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_WORD: Final = re.compile(r"(?:[^\s;(]+|\((?!:))*")

OPERATOR_WORDS: Final = frozenset(
    {"and", "or", "div", "idiv", "mod", "eq", "ne", "lt", "le", "gt", "ge", "is", "to", "union", "intersect", "except"}
)
# Names that, where an operator is due, are followed by an operand. Words such as "order" or "instance" are not here:
# their second word is, or a variable follows.
_OPERATORS: Final = OPERATOR_WORDS | frozenset(
    {"return", "then", "else", "in", "satisfies", "where", "by", "when", "catch", "into", "with", "value", "key"}
)
OBJECTS: Final = frozenset({"queue", "property", "slicing", "rule", "collection", "module", "system"})
# Words of a definition after which a name of the user's stands, which may look like any keyword.
_INTRODUCERS: Final = {
    "rule": frozenset({"rule", "for", "errorqueue"}),
    "property": frozenset({"property", "as", "queue"}),
    "slicing": frozenset({"slicing", "on"}),
    "queue": frozenset({"queue", "errorqueue", "port"}),
    "collection": frozenset({"collection"}),
    "module": frozenset({"module", "errorqueue"}),
    "system": frozenset({"errorqueue"}),
}
#: The words with which a declaration begins.
DECLARING: Final = frozenset({"declare", "import", "module", "xquery"})
CLOSERS: Final = {"(": ")", "[": "]", "{": "}", "`{": "}`"}


@dataclass(frozen=True, slots=True)
class Statement:
    """One ``create …`` of a file, without its semicolon."""

    tokens: tuple[Token, ...]

    @property
    def start(self) -> int:
        return self.tokens[0].start

    @property
    def end(self) -> int:
        return self.tokens[-1].end


def tokens(text: str, start: int = 0, end: int | None = None) -> list[Token]:
    """The tokens of ``text[start:end]``; offsets are those of ``text``."""
    return _Lexer(text, start, len(text) if end is None else end).run()


def tokens_before(text: str, start: int, end: int) -> tuple[list[Token], Unreadable | None]:
    """The tokens up to the first error, and that error."""
    lexer = _Lexer(text, start, end)
    try:
        return lexer.run(), None
    except Unreadable as problem:
        return lexer.found, problem


def namespaces(text: str, start: int, end: int) -> list[Namespace]:
    """The prefixes that constructors of a valid text declare, with their scopes; outer ones first."""
    if "xmlns" not in text[start:end]:
        return []
    lexer = _Lexer(text, start, end)
    lexer.run()
    for namespace in lexer.namespaces:
        meant = (
            decoded(Token("string", f'"{namespace.uri}"', namespace.start, namespace.end))
            if "&" in namespace.uri
            else namespace.uri
        )
        namespace.uri = namespace.uri if meant is None else " ".join(meant.split())
    return sorted(lexer.namespaces, key=lambda namespace: namespace.start)


def statements(text: str) -> list[Statement]:
    """The ``create`` statements of a file. Only comments may stand between and after them."""
    return parted(text)[1]


def parted(text: str) -> tuple[list[Token], list[Statement]]:
    """The tokens of a file's declarations, and the ``create`` statements after them."""
    lexer = _Lexer(text, 0, len(text))
    tokens = lexer.run()
    cuts = [*lexer.beginnings, len(tokens)]
    prolog = tokens[: cuts[0]]
    if prolog and prolog[0].text not in DECLARING:
        _refuse_outside(prolog[0])
    if prolog and cuts[0] - 1 not in lexer.semicolons:
        raise Unreadable("a declaration ends with ;", prolog[-1].end)
    parts: list[Statement] = []
    for begin, end in pairwise(cuts):
        stop = next((index for index in range(begin, end) if index in lexer.semicolons), end)
        parts.append(Statement(tuple(tokens[begin:stop])))
        if stop + 1 < end:
            _refuse_outside(tokens[stop + 1])
    return prolog, parts


def word_at(text: str, token: Token) -> tuple[str, int]:
    """The word that begins at a token, and its end: a file name is many tokens but one word.

    It ends at white space, a semicolon or a comment. A string literal is a word without its quotes.
    """
    if token.kind == "string":
        value = decoded(token)
        return (token.text[1:-1] if value is None else value), token.end
    match = _WORD.match(text, token.start)
    end = match.end() if match else token.end
    return text[token.start : end], end


def decoded(token: Token) -> str | None:
    """The value of a string literal; None if it has an invalid reference."""
    quote = token.text[0]
    value = token.text[1:-1].replace(quote * 2, quote)
    if "&" not in value:
        return value
    if value.count("&") != len(_REFERENCE.findall(value)):
        return None
    value = _REFERENCE.sub(_character, value)
    return value if in_xml(value) else None


def _character(reference: re.Match[str]) -> str:
    entity, decimal, hexadecimal = reference.groups()
    if entity:
        return _ENTITIES[entity]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if code <= 0x10FFFF else "\0"


def _refuse_outside(token: Token) -> NoReturn:
    objects = ", ".join(sorted(OBJECTS))
    if token.text in DECLARING:
        raise Unreadable(f"{token.text} stands at the beginning of the file, before the first create", token.start)
    raise Unreadable(f"a statement begins with create and one of {objects}; here stands {token.text!r}", token.start)


class _Lexer(Markup):
    """Names and symbols, and whether each is followed by an operand or operator."""

    def __init__(self, text: str, start: int, end: int) -> None:
        super().__init__(text, start, end)
        self.single = False  # the type is that of a cast: only ? belongs to it
        self.marks = 1  # how many of * + ? may still belong to the type: one, and one more after function(…) as
        self.casing = False  # between a case and its return, where types stand
        self.switches: list[tuple[int, str]] = []  # depth and kind of those still waiting for their default
        self.beginnings: list[int] = []  # indexes of tokens
        self.semicolons: set[int] = set()
        self.candidate = -1  # index of a create that begins a statement if the next word agrees
        self.object = ""  # what the statement defines
        self.defining = False  # in the part of a statement that is not an expression
        self.argument = False  # the next name is the user's

    def run(self) -> list[Token]:
        text, end, tokens, match_piece = self.text, self.end, self.found, _PIECE.match
        handlers: dict[str, Callable[[str], None]] = {
            "name": self._name,
            "variable": self._variable,
            "number": self._number,
            "string": self._string,
            "comment": self._comment,
            "pragma": self._pragma,
            "open": self._open,
            "close": self._close,
            "less": self._less,
            "template": self._template,
            "symbol": self._symbol,
            "stray": self._stray,
        }
        while (match := match_piece(text, self.at, end)) and (kind := match.lastgroup):
            start, stop = match.span(kind)
            self.at = start
            handlers[kind](text[start:stop])
            if len(tokens) > PROGRAM_TOKENS_MAX:
                self._refuse_length()
        if self.stack:
            frame = self.stack[-1]
            raise Unreadable(f"what {frame.kind} opens here is never closed", frame.offset)
        return self.found

    def _stray(self, character: str) -> None:
        if character in "\"'":
            raise Unreadable("this string has no closing quote", self.at)
        raise Unreadable(f"the character {character!r} cannot stand here", self.at)

    # --- names: the words of definitions, operators and steps ---

    def _name(self, word: str) -> None:
        if not self.stack:
            self._outer_name(word)
        if self.next == OPERAND or (self.defining and not self.stack):
            self.next = OPERATOR
        elif self.next == TYPE:
            self.next = TYPE_ENDED
        else:
            self.next = self._after_word(word)
        self._emit("name", word)

    def _after_word(self, word: str) -> Next:
        """Classify a name where an operator is due: an operator, or a keyword of a clause."""
        if word in _OPERATORS:
            self.casing = self.casing and word != "return"
            return OPERAND
        previous = self.found[-1].text if self.found else ""
        if word in ("as", "of"):
            self.single = previous in ("cast", "castable")
            self.marks = self.marks + 1 if self.next == TYPE_ENDED and previous == ")" else 1
            return TYPE
        if word == "case":
            self.single, self.marks = False, 1
            self.casing = bool(self.switches) and self.switches[-1][1] == "typeswitch"
            return TYPE if self.casing else OPERAND
        if word == "default" and self.switches:
            self.switches.pop()
        if word in ("node", "nodes") and previous in ("insert", "delete", "replace", "rename", "of"):
            return OPERAND
        if (word == "enqueue" and previous == "do") or (word == "sphere" and previous == "abort"):
            return OPERAND
        return OPERATOR

    def _outer_name(self, word: str) -> None:
        """Follow the statements of a file: their starts, and which parts are expressions."""
        index = len(self.found)
        if word in OBJECTS and self.candidate == index - 1 >= 0:
            self.beginnings.append(self.candidate)
            self.switches.clear()
            self.object, self.defining, self.argument = word, True, word in _INTRODUCERS[word]
            return
        if self.argument:
            self.argument = False
            return
        if word == "create" and (self.next >= OPERATOR or not index or index - 1 in self.semicolons):
            self.candidate = index
        elif self.defining:
            self._definition_word(word)
        elif self.object == "property" and word == "queue" and self.next >= OPERATOR:
            self.defining = self.argument = True

    def _definition_word(self, word: str) -> None:
        if word in _INTRODUCERS[self.object]:
            self.argument = True
        elif self.object == "rule":
            self.defining, self.next = False, OPERAND
        elif self.object == "property" and word == "value" and self.next >= OPERATOR:
            self.defining, self.next = False, OPERATOR

    # --- literals ---

    def _variable(self, dollar: str) -> None:
        start = self.at
        self.at += len(dollar)
        while True:
            blank = BLANK.match(self.text, self.at, self.end)
            self.at = blank.end() if blank else self.at
            if not self.text.startswith("(:", self.at, self.end):
                break
            self._comment("(:")
        name = _VARIABLE_NAME.match(self.text, self.at, self.end)
        if name is None:
            raise Unreadable("a name must follow $", start)
        self.at = name.end()
        self.found.append(Token("variable", "$" + name.group(), start, self.at))
        self.next = OPERATOR

    def _number(self, number: str) -> None:
        self._emit("number", number)
        self.next = OPERATOR

    def _string(self, string: str) -> None:
        self._emit("string", string)
        self.next = OPERATOR

    # --- symbols and brackets ---

    def _symbol(self, symbol: str) -> None:
        if symbol in "*+?":
            self.next = self._after_mark(symbol)
        elif symbol in (".", ".."):
            self.next = OPERATOR
        elif (symbol == "," and self.stack and self.stack[-1].type) or (symbol == "|" and self.casing):
            self.next, self.marks = TYPE, 1
        else:
            self.next = OPERAND
        if not self.stack:
            self._outer_symbol(symbol)
        self._emit("symbol", symbol)

    def _after_mark(self, mark: str) -> Next:
        if self.next == TYPE_ENDED and (mark == "?" or not self.single):
            self.marks -= 1
            return TYPE_ENDED if self.marks else OPERATOR
        if mark == "*" and self.next == OPERAND:
            return OPERATOR
        if mark == "*" and self.next == TYPE:
            return TYPE_ENDED
        return OPERAND

    def _outer_symbol(self, symbol: str) -> None:
        if symbol == ";":
            self.semicolons.add(len(self.found))
            self.object, self.defining, self.argument = "", False, False
        elif self.defining and self.object == "rule":
            self.defining = False
        elif self.defining:
            self.argument = self.object == "property" and symbol == ","

    def _open(self, bracket: str) -> None:
        previous = self.found[-1] if self.found else None
        if bracket == "(" and previous and previous.kind == "name" and previous.text in ("switch", "typeswitch"):
            self.switches.append((len(self.stack), previous.text))
        of_type = bracket == "(" and self.next in (TYPE, TYPE_ENDED)
        if not self.stack and self.object == "rule":
            self.defining = False
        self._push(Frame(bracket, self.at, previous.text if previous else "", type=of_type, marks=self.marks))
        self.next, self.marks = TYPE if of_type else OPERAND, 1
        self._emit("symbol", bracket)

    def _close(self, bracket: str) -> None:
        frame = self.stack.pop() if self.stack else None
        if frame is None:
            raise Unreadable(f"{bracket} closes nothing", self.at)
        closer = CLOSERS[frame.kind]
        if not self.text.startswith(closer, self.at, self.end):
            raise Unreadable(f"{closer} is expected here, not {bracket}", self.at)
        while self.switches and self.switches[-1][0] > len(self.stack):
            self.switches.pop()
        # Of all types, empty-sequence() alone takes no mark.
        self.next = TYPE_ENDED if frame.type and frame.name != "empty-sequence" else OPERATOR
        self.marks = frame.marks
        self._emit("symbol", closer)
        self._resume()

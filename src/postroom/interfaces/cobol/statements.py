"""The statements of the communication module, translated to calls of the library.

A RECEIVE with ``NO DATA`` or ``WITH DATA`` becomes a call and an IF; ``scopes.py`` knows where it ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from postroom.interfaces.cobol.descriptions import Described
from postroom.interfaces.cobol.scopes import Scopes, may_follow
from postroom.interfaces.cobol.source import fail
from postroom.interfaces.cobol.tokens import Edits, Token
from postroom.model.spelling import close

RESULT, LINES, WORDS = (f"POSTROOM-{name}" for name in ("RESULT", "LINES", "WORDS"))
#: What the calls need in WORKING-STORAGE.
STORAGE = f"""01 {RESULT} USAGE BINARY-LONG VALUE 0.
01 {LINES} USAGE BINARY-LONG VALUE 0.
01 {WORDS} PIC X(1024)."""
_ENDS = {"ESI": '"1"', "EMI": '"2"', "EGI": '"3"'}
_SEGMENT, _NO_WAIT, _IO, _REPLACING = 1, 2, 4, 8
_INPUT, _TERMINAL, _OUTPUT, _IO_TERMINAL = range(4)
_PAGE, _NO_LINES = -1, -2
#: What a figurative constant is where one character of it stands for all; it has no length.
_FIGURATIVES = {
    **dict.fromkeys(("SPACE", "SPACES"), '" "'),
    **dict.fromkeys(("ZERO", "ZEROS", "ZEROES"), '"0"'),
    **dict.fromkeys(("QUOTE", "QUOTES"), "X'22'"),
    **dict.fromkeys(("HIGH-VALUE", "HIGH-VALUES"), "X'FF'"),
    **dict.fromkeys(("LOW-VALUE", "LOW-VALUES"), "X'00'"),
}
_CHANNEL = re.compile(r"C\d\d|CSP|FORMFEED|TOP-OF-PAGE")
_PICTURE = re.compile(r"\bPIC(?:TURE)?\s+(?:IS\s+)?(\S+)", re.IGNORECASE)
_ONE = re.compile(r"[9XA](?:\(0*1\))?", re.IGNORECASE)  # pictures of one character
_BINARY = re.compile(r"COMP(?:UTATIONAL)?(?:-\w)?|BINARY(?:-\w+)?|PACKED-DECIMAL|INDEX")
_NO_AREA = "BY REFERENCE OMITTED BY VALUE 0"
_PAGES = {"C01", "FORMFEED", "TOP-OF-PAGE"}  # what a mnemonic name may stand for to mean a page


class Statements:
    """Replaces our statements among the tokens of a PROCEDURE DIVISION."""

    def __init__(self, tokens: Sequence[Token], known: Mapping[str, Described], edits: Edits) -> None:
        self._tokens, self._known, self._edits = tokens, known, edits
        self._mnemonics = _mnemonics(tokens)
        self._at = 0
        self._scopes = Scopes()
        self._verbs: dict[str, Callable[[int], str]] = {
            "RECEIVE": self._receive,
            "SEND": self._send,
            "ENABLE": self._switch,
            "DISABLE": self._switch,
            "PURGE": self._purge,
        }

    def translate(self, start: int, end: int) -> None:
        """Replace every statement of the communication module between two positions."""
        self._at = start
        while self._at < end:
            token = self._tokens[self._at]
            if token.word in self._verbs:
                self._replace(self._verbs[token.word])
            elif token.word == "ACCEPT" and self._is_count():
                self._replace(self._count)
            else:
                self._other(token)
                self._at += 1

    def _replace(self, translate: Callable[[int], str]) -> None:
        """Replace the statement that begins here; ``translate`` starts after its verb."""
        begun = self._at
        self._at += 1
        self._scopes.begin_statement()
        text = translate(begun)
        self._edits.replace(self._tokens[begun : self._at], text)
        if self._at < len(self._tokens) and not may_follow(self._next):
            verb, token = self._tokens[begun].word, self._next
            fail(token.position, f"{token.text} is not understood behind this {verb}")

    def _other(self, token: Token) -> None:
        if token.word == "END-RECEIVE":
            within = self._scopes.end_receive()
            if within is None:
                fail(token.position, "END-RECEIVE without a RECEIVE before it")
            self._edits.replace([token], f"{within}END-IF")
        elif token.word == "DATA" and (within := self._scopes.second_phrase()) is not None:
            before = self._tokens[self._at - 1]
            begun = [before, token] if before.word == "WITH" else [token]
            self._edits.replace(begun, f"{within}ELSE")
        elif (owner := self._owner(self._at)) is not None:
            self._edits.replace(self._tokens[self._at - 1 : self._at + 1], f"OF {owner}" if owner else "")
        elif ended := self._scopes.go_past(self._tokens, self._at):
            self._edits.replace([token], ended + token.text)

    # --- what stands in statements ---

    @property
    def _next(self) -> Token:
        if self._at >= len(self._tokens):
            fail(self._tokens[-1].position, "the text ends within a statement")
        return self._tokens[self._at]

    def _accept(self, *words: str) -> str:
        """The next word, if it is one of these."""
        word = self._next.word if self._at < len(self._tokens) else ""
        if word and word in words:
            self._at += 1
            return word
        return ""

    def _cd(self, *kinds: str) -> Described:
        token = self._next
        described = self._known.get(token.word)
        if described is None:
            near = close(token.word, self._known)
            hint = f"; did you mean {near[0]}?" if near else ""
            fail(token.position, f"{token.text} is no CD of this program{hint}", "cd-unknown")
        if described.kind not in kinds:
            fail(
                token.position, f"{token.text} is a CD FOR {described.kind}; {' or '.join(kinds)} is needed", "cd-kind"
            )
        self._at += 1
        return described

    def _next_words(self, *words: str) -> bool:
        return tuple(token.word for token in self._tokens[self._at : self._at + len(words)]) == words

    def _identifier(self, what: str) -> str:
        """An identifier with qualifiers and subscripts, whose text can be changed."""
        token = self._next
        if token.kind != "word" or token.text[0].isdigit() or token.word in _FIGURATIVES:
            fail(token.position, f"{what} is expected, not {token.text}")
        return self._operand(what)

    def _operand(self, what: str) -> str:
        """An identifier with qualifiers and subscripts, or a literal, as written."""
        first = self._next
        if first.kind not in ("word", "literal"):
            fail(first.position, f"{what} is expected, not {first.text}")
        begun = self._at
        self._at += 1
        if first.kind == "word":
            while self._accept("OF", "IN"):
                self._at += 1
            while self._at < len(self._tokens) and self._next.text == "(":
                self._parenthesis()
        kept: list[Token] = []
        for at in range(begun, self._at):
            owner = self._owner(at)
            kept.append(self._tokens[at] if owner is None else self._tokens[at]._replace(text=owner))
            if owner == "":
                del kept[-2:]
        return _joined(kept)

    def _owner(self, at: int) -> str | None:
        """The record for a CD's name used as a qualifier, as in ``STATE OF IN-CD``; empty if it is qualified
        already."""
        described = self._known.get(self._tokens[at].word)
        if described is None or at < 2 or self._tokens[at - 1].word not in ("OF", "IN"):
            return None
        name = self._tokens[at - 2].word
        owner = described.owners.get(name)
        return "" if owner is not None and owner.upper() == name else owner

    def _parenthesis(self) -> None:
        opened, depth = self._next, 0
        while True:
            if self._at >= len(self._tokens) or self._next.kind == "period":
                fail(opened.position, "a parenthesis is not closed")
            depth += {"(": 1, ")": -1}.get(self._next.text, 0)
            self._at += 1
            if not depth:
                return

    # --- statements ---

    def _receive(self, at: int) -> str:
        cd = self._cd("INPUT", "I-O")
        bits = _IO if cd.kind == "I-O" else 0
        unit = self._accept("MESSAGE", "SEGMENT")
        if not unit:
            fail(self._next.position, f"MESSAGE or SEGMENT is expected, not {self._next.text}")
        bits |= _SEGMENT if unit == "SEGMENT" else 0
        self._accept("INTO")
        area = self._identifier("the area of the message")
        condition = ""
        if self._next_words("WITH", "NO"):
            fail(self._next.position, "NO DATA is expected, not WITH NO")
        if self._accept("NO"):
            if not self._accept("DATA"):
                fail(self._next.position, f"NO DATA is expected, not NO {self._next.text}")
            bits |= _NO_WAIT
            condition = f"{RESULT} = 1"
        elif self._is_data():
            condition = f"{RESULT} NOT = 1"
        text = _call("receive", _area(cd.record), _area(area), f"BY VALUE {bits}")
        if not condition:
            self._accept("END-RECEIVE")
            return text
        self._scopes.begin_receive(whole=not bits & _NO_WAIT)
        return f"{text}\nIF {condition}"

    def _is_data(self) -> bool:
        begun = self._at
        self._accept("WITH")
        if self._accept("DATA"):
            return True
        self._at = begun
        return False

    def _send(self, at: int) -> str:
        cd = self._cd("OUTPUT", "I-O")
        area = _area(self._operand("the area of the message")) if self._accept("FROM") else _NO_AREA
        end = '"0"'
        ended = self._accept("WITH")
        word = self._accept(*_ENDS)
        if word:
            end = _ENDS[word]
        elif ended:
            begun = self._next
            end = self._identifier("ESI, EMI, EGI or an identifier")
            self._check_indicator(begun)
        if area == _NO_AREA and not (word or ended):
            fail(self._tokens[at].position, "SEND needs FROM, or WITH and an end indicator")
        when, lines = self._advancing()
        bits = (_IO if cd.kind == "I-O" else 0) | (_REPLACING if self._replacing() else 0)
        call = _call(
            "send",
            _area(cd.record),
            area,
            f'BY REFERENCE {end} BY VALUE {bits} BY REFERENCE "{when}" BY VALUE {LINES}',
        )
        return f"MOVE {lines} TO {LINES}\n{call}"

    def _check_indicator(self, name: Token) -> None:
        """Raise unless the end indicator is one character long: of a longer item, only a part would be read."""
        tokens = self._tokens
        places = [at for at in range(1, len(tokens)) if tokens[at].word == name.word and tokens[at - 1].text.isdigit()]
        if len(places) != 1:  # described elsewhere, or several times
            return
        end = next((at for at in range(places[0], len(tokens)) if tokens[at].kind == "period"), len(tokens))
        entry = tokens[places[0] : end]
        picture = _PICTURE.search(_joined(entry))
        if any(_BINARY.fullmatch(token.word) for token in entry) or (picture and not _ONE.fullmatch(picture[1])):
            fail(name.position, f"the end indicator {name.text} has to be one digit: PIC 9, USAGE DISPLAY", "operand")

    def _advancing(self) -> tuple[str, str]:
        when = self._accept("BEFORE", "AFTER")
        if not when:
            return " ", str(_NO_LINES)
        self._accept("ADVANCING")
        if self._accept("PAGE"):
            return when[0], str(_PAGE)
        begun = self._next
        lines = self._operand("a number of lines, or PAGE")
        if begun.word in self._mnemonics:
            if self._mnemonics[begun.word] not in _PAGES:
                why = f"{begun.text} is the channel {self._mnemonics[begun.word]}; only {', '.join(sorted(_PAGES))}"
                fail(begun.position, f"{why} can be told to a destination", "unsupported")
            return when[0], str(_PAGE)
        self._accept("LINE", "LINES")
        return when[0], lines

    def _replacing(self) -> bool:
        if not self._accept("REPLACING"):
            return False
        if not self._accept("LINE"):
            fail(self._next.position, f"REPLACING LINE is expected, not REPLACING {self._next.text}")
        return True

    def _switch(self, at: int) -> str:
        verb = self._tokens[at].word.lower()
        kind = self._accept("INPUT", "OUTPUT", "I-O")
        if not kind:
            fail(self._next.position, f"INPUT, OUTPUT or I-O is expected, not {self._next.text}")
        what = {"INPUT": _INPUT, "OUTPUT": _OUTPUT, "I-O": _IO_TERMINAL}[kind]
        if kind != "OUTPUT" and self._accept("TERMINAL"):
            what = _TERMINAL if kind == "INPUT" else _IO_TERMINAL
        cd = self._cd(kind)
        key = '" "'
        with_word = self._accept("WITH")
        if self._accept("KEY"):
            key = self._operand("the password")
        elif with_word:
            fail(self._next.position, f"KEY is expected, not {self._next.text}")
        return _call(verb, _area(cd.record), f"BY VALUE {what} {_area(key)}")

    def _is_count(self) -> bool:
        words = [token.word for token in self._tokens[self._at + 1 : self._at + 4]]
        return len(words) > 1 and words[0] in self._known and (words[1] == "COUNT" or words[1:] == ["MESSAGE", "COUNT"])

    def _count(self, at: int) -> str:
        cd = self._cd("INPUT")
        self._accept("MESSAGE")
        self._accept("COUNT")
        return _call("count", _area(cd.record))

    def _purge(self, at: int) -> str:
        return _call("purge", _area(self._cd("OUTPUT", "I-O").record))


def _mnemonics(tokens: Sequence[Token]) -> dict[str, str]:
    """The mnemonic names of SPECIAL-NAMES, such as channels."""
    words = [token.word for token in tokens]
    if "SPECIAL-NAMES" not in words:
        return {}
    start = words.index("SPECIAL-NAMES")
    end = next((at for at in range(start, len(words)) if words[at] in ("SECTION", "DIVISION")), len(words))
    named = {words[at + 1]: words[at - 1] for at in range(start + 1, end - 1) if words[at] == "IS"}
    bare = {words[at + 1]: words[at] for at in range(start + 1, end - 1) if _CHANNEL.fullmatch(words[at])}
    return {name: meaning for name, meaning in {**bare, **named}.items() if name != "IS"}


def initial_call(cd: Described) -> str:
    """The first call of a program with a CD FOR INITIAL INPUT."""
    return f"ACCEPT {WORDS} FROM COMMAND-LINE\n" + _call("initial", _area(cd.record), _area(WORDS)) + "."


def _area(name: str) -> str:
    if name.upper() in _FIGURATIVES:
        return f"BY REFERENCE {_FIGURATIVES[name.upper()]} BY VALUE 1"
    return f"BY REFERENCE {name} BY VALUE LENGTH OF {name}"


def _call(verb: str, *using: str) -> str:
    given = "\n".join(using)
    return f'CALL "postroom_{verb}" USING {given}\nRETURNING {RESULT} END-CALL'


def _joined(tokens: Sequence[Token]) -> str:
    """Tokens as written, line ends as blanks."""
    parts = [tokens[0].text]
    for before, token in pairwise(tokens):
        apart = token.at != before.at or token.start > before.end
        parts.append((" " if apart else "") + token.text)
    return "".join(parts)

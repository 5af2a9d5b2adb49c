"""The precompiler: a COBOL program with a COMMUNICATION SECTION becomes one that calls ``libpostroom``.

The output is in free format, with directives for the origin of each line, so that the compiler's errors name lines of
the program and its copybooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from postroom.errors import FileUnreadable
from postroom.interfaces.cobol.copybooks import Library, expanded, read_source
from postroom.interfaces.cobol.descriptions import Described, read_entry
from postroom.interfaces.cobol.source import Layout, Line, fail, layout_of, read_lines, without_debugging
from postroom.interfaces.cobol.statements import STORAGE, Statements, initial_call
from postroom.interfaces.cobol.tokens import Edits, Token, printed, scan

_SECTIONS = {"FILE", "WORKING-STORAGE", "LOCAL-STORAGE", "LINKAGE", "COMMUNICATION", "REPORT", "SCREEN"}


class Options(NamedTuple):
    """How a program is read."""

    layout: Layout | None = None  # None: by the place of its first division
    folders: tuple[Path, ...] = ()  # of copybooks, beside the program's own
    cards: Mapping[str, str] = {}  # words that an installation replaces


def precompile(file: Path, options: Options = Options()) -> str:  # noqa: B008 (a tuple never changes)
    """Precompile a file to text for the compiler; raises ``CobolInvalid`` with a place."""
    try:
        text = read_source(file)
        layout = options.layout or layout_of(text)
        library = Library((file.parent, Path(), *options.folders), layout, options.cards)
        lines = expanded(read_lines(text, str(file), layout, options.cards), library)
    except OSError as error:
        raise FileUnreadable(file=str(file), why=error.strerror or str(error)) from None
    return printed(translated(lines))


def translated(lines: list[Line]) -> list[Line]:
    """The lines of a program, with storage and calls instead of CDs and statements."""
    lines = without_debugging(lines)
    edits = Edits()
    moves = [_Program(tokens, edits).translate() for tokens in _programs(scan(lines))]
    done = edits.applied(lines)
    for first, last, to in filter(None, moves):  # the lines of one section before those of another
        done[to:last] = [*done[first:last], *done[to:first]]
    return [line for made in done for line in made]


def _programs(tokens: list[Token]) -> list[list[Token]]:
    """The tokens of each program, in sequence or nested."""
    words = [token.word for token in tokens]
    starts = [
        at for at in range(1, len(words)) if words[at] == "DIVISION" and words[at - 1] in ("IDENTIFICATION", "ID")
    ]
    bounds = [0, *(at - 1 for at in starts[1:]), len(tokens)]
    return [tokens[start:end] for start, end in pairwise(bounds) if end > start]


def read_cards(file: Path) -> dict[str, str]:
    """Words that an installation replaces, one per line: ``XXXXX032 "OUT"``. ``*`` begins a comment."""
    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FileUnreadable(file=str(file), why=str(error)) from None
    cards: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("*"):
            continue
        word, _, text = line.strip().partition(" ")
        if not text.strip():
            fail(Line(str(file), number, line).position(0), f"{word} is replaced by nothing", "cards")
        cards[word] = text.strip()
    return cards


class _Program:
    def __init__(self, tokens: list[Token], edits: Edits) -> None:
        self._tokens, self._edits = tokens, edits
        self._known: dict[str, Described] = {}
        self._moved: tuple[int, int, int] | None = None  # lines of the section, and where they go

    def translate(self) -> tuple[int, int, int] | None:
        """Collect all edits of the program; returns the lines to move, and the target."""
        section = self._find("COMMUNICATION", "SECTION")
        procedure = self._find("PROCEDURE", "DIVISION")
        if section is not None:
            self._descriptions(section)
        if procedure is not None:
            Statements(self._tokens, self._known, self._edits).translate(procedure, len(self._tokens))
            self._initial(procedure)
        return self._moved

    def _find(self, first: str, second: str, start: int = 0) -> int | None:
        """The position of a header such as COMMUNICATION SECTION."""
        for at in range(start, len(self._tokens) - 1):
            if self._tokens[at].word == first and self._tokens[at + 1].word == second:
                return at
        return None

    def _descriptions(self, section: int) -> None:
        tokens = self._tokens
        at = section + 2
        if at >= len(tokens) or tokens[at].kind != "period":
            fail(tokens[section].position, "a period is expected after COMMUNICATION SECTION", "cd")
        at += 1
        while at < len(tokens) and tokens[at].word == "CD":
            described, end = read_entry(tokens, at, len(self._known) + 1, self._edits)
            if described.name in self._known:
                fail(tokens[at + 1].position, f"the CD {described.name} is described twice", "cd")
            if described.initial and any(other.initial for other in self._known.values()):
                fail(tokens[at].position, "a program has one CD FOR INITIAL INPUT", "cd")
            self._known[described.name] = described
            at = end
        header = at + 1 < len(tokens) and tokens[at + 1].word in ("SECTION", "DIVISION")
        if at < len(tokens) and not header:
            fail(tokens[at].position, f"a CD entry or the next section is expected, not {tokens[at].text}", "cd")
        self._place(section, at)

    def _place(self, section: int, end: int) -> None:
        """Put the storage of the CDs into WORKING-STORAGE: before the LINKAGE SECTION, if that comes first."""
        headers = [
            at for at in range(section) if self._tokens[at].word in _SECTIONS and self._tokens[at + 1].word == "SECTION"
        ]
        words = [self._tokens[at].word for at in headers]
        storage = "" if "WORKING-STORAGE" in words else "WORKING-STORAGE SECTION.\n"
        self._edits.replace(self._tokens[section : section + 3], storage + STORAGE)
        after = [at for at in headers if self._tokens[at].word in ("LOCAL-STORAGE", "LINKAGE", "REPORT", "SCREEN")]
        if after:
            last = self._tokens[end].at if end < len(self._tokens) else self._tokens[-1].at + 1
            self._moved = self._tokens[section].at, last, self._tokens[after[0]].at

    def _initial(self, procedure: int) -> None:
        """Fill the CD of INITIAL INPUT before the first statement, after declaratives."""
        initial = next((cd for cd in self._known.values() if cd.initial), None)
        if initial is None:
            return
        declaratives = self._find("END", "DECLARATIVES", procedure)
        at = procedure if declaratives is None else declaratives
        while at < len(self._tokens) and self._tokens[at].kind != "period":
            at += 1
        if at == len(self._tokens):
            fail(self._tokens[procedure].position, "the PROCEDURE DIVISION has no period", "syntax")
        self._edits.insert_after(self._tokens[at], "\n" + initial_call(initial))

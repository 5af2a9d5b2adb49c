"""COPY: replaces the statement by the text of other files, with REPLACING."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from postroom.interfaces.cobol.source import Layout, Line, fail, read_lines
from postroom.interfaces.cobol.tokens import Edits, Token, scan
from postroom.limits import COBOL_COPY_DEPTH_MAX, COBOL_SOURCE_BYTES_MAX
from postroom.model.definitions import Position

_ENDINGS = ("", ".cpy", ".CPY", ".cbl", ".CBL", ".cob", ".COB")


class Library(NamedTuple):
    """Where to look for copybooks, and their layout."""

    folders: tuple[Path, ...]
    layout: Layout
    cards: Mapping[str, str]

    def find(self, name: str, within: str) -> Path | None:
        """The file of a copybook; never the file that has the COPY."""
        for folder in self.folders:
            for spelling in (name, name.lower(), name.upper()):
                for ending in _ENDINGS:
                    file = folder / (spelling + ending)
                    if file.is_file() and file.resolve() != Path(within).resolve():
                        return file
        return None


def expanded(lines: list[Line], library: Library, depth: int = 0) -> list[Line]:
    """The lines with the text of every copybook."""
    tokens = scan(lines)
    done: list[Line] = []
    at, column, place = 0, 0, 0
    while place < len(tokens):
        if tokens[place].word != "COPY":
            place += 1
            continue
        copy = tokens[place]
        end, text = _copied(tokens, place, library, depth)
        done += [*lines[at : copy.at]] if column == 0 else _rest(lines, at, column, copy.at)
        begin = column if copy.at == at else 0
        done.append(lines[copy.at]._replace(text=" " * begin + lines[copy.at].text[begin : copy.start]))
        done += text
        at, column, place = tokens[end].at, tokens[end].end, end + 1
    return [*done, *(lines[at:] if column == 0 else _rest(lines, at, column, len(lines)))]


def _rest(lines: list[Line], at: int, column: int, until: int) -> list[Line]:
    """What follows a column of a line, up to another line."""
    if at >= until:
        return []
    first = lines[at]._replace(text=" " * column + lines[at].text[column:])
    return [*([first] if first.text.strip() else []), *lines[at + 1 : until]]


def _copied(tokens: Sequence[Token], place: int, library: Library, depth: int) -> tuple[int, list[Line]]:
    """The position of the period that ends a COPY, and the copied lines."""
    copy, at = tokens[place], place + 1
    if depth >= COBOL_COPY_DEPTH_MAX:
        fail(copy.position, f"more than {COBOL_COPY_DEPTH_MAX} copybooks within each other", "copy")
    name = _at(tokens, at, copy)
    if name.kind not in ("word", "literal"):
        fail(name.position, f"the name of a copybook is expected, not {name.text}", "copy")
    file = library.find(name.text.strip("\"'"), copy.position.file)
    if file is None:
        fail(name.position, f"there is no copybook {name.text}; say where they are with -I FOLDER", "copy")
    at += 1
    if _at(tokens, at, copy).word in ("OF", "IN"):
        at += 2
    if _at(tokens, at, copy).word == "SUPPRESS":
        at += 1
    pairs: list[tuple[list[str], str]] = []
    if _at(tokens, at, copy).word == "REPLACING":
        at += 1
        while _at(tokens, at, copy).kind != "period":
            old, at = _operand(tokens, at, copy)
            if _at(tokens, at, copy).word != "BY":
                fail(tokens[at].position, f"BY is expected, not {tokens[at].text}", "copy")
            new, at = _operand(tokens, at + 1, copy)
            pairs.append(([token.text.upper() for token in old], _text(new)))
    if _at(tokens, at, copy).kind != "period":
        fail(tokens[at].position, f"a period is expected at the end of COPY, not {tokens[at].text}", "copy")
    lines = read_lines(read_source(file), str(file), library.layout, library.cards)
    return at, expanded(_replaced(lines, pairs), library, depth + 1)


def _at(tokens: Sequence[Token], at: int, begun: Token) -> Token:
    if at >= len(tokens):
        fail(begun.position, f"the text ends within {begun.text}", "copy")
    return tokens[at]


def _operand(tokens: Sequence[Token], at: int, copy: Token) -> tuple[list[Token], int]:
    """Pseudo-text between ``==``, or one word or literal."""
    if _at(tokens, at, copy).kind != "pseudo":
        return [tokens[at]], at + 1
    end = at + 1
    while _at(tokens, end, copy).kind != "pseudo":
        end += 1
    return list(tokens[at + 1 : end]), end + 1


def _text(tokens: Sequence[Token]) -> str:
    """Tokens as written, line ends as blanks."""
    parts: list[str] = []
    before: Token | None = None
    for token in tokens:
        if before is not None:
            parts.append(" " * (token.start - before.end) if token.at == before.at else " ")
        parts.append(token.text)
        before = token
    return "".join(parts)


def _replaced(lines: list[Line], pairs: Sequence[tuple[list[str], str]]) -> list[Line]:
    tokens, edits, at = scan(lines), Edits(), 0
    while at < len(tokens):
        for old, new in pairs:
            if old and [token.text.upper() for token in tokens[at : at + len(old)]] == old:
                edits.replace(tokens[at : at + len(old)], new)
                at += len(old) - 1
                break
        at += 1
    return [line for made in edits.applied(lines) for line in made]


def read_source(file: Path) -> str:
    """The text of a program. Old ones are not UTF-8: their bytes are preserved."""
    data = file.read_bytes()
    if len(data) > COBOL_SOURCE_BYTES_MAX:
        fail(Position(str(file), 1), f"the file has more than {COBOL_SOURCE_BYTES_MAX} bytes", "size")
    return data.decode("utf-8", "surrogateescape").replace("\x1a", "")

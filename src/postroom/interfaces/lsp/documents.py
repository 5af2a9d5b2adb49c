"""Symbols and problems of a definition file while it is edited, by the parsers that load it.

A file may need others of its folder: a schema, a table, queues of another file. So it is parsed in a temporary folder
with links to all of them, and if that is not enough, in a room that has loaded them.
"""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from postroom.engine.language import Symbol
from postroom.errors import DefinitionError, PostroomError
from postroom.model.definitions import Position, Problem
from postroom.room import loading
from postroom.room import open as open_room
from postroom.room.languages import languages

_TRIES_MAX = 10  # readings of a file that never could be read, each without more of its lines
_WORD = re.compile(r"[\w.-]+")


@dataclass
class Document:
    """One file that is open in an editor."""

    path: Path
    text: str
    symbols: list[Symbol] = field(default_factory=list)  # as of the last time that it could be read

    def word(self, line: int, character: int) -> str | None:
        """The name at a position; lines and characters count from 0, as in the protocol."""
        lines = self.text.split("\n")
        if line >= len(lines):
            return None
        return next(
            (match.group() for match in _WORD.finditer(lines[line]) if match.start() <= character <= match.end()), None
        )

    def problems(self) -> list[Problem]:
        """Its current problems; updates its symbols if it can be parsed."""
        with tempfile.TemporaryDirectory(prefix="postroom-lsp-") as name:
            own = self._linked(Path(name))
            try:
                sources = loading.read([own])
                self.symbols = sources.symbols()
                sources.check(None)
            except DefinitionError as error:
                others = [own.parent / sibling.name for sibling in self._siblings()]
                found = _in_a_room(own, others) if others else _problems(error, own)
                if not self.symbols:
                    self.symbols = self._readable(own, error)
                return found
        return []

    def _readable(self, own: Path, error: DefinitionError) -> list[Symbol]:
        """What a file defines that never could be read as a whole: without the lines that have problems."""
        lines = self.text.split("\n")
        for _ in range(_TRIES_MAX):
            places = {problem.position.line - 1 for problem in _problems(error, own)}
            wrong = [place for place in places if 0 <= place < len(lines) and lines[place].strip()]
            for place in wrong:
                lines[place] = ""
            if not wrong:
                break
            own.write_text("\n".join(lines), encoding="utf-8", errors="surrogatepass")
            try:
                return loading.read([own]).symbols()
            except DefinitionError as next_error:
                error = next_error
        return []

    def defined(self, name: str) -> list[Symbol]:
        """Where a name is defined: here, or in another file of the folder."""
        return [symbol for symbol in self.known() if symbol.name == name]

    def known(self) -> list[Symbol]:
        """All that this file and the others of its folder define."""
        symbols = list(self.symbols)
        for other in self._siblings():
            try:
                symbols += loading.read([other]).symbols()
            except PostroomError:  # it has problems of its own, which are shown where it is open
                continue
        return symbols

    def _siblings(self) -> list[Path]:
        suffixes = {language.suffix for language in languages()}
        if not self.path.parent.is_dir():
            return []
        return sorted(file for file in self.path.parent.iterdir() if file.suffix in suffixes and file != self.path)

    def _linked(self, folder: Path) -> Path:
        """The edited text as a file, in a folder with links to its neighbours."""
        if self.path.parent.is_dir():
            for file in self.path.parent.iterdir():
                if file.name != self.path.name and file.is_file():
                    (folder / file.name).symlink_to(file)
        own = folder / self.path.name
        own.write_text(self.text, encoding="utf-8", errors="surrogatepass")
        return own


def _in_a_room(own: Path, others: list[Path]) -> list[Problem]:
    """The problems of a file in a room that has the definitions of its neighbours."""
    with open_room(own.parent / ".room.db") as room:
        for other in others:
            with suppress(PostroomError):  # it has problems of its own, or needs this one
                room.load(other)
        try:
            room.definitions.check(own)
        except DefinitionError as error:
            return _problems(error, own)
    return []


def _problems(error: DefinitionError, file: Path) -> list[Problem]:
    told = error.facts.get("problems")
    if told:
        return [problem for problem in told if problem.position.file == str(file)]
    where = re.match(r".*:([0-9]+):([0-9]+)$", str(error.facts.get("where")))
    place = Position(str(file), int(where[1]), int(where[2])) if where else Position(str(file), 1)
    return [Problem(place, str(error).replace(f"{file.parent}{os.sep}", ""), error.code)]

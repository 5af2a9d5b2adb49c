"""Definitions by version: what was in force when, and who changed it. Nothing is overwritten."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import PurePath
from typing import Any

from postroom.errors import StoreCorrupt
from postroom.model.definitions import Definition, Position
from postroom.store.kernel.journal import JournaledTable
from postroom.store.kernel.session import Row

#: The kind of definitions that are a room's master data: rules read them, and so do the tables of flows.
COLLECTION = "collection"
#: The kind of what flow graphs consist of.
FLOW = "flow"
#: Of stations; who only asks whether there are any need not know how they are read.
PROCEDURE = "procedure"
COUNTER = "counter"

_VERSION = "SELECT coalesce(max(version), 0) FROM versions"
_NEW_VERSION = "INSERT INTO versions (version, at, actor, note) VALUES (?, ?, ?, ?)"
_INSERT = """
INSERT INTO definitions (kind, name, body, file, line, col, since, born, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_END = "UPDATE definitions SET until = ? WHERE id = ?"
_COLUMNS = "SELECT id, kind, name, body, file, line, col, coalesce(born, since), since, digest FROM definitions "
_CURRENT = _COLUMNS + "WHERE kind = ? AND since <= ? AND (until IS NULL OR until > ?) ORDER BY id"
_ALL = _COLUMNS + "WHERE until IS NULL ORDER BY id"
_NAMED = _COLUMNS + "WHERE kind = ? AND name = ? AND until IS NULL"
_HISTORY = _COLUMNS + "WHERE kind = ? AND name = ? ORDER BY id"
_DIGESTS = _COLUMNS + "ORDER BY id"
_VERSIONS = "SELECT version, at, actor FROM versions ORDER BY version"
_LAST_VERSIONS = "SELECT version, at, actor, note FROM versions ORDER BY version DESC LIMIT ?"


class Definitions(JournaledTable):
    changing = False  # whether this transaction has made a version, which may never be committed

    def lock(self) -> None:
        """Lock definitions and queues against other changes."""
        self._session.lock_counter("catalog")

    def share(self) -> None:
        """Share a lock against changes of definitions until the commit."""
        self._session.share_counter("catalog")

    def version(self) -> int:
        return self._session.number(_VERSION)

    def of_kind(self, kind: str, version: int | None = None) -> list[Definition]:
        """The definitions of one kind in order, as of a version (by default the newest)."""
        return [definition for _, definition in self._rows(kind, version)]

    def all(self) -> list[Definition]:
        """Everything in force, in the order of definition."""
        return [definition for _, definition in map(_read, self._session.rows(_ALL))]

    def history(self, kind: str, name: str) -> list[Definition]:
        """All versions of a definition, oldest first."""
        return [definition for _, definition in map(_read, self._session.rows(_HISTORY, (kind, name)))]

    def unsound(self) -> list[str]:
        """Definitions that do not match their digest, in any version."""
        rows = self._session.rows(_DIGESTS)
        return [f"{row[1]!a} {row[2]!a} of version {row[8]}" for row in rows if not _is_sound(row)]

    def versions(self) -> list[tuple[int, int, str]]:
        """Every version: number, time, and user."""
        return [(row[0], row[1], row[2]) for row in self._session.rows(_VERSIONS)]

    def last_versions(self, most: int) -> list[tuple[int, int, str, list[str]]]:
        """The newest versions, newest first: number, time, user, and loaded files."""
        rows = self._session.rows(_LAST_VERSIONS, (most,))
        return [(row[0], row[1], row[2], list(json.loads(row[3] or "{}").get("files", ()))) for row in rows]

    def replace(self, kind: str, wanted: Sequence[Definition], note: Mapping[str, Any]) -> int:
        """Make ``wanted`` all there is of a kind, under a new version; returns the version in force.

        If nothing differs there is no new version, so a repeated load is harmless.
        """
        self.lock()
        return self._change(kind, self._rows(kind, None), wanted, note)

    def define(self, definition: Definition, note: Mapping[str, Any]) -> int:
        """Add one definition, replacing the one of its kind and name."""
        self.lock()
        same = [row for row in self._rows(definition.kind, None) if row[1].name == definition.name]
        return self._change(definition.kind, same, [definition], note)

    def change(self, kind: str, ended: Sequence[str], begun: Sequence[Definition], note: Mapping[str, Any]) -> int:
        """End some definitions of a kind and add others, under a new version; the rest stays."""
        self.lock()
        names = dict.fromkeys([*ended, *(definition.name for definition in begun)])
        answers = self._session.each(_NAMED, [(kind, name) for name in names])
        return self._change(kind, [_read(row) for rows in answers for row in rows], begun, note)

    def _change(
        self,
        kind: str,
        present: Sequence[tuple[int, Definition]],
        wanted: Sequence[Definition],
        note: Mapping[str, Any],
    ) -> int:
        """Replace ``present``, which was read under the lock."""
        version = self.version()
        if [_essence(old) for _, old in present] == [_essence(new) for new in wanted]:
            return version
        version += 1
        self.changing = True
        detail = json.dumps(note, ensure_ascii=False)
        self._session.run(_NEW_VERSION, (version, self._session.now, self._journal.actor, detail))
        self._session.many(_END, [(version, id) for id, _ in present])
        born = {(old.kind, old.name, json.dumps(old.body, sort_keys=True)): old.since for _, old in present}
        self._session.many(_INSERT, [_row(definition, version, born) for definition in wanted])
        self._journal.add("load", detail={"version": version, "kind": kind, **note})
        return version

    def _rows(self, kind: str, version: int | None) -> list[tuple[int, Definition]]:
        at = self.version() if version is None else version
        return [_read(row) for row in self._session.rows(_CURRENT, (kind, at, at))]


def _is_sound(row: Row) -> bool:
    """Whether a definition matches its digest; True for one without a digest."""
    _, kind, name, body, file, line, column, born, since, digest = row
    try:
        expected = _digest(kind, name, body, file, line, column, since, born)
    except UnicodeEncodeError:
        return False
    return digest is None or (isinstance(digest, bytes) and digest == expected)


def _digest(*parts: Any) -> bytes:
    return blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest()


def _read(row: Row) -> tuple[int, Definition]:
    id, kind, name, body, file, line, column, since, *_ = row
    if not _is_sound(row):
        why = f"the definition of {kind!a} {name!a} does not match its hash"
        raise StoreCorrupt(why=why)
    position = None if file is None else _public(Position(file, line, column))
    return id, Definition(kind, name, json.loads(body), position, since)


def _essence(definition: Definition) -> tuple[str, str, Mapping[str, Any], Position | None]:
    return definition.kind, definition.name, definition.body, definition.position and _public(definition.position)


def _public(place: Position) -> Position:
    """A place without its folder, which is private to whoever loaded the file."""
    return replace(place, file=PurePath(place.file).name)


def _row(definition: Definition, version: int, born: Mapping[tuple[str, str, str], int]) -> tuple[Any, ...]:
    place = definition.position and _public(definition.position)
    same = (definition.kind, definition.name, json.dumps(definition.body, sort_keys=True))
    values = (
        definition.kind,
        definition.name,
        json.dumps(definition.body, ensure_ascii=False, sort_keys=True),
        place.file if place else None,
        place.line if place else None,
        place.column if place else None,
        version,
        born.get(same, version),
    )
    return (*values, _digest(*values))

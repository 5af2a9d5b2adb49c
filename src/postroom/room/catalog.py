"""The catalog of a room: everything that is defined there, whatever its language."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from postroom.model.moment import to_datetime, to_iso
from postroom.store.kernel.transaction import Transaction


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One current definition."""

    what: str
    name: str
    where: str | None
    version: int
    since: str
    by: str
    definition: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "name": self.name,
            "where": self.where,
            "version": self.version,
            "since": self.since,
            "by": self.by,
            "definition": self.definition,
        }


@dataclass(frozen=True, slots=True)
class CatalogVersion:
    """A version of the definitions: when, by whom, and from which files."""

    version: int
    since: str
    by: str
    files: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {"version": self.version, "since": self.since, "by": self.by, "files": list(self.files)}


def versions(tx: Transaction, most: int) -> list[CatalogVersion]:
    """The newest versions, newest first."""
    last = tx.definitions.last_versions(most)
    return [CatalogVersion(version, to_iso(to_datetime(at)), by, tuple(files)) for version, at, by, files in last]


def catalog(tx: Transaction) -> list[CatalogEntry]:
    """Everything that is defined, in the order of definition."""
    versions = {version: (at, actor) for version, at, actor in tx.definitions.versions()}
    entries = []
    for definition in tx.definitions.all():
        what = definition.body.get("what") or definition.kind.replace("-", " ")
        at, actor = versions[definition.since]
        entries.append(
            CatalogEntry(
                what,
                definition.name.removeprefix(f"{what} "),
                str(definition.position) if definition.position else None,
                definition.since,
                to_iso(to_datetime(at)),
                actor,
                _shown(dict(definition.body)),
            )
        )
    return entries


def _shown(body: dict[str, Any]) -> dict[str, Any]:
    """A definition without empty parts, and with master data only by size."""
    if "documents" in body:
        body = {"files": body.get("files", []), "documents": len(body["documents"])}
    if "rows" in body:
        body["rows"] = len(body["rows"])
    return {name: value for name, value in body.items() if value not in (None, [], False) and name != "schema_text"}

"""Definitions: what users wrote in a file, with the place where they wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from postroom.errors import DefinitionError
from postroom.model.spelling import close, written


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a source text; lines and columns count from 1."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule of a language: where, what, and the rule's name."""

    position: Position
    what: str
    rule: str

    def __str__(self) -> str:
        return f"{self.position}: {self.what} [{self.rule}]"


def refuse(kind: type[DefinitionError], problems: Sequence[Problem]) -> NoReturn:
    """Raise the first problem by position; the error carries all."""
    first, *others = sorted(problems, key=lambda problem: problem.position)
    more = f" (and {len(others)} more: postroom load --check lists them)" if others else ""
    error = kind(where=str(first.position), what=first.what, rule=first.rule, more=more)
    error.facts["problems"] = (first, *others)
    raise error


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint with similar names."""
    meant = close(name, known)
    return f"; did you mean {written(meant[0])}?" if meant else ""


@dataclass(frozen=True, slots=True)
class Definition:
    """One named thing in the catalog. ``body`` is plain JSON, so that any version can be read back."""

    kind: str
    name: str
    body: Mapping[str, Any] = field(default_factory=dict)
    position: Position | None = None
    since: int = 0


_LISTS = ("added", "kept", "removed", "changed", "passwords")


@dataclass(frozen=True, slots=True)
class Loaded:
    """The changes of a load: queues of a description by their physical names, others with their kind."""

    version: int
    added: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    passwords: tuple[str, ...] = ()  # of which levels the password is another, or no more
    status: str = "00"

    def then(self, later: Loaded) -> Loaded:
        """Two loads of one transaction as one."""
        lists = {name: getattr(self, name) + getattr(later, name) for name in _LISTS}
        return Loaded(max(self.version, later.version), **lists)

    def as_dict(self) -> dict[str, Any]:
        lists = {name: list(getattr(self, name)) for name in sorted(_LISTS)}
        return {"status": self.status, "version": self.version, **lists}


def compared(version: int, before: Mapping[str, Any], after: Mapping[str, Any]) -> Loaded:
    """The changes of a load, from the definitions before and after it."""
    same = [name for name in after if name in before and before[name] == after[name]]
    return Loaded(
        version,
        added=tuple(name for name in after if name not in before),
        kept=tuple(same),
        removed=tuple(name for name in before if name not in after),
        changed=tuple(name for name in after if name in before and name not in same),
    )

"""Definitions: what users wrote in a file, with the place where they wrote it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from postroom.errors import DefinitionError


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
    """Raise the first problem in the text; the error carries them all."""
    first, *others = sorted(problems, key=lambda problem: problem.position)
    more = f" (and {len(others)} more: postroom load --check lists them)" if others else ""
    error = kind(where=str(first.position), what=first.what, rule=first.rule, more=more)
    error.facts["problems"] = (first, *others)
    raise error


@dataclass(frozen=True, slots=True)
class Definition:
    """One named thing in the catalog. ``body`` is plain JSON, so that any version can be read back."""

    kind: str
    name: str
    body: Mapping[str, Any] = field(default_factory=dict)
    position: Position | None = None
    since: int = 0

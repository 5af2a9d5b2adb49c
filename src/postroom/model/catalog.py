"""Definitions: what users wrote in a file, with the place where they wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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


@dataclass(frozen=True, slots=True)
class Definition:
    """One named thing in the catalog. ``body`` is plain JSON, so that any version can be read back."""

    kind: str
    name: str
    body: Mapping[str, Any] = field(default_factory=dict)
    position: Position | None = None
    since: int = 0

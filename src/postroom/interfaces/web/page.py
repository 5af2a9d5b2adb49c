"""A page: a row with its path, the right that it needs, its template and what it does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

V = TypeVar("V")  # what a page gets: a visit


@dataclass(frozen=True)
class Goto:
    """Another page, and what is said there once."""

    address: str
    notice: str | None = None


@dataclass(frozen=True)
class Again:
    """The same page with what is wrong in it."""

    context: Mapping[str, Any]
    status: int = 422


@dataclass(frozen=True)
class File:
    """Something to be kept, not shown."""

    name: str
    media_type: str
    content: bytes


Shown = Mapping[str, Any] | Again | Goto | File
Done = Goto | Again | File


@dataclass(frozen=True)
class Page(Generic[V]):
    """``right`` is the verb of a grant, ``of`` the part of the path that names its object; None means everything.

    A page without a right is for whoever has signed in. ``actions`` are what its buttons do: the button's name is
    ``do``, its value the action. ``label`` puts it into the navigation; ``{station}`` is there the visitor's station.
    """

    path: str
    template: str
    show: Callable[[V], Shown]
    right: str | None = None
    of: str | None = None
    actions: Mapping[str, Callable[[V], Done]] = field(default_factory=dict)
    label: str | None = None
    group: str = "office"

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """``{name}`` is one part of the path, ``{name...}`` all that is left of it."""
        text = re.escape(self.path)
        text = re.sub(r"\\\{(\w+)\\\.\\\.\\\.\\\}", r"(?P<\1>.+)", text)
        return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", text))

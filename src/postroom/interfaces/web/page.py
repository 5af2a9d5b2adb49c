"""A page: path, required right, template and actions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

V = TypeVar("V")  # what a page gets: a visit


@dataclass(frozen=True)
class Undo:
    """The way back from what was done: a button beside the notice, until something else is done.

    It sends the fields to a page as its form would, so the right is checked there. With no fields it is a link.
    ``places`` are those where messages must still be, by their keys.
    """

    label: str
    address: str
    fields: Sequence[tuple[str, str]] = ()
    places: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Notice:
    """What was done before; seen again if there is a way back."""

    text: str
    undo: Undo | None = None
    is_new: bool = True


@dataclass(frozen=True)
class Goto:
    """Redirect to another page, with a notice shown once, or until something else is done if there is a way back."""

    address: str
    notice: str | None = None
    undo: Undo | None = None


@dataclass(frozen=True)
class Again:
    """Show the same page with errors."""

    context: Mapping[str, Any]
    status: int = 422


@dataclass(frozen=True)
class File:
    """A file to download."""

    name: str
    media_type: str
    content: bytes


Shown = Mapping[str, Any] | Again | Goto | File
Done = Goto | Again | File


@dataclass(frozen=True)
class Page(Generic[V]):
    """``right`` is the verb of a grant, ``of`` the part of the path that names its object; None means everything.

    A page without a right is for every signed-in user. ``actions`` are called by buttons: the button's name is ``do``,
    its value the action. ``label`` puts it into the navigation, where ``{station}`` is the user's station.
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
        """A regular expression for the path: ``{name}`` is one part, ``{name...}`` all the rest."""
        text = re.escape(self.path)
        text = re.sub(r"\\\{(\w+)\\\.\\\.\\\.\\\}", r"(?P<\1>.+)", text)
        return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", text))

"""What a message of a station has with it besides its body, in its properties.

``form`` is the version of the form that it was made with, ``from`` the station that sent it last. ``depth`` counts the
procedures that have handled it one after another with nothing new from a person; ``handled`` are those that have left
it where it is, and ``due`` is when one of them will ship it on, unless someone moves it or writes on it before.
``sphere`` is the sphere that it belongs to. ``mail`` is that a procedure has brought it in from the mailbox: until a
person writes on it, it comes from there to all procedures.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NamedTuple

from postroom.model.message import properties_text


class Marks(NamedTuple):
    form: int
    sender: str | None = None
    depth: int = 0
    handled: tuple[str, ...] = ()
    due: int = 0  # when a procedure will ship it, if nobody moves it or writes on it before
    sphere: str | None = None  # that it was sent in, or what it was made of
    fetched: bool = False  # by a procedure, out of the mailbox


@lru_cache(maxsize=10_000)
def marks(properties: str) -> Marks:
    said: dict[str, Any] = json.loads(properties)
    handled = tuple(str(said.get("handled", "")).split())
    depth, due = int(said.get("depth", 0)), int(said.get("due", 0))
    return Marks(int(said.get("form", 0)), said.get("from"), depth, handled, due, said.get("sphere"), "mail" in said)


@lru_cache(maxsize=10_000)
def properties(marks: Marks) -> str:
    said: dict[str, Any] = {"form": marks.form}
    more: dict[str, Any] = {
        "from": marks.sender,
        "depth": marks.depth,
        "handled": " ".join(marks.handled),
        "due": marks.due,
    }
    more |= {"sphere": marks.sphere, "mail": marks.fetched}
    said |= {name: value for name, value in more.items() if value}
    return properties_text(said)


def sent(before: str, sender: str, depth: int = 0) -> str:
    """The properties of a message that is shipped: by a person, or by a procedure, which is one of so many in a row."""
    known = marks(before)
    return properties(Marks(known.form, sender, depth, sphere=known.sphere))


def fetched(before: str) -> str:
    """The properties of mail that a procedure has brought in."""
    return properties(marks(before)._replace(fetched=True))


def touched(before: str) -> str:
    """The properties of a message that a person has written on."""
    known = marks(before)
    return properties(Marks(known.form, known.sender, sphere=known.sphere))

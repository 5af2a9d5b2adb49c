"""What a message of a station carries besides its body, stored in its properties."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import NamedTuple

from postroom.model.message import properties_text


class Postmarks(NamedTuple):
    form: int  # the version of the form that it was made with
    sender: str | None = None  # the station that shipped it last
    depth: int = 0  # how many procedures have handled it since a person did
    handled: tuple[str, ...] = ()  # the procedures that have left it where it is
    due: int = 0  # when a procedure will ship it, unless someone moves or edits it before
    sphere: str | None = None  # the sphere that it belongs to
    fetched: bool = False  # a procedure has got it out of the mailbox, and no person has edited it since


@lru_cache(maxsize=10_000)
def postmarks(properties: str) -> Postmarks:
    get = json.loads(properties).get
    handled = tuple(str(get("handled", "")).split())
    depth, due = int(get("depth", 0)), int(get("due", 0))
    return Postmarks(int(get("form", 0)), get("from"), depth, handled, due, get("sphere"), get("mail") is not None)


@lru_cache(maxsize=10_000)
def properties(given: Postmarks) -> str:
    _, sender, depth, handled, due, sphere, fetched = given
    more = {"from": sender, "depth": depth, "handled": " ".join(handled), "due": due, "sphere": sphere, "mail": fetched}
    return properties_text({"form": given.form, **{name: value for name, value in more.items() if value}})


def sent(before: str, sender: str, depth: int = 0) -> str:
    """The properties of a message that is shipped, by a person or as the ``depth``-th procedure in a row."""
    known = postmarks(before)
    return properties(Postmarks(known.form, sender, depth, sphere=known.sphere))


def fetched(before: str) -> str:
    """The properties of mail that a procedure has got."""
    return properties(postmarks(before)._replace(fetched=True))


def touched(before: str) -> str:
    """The properties of a message that a person has edited."""
    known = postmarks(before)
    return properties(Postmarks(known.form, known.sender, sphere=known.sphere))

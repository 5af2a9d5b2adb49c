"""Opens a room: a local file or database, or one behind a server."""

from __future__ import annotations

import os

from postroom.errors import ArgumentInvalid
from postroom.model.moment import Clock, system_clock
from postroom.room import Postroom
from postroom.room.opening import open as open_here
from postroom.room.opening import resolved


def is_served(url: str) -> bool:
    """Whether a URL is that of a server."""
    return url.startswith(("http://", "https://"))


def open(
    url: str | os.PathLike[str] | None = None,
    *,
    actor: str | None = None,
    owner: str | None = None,
    create: bool = True,
    clock: Clock = system_clock,
    broker: str | None = None,
    token: str | None = None,
) -> Postroom:
    """Open a room: a SQLite path, a PostgreSQL URL, or the URL of a server; by default ``POSTROOM_URL``, else
    ``./postroom.db``.

    ``actor`` is the name that the journal shows (by default the login name). ``owner`` names the process that locks
    belong to, by default this one; such locks end with the room. ``create=False`` refuses to create a new room.
    ``broker`` is the name for where a client is connected, in meta-spaces (by default the machine's).

    A server (``https://host:7600``) is shown a ``token``, by default that of ``POSTROOM_TOKEN``; it says who acts.
    """
    where = resolved(url)
    if not is_served(where):
        if token is not None:
            raise ArgumentInvalid(argument="token", why="only a server asks for one; this room is a file or a database")
        return open_here(where, actor=actor, owner=owner, create=create, clock=clock, broker=broker)
    if actor is not None or broker is not None or clock is not system_clock:
        raise ArgumentInvalid(argument="actor", why="a server knows who acts by the token; leave out actor and broker")
    from postroom.interfaces.http.client.remote import RemoteRoom  # half a second that a room of this machine needs not

    return RemoteRoom(where, token)

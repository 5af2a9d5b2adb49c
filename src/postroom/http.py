"""A room as an ASGI application, to mount in a server of yours.

``app = postroom.http.app(room)`` is mounted as any other; ``postroom serve`` is the same with a server around it.
"""

from __future__ import annotations

from postroom.interfaces.http.app import Interface
from postroom.room import Postroom


def app(room: Postroom) -> Interface:
    """An ASGI application on an open room. The caller closes the room after the last request."""
    return Interface(room)

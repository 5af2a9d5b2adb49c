"""A room as an ASGI application, to mount in a server of yours.

``app = postroom.http.app(room)`` is mounted as any other; ``postroom serve`` is the same with a server around it.
``problem`` answers an error in routes of your own as the server does.
"""

from __future__ import annotations

from postroom.errors import PostroomError
from postroom.interfaces.http.app import Interface
from postroom.interfaces.http.contract import problems
from postroom.room import Postroom


def app(room: Postroom) -> Interface:
    """An ASGI application on an open room. The caller closes the room after the last request."""
    return Interface(room)


def problem(error: PostroomError) -> tuple[int, bytes, dict[str, str]]:
    """The status, the body and the headers of the answer for an error: a problem document (RFC 9457)."""
    status, document = problems.problem(error)
    return status, document, {name.decode(): value.decode() for name, value in problems.headers_of(error)}

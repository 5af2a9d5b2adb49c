"""Parts of a server that others in the process share: commits, threads and rights."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from postroom.interfaces.http.access import Callers
from postroom.interfaces.http.handling.sends import Sends
from postroom.interfaces.http.waiting.events import Changes, Inside
from postroom.queues.verbs import Verbs
from postroom.room import Postroom


class Services(NamedTuple):
    """The shared parts; made when the server starts."""

    room: Postroom
    callers: Callers
    others: dict[str, Verbs]  # the verbs of callers by their names, for sends that cannot share a commit
    inside: Inside
    changes: Changes
    sends: Sends


class Beside(Protocol):
    """Another server of the same room."""

    async def start(self, services: Services) -> None:
        """Start listening; called in the serving event loop."""

    async def stop(self) -> None:
        """Finish running requests, and end."""

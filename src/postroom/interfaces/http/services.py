"""What a server has that others in the same process use, too: so that all of them share commits, threads and rights."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from postroom.interfaces.http.access import Callers
from postroom.interfaces.http.handling.sends import Sends
from postroom.interfaces.http.waiting.events import Changes, Inside
from postroom.queues.verbs import Verbs
from postroom.room import Postroom


class Services(NamedTuple):
    """Made when the server starts."""

    room: Postroom
    callers: Callers
    others: dict[str, Verbs]  # the verbs of callers by their names, for sends that cannot share a commit
    inside: Inside
    changes: Changes
    sends: Sends


class Beside(Protocol):
    """Something that serves the same room in another way."""

    async def start(self, services: Services) -> None:
        """Begin to listen; called in the loop that serves."""

    async def stop(self) -> None:
        """Let what is under way be finished, and end."""

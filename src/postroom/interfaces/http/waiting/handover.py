"""A message on its way to a client: it is received for good when it was written, and else back in its place."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from postroom.errors import OutputFailed, QueueFull, QueueHeld, QueueLocked
from postroom.queues.leases.leased import LeasedMessage
from postroom.room import Postroom

_WRITE_SECONDS = 60.0
Deliver = Callable[[Any], None]
#: May end while someone waits.
OBSTACLES = (QueueHeld, QueueLocked, QueueFull)


class HandOver:
    """``attempt`` is called in a thread, and may be called again while there is nothing to hand over.

    ``take`` is given a function that writes a result to the client, and raises if that is not possible.
    ``confirm`` raises if the client may no longer have it; it is asked before every attempt but the first.
    """

    def __init__(
        self,
        take: Callable[[Deliver], Any],
        gone: asyncio.Future[bool],
        write: Callable[[Any], Awaitable[None]],
        confirm: Callable[[], None],
    ) -> None:
        self.written = False
        self.outcome: Any = None  # of the last attempt
        self._confirm = confirm
        self._waited = False
        self._take = take
        self._gone = gone
        self._write = write
        self._loop = asyncio.get_running_loop()

    def attempt(self) -> None:
        if self._waited:
            self._confirm()
        self._waited = True
        try:
            self.outcome = self._take(self._deliver)
        except OBSTACLES as obstacle:
            self.outcome = obstacle

    def nothing(self) -> Any:
        """What is said if there was nothing to the end."""
        if isinstance(self.outcome, OBSTACLES):
            raise self.outcome
        return self.outcome

    def _deliver(self, result: Any) -> None:
        try:
            asyncio.run_coroutine_threadsafe(self._out(result), self._loop).result(_WRITE_SECONDS)
        except (OSError, TimeoutError) as error:
            message = getattr(result, "message", None)
            about = {} if message is None else {"key": message.key, "queue": message.queue}
            raise OutputFailed(**({"key": "", "queue": ""} | about), why=str(error)) from None

    async def _out(self, result: Any) -> None:
        if self._gone.done():
            raise OSError("the client has gone")
        self.written = True
        await self._write(result)


def leased(room: Postroom, arguments: dict[str, Any], result: Callable[[list[LeasedMessage]], Any]) -> Any:
    """Lease messages for a client: who ends a lease shows its number. What cannot be written is given back."""

    def take(deliver: Deliver) -> Any:
        options = {"lease": True, "count": 1} | {name: value for name, value in arguments.items() if name != "queue"}
        messages = room.consumers.receive_many(*arguments["queue"], detached=True, **options)
        if messages:
            try:
                deliver(result(messages))
            except OutputFailed:
                for message in messages:
                    message.release()
                raise
        return result(messages)

    return take

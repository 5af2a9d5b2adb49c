"""Delivery of a message to a client: the receive is committed after the write, and rolled back if it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from postroom.errors import OutputFailed, QueueFull, QueueHeld, QueueLocked
from postroom.queues.leases.leased import LeasedMessage
from postroom.room import Postroom

_WRITE_SECONDS = 10.0  # our server takes an answer at once; another one may wait for its client
_LOOP_SECONDS = 60.0
Deliver = Callable[[Any], None]
#: May end while someone waits.
OBSTACLES = (QueueHeld, QueueLocked, QueueFull)


class HandOver:
    """``attempt`` runs in a thread, repeatedly while there is nothing to deliver.

    ``take`` gets a function that writes the result to the client, and raises if that fails. ``confirm`` raises if the
    client has lost the right; it is called before every attempt but the first.
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
        """The response if nothing came."""
        if isinstance(self.outcome, OBSTACLES):
            raise self.outcome
        return self.outcome

    def _deliver(self, result: Any) -> None:
        try:
            asyncio.run_coroutine_threadsafe(self._out(result), self._loop).result(_LOOP_SECONDS)
        except (OSError, TimeoutError) as error:
            message = getattr(result, "message", None)
            about = {} if message is None else {"key": message.key, "queue": message.queue}
            raise OutputFailed(**({"key": "", "queue": ""} | about), why=str(error)) from None

    async def _out(self, result: Any) -> None:
        if self._gone.done():
            raise OSError("the client has gone")
        self.written = True
        async with asyncio.timeout(_WRITE_SECONDS):
            await self._write(result)


def leased(room: Postroom, arguments: dict[str, Any], result: Callable[[list[LeasedMessage]], Any]) -> Any:
    """Lease messages for a client, which ends a lease by its number.

    If the response cannot be written, they are released.
    """

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

"""Live updates: a browser is notified that something has changed, and requests that part of the page again.

The notification does not say what, so rights are checked where it is shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import suppress
from functools import partial
from typing import Any

from postroom.errors import RequestInvalid, RightMissing
from postroom.interfaces.http.access import Caller, Callers
from postroom.interfaces.http.handling.responses import Send
from postroom.interfaces.http.waiting.events import Inside, Tail
from postroom.interfaces.web.headers import headers
from postroom.interfaces.web.sessions import Sessions
from postroom.interfaces.web.visit import Asked
from postroom.limits import LIVE_BEHIND_MAX
from postroom.room import Postroom
from postroom.stations.places.names import database, is_mailbox, mailbox
from postroom.store.kernel.journal import Event

_HERE = b": still here\n\n"
_END: Any = object()
ROOM = "room"


def _followed(topic: str, caller: Caller) -> set[str] | None:
    """The queues of a topic, which is a station, or None for the whole room; raises without the right."""
    if topic == ROOM:
        caller.identity.require("look", "*")
        return None
    kind, _, name = topic.partition(":")
    if kind != "station" or not name:
        raise RequestInvalid(where="topic", why="room, or station:NAME")
    caller.identity.require("work", name)
    return {database(name), mailbox(name)}


def _concerns(event: Event, queues: set[str] | None) -> bool:
    return queues is None or event.source in queues or event.target in queues


def _still(asked: Asked, sessions: Sessions, callers: Callers) -> bool:
    """Whether the session is valid and its user may still follow."""
    user = sessions.user(asked.session)
    try:
        if user is not None:
            _followed(asked.query.get("topic", ""), callers.named(user))
    except RightMissing:
        return False
    return user is not None


def newest(room: Postroom) -> int:
    """The newest journal number."""
    return room.store.read(lambda tx: tx.journal.newest())


def _seen(asked: Asked) -> int | None:
    """The last number that the page or browser has seen."""
    number = asked.head.get("last-event-id") or asked.query.get("seen")
    if number is not None and not (number.isascii() and number.isdigit() and len(number) < 19):
        raise RequestInvalid(where="seen", why="a number of the journal is expected")
    return None if number is None else int(number)


def _changed(seen: int) -> bytes:
    return b"id: %d\nevent: changed\ndata: 1\n\n" % seen


async def follow(
    asked: Asked,
    caller: Caller,
    callers: Callers,
    sessions: Sessions,
    tail: Tail,
    inside: Inside,
    receive: Any,
    send: Send,
    places: Collection[str] = (),
) -> None:
    """Server-sent events until the browser disconnects, its session ends or its right is revoked.

    ``places`` are where forms must stay for the way back that the page shows.
    """
    queues, seen = _followed(asked.query.get("topic", ""), caller), _seen(asked)
    if queues is not None:
        queues |= {place if is_mailbox(place) else database(place) for place in places}
    head = headers("text/event-stream", is_safe=asked.is_safe)
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": _HERE, "more_body": True})
    gone = asyncio.ensure_future(_disconnect(receive))
    last: int = await inside(partial(newest, caller.room))
    seen = last if seen is None else min(seen, last)
    if last - seen > LIVE_BEHIND_MAX:  # a page is made again once, however much has happened
        await send({"type": "http.response.body", "body": _changed(last), "more_body": True})
        seen = last
    events = tail.follow(seen)
    try:
        while (event := await _next_of(events, gone, queues)) is not _END:
            seen = seen if event is None else event.seq
            if not await inside(partial(_still, asked, sessions, callers)):
                break
            await send({"type": "http.response.body", "body": _changed(seen), "more_body": True})
    finally:
        gone.cancel()
        await events.aclose()  # type: ignore[attr-defined]  # it is a generator
    await send({"type": "http.response.body", "body": b""})


async def _next(events: AsyncIterator[Event | None]) -> Any:
    return await anext(events, _END)


async def _next_of(events: AsyncIterator[Event | None], gone: asyncio.Future[bool], queues: set[str] | None) -> Any:
    """The next event for some queues; None when it is time to check again."""
    while True:
        ahead: asyncio.Future[Any] = asyncio.ensure_future(_next(events))
        await asyncio.wait([ahead, gone], return_when="FIRST_COMPLETED")
        if gone.done():
            ahead.cancel()
            with suppress(asyncio.CancelledError):
                await ahead
            return _END
        event = ahead.result()
        if event is _END or event is None or _concerns(event, queues):
            return event


async def _disconnect(receive: Any) -> bool:
    while (await receive())["type"] != "http.disconnect":
        pass
    return True

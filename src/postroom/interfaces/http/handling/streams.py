"""Responses that are streams: event streams, JSON Lines, a backup, the heartbeat of a sphere."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from postroom.errors import PostroomError, RequestInvalid, RightMissing, TokenRefused
from postroom.interfaces.http.access import Caller
from postroom.interfaces.http.contract import problems
from postroom.interfaces.http.contract.answers import document_of
from postroom.interfaces.http.contract.operation import Need, group_of
from postroom.interfaces.http.handling import bulk, requests
from postroom.interfaces.http.handling.responses import SAFE, Send, as_json, wants_objects
from postroom.interfaces.http.waiting.events import Tail, written
from postroom.interfaces.http.waiting.held import HeldSpheres
from postroom.limits import FOLLOW_PING_SECONDS, HEARTBEAT_SECONDS
from postroom.queues.repeating import checked_key
from postroom.queues.tree.addressing import names_of, queues_even_retired
from postroom.room import Postroom
from postroom.store.kernel.journal import Event

log = logging.getLogger("postroom.http")
EVENTS, LINES, FILE = "text/event-stream", "application/jsonl", "application/vnd.sqlite3"
_PIECE = 256 * 1024
_WHOLE = {"GET": (LINES, FILE)}  # what goes on until all is told, whether or not something happens


@dataclass(frozen=True)
class Stream:
    """``name`` is the method of ``Streams``."""

    name: str
    method: str
    path: str
    need: Need
    media: str  # of its answer
    summary: str
    example: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(re.sub(r"\\\{(\w+)\\\}", group_of, re.escape(self.path)))


_QUEUE = {"queue": "orders"}
STREAMS: tuple[Stream, ...] = (
    Stream("journal", "GET", "/journal/follow", Need("look", None), EVENTS, "The journal, entry by entry as it grows."),
    Stream(
        "follow",
        "GET",
        "/queues/{queue}/follow",
        Need("look", "queue"),
        EVENTS,
        "The messages that arrive in a queue, which stay there.",
        _QUEUE,
    ),
    Stream(
        "space",
        "GET",
        "/spaces/{space}/follow",
        Need("subscribe", "space"),
        EVENTS,
        "The events that arrive in a space, which stay there.",
        {"space": "Trades"},
    ),
    Stream(
        "take_lines",
        "POST",
        "/queues/{queue}/lines",
        Need("send", "queue"),
        LINES,
        "Send the messages of JSON Lines; each line of the answer says how many are on disk.",
        _QUEUE,
    ),
    Stream(
        "give_lines",
        "GET",
        "/queues/{queue}/lines",
        Need("look", "queue"),
        LINES,
        "All unprocessed messages of a queue, those of where=SELECTOR, or with processed=true the processed ones.",
        _QUEUE,
    ),
    Stream("backup", "GET", "/backup", Need("operate", None), FILE, "A consistent, verified copy of the whole room."),
    Stream(
        "heartbeat",
        "GET",
        "/spheres/{sphere}/heartbeat",
        Need("sphere", None),
        EVENTS,
        "Signs of life of a sphere for as long as the connection is open; when it closes, the sphere is aborted.",
        {"sphere": "MINE"},
    ),
)


def find(method: str, path: str) -> tuple[Stream, dict[str, str]] | None:
    for stream in STREAMS:
        match = stream.pattern.fullmatch(path) if stream.method == method else None
        if match is not None:
            return stream, requests.named_in(match)
    return None


def arguments(named: Mapping[str, str]) -> dict[str, Any]:
    """The parameters of a path, by which rights are checked."""
    return {name: (value,) if name == "queue" else value for name, value in named.items()}


@dataclass(frozen=True)
class Asked:
    """A request for a stream."""

    named: dict[str, str]
    query: dict[str, str]
    headers: Mapping[str, str]
    authorization: str
    caller: Caller
    need: Need
    rights: int  # their version when they were looked at
    receive: Any
    send: Send

    async def piece(self, body: bytes) -> None:
        await self.send({"type": "http.response.body", "body": body, "more_body": True})


_TEXTS_KEPT = 32  # events whose text is kept for other followers


class Server(Protocol):
    """What streams need from the application."""

    room: Postroom
    tail: Tail
    spheres: HeldSpheres

    async def inside(self, work: Callable[[], Any]) -> Any: ...
    async def shared(self, what: Hashable, work: Callable[[], Any]) -> Any: ...
    async def confirm(self, authorization: str, rights: int, need: Need, arguments: Mapping[str, Any]) -> int: ...
    def departure(self, receive: Any) -> asyncio.Task[bool]: ...


class Streams:
    """The streams of a server."""

    def __init__(self, interface: Server) -> None:
        self._interface = interface
        self._room = interface.room
        self._texts: OrderedDict[int, asyncio.Future[bytes]] = OrderedDict()

    async def serve(self, stream: Stream, asked: Asked) -> None:
        """Start the response with the first chunk, so that an error gets a response of its own."""
        pieces = getattr(self, stream.name)(asked)
        begun = False
        gone = (
            asyncio.ensure_future(disconnect(asked.receive)) if stream.media in _WHOLE.get(stream.method, ()) else None
        )
        try:
            async for piece in pieces:
                if gone is not None and gone.done():  # nobody would read the rest
                    return
                if not begun:
                    begun = True
                    await self._begin(asked, stream)
                if piece:
                    await asked.piece(piece)
        except PostroomError as error:
            if not begun:
                raise
            if stream.media != LINES:  # the connection is closed before the end, so nobody takes it for the whole
                log.warning("%s of %s: %s", stream.name, asked.caller.name, error)
                return
            await asked.piece(b'{"error": ' + problems.problem(error)[1] + b"}\n")
        finally:
            if gone is not None:
                gone.cancel()
            await pieces.aclose()
        if not begun:
            await self._begin(asked, stream)
        await asked.send({"type": "http.response.body", "body": b""})

    async def _begin(self, asked: Asked, stream: Stream) -> None:
        headers = [(b"content-type", stream.media.encode()), *SAFE]
        await asked.send({"type": "http.response.start", "status": 200, "headers": headers})

    def _still(self, asked: Asked) -> bulk.Check:
        """A check that the right to a stream still holds, called before every chunk."""
        rights, named = asked.rights, arguments(asked.named)

        async def check() -> None:
            nonlocal rights
            rights = await self._interface.confirm(asked.authorization, rights, asked.need, named)

        return check

    # --- following ---

    def journal(self, asked: Asked) -> AsyncIterator[bytes]:
        return self._follow(asked, None)

    async def follow(self, asked: Asked) -> AsyncIterator[bytes]:
        queue = asked.named["queue"]
        names = await self._interface.shared(("names", queue), partial(self._queues, queue))
        async for piece in self._follow(asked, names):
            yield piece

    def _queues(self, queue: str) -> set[str]:
        """The names of the queues; raises if there are none."""
        return {match.name for match in self._room.store.read(lambda tx: queues_even_retired(tx, names_of((queue,))))}

    async def space(self, asked: Asked) -> AsyncIterator[bytes]:
        space = asked.named["space"]
        await self._interface.shared(("space", space), partial(self._room.flows._find_space, space))
        async for piece in self._follow(asked, {space}):
            yield piece

    async def _follow(self, asked: Asked, queues: set[str] | None) -> AsyncIterator[bytes]:
        """Events of the journal as they are committed; for queues, the arriving messages, which stay there.

        Ends when the right is revoked.
        """
        after = asked.headers.get("last-event-id")
        if after is not None and not (after.isascii() and after.isdigit() and len(after) < 19):
            raise RequestInvalid(where="Last-Event-ID", why="it is the id of an event")
        gone, check = self._interface.departure(asked.receive), self._still(asked)
        yield b""
        events = self._interface.tail.follow(None if after is None else int(after), gone)
        try:
            async for event in events:
                if gone.done():
                    break
                try:
                    await check()
                except (TokenRefused, RightMissing):
                    break
                text = await self._told(event, queues)
                if text is not None:
                    yield text
        finally:
            gone.cancel()
            await events.aclose()  # type: ignore[attr-defined]  # it is a generator

    async def _told(self, event: Event | None, queues: set[str] | None) -> bytes | None:
        if event is None or queues is None:
            return written(event)
        if event.key is None or event.target not in queues or event.verb == "take" or event.source == event.target:
            return None
        return await self._text(event)

    async def _text(self, event: Event) -> bytes:
        """The message of an event, read once for all followers."""
        text = self._texts.get(event.seq)
        if text is None:
            text = self._texts[event.seq] = asyncio.ensure_future(self._read(event))
            if len(self._texts) > _TEXTS_KEPT:
                self._texts.popitem(last=False)
        return await asyncio.shield(text)

    async def _read(self, event: Event) -> bytes:
        assert event.key is not None  # it tells of a message
        with suppress(PostroomError):  # it is gone already: what is known of it is told
            message = await self._interface.inside(partial(self._room.journal.show, event.key))
            return written(event, document_of(message))
        return written(event)

    # --- many lines ---

    def take_lines(self, asked: Asked) -> AsyncIterator[bytes]:
        caller, key = asked.caller, asked.headers.get("idempotency-key")
        known = None if key is None else checked_key(requests.key_text(key))
        target = bulk.Target(caller.room, caller.name, asked.named["queue"], known)
        return bulk.sent(target, asked.receive, self._interface.inside, self._still(asked))

    def give_lines(self, asked: Asked) -> AsyncIterator[bytes]:
        query = asked.query
        if query.keys() - {"processed", "where"} or query.get("processed", "false") not in ("true", "false"):
            raise RequestInvalid(where="query", why="only processed=true and where=SELECTOR are known")
        if "where" in query and query.get("processed") == "true":
            raise RequestInvalid(where="where", why="it chooses among unprocessed messages")
        room, name = asked.caller.room, asked.named["queue"]
        browse = partial(room.peek, name, where=query.get("where"))
        if query.get("processed") == "true":
            browse = partial(room.queues.history, name)
        return bulk.read(browse, self._interface.inside, self._still(asked), objects=wants_objects(asked.headers))

    # --- a backup ---

    async def backup(self, asked: Asked) -> AsyncIterator[bytes]:
        """The copy is made and verified before its first byte goes out."""
        inside, check = self._interface.inside, self._still(asked)
        with TemporaryDirectory(prefix="postroom-") as folder:
            file = Path(folder, "room.db")
            await inside(partial(self._room.operations.backup, file))
            with file.open("rb") as opened:
                while piece := await inside(partial(opened.read, _PIECE)):
                    await check()
                    yield piece

    # --- a sphere that lives as long as its owner's connection ---

    async def heartbeat(self, asked: Asked) -> AsyncIterator[bytes]:
        id = asked.named["sphere"]
        held = await self._interface.inside(
            partial(self._interface.spheres.find, asked.caller.room, asked.caller.name, id)
        )
        gone, check = self._interface.departure(asked.receive), self._still(asked)
        why = "the connection of its owner was closed"
        try:
            while not gone.done():
                await check()
                state = await self._interface.inside(held.heartbeat)
                yield b"event: heartbeat\ndata: " + as_json({"state": state}) + b"\n\n"
                if held.ended or state != "ACTIVE":
                    return
                await asyncio.wait([gone], timeout=min(held.seconds / 3, HEARTBEAT_SECONDS, FOLLOW_PING_SECONDS))
        except (TokenRefused, RightMissing) as refusal:
            why = f"its owner may not hold it any more: {refusal}"
        finally:
            gone.cancel()
            if not held.ended:
                held.let_go(why)


async def disconnect(receive: Any) -> bool:
    while (await receive())["type"] != "http.disconnect":
        pass
    return True

"""JSON Lines: many messages in one request. It is committed in parts, and each commit gives a line of the response."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from postroom.errors import RequestInvalid, RequestTooLarge
from postroom.interfaces.http.contract.answers import document_of
from postroom.interfaces.http.contract.kinds import OBJECT, TEXT
from postroom.interfaces.http.contract.objects import encoded
from postroom.interfaces.http.handling import requests
from postroom.interfaces.http.handling.responses import as_json
from postroom.interfaces.http.waiting.events import Inside
from postroom.limits import BULK_BYTES_MAX, BULK_LINES, PAGE_ROWS, REQUEST_BYTES_MAX
from postroom.model.message import Draft, Message
from postroom.queues.repeating import UsersKey
from postroom.room import Postroom

#: Raises if the right to what is streamed was taken back.
Check = Callable[[], Awaitable[None]]
_Line = tuple[Draft, bool]  # and whether its format is what it looks like
_KINDS = {"format": TEXT, "type": TEXT, "properties": OBJECT}
_KNOWN = {"body", *_KINDS}
#: What the lines of a queue say besides: they can be sent to another room as they are.
_TOLD = {"key", "queue", "created", "processed", "cause"}


class Target(NamedTuple):
    """The queue, caller and idempotency key of the lines; every part has a key derived from it."""

    room: Postroom
    caller: str
    queue: str
    key: str | None

    def commit(self, drafts: list[_Line], done: int) -> int:
        """Send the messages after the first ``done`` in one commit; returns how many are sent by then."""
        key = None if self.key is None else UsersKey.of(self.caller, self.key, f"{self.caller}//{self.key}//{done}")
        with self.room.store.acting(self.caller):
            unsaid = [unsaid for _, unsaid in drafts]
            self.room._parts.verbs.send_many((self.queue,), [draft for draft, _ in drafts], key, unsaid=unsaid)
        return done + len(drafts)


async def sent(target: Target, receive: Any, inside: Inside, check: Check) -> AsyncIterator[bytes]:
    """Send lines as they arrive, in batches; yields the progress after each commit.

    A refused line ends it: exactly what was reported is stored. A retry with the same key sends the rest.
    """
    done, number = 0, 0
    drafts: list[_Line] = []
    async for line in _split(receive):
        number += 1
        drafts.append(_draft(number, line))
        if len(drafts) == BULK_LINES:
            await check()
            done = await inside(partial(target.commit, drafts, done))
            yield _line({"status": "00", "message_count": done})
            drafts = []
    await check()
    if drafts:
        done = await inside(partial(target.commit, drafts, done))
    yield _line({"status": "00", "message_count": done, "done": True})


async def _split(receive: Any) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in requests.pieces(receive, BULK_BYTES_MAX):
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > REQUEST_BYTES_MAX:
            raise RequestTooLarge(limit=REQUEST_BYTES_MAX)
        for line in lines:
            if line.strip():
                yield line
    if rest.strip():
        yield rest


def _draft(number: int, line: bytes) -> _Line:
    try:
        record = requests.parsed(line)
    except RequestInvalid as error:
        raise RequestInvalid(where=f"line {number}", why=error.facts["why"]) from None
    if not isinstance(record, dict) or "body" not in record or set(record) - _KNOWN - _TOLD:
        raise RequestInvalid(where=f"line {number}", why=f"an object with body, and of {', '.join(sorted(_KNOWN))}")
    _check(number, record)
    body = requests.as_written(record, line.decode())["body"]
    form = record.get("format") or ("json" if isinstance(body, requests.JsonText) else None)
    draft = Draft.of(str(body), form, record.get("type"), record.get("properties"))
    return draft, record.get("format") is None


def _check(number: int, record: dict[str, Any]) -> None:
    for name, kind in _KINDS.items():
        if record.get(name) is not None:
            kind.checked(f"line {number}: {name}", record[name])


async def read(
    browse: Callable[[], Iterable[Message]], inside: Inside, check: Check, *, objects: bool = False
) -> AsyncIterator[bytes]:
    """Yield messages of a queue, page by page."""
    messages = iter(await inside(browse))
    shape = encoded if objects else document_of
    yield b""
    while page := await inside(partial(_page, messages)):
        await check()
        yield b"".join(_line(shape(message)) for message in page)


def _page(messages: Any) -> list[Message]:
    return list(islice(messages, PAGE_ROWS))


def _line(document: Any) -> bytes:
    return as_json(document) + b"\n"

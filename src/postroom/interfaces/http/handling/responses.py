"""Builds responses for ASGI."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from postroom.interfaces.http.contract.answers import Answer, Raw
from postroom.interfaces.http.contract.objects import MEDIA_TYPE as OBJECTS
from postroom.interfaces.http.contract.objects import encoded
from postroom.model.typed import plain

Send = Callable[[dict[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]
_JSON: Header = (b"content-type", b"application/json")
#: Of every answer: nobody guesses its type, or keeps a copy.
SAFE: tuple[Header, ...] = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))
_MARK = secrets.token_hex(16)  # stands for a text of JSON until the rest is written; nobody else knows it
_MARKED = re.compile(f'"{_MARK}([0-9]+)"')


def as_json(document: Any) -> bytes:
    """A document as JSON text; embedded JSON is kept unchanged."""
    raw: list[str] = []

    def mark(value: Any) -> Any:
        if not isinstance(value, Raw):
            return plain(value)
        raw.append(value.text)
        return f"{_MARK}{len(raw) - 1}"

    text = json.dumps(document, ensure_ascii=False, default=mark)
    if raw:
        text = _MARKED.sub(lambda match: raw[int(match[1])], text)
    return text.encode(errors="backslashreplace")


def wants_objects(headers: Mapping[str, str]) -> bool:
    """Whether the caller is the client of this package."""
    return OBJECTS in headers.get("accept", "")


def written(result: Any, answer: Answer, arguments: Mapping[str, Any], headers: Mapping[str, str]) -> bytes:
    """A result in the encoding that the caller wants."""
    if wants_objects(headers):
        return as_json({"status": "00", "result": encoded(result)})
    return as_json({"status": "00"} | answer.document(result, arguments))


async def answer(send: Send, status: int, body: bytes, more: list[Header] | None = None, *, ends: bool = True) -> None:
    """Send a response; without ``ends`` the caller has to end it."""
    headers = [_JSON, *SAFE]
    if ends:
        headers.append((b"content-length", str(len(body)).encode()))
    if more:
        named = {name for name, _ in more}
        headers = [header for header in headers if header[0] not in named] + more
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": not ends})


def without_body(send: Send) -> Send:
    """Send responses to HEAD: all but the body."""

    async def sent(part: dict[str, Any]) -> None:
        await send({**part, "body": b""} if part["type"] == "http.response.body" else part)

    return sent

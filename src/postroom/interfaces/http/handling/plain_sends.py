"""The fast path for plain sends: the caller has sent to this queue before, and uses no special options.

The result is the same as for other requests; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from postroom.errors import PostroomError
from postroom.interfaces.http.access import Caller, Callers
from postroom.interfaces.http.handling import requests, streams
from postroom.interfaces.http.handling.requests import MethodWrong
from postroom.interfaces.http.handling.responses import SAFE, Header, Send
from postroom.model.body import Format, check_text
from postroom.model.message import NO_PROPERTIES, Draft, looks_like
from postroom.queues.repeating import UsersKey
from postroom.queues.results import Sent
from postroom.queues.sending import Posting

SEND = "queues.send"
_PATH_CHARS_MAX = 200  # of a path whose queue is remembered
_BODY_DIGITS_MAX = 5  # of the length of a body; a longer one is read piece by piece
#: What makes a request unusual, if its head has it.
_UNUSUAL = frozenset({requests.ANY_KEY.encode(), b"traceparent", b"ce-specversion", b"expect", b"transfer-encoding"})
_ACCEPTED = frozenset({None, b"*/*", b"application/json"})
_CREATED: tuple[Header, ...] = ((b"content-type", b"application/json"), *SAFE)
_HEAD = b"HTTP/1.1 201 Created\r\n" + b"".join(b"%b: %b\r\n" % header for header in _CREATED)


class PlainSend(NamedTuple):
    """A send whose caller and queue are known and authorised."""

    caller: Caller
    queue: tuple[str, ...]
    receipt: str | None  # the idempotency key, under the caller's name

    def posting(self, body: bytes | bytearray) -> Posting | None:
        """What is sent, if the request has only a text body."""
        document = requests.parsed(bytes(body)) if body else None
        text = document.get("body") if isinstance(document, dict) and len(document) == 1 else None
        if not isinstance(text, str):
            return None
        check_text(text)
        name, unsaid = self.caller.identity.principal, looks_like(text) is not Format.TEXT
        return Posting(self.queue, Draft(text, "text", None, NO_PROPERTIES), self.receipt, None, name, unsaid)


def find(scope: Mapping[str, Any], path: str, callers: Callers) -> PlainSend | None:
    """The plain send of a request; None if it needs the general path."""
    if scope["method"] != "POST" or len(path) > _PATH_CHARS_MAX:
        return None
    queue = queue_of(path)
    head = dict(scope["headers"])
    if queue is None or not _UNUSUAL.isdisjoint(head) or head.get(b"accept") not in _ACCEPTED:
        return None
    length, media = head.get(b"content-length", b""), head.get(b"content-type", b"")
    if not 0 < len(length) <= _BODY_DIGITS_MAX or b"cloudevents" in media.lower():
        return None
    authorization = head.get(b"authorization", b"").decode("latin-1")
    caller = callers.known(authorization)
    if caller is None or not callers.was_allowed(authorization, "send", queue):
        return None
    key = head.get(b"idempotency-key")
    if key is None:
        return PlainSend(caller, queue, None)
    return PlainSend(caller, queue, UsersKey.of(caller.name, requests.key_text(key.decode("latin-1")))) if key else None


@lru_cache(1_000)
def queue_of(path: str) -> tuple[str, ...] | None:
    """The queue that a path sends to."""
    if streams.find("POST", path) is not None:
        return None
    try:
        operation, named = requests.route("POST", path)
    except (MethodWrong, PostroomError):
        return None
    return (named["queue"],) if operation.name == SEND else None


async def answer(send: Send, sent: Sent) -> None:
    """Respond with the key of the sent message, as an ASGI application."""
    body = _body(sent)
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": 201, "headers": [*_CREATED, length]})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def response(sent: Sent, *, keeps: bool) -> bytes:
    """The same response as bytes, for a connection that is kept or ends with it."""
    body = _body(sent)
    return b"%bcontent-length: %d\r\n%b\r\n%b" % (_HEAD, len(body), b"" if keeps else b"connection: close\r\n", body)


def _body(sent: Sent) -> bytes:
    return f'{{"status": "{sent.status}", "key": "{sent.key}"}}'.encode()

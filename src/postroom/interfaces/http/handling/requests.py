"""Parses requests: path, headers, a bounded body, and the arguments of the operation."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, unquote_to_bytes

from postroom.errors import JsonMalformed, RequestInvalid, RequestTooLarge, ResourceUnknown
from postroom.interfaces.http.contract.operation import Operation
from postroom.interfaces.http.contract.operations import OPERATIONS
from postroom.limits import REQUEST_BODY_SECONDS, REQUEST_BYTES_MAX
from postroom.model.body import parse_request

Receive = Any  # of ASGI
ANY_KEY = "postroom-key"  # of our clients: an idempotency key, in percents, that no header can have as it is
_BLANK = re.compile(r"[ \t\n\r]*")
_BY_FIRST: dict[str, list[Operation]] = {}
for _operation in OPERATIONS:
    _BY_FIRST.setdefault(_operation.path.split("/")[1], []).append(_operation)
#: The names that an operation knows, by where they are given.
_KNOWN = {
    (operation.method, operation.path, where): {
        parameter.name for parameter in operation.parameters if parameter.where == where
    }
    for operation in OPERATIONS
    for where in ("query", "body")
}


class MethodWrong(Exception):
    """The path exists for other methods only."""

    def __init__(self, allowed: list[str]) -> None:
        super().__init__()
        self.allowed = allowed


class Disconnected(Exception):
    """The client disconnected before the request was complete."""


def route(method: str, path: str) -> tuple[Operation, Mapping[str, str]]:
    """The operation of a request, and the parameters in its path."""
    return _known_route(method, path) if len(path) <= _PATH_KNOWN_MAX else _route(method, path)


def _route(method: str, path: str) -> tuple[Operation, Mapping[str, str]]:
    fitting = [
        (operation, match)
        for operation in _BY_FIRST.get(path[1:].partition("/")[0], ())
        if (match := operation.pattern.fullmatch(path)) is not None
    ]
    for operation, match in fitting:
        if operation.method == method:
            return operation, named_in(match)
    if fitting:
        raise MethodWrong(sorted({operation.method for operation, _ in fitting}))
    raise ResourceUnknown(method=method, path=path[:200])


def named_in(match: re.Match[str]) -> dict[str, str]:
    """What a path names. A slash or a percent sign within a name is in percents until then."""
    return {name: unquote(value) if "%" in value else value for name, value in match.groupdict().items()}


def path_of(scope: Mapping[str, Any]) -> str:
    """The path below the mount point, with slashes and percent signs that are within a name in percents."""
    path: str = scope["path"]
    raw: bytes = scope.get("raw_path") or b""
    if "%" in path or "\ufffd" in path or b"%2f" in raw or b"%2F" in raw:
        kept = _WITHIN.sub(lambda sign: b"%25" + sign[1], raw)  # it is in percents once more
        with suppress(UnicodeDecodeError):  # half of a surrogate pair is left to what takes the name
            path = unquote_to_bytes(kept).decode(errors="surrogatepass")
    return path.removeprefix(scope.get("root_path", "")) or "/"


def root_of(scope: Mapping[str, Any]) -> str:
    """The mount point as part of an address; empty if there is none."""
    root: str = scope.get("root_path", "")
    return quote(root) if root else ""


_WITHIN = re.compile(b"%(2[fF5])")
_PATH_KNOWN_MAX = 200  # characters of a path whose operation is remembered
_known_route = lru_cache(1_000)(_route)  # a refusal is not remembered


def head(scope: Mapping[str, Any]) -> dict[str, str]:
    """The headers by lower-case name; the last one if repeated."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def key_text(header: str) -> str:
    """An idempotency key decoded: clients send non-ASCII letters as UTF-8."""
    if header.isascii():
        return header
    try:
        return header.encode("latin-1").decode()
    except UnicodeError:
        return header


async def pieces(receive: Receive, limit: int) -> AsyncIterator[bytes]:
    """The body in chunks; raises if it is too large or arrives too slowly."""
    size, more = 0, True
    while more:
        message = await _in_time(receive())
        if message["type"] == "http.disconnect":
            raise Disconnected
        piece: bytes = message.get("body", b"")
        size += len(piece)
        if size > limit:
            raise RequestTooLarge(limit=limit)
        more = message.get("more_body", False)
        if piece:
            yield piece


async def whole(receive: Receive, headers: Mapping[str, str]) -> bytes:
    if int(headers.get("content-length") or 0) > REQUEST_BYTES_MAX:
        raise RequestTooLarge(limit=REQUEST_BYTES_MAX)
    parts = [piece async for piece in pieces(receive, REQUEST_BYTES_MAX)]
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def _in_time(reading: Awaitable[Any]) -> Any:
    try:
        async with asyncio.timeout(REQUEST_BODY_SECONDS):
            return await reading
    except TimeoutError:
        raise RequestInvalid(where="body", why=f"nothing came for {REQUEST_BODY_SECONDS:.0f} s") from None


def arguments(
    operation: Operation, in_path: Mapping[str, str], query: bytes, headers: Mapping[str, str], body: bytes
) -> dict[str, Any]:
    """The arguments of the method. Raises for a parameter that the operation does not have."""
    given: dict[str, Any] = dict(in_path)
    if operation.method in ("GET", "DELETE"):
        given |= _queried(query, operation)
    else:
        given |= _said(body, operation)
    if "idempotency-key" in headers and any(parameter.where == "header" for parameter in operation.parameters):
        given["idempotency_key"] = key_text(headers["idempotency-key"])
    elif ANY_KEY in headers and any(parameter.where == "header" for parameter in operation.parameters):
        given["idempotency_key"] = unquote(headers[ANY_KEY])
    values: dict[str, Any] = {}
    for parameter in operation.parameters:
        if parameter.name in given:
            value = given[parameter.name]
            if value is None and parameter.nullable:
                values[parameter.name] = None
            elif value is not None or parameter.required:
                values[parameter.name] = parameter.kind.checked(parameter.name, value)
        elif parameter.required:
            raise RequestInvalid(where=parameter.name, why="it is missing")
    return values


def _queried(query: bytes, operation: Operation) -> dict[str, str]:
    values = query_of(query)
    _refuse_unknown(list(values), operation, "query")
    return values


def query_of(raw: bytes) -> dict[str, str]:
    """The query parameters; the last one if repeated."""
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="surrogatepass", max_num_fields=100)
        return dict(pairs)
    except ValueError:
        raise RequestInvalid(where="query", why="it is not percent-encoded UTF-8") from None


def _said(body: bytes, operation: Operation) -> dict[str, Any]:
    if not body:
        return {}
    document = parsed(body)
    if not isinstance(document, dict):
        raise RequestInvalid(where="body", why="an object is expected")
    _refuse_unknown(list(document), operation, "body")
    return as_written(document, body.decode())


class JsonText(str):
    """A body that was JSON in a request, with its original text."""


def as_written(document: dict[str, Any], text: str) -> dict[str, Any]:
    """The arguments with bodies as their original JSON text, so that numbers keep all digits."""
    if not isinstance(document.get("body", ""), str):
        document["body"] = JsonText(members(text)["body"])
    bodies = document.get("bodies")
    if isinstance(bodies, list) and any(not isinstance(body, str) for body in bodies):  # what is no list is refused
        values = zip(bodies, elements(members(text)["bodies"]), strict=True)
        document["bodies"] = [value if isinstance(value, str) else JsonText(written) for value, written in values]
    return document


_scan = json.JSONDecoder().raw_decode


def members(text: str) -> dict[str, str]:
    """The members of an object as JSON text. The text must be valid."""
    texts: dict[str, str] = {}
    at = _next(text, text.index("{") + 1)
    while text[at] != "}":
        name, at = _scan(text, at)
        at = _next(text, _next(text, at) + 1)
        _, end = _scan(text, at)
        texts[name] = text[at:end]
        at = _next(text, end)
        at = _next(text, at + 1) if text[at] == "," else at
    return texts


def elements(text: str) -> Iterator[str]:
    """The elements of a list as JSON text. The text must be valid."""
    at = _next(text, text.index("[") + 1)
    while text[at] != "]":
        _, end = _scan(text, at)
        yield text[at:end]
        at = _next(text, end)
        at = _next(text, at + 1) if text[at] == "," else at


def _next(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    assert blank is not None
    return blank.end()


def parsed(body: bytes) -> Any:
    """Parse JSON within the limits of a message."""
    try:
        return parse_request(body.decode())
    except UnicodeDecodeError as error:
        raise RequestInvalid(where="body", why=f"byte {error.start + 1} is not UTF-8") from None
    except JsonMalformed as error:
        raise RequestInvalid(where="body", why=str(error)) from None


def _refuse_unknown(names: list[str], operation: Operation, where: str) -> None:
    known = _KNOWN[operation.method, operation.path, where]
    for name in names:
        if name not in known:
            why = f"it is not a parameter of {operation.name}; known: {', '.join(sorted(known)) or 'none'}"
            raise RequestInvalid(where=ascii(name)[:60], why=why)

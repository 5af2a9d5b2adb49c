"""The client's connection to a server: requests, responses, and errors if there is no response."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from threading import Event, Lock
from typing import Any, NoReturn, Protocol
from urllib.parse import quote, urlencode, urlsplit

import httpx

from postroom.errors import (
    AnswerLost,
    JsonMalformed,
    RequestInvalid,
    ServerFailed,
    ServerUnreachable,
    StoreStopped,
    UrlInvalid,
)
from postroom.interfaces.http.contract.objects import MEDIA_TYPE as OBJECTS
from postroom.interfaces.http.contract.objects import Objects
from postroom.interfaces.http.contract.operation import Operation
from postroom.interfaces.http.contract.problems import MEDIA_TYPE, error_of
from postroom.interfaces.http.handling.requests import ANY_KEY
from postroom.interfaces.http.handling.responses import as_json
from postroom.limits import REMOTE_RETRIES, REMOTE_SECONDS
from postroom.queues.repeating import checked_key

_KEPT = 100  # connections that are kept for the next request


class RemoteVerbs(Protocol):
    """Operations of a server by name, for leases and spheres."""

    def call(self, name: str, here: Any, given: tuple[Any, ...], named: Mapping[str, Any], **more: Any) -> Any: ...
    def verb(self, name: str, _wait: float = 0.0, /, **given: Any) -> Any: ...
    def waiting(self, name: str, arguments: Mapping[str, Any], wait: float | None) -> Any: ...


class Link:
    """``objects`` turns responses into the objects that a room returns."""

    objects: Objects

    def __init__(self, url: str, token: str | None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise UrlInvalid(url=f"{parts.scheme}://…", why="a server is named as https://HOST:PORT")
        self.url = url.rstrip("/")
        given = token or os.environ.get("POSTROOM_TOKEN") or ""
        headers = {"accept": f"{OBJECTS}, application/json"} | ({"authorization": f"Bearer {given}"} if given else {})
        # No proxy of the environment and no redirect: the token goes to this server and nowhere else.
        careful = {"verify": _trusted(parts.scheme), "trust_env": False, "follow_redirects": False}
        self._options: dict[str, Any] = {"headers": headers, "timeout": REMOTE_SECONDS, **careful}
        self._client = httpx.Client(**self._options)
        self._lock = Lock()
        self._under_way = 0  # requests
        self._closed = Event()

    @cached_property
    def _waiting(self) -> httpx.AsyncClient:
        """The client for asyncio, with as many connections as there are waiting tasks."""
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=_KEPT)
        return httpx.AsyncClient(**self._options, limits=limits)

    def close(self) -> None:
        """Close the connections; one in use is closed after its request."""
        with self._lock:
            self._closed.set()
            idle = not self._under_way
        if idle:
            self._client.close()

    @contextmanager
    def _used(self) -> Iterator[httpx.Client]:
        """The client for one request. It is not closed while a connection is being opened."""
        with self._lock:
            if self._closed.is_set():
                raise StoreStopped(why="it was closed")
            self._under_way += 1
        try:
            yield self._client
        finally:
            with self._lock:
                self._under_way -= 1
                over = self._closed.is_set() and not self._under_way
            if over:
                self._client.close()

    async def aclose(self) -> None:
        """Close the connections of the asyncio client."""
        if "_waiting" in self.__dict__:
            await self._waiting.aclose()

    def call(self, operation: Operation, arguments: Mapping[str, Any], wait: float = 0.0) -> Any:
        """Have the server run an operation; returns what the method of a room returns."""
        asking = _Asking(self, operation, arguments, wait)
        while True:
            try:
                with self._used() as client:
                    response = client.request(**asking.said)
            except httpx.TransportError as error:
                asking.fail(error)
                continue
            if asking.is_answered(response):
                return self.objects.decoded(document(response)["result"])

    async def ask(self, operation: Operation, arguments: Mapping[str, Any], wait: float = 0.0) -> Any:
        """Like ``call``, for asyncio."""
        asking = _Asking(self, operation, arguments, wait)
        while True:
            try:
                response = await self._waiting.request(**asking.said)
            except httpx.TransportError as error:
                asking.fail(error)
                continue
            if asking.is_answered(response):
                return self.objects.decoded(document(response)["result"])

    def user(self) -> str:
        """The name of the token's user."""
        try:
            with self._used() as client:
                return str(document(client.get(self.url + "/me"))["principal"])
        except httpx.TransportError as error:
            self.fail("/me", error, asked=True)

    def pieces(self, path: str) -> Iterator[bytes]:
        """The response of a path in pieces, as they arrive."""
        try:
            with self._used() as client, client.stream("GET", self.url + path) as response:
                if response.status_code != 200:
                    response.read()
                    document(response)
                yield from response.iter_bytes()
        except httpx.TransportError as error:
            self.fail(path, error, asked=True)

    def lines(self, path: str) -> Iterator[Any]:
        """The objects of a response with one per line, as they arrive."""
        rest = b""
        for piece in self.pieces(path):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                told = json.loads(line)
                if "error" in told:
                    raise error_of(told["error"])
                yield self.objects.decoded(told)

    def fail(self, what: str, error: httpx.TransportError, *, asked: bool) -> NoReturn:
        """Raise the right error: a read can be retried; a change may have happened, unless the server was not
        reached."""
        why = str(error) or type(error).__name__
        if isinstance(error, httpx.LocalProtocolError):
            raise RequestInvalid(where=what, why=f"it cannot be asked for: {why}") from None
        if asked or isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol)):
            raise ServerUnreachable(url=self.url, why=why) from None
        raise AnswerLost(url=self.url, what=what, why=why) from None


class _Asking:
    """One call of an operation with its retries. Only what may be done twice is repeated."""

    def __init__(self, link: Link, operation: Operation, arguments: Mapping[str, Any], wait: float) -> None:
        path, query, body, headers = request(operation, arguments)
        self._link = link
        self._operation = operation
        self._left = REMOTE_RETRIES if operation.method == "GET" or {"Idempotency-Key", ANY_KEY} & headers.keys() else 1
        self.said: dict[str, Any] = {
            "method": operation.method,
            "url": link.url + path + (f"?{urlencode(query, errors='surrogatepass')}" if query else ""),
            "content": body,
            "headers": headers,
            "timeout": REMOTE_SECONDS + wait,
        }

    def fail(self, error: httpx.TransportError) -> None:
        """Note an attempt without a response; raises after the last one."""
        self._left -= 1
        if not self._left:
            self._link.fail(self._operation.name, error, asked=self._operation.method == "GET")

    def is_answered(self, response: httpx.Response) -> bool:
        """Whether this response is final."""
        self._left -= 1
        return response.status_code != 503 or not self._left


def _key_header(key: str) -> tuple[str, bytes]:
    """The header of an idempotency key: in percents, if no header can have it as it is."""
    if checked_key(key) == key.strip() and key.isprintable():
        return "Idempotency-Key", key.encode()
    return ANY_KEY, quote(key, safe="").encode()


def in_path(value: Any) -> str:
    """A value in a path. Names of dots alone are no way up in it."""
    written = quote(str(value), safe="", errors="surrogatepass")
    return written if written.strip(".") else written.replace(".", "%2E")


def request(
    operation: Operation, arguments: Mapping[str, Any]
) -> tuple[str, dict[str, Any], bytes | None, dict[str, str | bytes]]:
    path, query, body = operation.path, {}, {}
    headers: dict[str, str | bytes] = {}
    for parameter in operation.parameters:
        if parameter.name not in arguments:
            continue
        given = arguments[parameter.name]
        value: Any = None if given is None else parameter.kind.write(given)
        if parameter.where == "path":
            path = path.replace("{" + parameter.name + "}", in_path(value))
        elif parameter.where == "query":
            query[parameter.name] = str(value).lower() if isinstance(value, bool) else value
        elif parameter.where == "header":
            name, header = _key_header(value)
            headers[name] = header
        else:
            body[parameter.name] = value
    if operation.method != "POST":
        return path, query, None, headers
    headers["content-type"] = "application/json"
    try:
        return path, query, as_json(body), headers
    except TypeError as error:
        raise JsonMalformed(why=str(error)) from None


def document(response: httpx.Response) -> Any:
    try:
        told = response.json()
    except ValueError:
        raise ServerFailed(incident=f"HTTP {response.status_code}, and no JSON") from None
    if response.status_code not in (200, 201):
        if response.headers.get("content-type") == MEDIA_TYPE and isinstance(told, dict):
            raise error_of(told)
        raise ServerFailed(incident=f"HTTP {response.status_code}")
    return told


def _trusted(scheme: str) -> ssl.SSLContext | bool:
    """The trusted certificates; not loaded without TLS, because that takes a moment."""
    if scheme == "http":
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority = os.environ.get("POSTROOM_CA")
    return ssl.create_default_context(cafile=authority) if authority else True

"""Connections to partners by HTTP: to checked addresses, kept open for the next message.

A sender has a connection to itself from the request to the end of the reply. The pool of httpcore is not used: finding
a free connection took two thirds of the time of a message.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any

import httpcore

from postroom.gateways.origins import Resolver, pinned
from postroom.limits import GATEWAY_SECONDS

_TOGETHER_BYTES = 65_536  # of a request that are sent at once
_KEPT = 8  # connections to one origin that nobody uses
_KEPT_SECONDS = 30.0
_deadline = threading.local()


class Connections:
    """The connections of one endpoint, by origin."""

    def __init__(self, context: ssl.SSLContext, private: bool, resolver: Resolver | None) -> None:
        self._context = context
        self._backend = _PinnedBackend(private, resolver)
        self._idle: dict[str, list[httpcore.HTTPConnection]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def exchange(
        self, seconds: float, method: str, url: str, headers: Sequence[tuple[bytes, bytes]], body: bytes
    ) -> Iterator[httpcore.Response]:
        """One request and its reply, within ``seconds`` in all."""
        _deadline.at = monotonic() + seconds
        target = httpcore.URL(url)
        if target.scheme not in (b"http", b"https"):
            raise httpcore.UnsupportedProtocol(f"{url} begins with neither http nor https")
        connection = self._taken(target.origin)
        try:
            with connection.stream(method, target, headers=headers, content=body) as response:
                yield response
        finally:
            self._put_back(target.origin, connection)

    def _taken(self, origin: httpcore.Origin) -> httpcore.HTTPConnection:
        """A kept connection that the partner has not closed, else a new one."""
        while True:
            with self._lock:
                idle = self._idle.get(str(origin))
                kept = idle.pop() if idle else None
            if kept is None:
                return httpcore.HTTPConnection(
                    origin, self._context, keepalive_expiry=_KEPT_SECONDS, network_backend=self._backend
                )
            if not kept.has_expired():
                return kept
            kept.close()

    def _put_back(self, origin: httpcore.Origin, connection: httpcore.HTTPConnection) -> None:
        with self._lock:
            idle = self._idle.setdefault(str(origin), [])
            if connection.is_idle() and len(idle) < _KEPT:
                idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close idle connections."""
        with self._lock:
            for connection in (connection for idle in self._idle.values() for connection in idle):
                connection.close()
            self._idle.clear()


class _PinnedBackend(httpcore.NetworkBackend):
    def __init__(self, private: bool, resolver: Resolver | None) -> None:
        self._private = private
        self._resolver = resolver
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        address = pinned(host, port, private=self._private, resolver=self._resolver)
        stream = self._backend.connect_tcp(address, port, _left(timeout), local_address, socket_options)
        return _Bounded(stream)


class _Bounded(httpcore.NetworkStream):
    """A connection with a deadline for the whole exchange: a partner that sends a byte now and then is too slow."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream
        self._unsent = bytearray()  # head and body of a small request go out together

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._flush(timeout)
        return self._stream.read(max_bytes, _left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._unsent += buffer
        if len(self._unsent) > _TOGETHER_BYTES:
            self._flush(timeout)

    def _flush(self, timeout: float | None) -> None:
        if self._unsent:
            data, self._unsent = bytes(self._unsent), bytearray()
            self._stream.write(data, _left(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Bounded(self._stream.start_tls(ssl_context, server_hostname, _left(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(timeout: float | None) -> float:
    left: float = getattr(_deadline, "at", monotonic() + GATEWAY_SECONDS) - monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout("the time limit of the attempt is over")
    return left if timeout is None else min(left, timeout)

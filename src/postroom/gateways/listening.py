"""Servers for incoming messages, in a process of their own, until a signal ends them."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Protocol

import uvicorn

from postroom.errors import ListenRefused

Place = tuple[str, int]


class Served(Protocol):
    """Makes the HTTP application and the mail server that run here."""

    def http_app(self) -> Any: ...

    def mail_server(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> AbstractContextManager[Any]: ...


class _Server(uvicorn.Server):
    """A server that announces when it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


def listen(
    served: Served,
    http: Place | None,
    smtp: Place | None,
    certificate: str | None,
    key: str | None,
    say: Callable[[str], None],
) -> None:
    """Serve at these addresses until a signal."""
    with ExitStack() as servers:
        if smtp is not None:
            tls = None
            if certificate is not None:
                tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
                tls.load_cert_chain(certificate, key)
            _bound("smtp", smtp).close()  # aiosmtpd, if it cannot listen, leaves more open than that
            mail = servers.enter_context(served.mail_server(*smtp, tls))
            say(f"mail is taken in at {smtp[0]}:{mail.port}")
        if http is None:
            ended = threading.Event()
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: ended.set())
            ended.wait()
            return
        listener = servers.enter_context(_bound("http", http))
        config = uvicorn.Config(
            served.http_app(),
            ssl_certfile=certificate,
            ssl_keyfile=key,
            log_level="warning",
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=30,
            limit_concurrency=2_000,
        )
        _Server(config, lambda: say(f"messages are taken in at {http[0]}:{http[1]}")).run([listener])


def _bound(scheme: str, place: Place) -> socket.socket:
    """A socket that listens, opened before anything starts."""
    try:
        family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        return socket.create_server(place, family=family, backlog=2_048)
    except OSError as error:
        host = f"[{place[0]}]" if ":" in place[0] else place[0]
        url = f"{scheme}://{host}:{place[1]}"
        of_system = error.errno is not None and not isinstance(error, socket.gaierror)
        why = os.strerror(error.errno or 0) if of_system else error.strerror or str(error)
        raise ListenRefused(url=url, why=why, option=f"--{scheme}") from None

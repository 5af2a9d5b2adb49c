"""``postroom serve``: a process that listens, limits its clients, and stops gracefully."""

from __future__ import annotations

import errno
import ipaddress
import signal
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from postroom.errors import ArgumentInvalid, ListenRefused, ServerExposed
from postroom.interfaces.http.app import Interface
from postroom.interfaces.http.connection import BoundedProtocol
from postroom.interfaces.http.observing import logs
from postroom.interfaces.http.services import Beside
from postroom.limits import REQUEST_KEEP_SECONDS, STOP_SECONDS, USER_REQUESTS_PER_SECOND
from postroom.room import Postroom

_BACKLOG = 2_048


@dataclass(frozen=True)
class Listening:
    """Where a server listens, and its certificate."""

    host: str = "127.0.0.1"
    port: int = 7600
    certificate: str | None = None
    key: str | None = None

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"


class Server(uvicorn.Server):
    """A server that ends when its room stops. It does not wait for event streams."""

    async def on_tick(self, counter: int) -> bool:
        app = self.config.app
        assert isinstance(app, Interface)
        return await super().on_tick(counter) or app.room.store.stopped

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        app = self.config.app
        assert isinstance(app, Interface)
        app.end_waiting()
        await super().shutdown(sockets)


def check(room: Postroom, where: Listening) -> None:
    """Raise if others could listen in, or if the room would be open to anyone."""
    if (where.certificate is None) != (where.key is None):
        raise ArgumentInvalid(argument="--tls-key", why="give both a certificate and its key")
    for file in (where.certificate, where.key):
        if file is not None and not Path(file).is_file():
            raise ArgumentInvalid(argument="--tls-certificate", why=f"{file} is not a file")
    if _is_loopback(where.host):
        return
    if where.certificate is None:
        raise ServerExposed(host=where.host, why="it has no certificate, and tokens would go in the clear")
    if not room.access.has_users():
        raise ServerExposed(host=where.host, why="no user has a right to anything yet")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bound(where: Listening, option: str = "--port") -> socket.socket:
    """The socket of a server, opened before anything starts; ``option`` names its port on the command line."""
    family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((where.host, where.port))
        listener.listen(_BACKLOG)  # who comes before all is ready waits
    except OSError as error:
        listener.close()
        of_host = isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
        option = "--host" if of_host else option
        raise ListenRefused(url=where.url, why=error.strerror or str(error), option=option) from None
    return listener


def serve(
    room: Postroom,
    where: Listening,
    listening: Callable[[str], None],
    rate: float = USER_REQUESTS_PER_SECOND,
    log: str = "text",
    beside: Sequence[Beside] = (),
) -> bool:
    """Serve until a signal ends it: SIGTERM or SIGINT lets running requests finish, up to a limit.

    ``listening`` is called with the URL when requests are accepted. ``beside`` are other servers of the same room.
    Raises the room's error if the room has stopped, as it does without its database. Returns whether all requests have
    ended: if not, a thread is still running, and would keep the interpreter alive.
    """
    check(room, where)
    with bound(where) as listener:
        at = Listening(where.host, listener.getsockname()[1], where.certificate, where.key)
        interface = Interface(room, rate, beside)
        server = Server(_config(interface, where, log))
        server.config.load()
        listening(at.url)
        with _signals_taken():
            server.run(sockets=[listener])
    room.store.check_usable()
    return not interface.is_left


@contextmanager
def _signals_taken() -> Iterator[None]:
    """Ignore the signal that the server raises again at its end, so that the room is closed and not killed."""
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _config(app: Interface, where: Listening, log: str = "text") -> uvicorn.Config:
    logs.configure(log)
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        loop="uvloop",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=int(REQUEST_KEEP_SECONDS),
        timeout_graceful_shutdown=int(STOP_SECONDS),
        ssl_certfile=where.certificate,
        ssl_keyfile=where.key,
        ssl_version=ssl.PROTOCOL_TLS_SERVER,
    )

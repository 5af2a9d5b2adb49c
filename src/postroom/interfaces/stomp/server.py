"""``postroom serve --stomp``: runs beside the HTTP server, and shares its commits, threads and rights."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from contextlib import suppress
from functools import partial

from postroom.errors import PostroomError
from postroom.flows.visiting import Visits
from postroom.interfaces.http.server import Listening
from postroom.interfaces.http.services import Services
from postroom.interfaces.stomp.session import Session
from postroom.limits import CLIENT_LEASE_SECONDS, KEEPALIVE_SECONDS, STOMP_CONNECTIONS_MAX, STOP_SECONDS

log = logging.getLogger("postroom.stomp")


class StompServer:
    """Serves clients of one room on an open socket, with the certificate of the HTTP server."""

    def __init__(self, listening: socket.socket, where: Listening) -> None:
        self._socket = listening
        self._context = None if where.certificate is None else _context(where)
        self._sessions: dict[Session, asyncio.Task[None] | None] = {}
        self._server: asyncio.Server | None = None
        self._renewing: asyncio.Task[None] | None = None
        host = f"[{where.host}]" if ":" in where.host else where.host
        self.url = f"{'stomp+ssl' if where.certificate else 'stomp'}://{host}:{listening.getsockname()[1]}"

    async def start(self, services: Services) -> None:
        """Start; called in the serving event loop."""
        self._services = services
        self._visits: Visits = services.room.flows._visits()
        await asyncio.to_thread(self._tidy)
        self._renewing = asyncio.create_task(self._renew())
        self._server = await asyncio.start_server(self._met, sock=self._socket, ssl=self._context)

    def _tidy(self) -> None:
        try:
            self._visits.tidy(self._services.room._parts.by)
        except PostroomError as error:  # they stay until the next start, and take nothing from anyone
            log.warning("subscriptions of an earlier server are left: %s", error)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(CLIENT_LEASE_SECONDS / 3)
            try:
                await self._services.inside(self._visits.renew)
            except PostroomError as error:
                log.warning("subscribers could not be renewed: %s", error.code)

    async def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._sessions) >= STOMP_CONNECTIONS_MAX:
            writer.close()
            return
        _keep_alive(writer)
        session = Session(self._services, self._visits, reader, writer)
        self._sessions[session] = asyncio.current_task()
        try:
            await session.run()
        finally:
            self._sessions.pop(session, None)

    async def stop(self) -> None:
        """Accept no more clients; finish running work and close all connections."""
        if self._server is None:
            return
        self._server.close()
        tasks = [task for task in self._sessions.values() if task is not None]
        for session in list(self._sessions):
            session.stop()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=1)
        if self._renewing is not None:
            self._renewing.cancel()


def _context(where: Listening) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    assert where.certificate is not None
    context.load_cert_chain(where.certificate, where.key)
    return context


def _keep_alive(writer: asyncio.StreamWriter) -> None:
    """Detect dead clients by TCP keep-alive, even without heart-beats."""
    connection: socket.socket | None = writer.get_extra_info("socket")
    with suppress(OSError, AttributeError):
        assert connection is not None
        set_option = partial(connection.setsockopt, socket.IPPROTO_TCP)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        set_option(socket.TCP_KEEPIDLE, KEEPALIVE_SECONDS)
        set_option(socket.TCP_KEEPINTVL, KEEPALIVE_SECONDS)
        set_option(socket.TCP_KEEPCNT, 3)
        set_option(socket.TCP_NODELAY, 1)

"""``postroom serve --session``: sessions of many programs in the process of a server, over a Unix socket.

Permission to open the socket file gives access to the room, as with the file of a room. Each program has a thread.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import stat
from contextlib import suppress
from threading import Lock, Thread

from postroom.errors import ArgumentInvalid, ListenRefused
from postroom.interfaces.cobol.process import serve
from postroom.interfaces.http.services import Services
from postroom.limits import COBOL_SESSIONS_MAX, STOP_SECONDS
from postroom.room import Postroom

log = logging.getLogger("postroom.session")
_BACKLOG = 128
_PATH_BYTES_MAX = 107


class SessionServer:
    """Accepts programs until stopped. What an interrupted program had received is back in its queue."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._socket = _bound(path)
        self._lock = Lock()
        self._programs: dict[socket.socket, Thread] = {}
        self._stopped = False
        self._thread: Thread | None = None

    @property
    def url(self) -> str:
        return f"unix:{self.path}"

    async def start(self, services: Services) -> None:
        """Begin to serve."""
        self._thread = Thread(target=self._accept, args=(services.room,), name="postroom-sessions", daemon=True)
        self._thread.start()

    def _accept(self, room: Postroom) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # it was closed
                return
            with self._lock:
                if self._stopped or len(self._programs) >= COBOL_SESSIONS_MAX:
                    connection.close()
                    continue
                thread = Thread(target=self._serve, args=(room, connection), name="postroom-session", daemon=True)
                self._programs[connection] = thread
            thread.start()

    def _serve(self, room: Postroom, connection: socket.socket) -> None:
        try:
            with connection:
                serve(room, connection, encoding="utf-8", source=None)
        except Exception:
            log.exception("the session of a program failed")
        finally:
            with self._lock:
                self._programs.pop(connection, None)

    async def stop(self) -> None:
        """Accept no more programs and disconnect the others; what they had not committed is undone."""
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Stop from outside the loop; closing again does nothing."""
        with self._lock:
            already, self._stopped = self._stopped, True
            left = list(self._programs.items())
        if already:
            return
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with suppress(FileNotFoundError):
            os.unlink(self.path)
        for connection, _ in left:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in (self._thread, *(thread for _, thread in left)):
            if thread is not None and thread.ident is not None:
                thread.join(STOP_SECONDS)

    def __enter__(self) -> SessionServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _bound(path: str) -> socket.socket:
    """The socket, opened before anything starts; replaces the socket file of a killed server."""
    if not 0 < len(os.fsencode(path)) <= _PATH_BYTES_MAX or "\0" in path:
        raise ArgumentInvalid(argument="--session", why=f"a path of 1 to {_PATH_BYTES_MAX} bytes")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if _is_left_over(path):
            os.unlink(path)
        before = os.umask(0o177)
        try:
            listener.bind(path)
        finally:
            os.umask(before)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        why = error.strerror or str(error)
        raise ListenRefused(url=f"unix:{path}", why=why, option="--session") from None
    return listener


def _is_left_over(path: str) -> bool:
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return False
    except FileNotFoundError:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        return asking.connect_ex(path) != 0

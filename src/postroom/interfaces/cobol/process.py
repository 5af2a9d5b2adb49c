"""The process of a session: reads calls from a socket, answers them, and detects the end of its program."""

from __future__ import annotations

import select
import socket
import sys
from collections.abc import Callable
from functools import partial

from postroom.errors import ArgumentInvalid, PostroomError
from postroom.interfaces.cobol.session import CobolSession, ProgramGone
from postroom.interfaces.cobol.wire import Call, FrameInvalid, length_of, read_call, write_answer
from postroom.room import Postroom

_READ_BYTES = 4096
BEGIN = b"B"  # what a program says first that comes to a server


def serve(room: Postroom, connection: socket.socket, *, encoding: str, source: str | None) -> None:
    """Serve one program until it ends.

    Without an orderly end, or after an error, it counts as dead. A program outside the environment of its session first
    sends its text encoding and its source.
    """
    gone, frames = partial(_is_gone, connection), _Frames(connection)
    session = CobolSession(room, encoding=encoding, source=source, gone=gone)
    orderly = False
    try:
        while not session.ended:
            body = frames.next()
            if body is None:
                break
            if body.startswith(BEGIN):
                session.close(orderly=True)  # nothing was done with it yet
                session = _begun(room, read_call(body), gone)
                connection.sendall(write_answer(0))
                continue
            connection.sendall(session.answer(body))
            if room.store.stopped:  # the program's next call begins another session
                break
        orderly = session.ended
    except FrameInvalid as error:
        print(f"postroom: a call of the program is invalid: {error}", file=sys.stderr)
    except (OSError, ProgramGone):
        pass  # the program is gone: what follows is all there is to do
    finally:
        try:
            session.close(orderly=orderly)
        except PostroomError as error:
            print(f"postroom: {error.code}: {error}", file=sys.stderr)


class _Frames:
    """Reads frames from a socket. A complete frame is returned at once."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._kept = connection, b""

    def next(self) -> bytes | None:
        """The body of the next frame; None if the program ended before that."""
        if not self._fill(4):
            return None
        end = 4 + length_of(self._kept[:4])
        if not self._fill(end):
            return None
        body, self._kept = self._kept[4:end], self._kept[end:]
        return body

    def _fill(self, size: int) -> bool:
        while len(self._kept) < size:
            more = self._connection.recv(max(_READ_BYTES, size - len(self._kept)))
            if not more:
                return False
            self._kept += more
        return True


def _begun(room: Postroom, call: Call, gone: Callable[[], bool]) -> CobolSession:
    try:
        encoding, source = (field.decode() for field in call.fields)
        return CobolSession(room, encoding=encoding or "utf-8", source=source or None, gone=gone)
    except (ValueError, ArgumentInvalid) as error:
        raise FrameInvalid(f"the beginning of a program: {error}") from None


def refuse_all(connection: socket.socket, error: PostroomError) -> None:
    """Answer every call that there is no session: the program's library fills in the status key."""
    print(f"postroom: {error.code}: {error}", file=sys.stderr, flush=True)
    connection.close()


def _is_gone(connection: socket.socket) -> bool:
    """Whether the other end is closed. A program that waits for an answer sends nothing else."""
    ready, _, _ = select.select([connection], [], [], 0)
    return bool(ready) and not connection.recv(1, socket.MSG_PEEK)

"""Child processes with time and memory limits, for text that strangers wrote.

What they run cannot be interrupted, only ended. A process that has ended is replaced with the next request. Idle ones
are kept, because starting one takes a third of a second.
"""

from __future__ import annotations

import os
import select
import signal
import struct
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

from postroom.engine.spark.worker import Bounds

_LENGTH = struct.Struct(">Q")
_ANSWER, _NEWS = b"=", b"+"  # what a process says begins with one of them
_IDLE_MAX = 2  # how many are kept waiting
_LOOK_SECONDS = 0.5


class Ended(Exception):
    """The process ended before it answered: it took too long, or too much memory."""

    def __init__(self, in_time: bool) -> None:
        super().__init__(in_time)
        self.in_time = in_time


class BoundedProcesses:
    """The processes that run one module. Each asker has one to itself."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._owner = os.getpid()
        self._idle: list[_Attendant] = []
        self._lock = threading.Lock()

    def ask(self, request: bytes, heard: Callable[[bytes], None] | None = None, *, tries: int = 2) -> bytes:
        """The answer to a request; raises Ended if it cannot be had within bounds.

        ``heard`` is called with whatever the process tells on the way. Processes die by themselves, too: guilty is a
        request that does it as often as it is tried.
        """
        for _ in range(tries - 1):
            try:
                return self._asked(request, heard)
            except Ended as end:
                if not end.in_time:
                    raise
        return self._asked(request, heard)

    def _asked(self, request: bytes, heard: Callable[[bytes], None] | None) -> bytes:
        attendant = self._taken()
        try:
            answer = attendant.ask(request, heard)
        except BaseException:  # a signal in the middle leaves an answer that nobody reads
            attendant.end()
            raise
        with self._lock:
            if len(self._idle) < _IDLE_MAX:
                self._idle.append(attendant)
                return answer
        attendant.end()
        return answer

    def _taken(self) -> _Attendant:
        if self._owner != os.getpid():  # after a fork they are the parent's, and so may be the lock
            self._owner, self._idle, self._lock = os.getpid(), [], threading.Lock()
        with self._lock:
            while self._idle:
                attendant = self._idle.pop()
                if attendant.alive:
                    return attendant
        return _Attendant(self._module)


class _Attendant:
    def __init__(self, module: str) -> None:
        to_child, self._to = os.pipe()
        self._from, from_child = os.pipe()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        nothing = os.open(os.devnull, os.O_WRONLY)
        try:
            self._process: int | None = os.posix_spawn(
                sys.executable,
                [sys.executable, "-m", module],
                environment,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, to_child, 0),
                    (os.POSIX_SPAWN_DUP2, from_child, 1),
                    (os.POSIX_SPAWN_DUP2, nothing, 2),
                ],
                setsid=True,
            )
        finally:
            for each in (to_child, from_child, nothing):
                os.close(each)

    @property
    def alive(self) -> bool:
        if self._process is not None and self._status(os.WNOHANG) is not None:
            self._close()
        return self._process is not None

    def ask(self, request: bytes, heard: Callable[[bytes], None] | None) -> bytes:
        try:
            _write(self._to, request)
            said = self._said()
            while said is not None and said.startswith(_NEWS):
                if heard is not None:
                    heard(said[1:])
                said = self._said()
        except BrokenPipeError:
            said = None
        if said is None:
            raise Ended(self.end() != signal.SIGALRM)
        return said[1:]

    def _said(self) -> bytes | None:
        """What it says next. A signal that came to another thread of ours is noticed between two looks."""
        while not select.select([self._from], [], [], _LOOK_SECONDS)[0]:
            pass
        return _read(self._from)

    def end(self) -> int:
        """Whatever it and its children do, they do no more; answers with the signal that ended it."""
        if self._process is None:
            return 0
        with suppress(ProcessLookupError, PermissionError):  # macOS says the second of a group that has ended
            os.killpg(self._process, signal.SIGKILL)  # says nothing to one that has ended
        status = self._status(0) or 0
        self._close()
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0

    def _status(self, options: int) -> int | None:
        """How it ended; None if it runs."""
        assert self._process is not None
        try:
            process, status = os.waitpid(self._process, options)
        except ChildProcessError:  # whoever we are part of takes no notice of its children
            return 0
        return status if process else None

    def _close(self) -> None:
        self._process = None
        os.close(self._to)
        os.close(self._from)


def attend(answer: Callable[[bytes, Callable[[bytes], None]], bytes], seconds: Callable[[bytes], float]) -> None:
    """The life of such a process: answer requests, each in its time, until whoever asks is gone.

    ``answer`` is given a function that tells news on the way.
    """
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(2, 1)  # whatever is printed is no answer
    Bounds().settle()
    while (request := _read(requests)) is not None:
        with Bounds(seconds(request)).deadline(len(request)):
            said = answer(request, lambda news: _write(answers, _NEWS + news))
        _write(answers, _ANSWER + said)


def _write(to: int, data: bytes) -> None:
    with os.fdopen(to, "wb", closefd=False) as stream:
        stream.write(_LENGTH.pack(len(data)))
        stream.write(data)


def _read(source: int) -> bytes | None:
    """What was written, whole; None if whoever writes is gone."""
    with os.fdopen(source, "rb", buffering=0, closefd=False) as stream:
        head = _exactly(stream, _LENGTH.size)
        return None if head is None else _exactly(stream, _LENGTH.unpack(head)[0])


def _exactly(stream: BinaryIO, size: int) -> bytes | None:
    found = bytearray()
    while len(found) < size:
        part = stream.read(min(size - len(found), 1 << 20))
        if not part:
            return None
        found += part
    return bytes(found)

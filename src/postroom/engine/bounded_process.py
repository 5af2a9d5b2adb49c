"""Child processes with time and memory limits, for untrusted input.

Their work cannot be interrupted, so a process over its limit is killed and replaced with the next request. Idle ones
are kept, because starting one takes a third of a second.
"""

from __future__ import annotations

import os
import select
import signal
import struct
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import BinaryIO, NamedTuple

from postroom.engine.spark.worker import Bounds

_LENGTH = struct.Struct(">Q")
_ANSWER, _NEWS, _BEGUN = b"=", b"+", b"!"  # what a process says begins with one of them
_IDLE_MAX = 2  # how many are kept waiting
_UNHEARD_MAX = 5  # how many may end in a row before they begin with what they are asked
_LESSONS_MAX = 64  # then a process is replaced: it forgets none of them
_LOOK_SECONDS = 0.5
_LATE = (signal.SIGALRM, signal.SIGPROF)  # what ends a process after its time, or its processor time


class Ended(Exception):
    """The process was killed before it answered: over its limit of time or memory."""

    def __init__(self, in_time: bool) -> None:
        super().__init__(in_time)
        self.in_time = in_time


class _Unheard(Ended):
    """The process ended before it began, so the request is not to blame."""


class Lesson(NamedTuple):
    """A request that a process must have had before another one, and its key."""

    name: bytes
    request: bytes


class BoundedProcesses:
    """The processes that run one module. Each caller has one to itself. ``environment`` limits the variables that they
    see."""

    def __init__(self, module: str, environment: Callable[[], Mapping[str, str]] | None = None) -> None:
        self._module = module
        self._environment = environment
        self._owner = os.getpid()
        self._idle: list[_Attendant] = []
        self._lock = threading.Lock()

    def start(self, *arguments: str) -> None:
        """Start one with arguments ahead of time, so that it is ready when asked."""
        attendant = self._taken(arguments)
        self._give_back(attendant)

    def ask(
        self,
        request: bytes,
        heard: Callable[[bytes], None] | None = None,
        *,
        tries: int = 2,
        lesson: Lesson | None = None,
    ) -> bytes:
        """Returns the answer to a request; raises ``Ended`` if it exceeds the limits.

        ``heard`` is called with progress that the process reports. Processes may die for other reasons, so a request is
        blamed only if all ``tries`` die. A process that has not had the ``lesson`` gets it first.
        """
        for _ in range(tries - 1):
            try:
                return self._asked(request, heard, lesson)
            except Ended as end:
                if not end.in_time:
                    raise
        return self._asked(request, heard, lesson)

    def _asked(self, request: bytes, heard: Callable[[bytes], None] | None, lesson: Lesson | None) -> bytes:
        for left in reversed(range(_UNHEARD_MAX)):
            attendant = self._taken()
            try:
                if lesson is not None:
                    attendant.learn(lesson)
                answer = attendant.ask(request, heard)
            except BaseException as error:  # a signal in the middle leaves an answer that nobody reads
                attendant.end()
                if not isinstance(error, _Unheard) or not left:
                    raise
            else:
                self._give_back(attendant)
                return answer
        raise AssertionError("the last one answers or raises")

    def _give_back(self, attendant: _Attendant) -> None:
        if attendant.lessons < _LESSONS_MAX:
            with self._lock:
                if len(self._idle) < _IDLE_MAX:
                    self._idle.append(attendant)
                    return
        attendant.end()

    def _taken(self, arguments: Sequence[str] = ()) -> _Attendant:
        if self._owner != os.getpid():  # after a fork they are the parent's, and so may be the lock
            self._owner, self._idle, self._lock = os.getpid(), [], threading.Lock()
        with self._lock:
            while self._idle:
                attendant = self._idle.pop()
                if attendant.alive:
                    return attendant
        return _Attendant([self._module, *arguments], os.environ if self._environment is None else self._environment())


class _Attendant:
    def __init__(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        self._learned: set[bytes] = set()
        to_child, self._to = os.pipe()
        self._from, from_child = os.pipe()
        environment = {**environment, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        nothing = os.open(os.devnull, os.O_WRONLY)
        try:
            self._process: int | None = os.posix_spawn(
                sys.executable,
                [sys.executable, "-m", *words],
                environment,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, to_child, 0),
                    (os.POSIX_SPAWN_DUP2, from_child, 1),
                    (os.POSIX_SPAWN_DUP2, nothing, 2),
                ],
                setsid=True,
            )
        finally:
            for descriptor in (to_child, from_child, nothing):
                os.close(descriptor)

    @property
    def alive(self) -> bool:
        if self._process is not None and self._status(os.WNOHANG) is not None:
            self._close()
        return self._process is not None

    @property
    def lessons(self) -> int:
        """How many lessons it has had."""
        return len(self._learned)

    def learn(self, lesson: Lesson) -> None:
        if lesson.name not in self._learned:
            self.ask(lesson.request, None)
            self._learned.add(lesson.name)

    def ask(self, request: bytes, heard: Callable[[bytes], None] | None) -> bytes:
        begun = False
        try:
            _write(self._to, request)
            reply = self._said()
            while reply is not None and not reply.startswith(_ANSWER):
                begun = True
                if heard is not None and reply.startswith(_NEWS):
                    heard(reply[1:])
                reply = self._said()
        except BrokenPipeError:
            reply = None
        if reply is None:
            kind = Ended if begun else _Unheard
            raise kind(self.end() not in _LATE)
        return reply[1:]

    def _said(self) -> bytes | None:
        """The next message of the process; None if it has ended.

        It polls, to notice a signal that came to another thread, and a process that ended while a child of it, or a
        fork of ours, holds the pipe open.
        """
        while not self._speaks(_LOOK_SECONDS):
            if not self._runs():
                return _read(self._from) if self._speaks(0) else None
        return _read(self._from)

    def _speaks(self, seconds: float) -> bool:
        return bool(select.select([self._from], [], [], seconds)[0])

    def _runs(self) -> bool:
        """Whether it still runs; its output may still have to be read."""
        assert self._process is not None
        try:
            return os.waitid(os.P_PID, self._process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:
            return _exists(self._process)

    def end(self) -> int:
        """Kill it and its children; returns the signal that ended it."""
        if self._process is None:
            return 0
        with suppress(ProcessLookupError, PermissionError):  # macOS says the second of a group that has ended
            os.killpg(self._process, signal.SIGKILL)  # says nothing to one that has ended
        status = self._status(0) or 0
        self._close()
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0

    def _status(self, options: int) -> int | None:
        """Its exit status; None if it runs."""
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


def attend(answer: Callable[[bytes, Callable[[bytes], None]], bytes], seconds: Callable[[bytes], float | None]) -> None:
    """The main loop of such a process: answer requests, each within its time, until the parent has gone. ``answer``
    gets a function that reports progress. If ``seconds`` is None, it limits its time itself."""
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(2, 1)  # whatever is printed is no answer
    Bounds().settle()
    while (request := _read(requests)) is not None:
        _write(answers, _BEGUN)
        limit = seconds(request)
        with nullcontext() if limit is None else Bounds(limit).deadline(len(request)):
            reply = answer(request, lambda news: _write(answers, _NEWS + news))
        _write(answers, _ANSWER + reply)


def seconds_of(request: bytes) -> float:
    """The time limit of a request that is a JSON list and begins with it."""
    return float(request[1 : request.index(b",")])


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _write(to: int, data: bytes) -> None:
    with os.fdopen(to, "wb", closefd=False) as stream:
        stream.write(_LENGTH.pack(len(data)))
        stream.write(data)


def _read(source: int) -> bytes | None:
    """Read one whole message; None if the writer has gone."""
    with os.fdopen(source, "rb", buffering=0, closefd=False) as stream:
        head = _exactly(stream, _LENGTH.size)
        return None if head is None else _exactly(stream, _LENGTH.unpack(head)[0])


def _exactly(stream: BinaryIO, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        part = stream.read(min(size - len(data), 1 << 20))
        if not part:
            return None
        data += part
    return bytes(data)

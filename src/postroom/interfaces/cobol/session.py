"""The session of a COBOL program: implements each verb of the communication module on the areas of CDs.

Calls and answers are bytes, so that a process behind a socket can hold it (``process.py``), or a server for many
programs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from time import monotonic, sleep

from postroom.errors import AreaShort, ArgumentInvalid, BodyError, OutputFailed, PostroomError, QueueHeld, QueueLocked
from postroom.interfaces.cobol.areas import (
    AreaInvalid,
    Description,
    InputDescription,
    IoDescription,
    OutputDescription,
)
from postroom.interfaces.cobol.wire import Call, FrameInvalid, read_call, write_answer
from postroom.limits import COBOL_TEXT_MAX, LOCK_WAIT_SECONDS
from postroom.queues import status
from postroom.queues.results import QueueCount, Received
from postroom.queues.segments import SOURCE, Area, End
from postroom.room import Postroom
from postroom.store.kernel.queues import Hold
from postroom.store.tables.sources import Source

#: Bits of a receive.
SEGMENT, NO_WAIT = 1, 2
#: Bits of a send.
IO, REPLACING = 1, 2
#: What is enabled or disabled.
QUEUE, TERMINAL, DESTINATIONS, IO_TERMINAL = range(4)
#: Answers beside the areas.
DATA, NO_DATA = 0, 1
_LOOK_SECONDS = 1.0  # a waiting receive looks whether its program is still there
_NO_AREA = -1
_PAGE, _NO_LINES = -1, -2


class ProgramGone(Exception):
    """The program ended while it waited."""


class CobolSession:
    """Answers the calls of one program."""

    def __init__(
        self,
        room: Postroom,
        *,
        encoding: str = "utf-8",
        source: str | None = None,
        gone: Callable[[], bool] = lambda: False,
    ) -> None:
        try:
            "A".encode(encoding)
        except LookupError:
            raise ArgumentInvalid(argument="encoding", why=f"{encoding!r} is none that Python knows") from None
        self._room = room
        self._encoding = encoding
        self._gone = gone
        self._session = room.queues.session(source=source)
        self.ended = False  # the program said that it ends in order
        self._verbs: dict[str, Callable[[Call], tuple[int, list[bytes]]]] = {
            "R": self._receive,
            "S": self._send,
            "E": self._switch,
            "D": self._switch,
            "C": self._count,
            "P": self._purge,
            "G": self._give_back,
            "I": self._initial,
            "Q": self._quit,
        }

    def answer(self, body: bytes) -> bytes:
        """Process a call; returns the frame of its answer. Raises ``FrameInvalid`` for an invalid call."""
        call = read_call(body)
        if call.verb not in self._verbs:
            raise FrameInvalid(f"there is no verb {call.verb!r}")
        try:
            result, fields = self._verbs[call.verb](call)
        except (AreaInvalid, IndexError) as error:
            raise FrameInvalid(str(error)) from None
        return write_answer(result, fields)

    def close(self, *, orderly: bool) -> None:
        """End: drops partial messages, unlocks, and commits received messages or puts them back."""
        self._session.close(orderly=orderly)

    # --- receive ---

    def _receive(self, call: Call) -> tuple[int, list[bytes]]:
        cd: InputDescription | IoDescription = (IoDescription if call.a else InputDescription)(call.fields[0])
        try:
            names = self._input_of(cd)
            if names is None:
                cd.write("status", status.UNKNOWN)
                return DATA, [bytes(cd.area), b""]
            received = self._next(names, call)
        except PostroomError as error:
            cd.write("status", _status_of(error))
            return DATA, [bytes(cd.area), b""]
        cd.write("status", status.DONE)
        message, portion = received.message, received.portion
        if message is None or portion is None:
            return NO_DATA, [bytes(cd.area), b""]
        text = message.body.encode(self._encoding)
        source = cd.text("source") if isinstance(cd, IoDescription) else message.properties.get(SOURCE)
        cd.received(message.created, source if isinstance(source, str) else "", len(text), portion.end.value)
        if isinstance(cd, InputDescription):
            cd.set_queues(portion.path)
        return DATA, [bytes(cd.area), text]

    def _input_of(self, cd: InputDescription | IoDescription) -> tuple[str, ...] | None:
        if isinstance(cd, InputDescription):
            return cd.queues
        input = self._terminal(cd).input
        return None if input is None else tuple(input.split("/"))

    def _terminal(self, cd: IoDescription) -> Source:
        return self._room.queues.find_source(cd.text("source"))

    def _next(self, names: tuple[str, ...], call: Call) -> Received:
        if call.c < 1:
            raise AreaShort(why="it has no characters at all")
        area = Area(min(call.c, COBOL_TEXT_MAX), self._encoding)
        wait = 0.0 if call.b & NO_WAIT else _LOOK_SECONDS
        while True:
            try:
                received = self._session.receive(names, area=area, segment=bool(call.b & SEGMENT), wait=wait)
            except (QueueHeld, QueueLocked):  # nothing can be received now; a waiting program goes on when it can
                received = Received(None)
            if received or not wait:
                return received
            if self._gone():
                raise ProgramGone

    # --- send ---

    def _send(self, call: Call) -> tuple[int, list[bytes]]:
        cd = _sending(call)
        destinations, early = self._destinations(cd)
        end = _end(call.fields[2])
        key = early or self._check_text(cd, call, end)
        if key is None:
            length = 0 if call.b == _NO_AREA else cd.number("length") or 0
            try:
                text = call.fields[1][:length].decode(self._encoding)
                statuses = self._send_all(destinations, text, end, _advancing(call))
            except UnicodeDecodeError:
                key = status.NOT_TEXT
            except PostroomError as error:
                key = _status_of(error)
            else:
                key = _tell(cd, statuses)
        cd.write("status", key)
        return DATA, [bytes(cd.area)]

    def _destinations(self, cd: OutputDescription | IoDescription) -> tuple[list[str], str | None]:
        """The queues of a CD, or the status of a CD without valid ones."""
        if isinstance(cd, OutputDescription):
            names = cd.destinations
            return (names, None) if names else ([], status.COUNT_INVALID)
        try:
            output = self._terminal(cd).output
        except PostroomError as error:
            return [], error.status
        return ([], status.UNKNOWN) if output is None else ([output], None)

    def _check_text(self, cd: OutputDescription | IoDescription, call: Call, end: End) -> str | None:
        length = cd.number("length")
        if call.b != _NO_AREA and (length is None or length > min(call.b, len(call.fields[1]))):
            return status.TOO_LONG
        if end is End.PARTIAL and (call.b == _NO_AREA or not length):
            return status.EMPTY_PARTIAL
        return None

    def _send_all(self, destinations: list[str], text: str, end: End, advancing: str) -> list[str]:
        """The status of each destination. Queues that are locked by a segmented read are retried for a while."""
        statuses = [status.UNKNOWN] * len(destinations)
        left = [place for place, name in enumerate(destinations) if name]
        give_up = monotonic() + LOCK_WAIT_SECONDS
        while left:
            keys = self._session.send([(destinations[place],) for place in left], text, end, advancing)
            for place, key in zip(left, keys, strict=True):
                statuses[place] = key
            left = [place for place in left if statuses[place] == status.LOCKED]
            if not left or monotonic() > give_up:
                break
            sleep(0.05)
        return statuses

    def _purge(self, call: Call) -> tuple[int, list[bytes]]:
        cd = _sending(call)
        destinations, key = self._destinations(cd)
        if key is None:
            key = _tell(cd, _each_named(destinations, self._session.purge))
        cd.write("status", key)
        return DATA, [bytes(cd.area)]

    def _give_back(self, call: Call) -> tuple[int, list[bytes]]:
        try:
            self._session.give_back()
        except PostroomError as error:
            _status_of(error)
            return NO_DATA, []
        return DATA, []

    # --- enable, disable, count ---

    def _switch(self, call: Call) -> tuple[int, list[bytes]]:
        disable = call.verb == "D"
        password = call.fields[1].decode("latin-1").rstrip(" \0") or " "  # an empty one must be wrong, not missing
        if call.a == DESTINATIONS:
            return self._switch_destinations(call, disable, password)
        cd: Description = IoDescription(call.fields[0]) if call.a == IO_TERMINAL else InputDescription(call.fields[0])
        try:
            if call.a == QUEUE and isinstance(cd, InputDescription):
                key = status.UNKNOWN if cd.queues is None else self._switch_queue(cd.queues, disable, password)
            else:
                switch = self._room.queues.disable_source if disable else self._room.queues.enable_source
                key = switch(cd.text("source"), password).status
        except PostroomError as error:
            key = _status_of(error)
        cd.write("status", key)
        return DATA, [bytes(cd.area)]

    def _switch_queue(self, names: tuple[str, ...], disable: bool, password: str) -> str:
        queues = self._room.queues
        held = queues.disable(*names, password=password, input_only=True) if disable else None
        return (held or queues.enable(*names, password=password)).status

    def _switch_destinations(self, call: Call, disable: bool, password: str) -> tuple[int, list[bytes]]:
        cd = OutputDescription(call.fields[0])
        destinations, key = self._destinations(cd)
        if key is None:
            wanted = Hold.OUTPUT if disable else Hold.NONE
            hold = partial(self._session.verbs.hold_each, wanted=wanted, password=password)
            try:
                key = _tell(cd, _each_named(destinations, hold))
            except PostroomError as error:
                key = _status_of(error)
        cd.write("status", key)
        return DATA, [bytes(cd.area)]

    def _count(self, call: Call) -> tuple[int, list[bytes]]:
        cd = InputDescription(call.fields[0])
        try:
            if cd.queues is None:
                cd.write("status", status.UNKNOWN)
            else:
                counted = self._session.verbs.accept(cd.queues, locked=True)
                cd.write("count", sum(queue.unprocessed for queue in counted.queues))
                cd.write("status", status.DONE)
        except PostroomError as error:
            cd.write("status", _status_of(error))
        return DATA, [bytes(cd.area)]

    # --- the beginning and the end of a program ---

    def _initial(self, call: Call) -> tuple[int, list[bytes]]:
        """Fill the CD of a program that a queue has started; for any other, blank its names."""
        cd: InputDescription | IoDescription = (IoDescription if call.a & IO else InputDescription)(call.fields[0])
        words = call.fields[1].decode(self._encoding, "replace").split()
        cd.begin()
        if "-arg" in words[:-1]:
            try:
                queue = self._queue(words[words.index("-arg") + 1])
                if isinstance(cd, InputDescription):
                    cd.set_queues(queue.path)
                else:
                    cd.write("source", self._terminal_of(queue.queue))
            except PostroomError as error:
                cd.write("status", _status_of(error))
        return DATA, [bytes(cd.area)]

    def _queue(self, name: str) -> QueueCount:
        """The queue that a reference names; the first if there are several."""
        return self._session.verbs.accept(tuple(name.split("/")), locked=True).queues[0]

    def _terminal_of(self, queue: str) -> str:
        """The terminal whose messages are in a queue; blank if there is none."""
        terminals = (source for source in self._room.queues.sources() if source.input is not None)
        return next((one.name for one in terminals if self._queue(str(one.input)).queue == queue), "")

    def _quit(self, call: Call) -> tuple[int, list[bytes]]:
        self.ended = True
        return DATA, []


def _sending(call: Call) -> OutputDescription | IoDescription:
    return (IoDescription if call.a & IO else OutputDescription)(call.fields[0])


def _end(key: bytes) -> End:
    """The end indicator of a send. Anything but 1, 2 and 3 counts as 0, as in the standard."""
    try:
        return End(key.decode("latin-1"))
    except ValueError:
        return End.PARTIAL


def _each_named(destinations: list[str], verb: Callable[[list[tuple[str, ...]]], Iterable[str]]) -> list[str]:
    """The status of each destination; one without a name is unknown."""
    answers = iter(verb([(name,) for name in destinations if name]))
    return [next(answers) if name else status.UNKNOWN for name in destinations]


def _tell(cd: OutputDescription | IoDescription, keys: list[str]) -> str:
    """Write the error keys of the destinations; returns the overall status."""
    if isinstance(cd, OutputDescription):
        cd.set_errors([status.error_key(key) for key in keys])
    return status.combined(keys)


def _advancing(call: Call) -> str:
    """The ADVANCING code: ``A3`` is after three lines, ``BP`` before a page; empty if not given.

    ``R`` after it, or alone, is REPLACING LINE, for whoever shows the text on a screen.
    """
    text = call.fields[3].decode("latin-1").strip()
    replacing = "R" if call.a & REPLACING else ""
    if call.c == _NO_LINES or not text:
        return replacing
    return text[:1] + ("P" if call.c == _PAGE else str(max(0, min(call.c, 999)))) + replacing


def _status_of(error: PostroomError) -> str:
    """The status key of an error; one without a key is also written to standard error."""
    if isinstance(error, OutputFailed):
        return status.LATE
    if isinstance(error, BodyError):
        return status.NOT_TEXT
    if error.status == status.FAILED:
        print(f"postroom: {error.code}: {error}", file=sys.stderr, flush=True)
    return error.status

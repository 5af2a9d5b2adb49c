"""One connection of ``postroom serve``: limits what a client costs, and sends the commonest message without a task."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from postroom.errors import PostroomError, RequestHeadTooLarge, RequestInvalid, TooManyRequests
from postroom.interfaces.http.app import Interface
from postroom.interfaces.http.contract import problems
from postroom.interfaces.http.handling import plain_sends
from postroom.interfaces.http.handling.repeated import RepeatedHead
from postroom.interfaces.http.handling.responses import SAFE, answer
from postroom.interfaces.http.handling.sends import Outcome
from postroom.limits import (
    ANSWER_READ_BYTES,
    ANSWER_READ_SECONDS,
    CONNECTIONS_MAX,
    REQUEST_HEAD_BYTES_MAX,
    REQUEST_HEAD_SECONDS,
    REQUEST_HEADERS_MAX,
)

_LINGER_SECONDS = 2.0  # for a client to read why it was refused
_NO_HTTP = "it is no HTTP/1.1"
_TOO_LONG = RequestHeadTooLarge(limit=f"{REQUEST_HEAD_BYTES_MAX} bytes")
_TOO_MANY = RequestHeadTooLarge(limit=f"{REQUEST_HEADERS_MAX} headers")


class JoinedWrites:
    """Joins the head of a response with what follows at once: one packet and one system call."""

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, close: Callable[[], None]
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._close = close
        self._head = b""

    def write(self, data: bytes) -> None:
        if self._transport.is_closing():  # the client has gone, and who writes has not heard of it
            return
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(b"HTTP/1.1 "):
            self._head = data
            self._loop.call_soon(self._flush)  # if nothing follows, the head does not wait for it
            return
        self._transport.write(data)

    def _flush(self) -> None:
        if self._head and not self._transport.is_closing():
            data, self._head = self._head, b""
            self._transport.write(data)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self._flush()
        self._close()


class BoundedProtocol(HttpToolsProtocol):
    """A connection that refuses a request whose head is too slow or too large, and ends if its client does not read.

    A request whose client has not read the answers before it is not begun: so an answer is written without a wait, and
    whoever writes it holds nothing meanwhile.

    A plain send that has come whole is not an ASGI request: its task, messages and answer would cost as much as sending
    the message. Whatever is unusual about it, or goes wrong, is answered by the application.
    """

    _head_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None
    _unread_bytes = 0
    _not_begun: tuple[Any, Any] | None = None
    _is_reading = False
    _read: tuple[Any, Any] | None = None  # a request to begin with when this piece of input has been read
    _answering: Any = None  # others of the same client may have come after it
    _repeated: RepeatedHead | None = None  # of the last request, if it was a plain send that came in one piece
    _head_bytes = 0
    _piece_bytes = 0
    _in_head = True
    _is_refused = False
    _refusal: PostroomError | None = None  # for which those before it have to be answered first

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._joined = JoinedWrites(transport, self.loop, self._close)
        self._head_timer = self.loop.call_later(REQUEST_HEAD_SECONDS, self._too_slow)

    def _too_slow(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self._close()

    def timeout_keep_alive_handler(self) -> None:
        if not self._is_answering():  # a send with a known head leaves the timer as it was
            self._too_slow()

    # --- a request ---

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._answering = cycle
        if self.flow.write_paused:
            self._not_begun = cycle, app
        elif self._is_reading:
            self._read = cycle, app
        else:
            self._begin(cycle, app)

    def _begin(self, cycle: Any, app: Any) -> None:
        if isinstance(app, Interface) and not cycle.more_body:
            began = perf_counter()
            if app.begin_send(cycle.scope, cycle.body, partial(self._sent, cycle, app, began)):
                return
        self._repeated = None
        super()._start_asgi_task(cycle, app)

    def _sent(self, cycle: Any, app: Interface, began: float, name: str, outcome: Outcome) -> None:
        """Answer a plain send."""
        if isinstance(outcome, BaseException):
            self._repeated = None
            super()._start_asgi_task(cycle, app.refusing_send(name, began, outcome))
            return
        if not self.transport.is_closing():
            self.transport.write(plain_sends.response(outcome, keeps=cycle.keep_alive))
        cycle.response_started = cycle.response_complete = True
        if not cycle.keep_alive:
            self._close()
        app.note_send(name, perf_counter() - began)
        self.on_response_complete()

    def _is_answering(self) -> bool:
        return self._answering is not None and not self._answering.response_complete

    # --- a client that does not read ---

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        waiting, self._not_begun = self._not_begun, None
        if self.transport.is_closing():  # or the client has gone, and reads nothing any more
            return
        self._forget_read_timer()
        if waiting is not None:
            self._begin(*waiting)

    def _close(self) -> None:
        """Close when all is read, or it takes too long."""
        self.transport.close()
        if self._read_timer is None:
            self._expect_reading()

    def _expect_reading(self) -> None:
        self._unread_bytes = self.transport.get_write_buffer_size()
        self._read_timer = self.loop.call_later(ANSWER_READ_SECONDS, self._look_whether_read)

    def _look_whether_read(self) -> None:
        if self._unread_bytes - self.transport.get_write_buffer_size() < ANSWER_READ_BYTES:
            self.transport.abort()
        else:
            self._expect_reading()

    def _forget_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def data_received(self, data: bytes) -> None:
        if self._is_refused:  # it is not read any more, until the client has its answer
            return
        if self._repeated is not None and self._sends_again(data):
            return
        between = self._is_between_requests()
        self._piece_bytes, self._is_reading = len(data), True
        super().data_received(data)
        self._is_reading = False
        if self._read is not None:
            (cycle, app), self._read = self._read, None
            self._repeated = RepeatedHead.of(data, len(cycle.body)) if between else None
            self._begin(cycle, app)
        if self._in_head and not self._is_refused:  # most heads come in one piece, and need neither timer nor count
            self._head_bytes += len(data)
            if self._head_bytes > REQUEST_HEAD_BYTES_MAX:
                self._refuse(_TOO_LONG)
            elif self._head_timer is None:
                self._head_timer = self.loop.call_later(REQUEST_HEAD_SECONDS, self._too_slow)

    def _sends_again(self, data: bytes) -> bool:
        """Begin a plain send with the same head as the one before, which need not be parsed again.

        False if it is anything else.
        """
        cycle, app = self.cycle, self.app
        body = None if self._repeated is None else self._repeated.body(data)
        usual = cycle.response_complete and cycle.keep_alive and not self.flow.write_paused
        if body is None or not usual or len(self.connections) > CONNECTIONS_MAX:
            return False
        if not app.begin_send(cycle.scope, body, partial(self._sent, cycle, app, perf_counter())):
            return False
        cycle.response_started = cycle.response_complete = False
        self._answering = cycle
        return True

    def _is_between_requests(self) -> bool:
        return self._head_bytes == 0 if self.cycle is None else not self._in_head and not self.cycle.more_body

    def on_message_begin(self) -> None:
        self._repeated = None
        self._in_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if len(self.headers) > REQUEST_HEADERS_MAX:
            raise _TOO_MANY
        if self._head_bytes + self._piece_bytes > REQUEST_HEAD_BYTES_MAX and self._head_size() > REQUEST_HEAD_BYTES_MAX:
            raise _TOO_LONG
        self._in_head = False
        self._forget_timer()
        if len(self.connections) > CONNECTIONS_MAX:
            self.app = _overloaded
        super().on_headers_complete()
        if self.cycle is not None:
            self.cycle.transport = self._joined  # type: ignore[assignment]  # it writes and closes, and no more

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser does not accept; called after it has raised."""
        raised = sys.exc_info()[1]
        cause = raised.__context__ if raised is not None else None
        self._refuse(cause if isinstance(cause, PostroomError) else RequestInvalid(where="request", why=_NO_HTTP))

    def _refuse(self, error: PostroomError) -> None:
        """Respond when all requests before it have their answers. Further input is discarded."""
        self._is_refused = True
        self._forget_timer()
        self._refusal = error
        if self.cycle is not None and self.cycle.more_body:  # it is the body of this one that is wrong
            self.pipeline = deque(waiting for waiting in self.pipeline if waiting[0] is not self.cycle)
            if self._answering is self.cycle:
                self._answering = None
        self._answer_refused()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._answer_refused()

    def _answer_refused(self) -> None:
        """Tell why the rest of the input is refused, if nothing before it is under way, and close soon after."""
        if self._refusal is None or self.pipeline or self._is_answering() or self.transport.is_closing():
            return
        error, self._refusal = self._refusal, None
        status, body = problems.problem(error)
        lines = [*problems.headers_of(error), *SAFE, (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
        head = b"".join(name + b": " + value + b"\r\n" for name, value in lines)
        self.transport.write(b"HTTP/1.1 %d \r\n%b\r\n%b" % (status, head, body))
        self._head_timer = self.loop.call_later(_LINGER_SECONDS, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_timer()
        self._forget_read_timer()
        self._not_begun = None
        if self._is_answering():
            self._answering.disconnected = True
            self._answering.message_event.set()
        super().connection_lost(exc)

    def _forget_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


async def _overloaded(scope: Any, receive: Any, send: Any) -> None:
    """Responds when there are too many connections."""
    error = TooManyRequests(who="the server", seconds=1)
    await answer(send, *problems.problem(error), [*problems.headers_of(error), (b"connection", b"close")])

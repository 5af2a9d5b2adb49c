"""The application: a room as ASGI. Every request is an operation of the table, called as the user of its token."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from time import monotonic, perf_counter
from typing import Any

from postroom import __version__
from postroom.errors import (
    ArgumentInvalid,
    MethodUnknown,
    PostroomError,
    RequestInvalid,
    ResourceUnknown,
    ServerFailed,
    TokenRefused,
    TooManyRequests,
)
from postroom.interfaces.http import pages
from postroom.interfaces.http.access import Caller, Callers
from postroom.interfaces.http.contract import openapi, problems
from postroom.interfaces.http.contract.operation import Need, Operation
from postroom.interfaces.http.contract.operations import TAKING
from postroom.interfaces.http.handling import calls, cloudevents, plain_sends, requests, streams
from postroom.interfaces.http.handling.plain_sends import PlainSend
from postroom.interfaces.http.handling.repeats import Repeats
from postroom.interfaces.http.handling.request_threads import RequestThreads
from postroom.interfaces.http.handling.requests import Disconnected, MethodWrong
from postroom.interfaces.http.handling.responses import Header, Send, answer, as_json, without_body, written
from postroom.interfaces.http.handling.sends import Outcome, Sends
from postroom.interfaces.http.handling.streams import Asked, Streams, disconnect
from postroom.interfaces.http.mounted import Mounted
from postroom.interfaces.http.observing import metrics, telemetry
from postroom.interfaces.http.observing.audit import NOTED, Audit, address
from postroom.interfaces.http.observing.metrics import Measured, Numbers
from postroom.interfaces.http.pace import Pace
from postroom.interfaces.http.services import Beside, Services
from postroom.interfaces.http.waiting.events import Changes, Tail
from postroom.interfaces.http.waiting.handover import HandOver
from postroom.interfaces.http.waiting.held import HeldSpheres
from postroom.interfaces.http.waiting.looks import Looks
from postroom.interfaces.web.site import Site
from postroom.limits import (
    ADDRESS_REFUSALS_AT_ONCE,
    ADDRESS_REFUSALS_PER_SECOND,
    LONG_POLL_SECONDS_MAX,
    REQUEST_QUEUE_MAX,
    REQUESTS_AT_ONCE,
    STOP_SECONDS,
    USER_REQUESTS_PER_SECOND,
)
from postroom.queues.verbs import Verbs
from postroom.room import Postroom

log = logging.getLogger("postroom.http")
Scope = Mapping[str, Any]
_LEAST_SECONDS = 1.0  # for what has not ended, if all of the time is over


@dataclass(frozen=True)
class Request:
    """An authorised call of an operation."""

    operation: Operation
    arguments: dict[str, Any]
    caller: Caller
    rights: int  # their version when they were looked at
    headers: Mapping[str, str]
    receive: Any
    send: Send


@dataclass(slots=True)
class Noted:
    """What is recorded of a request, for metrics."""

    operation: str = "none"
    principal: str = ""
    traceparent: str | None = None


class Interface:
    """An ASGI application on an open room, which the caller closes. Its threads live as long as its lifespan."""

    def __init__(self, room: Postroom, rate: float = USER_REQUESTS_PER_SECOND, beside: Sequence[Beside] = ()) -> None:
        self.room = room
        self._rate = rate  # requests of one user in a second
        self.ready = False
        self._started = False
        self.is_left = False  # whether something goes on in a thread that nobody waited for any more
        self._streams = Streams(self)
        self._beside = beside  # others that serve the room in the same process

    # --- beginning and end ---

    def start(self) -> None:
        """Start; called in the serving event loop."""
        if self._started:
            return
        self._started = True
        room = self.room
        self._callers = Callers(room)
        self._others: dict[str, Verbs] = {}
        self._pool = RequestThreads(REQUESTS_AT_ONCE, "postroom-request")
        self._looks = Looks(self._pool)
        self._inside_now = 0
        self._stopping = False
        self._stop_by = 0.0
        self._departures: set[asyncio.Task[bool]] = set()
        self._shared: dict[Hashable, asyncio.Future[Any]] = {}
        self._changes = Changes(room, self._callers.refresh)
        self.tail = Tail(room, self._changes, self.inside, self._callers.refresh)
        self.spheres = HeldSpheres()
        self._repeats = Repeats()
        self._measured = Measured()
        self._numbers = Numbers(room, self._measured)
        self._telemetry = telemetry.configured(self._measured, os.environ)
        self._sends = Sends(room._parts.verbs, self._others, self._measured.commit)
        self._site = Site(room, self._callers, self.tail, self.inside)
        self._mounted = Mounted(room, self._may_send)
        self._pace = Pace(self._rate, 2 * self._rate)
        self._strangers = Pace(ADDRESS_REFUSALS_PER_SECOND, ADDRESS_REFUSALS_AT_ONCE)
        self._audit = Audit(room, self.inside)
        self.ready = True

    async def stop(self) -> None:
        """Stop; the room stays open. Work that takes too long, such as the start of Spark, is abandoned."""
        if not self._started:
            return
        end = self._stop_by or monotonic() + STOP_SECONDS

        def left() -> float:
            return max(_LEAST_SECONDS, end - monotonic())

        self.ready = self._started = False
        self.tail.close()
        self.spheres.close()
        await asyncio.to_thread(self._mounted.stop)
        pages_ended = await asyncio.to_thread(lambda: self._site.close(left()))
        await self._audit.close()
        if self._telemetry is not None:
            await asyncio.to_thread(self._telemetry.close)
        await asyncio.to_thread(self._changes.close)
        sends_ended = await asyncio.to_thread(lambda: self._sends.close(left()))
        requests_ended = await asyncio.to_thread(lambda: self._pool.end(left()))
        self.is_left = not (pages_ended and sends_ended and requests_ended)
        if self.is_left:
            log.warning("stopped, though not all that was asked for has ended")

    def end_waiting(self) -> None:
        """End all long polls and event streams, because the server stops; called in its loop."""
        if self._started and not self._stopping:
            self._stopping, self.ready = True, False
            self._stop_by = monotonic() + STOP_SECONDS
            self._changes.wake()
            self.tail.end()
            for departure in list(self._departures):
                departure.cancel()

    def departure(self, receive: Any) -> asyncio.Task[bool]:
        """A task that is done when the client of a stream has disconnected, or the server stops."""
        task = asyncio.ensure_future(disconnect(receive))
        self._departures.add(task)
        task.add_done_callback(self._departures.discard)
        if self._stopping:
            task.cancel()
        return task

    @property
    def services(self) -> Services:
        """What other servers of the room share with this one; available after the start."""
        return Services(self.room, self._callers, self._others, self.inside, self._changes, self._sends)

    async def inside(self, work: Callable[[], Any]) -> Any:
        """Run blocking work in a thread; limits the running and the waiting calls."""
        if self._inside_now >= REQUEST_QUEUE_MAX:
            raise TooManyRequests(who="the server", seconds=1)
        self._inside_now += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._inside_now -= 1

    async def shared(self, what: Hashable, work: Callable[[], Any]) -> Any:
        """Like ``inside``, but concurrent callers with the same key share one call."""
        doing = self._shared.get(what)
        if doing is None:
            doing = self._shared[what] = asyncio.ensure_future(self.inside(work))
            doing.add_done_callback(lambda _: self._shared.pop(what, None))
        return await asyncio.shield(doing)

    # --- one request ---

    async def __call__(self, scope: Scope, receive: Any, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":  # nothing here speaks websocket
            await send({"type": "websocket.close", "code": 1003})
            return
        self.start()
        if scope["method"] == "HEAD":
            send = without_body(send)
        noted = Noted()
        await self._served(scope, send, noted, perf_counter(), self._serve(scope, receive, send, noted))

    async def _served(self, scope: Scope, send: Send, noted: Noted, began: float, serving: Awaitable[int]) -> None:
        """Answer a request, whatever happens, and record it."""
        status = 499  # the client has gone
        try:
            status = await self._answered(scope, send, noted, serving)
        finally:
            self._note(noted, status, perf_counter() - began)

    async def _answered(self, scope: Scope, send: Send, noted: Noted, serving: Awaitable[int]) -> int:
        try:
            return await serving
        except Disconnected:
            return 499
        except PostroomError as error:
            self._measured.refusals[error.code] += 1
            if isinstance(error, NOTED):
                self._audit.note(error, noted.principal or address(scope))
            return await _refuse(send, error)
        except Exception:
            incident = secrets.token_hex(4)
            detail = {"incident": incident, "operation": noted.operation}
            log.exception("incident %s at %s %s", incident, scope["method"], ascii(scope["path"])[:200], extra=detail)
            return await _refuse(send, ServerFailed(incident=incident))

    def _note(self, noted: Noted, status: int, seconds: float) -> None:
        """Count a finished request, and log it if configured."""
        self._measured.request(noted.operation, status, seconds)
        if self._telemetry is not None:
            self._telemetry.span(noted.operation, status, seconds, noted.traceparent, noted.principal)
        if log.isEnabledFor(logging.INFO):
            detail = {"operation": noted.operation, "principal": noted.principal, "status": status}
            log.info("request", extra=detail | {"seconds": round(seconds, 6)})

    async def _live(self, receive: Any, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self.start()
                for server in self._beside:
                    await server.start(self.services)
                await send({"type": "lifespan.startup.complete"})
            else:
                for server in self._beside:
                    await server.stop()
                await self.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _serve(self, scope: Scope, receive: Any, send: Send, noted: Noted) -> int:
        asked, path = scope["method"], requests.path_of(scope)
        plain = plain_sends.find(scope, path, self._callers)
        if plain is not None:
            return await self._send_plainly(plain, scope, receive, send, noted)
        if self._site.has(path):
            noted.operation = "pages"
            await self._site(scope, _path(scope), receive, send)
            return 200
        if self._mounted.takes(path):
            noted.operation = "gateways"
            await self._mounted(scope, receive, send)
            return 200
        method = "GET" if asked == "HEAD" else asked
        if method == "GET" and (public := self._public(path, requests.root_of(scope))) is not None:
            noted.operation = "public"
            await answer(send, *public)
            return public[0]
        headers: Mapping[str, str] = requests.head(scope)
        authorization, rights = headers.get("authorization", ""), self._callers.version
        caller = self._callers.known(authorization) or await self._found(authorization, address(scope))
        noted.principal, noted.traceparent = caller.name, headers.get("traceparent")
        self._pace.take(caller.name)
        if method == "GET" and path == "/metrics":
            noted.operation = "metrics"
            return await self._metrics(caller, send)
        if method == "GET" and path == "/me":
            noted.operation = "me"
            await answer(send, 200, as_json({"status": "00", "principal": caller.name}))
            return 200
        streamed = streams.find(asked, path)
        if streamed is not None:
            stream, named = streamed
            noted.operation = stream.name
            arguments = streams.arguments(named)
            if not self._callers.had(authorization, stream.need, arguments):
                require = partial(self._callers.require, caller, stream.need, arguments, authorization)
                await self._allowed(caller, stream.name, require, (authorization, stream.name, *named.values()))
            query = requests.query_of(scope["query_string"])
            asked = Asked(named, query, headers, authorization, caller, stream.need, rights, receive, send)
            await self._streams.serve(stream, asked)
            return 200
        noted.operation = self._routed(asked, path).name
        scope = scope if method == asked else {**scope, "method": method}
        return await self._operate(scope, headers, await requests.whole(receive, headers), receive, send)

    def _routed(self, method: str, path: str) -> Operation:
        """The operation of a request; raises with the allowed methods if only the method is wrong.

        HEAD is GET without the body. A stream has none: it would begin, and never be read.
        """
        try:
            return requests.route("GET" if method == "HEAD" else method, path)[0]
        except (ResourceUnknown, MethodWrong) as wrong:
            allowed = set(wrong.allowed) if isinstance(wrong, MethodWrong) else set()
            if path in ("/metrics", "/me") or self._public(path) is not None:
                allowed.add("GET")
            if "GET" in allowed:
                allowed.add("HEAD")
            allowed |= {stream.method for stream in streams.STREAMS if stream.pattern.fullmatch(path)}
            if not allowed:
                raise
            raise MethodUnknown(method=method[:20], path=path[:200], allowed=", ".join(sorted(allowed))) from None

    async def _send_plainly(self, plain: PlainSend, scope: Scope, receive: Any, send: Send, noted: Noted) -> int:
        """Fast path for a send with only a body; anything else goes to ``_operate``."""
        caller = plain.caller
        noted.operation, noted.principal = plain_sends.SEND, caller.name
        self._pace.take(caller.name)
        body = await requests.whole(receive, {})
        posting = plain.posting(body)
        if posting is None:
            return await self._operate(scope, requests.head(scope), body, receive, send)
        await plain_sends.answer(send, await self._sends.submit(posting))
        return 201

    def begin_send(self, scope: Scope, body: bytearray, tell: Callable[[str, Outcome], None]) -> bool:
        """Send a plain message without ASGI; ``tell`` is called with the sender and the outcome.

        False if the request needs the application, which also refuses what is wrong with it.
        """
        if not self._started:
            return False
        try:
            plain = plain_sends.find(scope, requests.path_of(scope), self._callers)
            posting = None if plain is None else plain.posting(body)
            if plain is None or posting is None:
                return False
            self._pace.take(plain.caller.name)
            self._sends.begin(posting, partial(tell, plain.caller.name))
        except Exception:  # nothing was sent; the application meets it again, and answers
            return False
        return True

    def note_send(self, name: str, seconds: float) -> None:
        """Record a plain send that was answered without ASGI."""
        self._note(Noted(plain_sends.SEND, name), 201, seconds)

    def refusing_send(self, name: str, began: float, error: BaseException) -> Callable[..., Awaitable[None]]:
        """An ASGI application that answers a plain send that has failed."""

        async def failed() -> int:
            raise error

        async def app(scope: Scope, receive: Any, send: Send) -> None:
            await self._served(scope, send, Noted(plain_sends.SEND, name), began, failed())

        return app

    async def _operate(self, scope: Scope, headers: Mapping[str, str], body: bytes, receive: Any, send: Send) -> int:
        """Call the operation of a request if its caller may. Rights are checked now, however long the body took."""
        method, path, authorization = scope["method"], requests.path_of(scope), headers.get("authorization", "")
        rights = self._callers.version
        caller = self._callers.known(authorization) or await self._found(authorization, address(scope))
        operation, in_path = requests.route(method, path)
        operation, arguments = calls.read(operation, in_path, scope["query_string"], headers, body)
        calls.prepare(operation, arguments, caller, headers)
        if not (operation.of == "queue" and self._callers.is_allowed(authorization, operation, _named(arguments))):
            allow = partial(self._callers.allow, caller, authorization, operation, arguments)
            await self._allowed(caller, operation.name, allow)
        request = Request(operation, arguments, caller, rights, headers, receive, send)
        key = headers.get("idempotency-key") if method != "GET" else None
        if key is None or "idempotency_key" in arguments:
            await self._do(request)
            return _status(operation)
        if operation.name in TAKING:
            raise RequestInvalid(where="Idempotency-Key", why="a received message is not delivered again; lease it")
        digest = blake2b(b"\0".join([method.encode(), path.encode(), scope["query_string"], body]), digest_size=16)
        do: Callable[[Send], Awaitable[None]] = lambda out: self._do(replace(request, send=out))  # noqa: E731
        await self._repeats.once(caller.name, key, digest.digest(), do, send)
        return _status(operation)

    async def _found(self, authorization: str, address: str) -> Caller:
        """The caller of a token that is new here. An address with many invalid tokens is slowed down."""
        if self._callers.is_stranger(authorization):
            self._strangers.check(address)
        try:
            caller: Caller = await self.shared(authorization, partial(self._callers.find, authorization))
        except TokenRefused:
            self._strangers.take(address)
            raise
        self._others[caller.name] = caller.room._parts.verbs
        return caller

    async def _may_send(self, queue: str, authorization: str) -> None:
        """Raise unless the user of a token may send to a gateway's queue."""
        caller = self._callers.known(authorization) or await self.inside(partial(self._callers.find, authorization))
        allow = partial(self._callers.require, caller, Need("send", "queue"), {"queue": (queue,)})
        await self._allowed(caller, "gateways", allow)

    async def _metrics(self, caller: Caller, send: Send) -> int:
        caller.identity.require("measure", "*")
        look = partial(self._numbers.text, waiting=self._inside_now, followers=self.tail.followers)
        await answer(send, 200, await self.inside(look), [(b"content-type", metrics.MEDIA_TYPE.encode())])
        return 200

    async def _allowed(
        self, caller: Caller, what: str, allow: Callable[[], None], same: Hashable | None = None
    ) -> None:
        """Raise unless the caller may; ``same`` is a key by which concurrent checks are shared."""
        try:
            await (self.inside(allow) if same is None else self.shared(same, allow))
        except PostroomError as refusal:
            detail = {"principal": caller.name, "operation": what, "code": refusal.code}
            log.warning("refused %s %s: %s", caller.name, what, refusal.code, extra=detail)
            raise

    async def confirm(self, authorization: str, rights: int, need: Need, arguments: Mapping[str, Any]) -> int:
        """Raise unless a right of an earlier version still holds; returns the current version."""
        if self._callers.holds(authorization, rights):
            return rights
        allow = partial(self._callers.require, need=need, arguments=arguments)
        now: int = await self.inside(partial(self._callers.confirm, authorization, rights, allow))
        return now

    async def _do(self, request: Request) -> None:
        operation, arguments, caller = request.operation, request.arguments, request.caller
        if operation.name == "queues.send" and not calls.WISHES & arguments.keys():
            sent = await self._sends.send(calls.posting(arguments, caller))
            await self._answer(request, sent)
        elif "wait" in arguments or operation.name in TAKING:
            await self._wait(request)
        else:
            await self._answer(request, await self._done(operation, arguments, caller))

    async def _done(self, operation: Operation, arguments: dict[str, Any], caller: Caller) -> Any:
        if operation.part in ("sphere", "held"):
            id = arguments.pop("sphere")
            held = await self.inside(partial(self.spheres.find, caller.room, caller.name, id))
            if operation.verb == "heartbeat":
                return await self.inside(held.heartbeat)
            whole = operation.part == "held"
            work = held.do(lambda sphere: operation.call(held if whole else sphere, arguments))
            return await asyncio.wrap_future(work)
        if operation.name == "spheres.open":
            held = await self.inside(partial(self.spheres.open, caller.room, caller.name, arguments))
            return held.id
        result = await self.inside(partial(calls.called, operation, arguments, caller))
        if operation.name == "consumers.schedules":
            return await self.inside(partial(self._callers.seen, caller.identity, result))
        if operation.name == "spheres.abort":
            self.spheres.let_go(arguments["id"])
        if operation.right == "operate" and operation.method != "GET":
            await self.inside(self._callers.refresh)
        return result

    async def _answer(self, request: Request, result: Any, *, ends: bool = True) -> None:
        more: list[Header] = []
        body = cloudevents.outgoing(result, request.headers, more)
        if body is None:
            body = written(result, request.operation.answer, request.arguments, request.headers)
        await answer(request.send, _status(request.operation), body, [*more, *calls.trace(result)], ends=ends)

    # --- waiting ---

    async def _wait(self, request: Request) -> None:
        """Deliver the next message, or wait for one while the client is connected."""
        wait = request.arguments.pop("wait", 0.0)
        if not 0 <= wait <= LONG_POLL_SECONDS_MAX:
            raise ArgumentInvalid(argument="wait", why=f"seconds from 0 to {LONG_POLL_SECONDS_MAX:.0f}")
        gone, queue = asyncio.ensure_future(disconnect(request.receive)), request.arguments.get("queue")
        again = partial(self._confirm, request, dict(request.arguments))
        question = calls.question(request.operation, request.arguments, request.headers)
        take = calls.taking(request.operation, request.arguments, request.caller)
        if request.operation.part == "sphere":
            held = await self.inside(
                partial(self.spheres.find, request.caller.room, request.caller.name, request.arguments.pop("sphere"))
            )
            take = calls.in_sphere(held, request.operation, request.arguments)
        handing = HandOver(take, gone, partial(self._answer, request, ends=False), again)
        try:
            pause = partial(calls.pause, request.caller.room, queue)
            await self._wait_for(handing, gone, monotonic() + wait, pause, question)
            if handing.written:  # it is final now: the client need not wait any more
                await request.send({"type": "http.response.body", "body": b""})
            elif not gone.done():
                await self._answer(request, handing.nothing())
        except PostroomError as error:  # an answer that has begun is cut off: the client does not take it for whole
            if not handing.written:
                raise
            log.warning("%s of %s: %s", request.operation.name, request.caller.name, error)
        finally:
            gone.cancel()

    def _confirm(self, request: Request, arguments: Mapping[str, Any]) -> None:
        """Raise unless the waiting caller still has the right."""
        authorization, operation = request.headers.get("authorization", ""), request.operation
        allow = partial(self._callers.allow, authorization=authorization, operation=operation, arguments=arguments)
        self._callers.confirm(authorization, request.rights, allow)

    async def _wait_for(
        self, handing: HandOver, gone: asyncio.Future[bool], end: float, pause: Callable[[], float], question: Hashable
    ) -> None:
        looks, armed = self._looks, self._changes.arm()

        def is_over() -> bool:
            return handing.written or gone.done() or self._stopping or monotonic() >= end

        await self.inside(handing.attempt)
        if is_over():
            return
        async with looks.turn:
            quiet = await looks.quiet(question, armed, pause, handing.outcome)
        while not is_over():
            by_change = await _changed(armed, gone, min(end, quiet.until) - monotonic())
            async with looks.turn:
                armed = self._changes.arm()
                known = looks.known(question, armed) if by_change else None
                if known is None:
                    await looks.one(handing.attempt)
                    if is_over():
                        return
                    known = await looks.quiet(question, armed, pause, handing.outcome)
                quiet, handing.outcome = known, known.outcome

    # --- without a token ---

    def _public(self, path: str, root: str = "") -> tuple[int, bytes] | tuple[int, bytes, list[Header]] | None:
        if path == "/health/live":
            return 200, as_json({"status": "00", "version": __version__})
        if path == "/health/ready":
            ready = self.ready and not self.room.store.stopped
            return (200, as_json({"status": "00"})) if ready else (503, as_json({"status": "99"}))
        if path == "/openapi.json":
            return 200, openapi.text(root)
        return pages.find(path)


async def _changed(armed: asyncio.Event, gone: asyncio.Future[bool], seconds: float) -> bool:
    """Wait for a change; False if the client has disconnected, or the time is over."""
    changed: asyncio.Future[bool] = asyncio.ensure_future(armed.wait())
    try:
        await asyncio.wait([changed, gone], timeout=max(0.0, seconds), return_when="FIRST_COMPLETED")
        return changed.done()
    finally:
        changed.cancel()


def _status(operation: Operation) -> int:
    return 201 if operation.name == "queues.send" else 200


def _named(arguments: Mapping[str, Any]) -> str:
    return "/".join(arguments["queue"])


def _path(scope: Scope) -> str:
    """The path below the mount point."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", "")) or "/"


async def _refuse(send: Send, error: PostroomError) -> int:
    status, body = problems.problem(error)
    await answer(send, status, body, problems.headers_of(error))
    return status

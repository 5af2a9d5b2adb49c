"""The connection of one client: its frames in order, its subscriptions and its transactions.

Sends are submitted as they come, and share commits with those of all clients. Every other frame waits until the sends
before it are on disk. A receipt is sent after the commit. An error ends the connection.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

from postroom import __version__
from postroom.errors import (
    ArgumentInvalid,
    ClientSlow,
    LeaseOver,
    PostroomError,
    RequestInvalid,
    ServerFailed,
    ServerStopping,
    TokenRefused,
    TooManyRequests,
)
from postroom.flows.visiting import Visits
from postroom.interfaces.http.access import Caller
from postroom.interfaces.http.services import Services
from postroom.interfaces.stomp.access import RECEIVE, SEND, Rights, identified
from postroom.interfaces.stomp.frames import BEAT, Frame, Parser, written
from postroom.interfaces.stomp.messages import Destination, posting
from postroom.interfaces.stomp.subscriptions import Asked, Subscription
from postroom.interfaces.stomp.transactions import Transactions
from postroom.limits import (
    REQUEST_BODY_SECONDS,
    REQUEST_HEAD_SECONDS,
    STOMP_BEAT_SECONDS,
    STOMP_ID_CHARS_MAX,
    STOMP_PENDING_BYTES_MAX,
    STOMP_SENDS_MAX,
    STOMP_SUBSCRIPTIONS_MAX,
    STOMP_WRITE_SECONDS,
)
from postroom.queues.leases.leasing import Ended
from postroom.queues.results import Sent
from postroom.queues.sending import Posting

log = logging.getLogger("postroom.stomp")
VERSIONS = ("1.2", "1.1")
_READ_BYTES = 256 * 1024
_WATCH_SECONDS, _FIRST_SECONDS = 5.0, 0.5
_RETRY_SECONDS = 0.005


class _Beats(NamedTuple):
    """Heart-beat intervals in seconds, to the client and from it; 0 for none."""

    out: float = 0.0
    come: float = 0.0


class Session:
    """One connection, from its first byte to its end."""

    def __init__(
        self, services: Services, visits: Visits, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._services = services
        self._visits = visits
        self._reader = reader
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._parser = Parser()
        self._rights: Rights | None = None  # None until the client has said who it is
        self._version = VERSIONS[0]
        self._subscriptions: dict[str, Subscription] = {}
        self._acks: dict[str, Subscription] = {}
        self._transactions = Transactions()
        self._sends: set[asyncio.Future[Sent]] = set()
        self._pending_bytes = 0
        self._beats = _Beats()
        self._heard = self._begun = self._wrote = self._loop.time()
        self._draining = asyncio.Lock()
        self._error: PostroomError | None = None  # that ends the connection
        self._receipt: str | None = None  # that the frame asked for which led to it
        self._over = False
        self._frames: dict[str, Callable[[Frame], Awaitable[None]]] = {
            "SUBSCRIBE": self._subscribe,
            "UNSUBSCRIBE": self._unsubscribe,
            "BEGIN": self._begin,
            "COMMIT": self._commit,
            "ABORT": self._abort,
            "DISCONNECT": self._disconnect,
        }

    # --- the connection ---

    async def run(self) -> None:
        """Serve the client until it disconnects or is refused."""
        watching = asyncio.create_task(self._watch())
        try:
            await self._read()
            await self._settled()
        except PostroomError as error:
            self.end(error)
        except (OSError, asyncio.IncompleteReadError):
            self._over = True
        except Exception:
            incident = secrets.token_hex(4)
            log.exception("incident %s of a STOMP client", incident)
            self.end(ServerFailed(incident=incident))
        finally:
            watching.cancel()
            await self._finish()

    async def _read(self) -> None:
        while not self._over:
            data = await self._reader.read(_READ_BYTES)
            if not data:
                return
            self._heard = self._loop.time()
            if not self._parser.partial:
                self._begun = self._heard
            await self._handle_all(self._parser.feed(data))
            if self._writer.transport.get_write_buffer_size():
                await self._drain()

    async def _handle_all(self, frames: list[Frame]) -> None:
        """Handle frames; consecutive acknowledgements share one commit."""
        acks: list[Frame] = []
        for frame in frames:
            if self._over:
                return
            self._receipt = frame.headers.get("receipt")
            if frame.command in ("ACK", "NACK") and "transaction" not in frame.headers:
                acks.append(frame)
                continue
            if acks:
                await self._acknowledge(acks)
                acks = []
                self._receipt = frame.headers.get("receipt")
            await self._handle(frame)
        if acks:
            await self._acknowledge(acks)

    async def _handle(self, frame: Frame) -> None:
        _check_ids(frame)
        if self._rights is None:
            await self._connect(frame)
        elif frame.command == "SEND":
            await self._send(frame)
        elif frame.command in ("ACK", "NACK"):
            self._transactions.add_ends(frame.headers["transaction"], self._ends(frame))
            self._confirm(frame)
        elif frame.command in self._frames:
            await self._settled()
            await self._frames[frame.command](frame)
        else:
            raise RequestInvalid(where=frame.command, why="the client is connected already")

    def end(self, error: PostroomError) -> None:
        """Close the connection with an error; from within the loop."""
        if self._error is None and not self._over:
            self._error = error
        self._over = True
        self._read_no_more()

    def _read_no_more(self) -> None:
        transport: Any = self._writer.transport  # of a socket: it reads, too
        if not transport.is_closing():
            transport.pause_reading()  # what came behind would fall into a closed reader
        self._reader.feed_eof()

    def stop(self) -> None:
        """The server stops: finish running work."""
        self.end(ServerStopping())

    async def _finish(self) -> None:
        await asyncio.gather(*self._sends, return_exceptions=True)
        every, self._subscriptions = self._subscriptions.values(), {}
        for outcome in await asyncio.gather(*map(self._left, every), return_exceptions=True):
            if isinstance(outcome, BaseException):  # the end of a lease, or of this process, gives them back
                log.warning("a STOMP client left: %r", outcome)
        try:
            if self._error is not None:
                self._writer.write(_written_error(self._error, self._receipt))
            self._writer.close()
            await asyncio.wait_for(self._writer.wait_closed(), REQUEST_HEAD_SECONDS)
        except (OSError, TimeoutError):
            self._writer.transport.abort()

    def _put(self, data: bytes) -> None:
        if not self._writer.transport.is_closing():
            self._wrote = self._loop.time()
            self._writer.write(data)

    async def _write(self, data: bytes) -> None:
        """Write, and wait until the client has read enough; for large output."""
        self._put(data)
        await self._drain()

    async def _drain(self) -> None:
        async with self._draining:
            try:
                await asyncio.wait_for(self._writer.drain(), STOMP_WRITE_SECONDS)
            except TimeoutError:
                self._writer.transport.abort()
                raise ConnectionAbortedError("the client does not read") from None

    async def _watch(self) -> None:
        """Send heart-beats, and close on a missing one or an incomplete frame."""
        while True:
            beats = [beat / 2 for beat in self._beats if beat]
            await asyncio.sleep(min([_FIRST_SECONDS if self._rights is None else _WATCH_SECONDS, *beats]))
            now = self._loop.time()
            if self._beats.out and now - self._wrote >= self._beats.out / 2 - 0.001:
                self._put(BEAT)
            why = self._lateness(now)
            if why is not None:
                self.end(ClientSlow(why=why))

    def _lateness(self, now: float) -> str | None:
        if self._rights is None and now - self._begun > REQUEST_HEAD_SECONDS:
            return f"it did not connect within {REQUEST_HEAD_SECONDS:.0f} s"
        if self._parser.partial and now - self._begun > REQUEST_BODY_SECONDS and now - self._heard > 1:
            return f"a frame was not finished within {REQUEST_BODY_SECONDS:.0f} s"
        if self._beats.come and now - self._heard > 2 * self._beats.come + 1:
            return f"nothing came from it for {now - self._heard:.0f} s, and it promised a heart-beat"
        return None

    def _confirm(self, frame: Frame) -> None:
        receipt = frame.headers.get("receipt")
        if receipt is not None:
            self._put(written("RECEIPT", [("receipt-id", receipt)]))

    # --- the first frame ---

    async def _connect(self, frame: Frame) -> None:
        if frame.command not in ("CONNECT", "STOMP"):
            raise RequestInvalid(where=frame.command, why="the first frame is CONNECT")
        versions = [version.strip() for version in frame.headers.get("accept-version", "1.0").split(",")]
        common = [version for version in VERSIONS if version in versions]
        if not common:
            self._put(written("ERROR", _no_version(versions)))
            self._over = True
            return
        self._version = common[0]
        beats = _beats_of(frame.headers.get("heart-beat", "0,0"))
        passcode = frame.headers.get("passcode")
        if not passcode:
            raise TokenRefused(why="give the name of a user as login, and a token as passcode")
        find = partial(identified, self._services.callers, frame.headers.get("login"), passcode)
        authorization, caller = await self._services.inside(find)
        self._rights = Rights(self._services, authorization, caller)
        self._beats = beats
        offered = f"{STOMP_BEAT_SECONDS * 1000:.0f}"
        headers = [
            ("version", self._version),
            ("heart-beat", f"{offered},{offered}"),
            ("server", f"postroom/{__version__}"),
            ("session", secrets.token_hex(8)),
            ("user-name", caller.name),
        ]
        self._put(written("CONNECTED", headers))

    @property
    def _known(self) -> Rights:
        assert self._rights is not None, "only CONNECT comes before"
        return self._rights

    # --- sending ---

    async def _send(self, frame: Frame) -> None:
        to = Destination.of(frame.need("destination"))
        rights = self._known
        caller: Caller = rights.caller if rights.has(SEND, to) else await rights.require(SEND, to)
        wanted = posting(frame, to, caller.name)
        transaction = frame.headers.get("transaction")
        if transaction is not None:
            self._transactions.add_send(transaction, wanted, to, len(frame.body))
            self._confirm(frame)
            return
        while len(self._sends) >= STOMP_SENDS_MAX or self._pending_bytes > STOMP_PENDING_BYTES_MAX:
            await asyncio.wait(self._sends, return_when=asyncio.FIRST_COMPLETED)
        future = await self._submitted(wanted)
        self._pending_bytes += len(frame.body)
        self._sends.add(future)
        future.add_done_callback(partial(self._sent, frame))

    async def _submitted(self, wanted: Posting) -> asyncio.Future[Sent]:
        while True:
            try:
                return self._services.sends.submit(wanted)
            except TooManyRequests:  # the client waits: nothing more is read from it
                await asyncio.sleep(_RETRY_SECONDS)

    def _sent(self, frame: Frame, future: asyncio.Future[Sent]) -> None:
        self._sends.discard(future)
        self._pending_bytes -= len(frame.body)
        error = future.exception()
        if error is None:
            if self._error is None:
                self._confirm(frame)
        elif self._error is None:
            self._receipt = frame.headers.get("receipt")
            ours = error if isinstance(error, PostroomError) else ServerFailed(incident=secrets.token_hex(4))
            if ours is not error:
                log.error("incident %s: a send of a STOMP client failed: %r", ours.facts["incident"], error)
            self.end(ours)

    async def _settled(self) -> None:
        """Wait until all earlier sends are on disk."""
        while self._sends:
            await asyncio.wait(self._sends)
        if self._error is not None:
            raise self._error

    # --- receiving ---

    async def _subscribe(self, frame: Frame) -> None:
        asked = Asked.of(frame)
        if asked.id in self._subscriptions:
            raise ArgumentInvalid(argument="id", why=f"{asked.id!r} is a subscription of this connection already")
        if len(self._subscriptions) >= STOMP_SUBSCRIPTIONS_MAX:
            raise ArgumentInvalid(argument="id", why=f"at most {STOMP_SUBSCRIPTIONS_MAX} subscriptions of a connection")
        caller = await self._known.require(RECEIVE, asked.to)
        queue = await self._services.inside(partial(self._queue_of, asked, caller))
        made = Subscription(asked, queue, self._known, self._services, self._write, self.end, self._acks)
        self._subscriptions[asked.id] = made
        self._confirm(frame)

    def _queue_of(self, asked: Asked, caller: Caller) -> tuple[str, ...]:
        """The queue of a subscription; for a topic, the space of a new subscriber."""
        room = caller.room
        with room.store.acting(caller.name):
            if not asked.to.topic:
                room._parts.verbs.accept(asked.to.names, locked=True)
                return asked.to.names
            name = asked.id if asked.durable else None
            return (self._visits.begin(room._parts.by, asked.to.name, asked.pattern, name).client,)

    async def _unsubscribe(self, frame: Frame) -> None:
        subscription = self._subscriptions.pop(frame.need("id"), None)
        if subscription is None:
            raise ArgumentInvalid(argument="id", why=f"{frame.headers['id']!r} is no subscription of this connection")
        await self._left(subscription, forever=frame.headers.get("durable") == "true")
        self._confirm(frame)

    async def _left(self, subscription: Subscription, *, forever: bool = False) -> None:
        await subscription.stop()
        asked = subscription.asked
        if asked.to.topic:
            by, name = self._known.caller.room._parts.by, subscription.queue[0]
            end = partial(self._visits.end, name, by, forever=forever or not asked.durable)
            await self._services.inside(end)

    def _ends(self, frame: Frame) -> list[tuple[Subscription, Ended]]:
        """The leases that an ACK or NACK ends."""
        if self._version == "1.2":
            id = frame.need("id")
            subscription = self._acks.get(id)
        else:
            id = frame.need("message-id")
            subscription = self._subscriptions.get(frame.need("subscription"))
        fence = None if subscription is None else subscription.fence_of(id)
        if subscription is None or fence is None:
            raise LeaseOver(lease=id, why="no message of this connection waits for this acknowledgement")
        reason, final = None, False
        if frame.command == "NACK":
            reason = frame.headers.get("reason", "").strip() or "its client refused it"
            final = frame.headers.get("requeue") == "false"
        return [(subscription, Ended(lease, reason, final)) for lease in subscription.meant(fence)]

    async def _acknowledge(self, frames: list[Frame]) -> None:
        if self._rights is None:
            raise RequestInvalid(where=frames[0].command, why="the first frame is CONNECT")
        await self._settled()
        ends: dict[int, tuple[Subscription, Ended]] = {}
        wrong: PostroomError | None = None
        for frame in frames:
            try:
                _check_ids(frame)
                ends |= {ended.fence: (subscription, ended) for subscription, ended in self._ends(frame)}
            except PostroomError as error:  # those before it are acknowledged all the same
                self._receipt, wrong = frame.headers.get("receipt"), error
                break
        over = await self._end_all(list(ends.values()))
        if over is not None or wrong is not None:
            raise over or wrong or AssertionError
        for frame in frames:
            self._confirm(frame)

    async def _end_all(self, ends: list[tuple[Subscription, Ended]]) -> LeaseOver | None:
        """End leases in one commit for each subscription; returns the first that was over before."""
        first: LeaseOver | None = None
        for subscription in {id(subscription): subscription for subscription, _ in ends}.values():
            some = [ended for owner, ended in ends if owner is subscription]
            first = first or next((over for over in await subscription.end(some) if over is not None), None)
        return first

    # --- transactions ---

    async def _begin(self, frame: Frame) -> None:
        self._transactions.begin(frame.need("transaction"))
        self._confirm(frame)

    async def _commit(self, frame: Frame) -> None:
        wanted = self._transactions.end(frame.need("transaction"))
        if wanted.destinations:
            await self._services.inside(self._services.callers.refresh)  # rights may have changed since they were sent
        for to in wanted.destinations:
            await self._known.require(SEND, to)
        caller = self._known.caller
        if wanted.sends or wanted.ends:
            await self._services.inside(partial(_committed, caller, wanted.sends, [ended for _, ended in wanted.ends]))
        for subscription, ended in wanted.ends:
            subscription.forget([ended.fence])
        self._confirm(frame)

    async def _abort(self, frame: Frame) -> None:
        self._transactions.end(frame.need("transaction"))
        self._confirm(frame)

    async def _disconnect(self, frame: Frame) -> None:
        every, self._subscriptions = self._subscriptions.values(), {}
        for subscription in every:
            await self._left(subscription)
        self._confirm(frame)
        self._over = True


def _committed(caller: Caller, sends: list[Posting], ends: list[Ended]) -> None:
    with caller.room.store.acting(caller.name):
        caller.room._parts.together.commit(sends, ends)


def _check_ids(frame: Frame) -> None:
    for name in ("receipt", "id", "transaction"):
        if len(frame.headers.get(name, "")) > STOMP_ID_CHARS_MAX:
            raise RequestInvalid(where=f"{frame.command} {name}", why=f"at most {STOMP_ID_CHARS_MAX} characters")


def _beats_of(text: str) -> _Beats:
    """The heart-beat intervals: the slower of the client's and the server's."""
    can, wants = [*text.split(","), ""][:2]
    if text.count(",") != 1 or not all(
        number.strip().isascii() and number.strip().isdigit() for number in (can, wants)
    ):
        raise RequestInvalid(where="CONNECT heart-beat", why="two numbers of milliseconds, with a comma between")
    come, out = (min(int(number.strip()[:9]), 86_400_000) / 1000 for number in (can, wants))
    return _Beats(max(out, STOMP_BEAT_SECONDS) if out else 0.0, max(come, STOMP_BEAT_SECONDS) if come else 0.0)


def _no_version(versions: list[str]) -> list[tuple[str, str]]:
    message = f"none of the versions {', '.join(versions)[:60]} is known"
    return [("version", ",".join(reversed(VERSIONS))), ("message", message), ("code", RequestInvalid.code)]


def _written_error(error: PostroomError, receipt: str | None) -> bytes:
    """An ERROR frame: code, text, and advice."""
    body = f"{error}\n{error.advice}\n".encode(errors="backslashreplace")
    headers = [
        ("message", str(error)[:1000]),
        ("code", error.code),
        ("happened", error.happened),
        ("advice", error.advice),
        ("content-type", "text/plain"),
        ("content-length", str(len(body))),
    ]
    if receipt is not None:
        headers.append(("receipt-id", receipt))
    return written("ERROR", headers, body)

"""The verbs of queues."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

from postroom.errors import ArgumentInvalid
from postroom.model.arguments import check_methods
from postroom.model.body import TEXT, Format, check_text
from postroom.model.message import (
    NO_PROPERTIES,
    Draft,
    Value,
    cause_number,
    format_of,
    given_properties,
    looks_like,
)
from postroom.model.moment import to_microseconds
from postroom.model.progress import OnProgress
from postroom.queues.holding import Password
from postroom.queues.leases.tracing import TRACE, current_trace
from postroom.queues.limits import wanted
from postroom.queues.repeating import checked_key
from postroom.queues.results import Accepted, Distributed, Held, Listing, Received, Sent, SentMany
from postroom.queues.segments import SOURCE, Area, composed
from postroom.queues.sending import Posting, Wish
from postroom.queues.tree.addressing import said
from postroom.room.parts import RoomPart
from postroom.room.paths import path_of
from postroom.store.kernel.queues import Hold

if TYPE_CHECKING:
    from postroom.exchange.bulk import Intake, SentFile, SentParts, StoreIntake
    from postroom.exchange.message_writer import MessageFile
    from postroom.model.tables import Table
    from postroom.queues.leases.leased import Leased
    from postroom.queues.selectors import Selector
    from postroom.queues.sessions import QueueSession
    from postroom.queues.sources import SourceShown
    from postroom.store.tables.sources import Source


class RoomQueues(RoomPart):
    """Creating queues, sending, receiving, browsing, holding."""

    def handle(self, *names: str) -> QueueHandle:
        """One queue or level, as an object with methods."""
        return QueueHandle(self, names)

    def create(
        self, name: str, *, keep_processed: bool = True, password: str | None = None, exist_ok: bool = False
    ) -> QueueHandle:
        """Create a queue without a description. With ``exist_ok`` it may exist already."""
        self._parts.administration.create(name, keep_processed=keep_processed, password=password, exist_ok=exist_ok)
        return QueueHandle(self, (name,))

    def remove(self, name: str) -> None:
        """Remove a queue that has no unprocessed messages and is in no description; its history stays readable."""
        from postroom.room.loading import check_rules

        self._parts.administration.remove(name, check_rules)

    def set_mode(self, *queue: str, keep_processed: bool) -> list[str]:
        """Keep or discard processed messages; returns the queues whose mode changed."""
        return self._parts.administration.set_mode(queue, keep_processed=keep_processed)

    def set_password(self, *queue: str, password: str, old: str | None = None) -> None:
        """Set the password of a queue or level. ``old`` is the one it has, or else that of the nearest level above."""
        self._parts.administration.set_password(queue, password, old=old)

    def has_password(self, *queue: str) -> bool:
        """Whether a queue or level, or one above it, has a password."""
        return self._parts.administration.has_password(queue)

    def send(
        self,
        queue: str | Sequence[str],
        body: Any,
        *,
        format: str | Format | None = None,
        type: str | None = None,
        properties: Mapping[str, Value] | None = None,
        idempotency_key: str | None = None,
        cause: str | None = None,
        source: str | None = None,
        priority: int = 0,
        delay: float | None = None,
        at: datetime | None = None,
        expires: float | None = None,
        reply_to: str | None = None,
        correlation: str | None = None,
        wait: float | None = None,
    ) -> Sent:
        """Send one message. When this returns, the message is on disk.

        A string is text unless ``format`` says ``xml`` or ``json``; a dict or list becomes JSON. Without ``format``, in
        a queue that rules or counters read, a string that begins like XML or JSON must be a valid document. A repeated
        call with the same ``idempotency_key`` creates no second message and returns the first one's key. ``cause`` is
        the key of the message that caused this one, for ``trace``. If the body is a message of this room, its content
        is sent again, and it is the cause unless another is given. ``source`` is the terminal that it comes from; it
        must exist and be enabled, and becomes a property of the message.

        A message with a higher ``priority``, 0 to 9, is received before others of its queue. With ``delay``, seconds,
        or ``at``, a time (UTC if it has no zone), it is delivered later; it keeps its place in the queue. After
        ``expires`` seconds it is no longer delivered. ``reply_to`` and ``correlation`` are properties of these names.
        ``wait`` is how many seconds to wait for room in a full queue.
        """
        if reply_to is not None or correlation is not None or source is not None:
            properties = _with(properties, {"reply_to": reply_to, "correlation": correlation, SOURCE: source})
        draft, unsaid = _drafted(body, format, type, properties)
        asked = priority != 0 or delay is not None or at is not None or expires is not None
        wish = _wish(priority, delay, at, expires) if asked else None
        verbs, path, number = self._parts.verbs, said(queue), cause_number(body, cause)
        if wait is None:
            return verbs.send(path, draft, idempotency_key, number, wish, source, unsaid=unsaid)
        send = partial(verbs.send, path, draft, idempotency_key, number, wish, source, unsaid=unsaid)
        return verbs.send_waiting(wait, send)

    def _posting(
        self,
        queue: str | Sequence[str],
        body: Any,
        format: str | Format | None = None,
        type: str | None = None,
        properties: Mapping[str, Value] | None = None,
        idempotency_key: str | None = None,
        cause: str | None = None,
    ) -> Posting:
        """A checked send with all its options."""
        draft, unsaid = _drafted(body, format, type, properties)
        number = cause_number(body, cause)
        return Posting(said(queue), draft, idempotency_key, number, self._parts.store.actor, unsaid)

    def _posting_of(self, queue: str | Sequence[str], body: Any) -> Posting:
        """The same without options; of a text by a shorter way, whose calls are what it costs."""
        if not isinstance(body, str) or current_trace.get() is not None:
            return self._posting(queue, body)
        check_text(body)
        draft = tuple.__new__(Draft, (body, "text", None, NO_PROPERTIES))
        actor, unsaid = self._parts.store.actor, looks_like(body) is not TEXT
        return tuple.__new__(Posting, (said(queue), draft, None, None, actor, unsaid))

    def send_segments(
        self,
        queue: str | Sequence[str],
        segments: Sequence[str],
        *,
        group: bool = False,
        properties: Mapping[str, Value] | None = None,
        source: str | None = None,
        idempotency_key: str | None = None,
    ) -> Sent:
        """Send one message in segments, which may contain line ends. ``group``: it is the last one of a group."""
        if isinstance(segments, str) or not segments:
            raise ArgumentInvalid(argument="segments", why="give a list with at least one segment")
        body, complete = composed(segments, group=group, source=source, properties=properties)
        draft = Draft.of(body, properties=complete or None)
        return self._parts.verbs.send(said(queue), draft, idempotency_key, source=source)

    def send_many(
        self,
        queue: str | Sequence[str],
        bodies: Iterable[Any],
        *,
        format: str | Format | None = None,
        type: str | None = None,
        properties: Mapping[str, Value] | None = None,
        idempotency_key: str | None = None,
    ) -> SentMany:
        """Send many messages in one commit: all of them, in their order, or none.

        A repeated call with the same ``idempotency_key`` sends nothing and returns the same keys.
        """
        if isinstance(bodies, (str, bytes)):
            raise ArgumentInvalid(argument="bodies", why="give a list of bodies, not one body")
        drafts = Draft.many(bodies, format, type, properties)
        return self._parts.verbs.send_many(said(queue), drafts, idempotency_key, unsaid=format is None)

    def send_file(
        self,
        queue: str | Sequence[str],
        file: str | os.PathLike[str],
        *,
        format: str | Format | None = None,
        type: str | None = None,
        properties: Mapping[str, Value] | None = None,
        messages: bool = False,
        delimiter: str | None = None,
        idempotency_key: str = "",
        progress: OnProgress | None = None,
    ) -> SentFile:
        """Send every row of a file as a message, in batches: ``.jsonl``, ``.csv``, ``.parquet``, or lines of ``.txt``.

        At an invalid row it raises; the batches before it stay sent. A repeated call continues after that, even if
        later rows were corrected or added: sent rows are recognised by content. Another ``idempotency_key`` sends the
        same rows again. With ``messages`` a row is a whole message, as ``export`` writes it. ``delimiter`` parts the
        columns of ``.csv``, by default a comma.
        """
        from postroom.exchange.bulk import send_file
        from postroom.exchange.message_files import Options

        declared = None if format is None else format_of(format)
        given = given_properties(properties) if properties else NO_PROPERTIES
        options = Options(declared, type, given, messages, delimiter)
        if idempotency_key:
            checked_key(idempotency_key)
        intake = self._intake(said(queue))
        return send_file(intake, path_of(file), options, identity=idempotency_key, progress=progress)

    def sent_parts(self, queue: str | Sequence[str], *, of_user: str = "") -> SentParts:
        """Which beginnings of files were sent to a queue: how a client of a server goes on with ``send_file``."""
        return self._store_intake(said(queue), of_user).begin()

    def send_part(
        self,
        queue: str | Sequence[str],
        rows: Sequence[dict[str, Any]],
        *,
        message_count: int,
        digest: str,
        of_user: str = "",
    ) -> int:
        """Send the next messages of a file in one commit: ``send_file`` of a client of a server.

        ``message_count`` and ``digest`` are those of the file up to the end of these messages. Returns how many were
        sent: none, if that part was sent before.
        """
        from postroom.exchange.parts import FilePart, read_rows

        part, drafts = FilePart.checked(message_count, digest), read_rows(rows)
        return self._store_intake(said(queue), of_user).send_part(part, drafts)

    def _intake(self, queue: Sequence[str]) -> Intake:
        """Where the messages of a file go."""
        return self._store_intake(queue)

    def _store_intake(self, queue: Sequence[str], of_user: str = "") -> StoreIntake:
        from postroom.exchange.bulk import StoreIntake

        verbs, names = self._parts.verbs, said(queue)
        return StoreIntake(
            self._parts.store,
            lambda tx: verbs.find_open(tx, names).name,
            lambda tx, drafts: verbs.enter(tx, names, drafts),
            of_user,
        )

    def export(
        self,
        queue: str | Sequence[str],
        file: str | os.PathLike[str],
        *,
        processed: bool = False,
        replace: bool = False,
        progress: OnProgress | None = None,
    ) -> MessageFile:
        """Write the unprocessed messages of a queue or level into a ``.jsonl``, ``.csv`` or ``.parquet`` file.

        They stay in the queue. Those that are leased, or wait for their time, are left out. With ``processed``, those
        that were received are written instead.
        """
        from postroom.exchange.message_writer import export_messages

        names = said(queue)
        listing = self.history(*names) if processed else self.peek(*names)
        counts = self.count(*names).queues
        total = sum(count.processed if processed else count.unprocessed + count.blocked for count in counts)
        return export_messages(listing, total, path_of(file), replace=replace, progress=progress)

    def frame(self, *queue: str, processed: bool = False) -> Table:
        """The unprocessed messages of a queue or level as a table, for Arrow, pandas, Polars and DuckDB.

        If all are JSON objects, their members are columns; else there is a column ``body``. With ``processed``, those
        that were received.
        """
        from postroom.model.tables import table_of_messages

        return table_of_messages(" ".join(queue), self.history(*queue) if processed else self.peek(*queue))

    def distribute(
        self,
        queues: Sequence[str | Sequence[str]],
        body: Any,
        *,
        format: str | Format | None = None,
        type: str | None = None,
        properties: Mapping[str, Value] | None = None,
        idempotency_key: str | None = None,
    ) -> Distributed:
        """Send one message to several queues; the result lists queues that cannot accept it.

        A repeated call with the same ``idempotency_key`` sends nothing, also to those, and returns the same result.
        """
        draft = Draft.of(body, format, type, properties)
        unsaid = looks_like(body, format) is not TEXT
        paths = [said(queue) for queue in queues]
        return self._parts.verbs.distribute(paths, draft, idempotency_key, unsaid=unsaid)

    @overload
    def receive(
        self,
        *queue: str,
        segment: bool = False,
        wait: float | None = None,
        deliver: Callable[[Received], None] | None = None,
        area: int | None = None,
        lease: None = None,
        where: str | None = None,
    ) -> Received: ...
    @overload
    def receive(
        self, *queue: str, lease: float | Literal[True], wait: float | None = None, where: str | None = None
    ) -> Leased: ...
    def receive(
        self,
        *queue: str,
        segment: bool = False,
        wait: float | None = None,
        deliver: Callable[[Received], None] | None = None,
        area: int | None = None,
        lease: float | Literal[True] | None = None,
        where: str | None = None,
    ) -> Received | Leased:
        """Receive the next message of a queue, or of the first non-empty queue below a level.

        With ``area`` the result is a portion of the message or segment, of at most so many bytes of UTF-8. The queue
        stays locked until the last portion; if this process ends before, the message starts again at its beginning.

        ``message`` of the result is None if there was none; the result itself is then false.

        With ``deliver`` the message is acknowledged when that function has returned: it is called with the result, and
        if it raises, or this process ends before it has returned, the message goes back to its place. It is not called
        if there was no message.

        Outside the main thread, a caller may have gone without the thread's knowledge, for example after cancelling
        ``asyncio.to_thread(room.receive, …)``. There, a result that is dropped unread returns its message to the queue.

        With ``lease``, in seconds, the message stays in its queue until ``message.done()`` or a timeout; ``lease=True``
        takes the time from the queue's policy.

        ``where`` selects by properties: ``region = 'EU' and total > 100``. In a queue with an order it selects among
        the messages that may be delivered next.
        """
        if where is not None and (segment or area is not None):
            raise ArgumentInvalid(argument="where", why="a message that is chosen is received whole")
        selector = _selector(where)
        if area is not None and area < 1:
            raise ArgumentInvalid(argument="area", why="at least 1")
        if lease is None:
            fitting, bind = None if area is None else Area(area), self._parts.bind
            return self._parts.verbs.receive(
                queue, segment=segment, wait=wait, bind=bind, deliver=deliver, area=fitting, where=selector
            )
        if segment or deliver is not None or area is not None:
            raise ArgumentInvalid(
                argument="lease", why="a message that is leased is received whole; end it with done()"
            )
        seconds = None if lease is True else lease
        leased = self._parts.leasing.receive(queue, seconds=seconds, wait=wait, where=selector)
        from postroom.queues.leases.leased import Leased

        return Leased(leased[0] if leased else None)

    def session(self, *, source: str | None = None) -> QueueSession:
        """A session for a program that sends in portions, and confirms a receive with its next call."""
        return self._parts.session(source)

    def sources(self) -> list[SourceShown]:
        """The sources of the room, by name."""
        return self._parts.sources.all()

    def create_source(
        self, name: str, *, password: str | None = None, input: str | None = None, output: str | None = None
    ) -> None:
        """Create a source.

        ``input`` and ``output`` are the queues for a program that communicates with that terminal.
        """
        self._parts.sources.create(name, password=password, input=input, output=output)

    def remove_source(self, name: str) -> None:
        """Remove a source; messages that came from it keep its name."""
        self._parts.sources.remove(name)

    def find_source(self, name: str) -> Source:
        """One source, with its queues."""
        return self._parts.sources.find(name)

    def disable_source(self, name: str, password: Password = "") -> Held:
        """Disable a source: nothing can be sent from it."""
        return self._parts.sources.hold(name, True, password)

    def enable_source(self, name: str, password: Password = "") -> Held:
        """Enable a source."""
        return self._parts.sources.hold(name, False, password)

    def count(self, *queue: str) -> Accepted:
        """Count messages; without a name, in every queue of the room."""
        return self._parts.verbs.accept(queue)

    def accept(self, *queue: str) -> Accepted:
        """The same as ``count``: an alias, the name that Multics gave it."""
        return self.count(*queue)

    def peek(
        self, *queue: str, limit: int | None = None, where: str | None = None, after: str | None = None
    ) -> Listing:
        """Read unprocessed messages, oldest first, without receiving them.

        One that waits for an earlier one of the same key is marked ``blocked``. With ``where``, those that a receive
        with it would get, in that order, and then the blocked ones. A listing that was cut off by ``limit`` has a
        ``next``: pass it as ``after`` for the next page.
        """
        selector = _selector(where)
        if selector is None:
            return self._parts.verbs.info(queue, limit, after)
        if after is not None:
            raise ArgumentInvalid(argument="after", why="what a selector chooses has no pages; leave out where")
        from postroom.queues.browsing import browse

        return browse(self._parts.store, queue, selector, limit)

    def info(
        self, *queue: str, limit: int | None = None, where: str | None = None, after: str | None = None
    ) -> Listing:
        """The same as ``peek``: an alias, the name that Multics gave it."""
        return self.peek(*queue, limit=limit, where=where, after=after)

    def history(self, *queue: str, limit: int | None = None, after: str | None = None) -> Listing:
        """Processed messages, in the order of their processing; paged like ``peek``."""
        return self._parts.verbs.history(queue, limit, after)

    def disable(
        self, *queue: str, password: Password = "", input_only: bool = False, output_only: bool = False
    ) -> Held:
        """Put a queue, or all queues below a level, on hold with that level's password.

        It then neither accepts nor releases messages; with ``input_only`` it still releases, with ``output_only`` it
        still accepts. The password is checked even if the queue is on hold already; a function is called for it only if
        something would change.
        """
        if input_only and output_only:
            raise ArgumentInvalid(argument="output_only", why="it excludes input_only; without both nothing passes")
        wanted = Hold.INPUT if input_only else Hold.OUTPUT if output_only else Hold.FULL
        return self._parts.verbs.hold(queue, wanted, password)

    def enable(self, *queue: str, password: Password = "") -> Held:
        """Take a queue, or all queues below a level, off hold with that level's password."""
        return self._parts.verbs.hold(queue, Hold.NONE, password)


@check_methods
class QueueHandle:
    """A queue or a level of the tree, as an object with methods."""

    names: tuple[str, ...]

    def __init__(self, room: RoomQueues, names: Sequence[str]) -> None:
        self._room = room
        self.names = tuple(names)

    def __repr__(self) -> str:
        return f"<queue {' '.join(self.names)}>"

    def _repr_html_(self) -> str:
        return self._room.count(*self.names)._repr_html_()

    def send(self, body: Any, **options: Any) -> Sent:
        """Send one message; takes the arguments of ``Postroom.send``."""
        return self._room.send(self.names, body, **options)

    @overload
    def receive(self, *, lease: None = None, **options: Any) -> Received: ...
    @overload
    def receive(self, *, lease: float | Literal[True], **options: Any) -> Leased: ...
    def receive(self, *, lease: float | None = None, **options: Any) -> Received | Leased:
        """Receive the next message, or its next segment; takes the arguments of ``Postroom.receive``."""
        asked = {**options, "lease": lease}
        received: Received | Leased = self._room.receive(*self.names, **asked)
        return received

    def count(self) -> Accepted:
        """Count messages."""
        return self._room.count(*self.names)

    def accept(self) -> Accepted:
        """The same as ``count``: an alias."""
        return self.count()

    def peek(self, limit: int | None = None, where: str | None = None) -> Listing:
        """Read unprocessed messages, oldest first, without receiving them."""
        return self._room.peek(*self.names, limit=limit, where=where)

    def info(self, limit: int | None = None, where: str | None = None) -> Listing:
        """The same as ``peek``: an alias."""
        return self.peek(limit, where)

    def history(self, limit: int | None = None) -> Listing:
        """Processed messages, in the order of their processing."""
        return self._room.history(*self.names, limit=limit)

    def disable(self, password: Password = "", *, input_only: bool = False, output_only: bool = False) -> Held:
        """Put it on hold."""
        return self._room.disable(*self.names, password=password, input_only=input_only, output_only=output_only)

    def enable(self, password: Password = "") -> Held:
        """Take it off hold."""
        return self._room.enable(*self.names, password=password)


def _selector(where: str | None) -> Selector | None:
    if where is None:
        return None
    from postroom.queues.selectors import Selector

    return Selector.of(where)


def _wish(priority: int, delay: float | None, at: datetime | None, expires: float | None) -> Wish:
    """Checked options of a send; delays count from the commit."""
    moment = None if at is None else to_microseconds(at)
    wish = partial(wanted, priority=priority, delay=delay, at=moment, expires=expires)
    wish(0)
    return wish


def _with(properties: Mapping[str, Value] | None, more: Mapping[str, str | None]) -> dict[str, Value]:
    """Properties with further ones that have a value."""
    return {**(properties or {}), **{name: value for name, value in more.items() if value is not None}}


def _drafted(
    body: Any, format: str | Format | None, type: str | None, properties: Mapping[str, Value] | None
) -> tuple[Draft, bool]:
    """The draft of a send, with its trace; and whether its format has to be guessed."""
    trace = current_trace.get()
    if trace is not None and TRACE not in (properties or {}):
        properties = _with(properties, {TRACE: trace})
    return Draft.of(body, format, type, properties), looks_like(body, format) is not TEXT

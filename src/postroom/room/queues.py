"""The verbs of queues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from postroom.errors import ArgumentInvalid
from postroom.model.body import Format
from postroom.model.message import SPHERE, Draft, Message, Value, cause_number
from postroom.queues.results import Accepted, Distributed, Held, Listing, Received, Sent, SentMany
from postroom.queues.verbs import Password
from postroom.room.parts import RoomPart
from postroom.store.kernel.queues import Hold


class RoomQueues(RoomPart):
    """Making queues, sending and receiving, looking into them, holding them."""

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
        self._parts.administration.remove(name)

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
    ) -> Sent:
        """Send one message. When this returns, the message is on disk.

        A string is text unless ``format`` says ``xml`` or ``json``; a dict or list becomes JSON. A repeated call with
        the same ``idempotency_key`` creates no second message and returns the first one's key. ``cause`` is the key of
        the message that caused this one, for ``trace``. If the body is a message of this room, its content is sent
        again, and it is the cause unless another is given.
        """
        draft = Draft.of(body, format, type, properties)
        return self._parts.verbs.send(_path(queue), draft, idempotency_key, cause_number(body, cause))

    def send_many(
        self,
        queue: str | Sequence[str],
        bodies: Iterable[Any],
        *,
        format: str | Format | None = None,
        type: str | None = None,
        properties: Mapping[str, Value] | None = None,
    ) -> SentMany:
        """Send many messages in one commit: all of them, in their order, or none."""
        if isinstance(bodies, (str, bytes)):
            raise ArgumentInvalid(argument="bodies", why="give a list of bodies, not one body")
        return self._parts.verbs.send_many(_path(queue), Draft.many(bodies, format, type, properties))

    def distribute(
        self,
        queues: Sequence[str | Sequence[str]],
        body: Any,
        *,
        format: str | Format | None = None,
        type: str | None = None,
        properties: Mapping[str, Value] | None = None,
    ) -> Distributed:
        """Send one message to several queues; the result lists queues that cannot accept it."""
        draft = Draft.of(body, format, type, properties)
        return self._parts.verbs.distribute([_path(queue) for queue in queues], draft)

    def receive(
        self,
        *queue: str,
        segment: bool = False,
        wait: float | None = None,
        deliver: Callable[[Received], None] | None = None,
    ) -> Received:
        """Receive the next message of a queue, or of the first non-empty queue below a level.

        ``message`` of the result is None if there was none; the result itself is then false.

        With ``deliver`` the message is acknowledged when that function has returned: it is called with the result, and
        if it raises, or this process ends before it has returned, the message goes back to its place. It is not called
        if there was no message.

        Outside the main thread, a caller may have gone without the thread's knowledge, for example after cancelling
        ``asyncio.to_thread(room.receive, …)``. There, a result that is dropped unread returns its message to the queue.
        """
        return self._parts.verbs.receive(queue, segment=segment, wait=wait, bind=self._bind, deliver=deliver)

    def _bind(self, message: Message) -> None:
        if SPHERE in message.properties:
            self._parts.monitor.bind(message)

    def count(self, *queue: str) -> Accepted:
        """Count messages; without a name, in every queue of the room."""
        return self._parts.verbs.accept(queue)

    def accept(self, *queue: str) -> Accepted:
        """The same as ``count``: an alias, the name that Multics gave it."""
        return self.count(*queue)

    def peek(self, *queue: str, limit: int | None = None) -> Listing:
        """Read unprocessed messages, oldest first, without receiving them."""
        return self._parts.verbs.info(queue, limit)

    def info(self, *queue: str, limit: int | None = None) -> Listing:
        """The same as ``peek``: an alias, the name that Multics gave it."""
        return self.peek(*queue, limit=limit)

    def history(self, *queue: str, limit: int | None = None) -> Listing:
        """Processed messages, in the order of their processing."""
        return self._parts.verbs.history(queue, limit)

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


class QueueHandle:
    """A queue or a level of the tree, as an object with methods."""

    def __init__(self, room: RoomQueues, names: Sequence[str]) -> None:
        self._room = room
        self.names = tuple(names)

    def __repr__(self) -> str:
        return f"<queue {' '.join(self.names)}>"

    def send(self, body: Any, **options: Any) -> Sent:
        """Send one message; has the arguments of ``Postroom.send``."""
        return self._room.send(self.names, body, **options)

    def receive(self, **options: Any) -> Received:
        """Receive the next message, or its next segment; has the arguments of ``Postroom.receive``."""
        return self._room.receive(*self.names, **options)

    def count(self) -> Accepted:
        """Count messages."""
        return self._room.count(*self.names)

    def accept(self) -> Accepted:
        """The same as ``count``: an alias."""
        return self.count()

    def peek(self, limit: int | None = None) -> Listing:
        """Read unprocessed messages, oldest first, without receiving them."""
        return self._room.peek(*self.names, limit=limit)

    def info(self, limit: int | None = None) -> Listing:
        """The same as ``peek``: an alias."""
        return self.peek(limit)

    def history(self, limit: int | None = None) -> Listing:
        """Processed messages, in the order of their processing."""
        return self._room.history(*self.names, limit=limit)

    def disable(self, password: Password = "", *, input_only: bool = False, output_only: bool = False) -> Held:
        """Put it on hold."""
        return self._room.disable(*self.names, password=password, input_only=input_only, output_only=output_only)

    def enable(self, password: Password = "") -> Held:
        """Take it off hold."""
        return self._room.enable(*self.names, password=password)


def _path(queue: str | Sequence[str]) -> tuple[str, ...]:
    return (queue,) if isinstance(queue, str) else tuple(queue)

"""Results of the verbs: the status key, and the JSON form of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from postroom.model.key import key_text
from postroom.model.message import Message
from postroom.queues import status
from postroom.store.kernel.queues import Hold, Queue

if TYPE_CHECKING:
    from postroom.queues.segments import Portion


class Sent(NamedTuple):
    """The key of a message that was sent."""

    number: int  # the key, undecoded
    status: str = status.DONE

    @property
    def key(self) -> str:
        """The key as it is written."""
        return key_text(self.number)

    def __repr__(self) -> str:
        return f"Sent(key={self.key!r}, status={self.status!r})"

    def as_dict(self) -> dict[str, Any]:
        return {"status": self.status, "key": self.key}


class SentMany(NamedTuple):
    """The keys of messages that were sent together, in their order."""

    keys: Sequence[str]
    status: str = status.DONE

    def as_dict(self) -> dict[str, Any]:
        return {"status": self.status, "keys": list(self.keys)}


class Delivery(NamedTuple):
    """One destination of a send to several."""

    queue: str
    key: str | None
    error_key: str
    reason: str | None = None
    status: str = status.DONE

    def as_dict(self) -> dict[str, Any]:
        return {"queue": self.queue, "key": self.key, "error_key": self.error_key, "reason": self.reason}


class Distributed(NamedTuple):
    """The outcome of a send to several queues."""

    deliveries: tuple[Delivery, ...]
    status: str

    @property
    def sent(self) -> bool:
        """Whether any queue accepted the message."""
        return any(delivery.key is not None for delivery in self.deliveries)

    def as_dict(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "key": next((one.key for one in self.deliveries if one.key), None),
            "deliveries": [delivery.as_dict() for delivery in self.deliveries],
        }


class Received(NamedTuple):
    """A message or segment, and the empty queues before it."""

    message: Message | None
    passed: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    end_of_message: bool = False
    status: str = status.DONE
    portion: Portion | None = None  # of a message that was asked for in segments, or for an area

    def __bool__(self) -> bool:
        return self.message is not None

    def as_dict(self) -> dict[str, Any]:
        shape: dict[str, Any] = {
            "status": self.status,
            "message": self.message.as_dict() if self.message else None,
            "passed": list(self.passed),
            "end_of_message": self.end_of_message,
        }
        if self.held:
            shape["held_queues"] = list(self.held)
        if self.portion is not None:
            shape["end_key"] = self.portion.end.value
            shape["num_chars"] = self.portion.num_chars
            shape["current_char"] = self.portion.current_char
        return shape


class QueueCount(NamedTuple):
    """The counts of one queue."""

    queue: str
    path: tuple[str, ...]
    unprocessed: int
    processed: int
    hold: Hold
    locked_by: str | None = None
    leased: int = 0  # given out for a time, and not done
    delayed: int = 0  # waiting for their time
    blocked: int = 0  # waiting for earlier ones of the same key

    @classmethod
    def of(cls, queue: Queue, now: int, *aside: int) -> QueueCount:
        """The counts of a queue. A lock whose owner or lease has ended does not count."""
        holder = queue.lock_actor if queue.in_use(now) else None
        return cls(queue.name, queue.names, queue.unprocessed, queue.processed, Hold(queue.hold), holder, *aside)

    @property
    def held(self) -> bool:
        """Whether it is on hold."""
        return self.hold is not Hold.NONE

    def as_dict(self) -> dict[str, Any]:
        shape: dict[str, Any] = {
            "queue": self.queue,
            "path": list(self.path),
            "unprocessed": self.unprocessed,
            "processed_count": self.processed,
            "held": self.held,
        }
        if self.held:
            shape["hold"] = self.hold.label
        if self.locked_by is not None:
            shape["locked_by"] = self.locked_by
        aside = {"leased_count": self.leased, "delayed_count": self.delayed, "blocked_count": self.blocked}
        shape |= {name: count for name, count in aside.items() if count}
        return shape


class Accepted(NamedTuple):
    """The counts of the named queues."""

    queues: tuple[QueueCount, ...]
    status: str = status.DONE

    def _repr_html_(self) -> str:
        from postroom.model.html_table import html_table

        aside = [
            name for name in ("leased", "delayed", "blocked") if any(getattr(queue, name) for queue in self.queues)
        ]
        names = ["unprocessed", "processed", *aside]
        rows = [
            (" ".join(queue.path), *(getattr(queue, name) for name in names), queue.hold.label) for queue in self.queues
        ]
        return html_table("queues", ["queue", *names, "hold"], rows, len(rows))

    def as_dict(self) -> dict[str, Any]:
        return {"status": self.status, "queues": [count.as_dict() for count in self.queues]}


class Listing:
    """Messages of some queues, read page by page at each iteration."""

    status: str
    next: str | None  # after it was iterated: where those behind its limit begin; None if there are no more

    def __init__(self, pages: Callable[[], Iterator[Message]], next: str | None = None) -> None:
        self._pages = pages
        self.status = status.DONE
        self.next = next

    def __iter__(self) -> Iterator[Message]:
        return self._pages()

    @property
    def messages(self) -> list[Message]:
        """All of them at once."""
        return list(self)

    def _repr_html_(self) -> str:
        from postroom.model.html_table import html_table

        rows = [
            (message.key, message.queue, message.created, message.format.value, message.body)
            for message in islice(self, 101)
        ]
        return html_table("messages", ["key", "queue", "created", "format", "body"], rows, len(rows))

    def as_dict(self) -> dict[str, Any]:
        return {"status": self.status, "messages": [message.as_dict() for message in self]}


class Held(NamedTuple):
    """The result of disable or enable: the queues whose state changed."""

    changed: tuple[str, ...]
    status: str = status.DONE

    def as_dict(self) -> dict[str, Any]:
        return {"status": self.status, "changed": list(self.changed)}

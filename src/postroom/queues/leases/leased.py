"""A leased message: its receiver ends the lease, or it times out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from postroom.model.arguments import check_methods
from postroom.model.message import Message, Stored
from postroom.model.moment import to_datetime, to_iso
from postroom.queues import status


class Leases(Protocol):
    """Where leases are ended or extended: ``leasing.py``, or a server."""

    def done(self, fence: int) -> None: ...
    def release(self, fence: int, delay: float = 0.0) -> None: ...
    def extend(self, fences: Sequence[int], seconds: float) -> int: ...
    def fail(self, fence: int, reason: str, *, final: bool = False) -> str | None: ...
    def fail_by_worker(self, fence: int, reason: str, *, final: bool) -> FailedAttempt: ...


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """What becomes of a message after a failed attempt."""

    dead_letters: str | None = None  # the queue that it went to
    due: datetime | None = None  # when it is delivered again, if not at once
    attempts_allowed: int | None = None  # by the policy of its queue
    over: str | None = None  # why nobody gets it again, if it is no dead letter

    def as_dict(self) -> dict[str, Any]:
        due = {} if self.due is None else {"due": to_iso(self.due)}
        return {"dead_letters": self.dead_letters, **due}


@dataclass(frozen=True, slots=True)
class LeaseShown:
    """A lease: its message, its owner, and its end."""

    lease: int
    key: str
    queue: str
    by: str | None  # who has received the message; None if that was archived
    owner: str  # the process with which the lease ends; empty if only its time ends it
    since: datetime
    until: datetime
    attempts: int
    lost: bool = False  # its process or its time has ended: the next receive from the queue gives the message back

    def as_dict(self) -> dict[str, Any]:
        names = ("lease", "key", "queue", "by", "attempts", "lost")
        times = {"since": to_iso(self.since), "until": to_iso(self.until)}
        return {name: getattr(self, name) for name in names} | {"owner": self.owner or None} | times


@check_methods
class LeasedMessage(Message):
    """A leased message. It stays in its queue until the lease ends."""

    lease: int  # its number, which whoever ends it shows
    attempts: int  # how often it was given out, this time included
    seconds: float  # for which it was given out
    ended: bool  # whether it was ended by this object

    __slots__ = ("_leasing", "_until", "attempts", "ended", "lease", "seconds")

    def __init__(
        self, stored: Stored, leasing: Leases, *, lease: int, attempts: int, until: int, seconds: float
    ) -> None:
        super().__init__(stored)
        self._leasing = leasing
        self.seconds = seconds
        self._until = until
        self.lease = lease
        self.attempts = attempts
        self.ended = False

    @property
    def until(self) -> datetime:
        """When the lease ends, unless it is extended."""
        return to_datetime(self._until)

    def done(self) -> None:
        """Acknowledge: the message is processed. Raises ``LeaseOver`` if the lease was lost."""
        self._leasing.done(self.lease)
        self.ended = True

    def release(self, delay: float = 0.0) -> None:
        """Return the message to its place, at once or after ``delay`` seconds. It counts as no attempt."""
        self._leasing.release(self.lease, delay)
        self.ended = True

    def extend(self, seconds: float | None = None) -> None:
        """Extend the lease: it ends so many seconds from now; by default the time that it was given for."""
        self._until = self._leasing.extend([self.lease], self.seconds if seconds is None else seconds)

    def fail(self, reason: str, *, final: bool = False) -> str | None:
        """Fail this attempt: the message waits for the next one, or becomes a dead letter after the last.

        ``final`` makes it the last. Returns the queue of dead letters, if the message went there.
        """
        buried = self._leasing.fail(self.lease, reason, final=final)
        self.ended = True
        return buried

    def fail_by_worker(self, reason: str, *, final: bool = False) -> FailedAttempt:
        """Like ``fail``, as a worker does: returns what becomes of the message.

        If its queue has no limit of attempts, the message waits longer after each failure.
        """
        failed = self._leasing.fail_by_worker(self.lease, reason, final=final)
        self.ended = True
        return failed

    def __repr__(self) -> str:
        return f"<message {self.key} in {self.queue}, lease {self.lease}, attempt {self.attempts}>"

    def as_dict(self) -> dict[str, Any]:
        """The shape of a message, with its lease."""
        about = {"lease": self.lease, "attempts": self.attempts, "until": to_iso(self.until)}
        return {**super().as_dict(), "processed": None, **about}


def plain(leased: LeasedMessage) -> Message:
    """The message of a lease, for whoever does not end the lease."""
    message = Message(leased._stored)
    message.sphere = leased.sphere
    return message


class Leased(NamedTuple):
    """What a receive with a lease returns; false if there was no message."""

    message: LeasedMessage | None
    status: str = status.DONE

    def __bool__(self) -> bool:
        return self.message is not None

    def as_dict(self) -> dict[str, Any]:
        return {"status": self.status, "message": self.message.as_dict() if self.message else None}

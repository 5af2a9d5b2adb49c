"""Leases of a room behind a server: taken, extended and ended by requests; workers see no difference."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Any

from postroom.interfaces.http.client.link import RemoteVerbs
from postroom.interfaces.http.contract.kinds import EndedLease
from postroom.limits import LONG_POLL_SECONDS_MAX
from postroom.model.moment import to_microseconds
from postroom.queues.leases.leased import FailedAttempt, LeasedMessage
from postroom.queues.leases.leasing import Leasing, waited
from postroom.queues.selectors import Selector
from postroom.queues.tree.addressing import Names


class RemoteLeasing(Leasing):
    """Leases at a server end by their number or by timeout, not with the program."""

    def __init__(self, parts: RemoteVerbs) -> None:
        self._do = parts.verb
        self._wait_long = parts.waiting

    def receive(
        self,
        queue: Names,
        *,
        seconds: float | None,
        count: int = 1,
        wait: float | None = None,
        owner: str | None = None,
        where: Selector | None = None,
    ) -> list[LeasedMessage]:
        asked: dict[str, Any] = {"queue": queue, "lease": True if seconds is None else seconds, "count": count}
        if where is not None:
            asked["where"] = where.text
        leased: list[LeasedMessage] = self._wait_long("consumers.receive_many", asked, wait)
        return leased

    def _turned(self, message: LeasedMessage, queue: Names, seconds: float | None) -> list[LeasedMessage]:
        """End a lease and take the next; with a server these are two requests."""
        return []

    def done(self, fence: int) -> None:
        self._do("lease.done", lease=fence)

    def done_many(self, fences: Sequence[int]) -> None:
        self._do("consumers.done_many", messages=[EndedLease(fence) for fence in fences])

    def release(self, fence: int, delay: float = 0.0) -> None:
        self._do("lease.release", lease=fence, delay=delay)

    def extend(self, fences: Sequence[int], seconds: float) -> int:
        until = [self._do("lease.extend", lease=fence, seconds=seconds).until for fence in fences]
        return to_microseconds(min(until))

    def fail(self, fence: int, reason: str, *, final: bool = False) -> str | None:
        buried: str | None = self._do("lease.fail", lease=fence, reason=reason, final=final)
        return buried

    def fail_by_worker(self, fence: int, reason: str, *, final: bool) -> FailedAttempt:
        failed: FailedAttempt = self._do("lease.fail_by_worker", lease=fence, reason=reason, final=final)
        return failed

    def find(self, fence: int) -> LeasedMessage:
        leased: LeasedMessage = self._do("consumers.lease", number=fence)
        return leased

    def close(self) -> None:
        """Nothing to do: leases stay until they time out."""


def portions(wait: float | None) -> Any:
    """Split a long wait into the waits of single requests that a server allows."""
    end = monotonic() + waited(wait)
    while True:
        left = max(0.0, end - monotonic())
        yield min(left, LONG_POLL_SECONDS_MAX)
        if monotonic() >= end:
            return

"""What must be in queues whose messages are leased, by plain lists: every verb at the time of its transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

WAITING, LEASED, DELAYED, BLOCKED, DONE, DEAD, EXPIRED = "waiting leased delayed blocked done dead expired".split()
LEASE, BACKOFF, ATTEMPTS = 60_000, 10_000, 3  # microseconds; and how often a message is given out
#: The policies of the queues that are leased from.
POLICIES = {"free": {}, "strict": {"order": "strict"}, "key": {"by": "k"}}


class Wish(NamedTuple):
    """What a sender asks for a message."""

    key: int | None = None
    priority: int = 0
    delay: int | None = None  # microseconds, as all times here
    expires: int | None = None


class Given(NamedTuple):
    """What a receiver is told of a lease."""

    value: str
    attempts: int
    until: int


@dataclass
class Entry:
    value: str
    place: int
    wish: Wish
    state: str = WAITING
    due: int | None = None
    expires: int | None = None
    attempts: int = 0
    lease: int = 0  # the number of the last lease
    until: int = 0
    apart: bool = False  # whether it stands in the way of others of its key: leased, delayed after that, or blocked

    @property
    def rank(self) -> tuple[int, int]:
        return (-self.wish.priority, self.place)


@dataclass
class LeaseQueue:
    order: str  # free, strict, key
    entries: list[Entry] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)
    places: int = 0
    leases: int = 0

    def put(self, value: str, wish: Wish, now: int) -> None:
        self.places += 1
        entry = Entry(value, self.places, wish)
        if wish.delay is not None:
            entry.state, entry.due = DELAYED, now + wish.delay
        if wish.expires is not None:
            entry.expires = now + wish.expires
        self.entries.append(entry)

    # --- receiving ---

    def refresh(self, now: int) -> None:
        """What time has done until now."""
        over = [each for each in self.entries if each.state == LEASED and each.until <= now]
        for entry in sorted(over, key=lambda each: (each.until, each.lease)):
            self._attempt_failed(entry, now)
        for entry in self.entries:
            if entry.state == DELAYED and entry.due is not None and entry.due <= now:
                entry.state, entry.due, entry.apart = WAITING, None, False
        expired = [
            each
            for each in self.entries
            if each.state in (WAITING, DELAYED, BLOCKED) and each.expires is not None and each.expires <= now
        ]
        for entry in sorted(expired, key=lambda each: each.expires or 0):
            entry.state = EXPIRED
            self._leave(entry)

    def lease(self, count: int, now: int) -> list[tuple[Given, int]]:
        """What is given out, each with the number of its lease."""
        self.refresh(now)
        given = []
        for entry in self._claim(count):
            self.leases += 1
            entry.state, entry.attempts, entry.lease = LEASED, entry.attempts + 1, self.leases
            entry.until, entry.apart = now + LEASE, True
            given.append((Given(entry.value, entry.attempts, entry.until), self.leases))
        return given

    def take(self, now: int) -> str | None:
        """A receive that is final, from a queue in free order."""
        self.refresh(now)
        waiting = self.waiting()
        if not waiting:
            return None
        waiting[0].state = DONE
        self.entries.remove(waiting[0])
        self.done.append(waiting[0].value)
        return waiting[0].value

    def waiting(self) -> list[Entry]:
        return sorted((each for each in self.entries if each.state == WAITING), key=lambda each: each.rank)

    def available(self) -> bool:
        """Whether someone who asks is given something, if time does nothing."""
        waiting = self.waiting()
        if self.order == "strict" and waiting:
            held = any(each.state == LEASED for each in self.entries)
            return not held and not any(
                each.state == DELAYED and each.place < waiting[0].place for each in self.entries
            )
        if self.order == "key":
            return any(not self._is_taken(each) for each in waiting)
        return bool(waiting)

    def _claim(self, count: int) -> list[Entry]:
        if self.order == "strict":
            return self.waiting()[:1] if self.available() else []
        while self.order == "key":
            claimed: list[Entry] = []
            candidates = self.waiting()[:count]
            for entry in candidates:
                same = [each for each in claimed if each.wish.key == entry.wish.key]
                if entry.wish.key is not None and (same or self._is_taken(entry)):
                    entry.state, entry.apart = BLOCKED, True
                    if not same:
                        self._unblock(entry.wish.key)
                else:
                    claimed.append(entry)
            if claimed or not candidates:
                return claimed
        return self.waiting()[:count]

    def _is_taken(self, entry: Entry) -> bool:
        """Whether one of its key is leased, or an earlier one comes back or is blocked."""
        return entry.wish.key is not None and any(
            each.state == LEASED or each.place < entry.place
            for each in self.entries
            if each is not entry and each.apart and each.wish.key == entry.wish.key
        )

    # --- the end of a lease ---

    def held(self, lease: int) -> Entry | None:
        return next((each for each in self.entries if each.state == LEASED and each.lease == lease), None)

    def finish(self, entry: Entry) -> None:
        entry.state = DONE
        self.done.append(entry.value)
        self._leave(entry)

    def release(self, entry: Entry, delay: int, now: int) -> None:
        entry.attempts -= 1
        self._give_back(entry, delay, now)

    def fail(self, entry: Entry, now: int) -> None:
        self._attempt_failed(entry, now)

    def _attempt_failed(self, entry: Entry, now: int) -> None:
        if entry.attempts >= ATTEMPTS:
            entry.state = DEAD
            self.dead.append(entry.value)
            self._leave(entry)
        else:
            self._give_back(entry, BACKOFF * 2 ** (entry.attempts - 1) // 2, now)

    def _give_back(self, entry: Entry, delay: int, now: int) -> None:
        if delay:
            entry.state, entry.due = DELAYED, now + delay
        else:
            entry.state, entry.apart = WAITING, False

    def _leave(self, entry: Entry) -> None:
        self.entries.remove(entry)
        if entry.wish.key is not None and self.order == "key":
            self._unblock(entry.wish.key)

    def _unblock(self, key: int) -> None:
        lane = [each for each in self.entries if each.wish.key == key and each.apart]
        blocked = sorted((each for each in lane if each.state == BLOCKED), key=lambda each: each.place)
        if blocked and not any(each.state in (LEASED, DELAYED) for each in lane):
            blocked[0].state, blocked[0].apart = WAITING, False

    # --- what a room says of it ---

    def counts(self) -> tuple[int, int, int, int, int]:
        """Waiting, leased, delayed, blocked, processed."""
        states: Sequence[str] = [each.state for each in self.entries]
        return (*(states.count(state) for state in (WAITING, LEASED, DELAYED, BLOCKED)), len(self.done))  # type: ignore[return-value]

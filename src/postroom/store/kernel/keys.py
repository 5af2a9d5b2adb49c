"""Assigns keys from a counter in the store, in blocks that grow with use: a process that sends once takes one key, one
that sends all day accesses the counter rarely.

Unused keys leave gaps, but no key repeats.
"""

from __future__ import annotations

from collections.abc import Sequence

from postroom.errors import KeysExhausted
from postroom.limits import KEY_RESERVE_MAX, KEY_TAIL
from postroom.model.key import FIRST
from postroom.store.kernel.session import Session

_RESERVE = "UPDATE counters SET value = value + ? WHERE name = 'keys' RETURNING value"
_BLOCK = "UPDATE counters SET value = (value / ? + 2) * ? + 1 WHERE name = 'keys' RETURNING value"
_SET = "INSERT INTO counters (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_LEFT = """
SELECT u.value - k.value FROM counters u JOIN counters k ON k.name = 'keys' WHERE u.name = 'keys until'
"""
_LENT = "SELECT value FROM counters WHERE name = 'keys until'"
_USED = "SELECT value FROM counters WHERE name = 'keys'"


class Keys:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._next = self._stop = 0
        self._block = 1
        self._fresh = False

    def next(self) -> int:
        key = self.ready()
        return self.take(1)[0] if key is None else key

    def ready(self) -> int | None:
        """A key that is already reserved, if there is one."""
        key = self._next
        if key == self._stop:
            return None
        self._next = key + 1
        return key

    @property
    def block(self) -> int:
        """The size of the next block to reserve."""
        return self._block

    def use(self, first: int, stop: int) -> None:
        """Use keys that a separate commit reserved."""
        self._next, self._stop = first, stop
        self._block = min(self._block * 2, KEY_RESERVE_MAX)

    def ready_many(self, count: int) -> Sequence[int] | None:
        """Consecutive keys that are already reserved, if there are so many."""
        first = self._next
        if self._stop - first < count:
            return None
        self._next = first + count
        return range(first, self._next)

    def has(self, count: int) -> bool:
        """Whether so many keys are already reserved."""
        return self._stop - self._next >= count

    def give_back(self, key: int) -> None:
        """Return the key that ``ready`` returned last, or the first of many with those after it."""
        self._next = key

    def take(self, count: int) -> Sequence[int]:
        if self.has(count):
            first = self._next
        else:
            # What is left of the last block stays unused, so that one send of many has keys in a row.
            size = max(count, self._block)
            # Else what is said of the end of the block may be older than the counter.
            self._session.lock_counter("keys")
            left = self._session.value(_LEFT)
            if left is not None:
                if left < count:
                    raise KeysExhausted(count=count)
                size = min(size, left)
            self._stop = self._session.number(_RESERVE, (size,))
            first = self._stop - size
            self._block = min(self._block * 2, KEY_RESERVE_MAX)
            self._fresh = True
        self._next = first + count
        return range(first, self._next)

    # --- blocks, for nodes ---

    def give_block(self) -> int:
        """Reserve a block of keys for another store; returns its head: ``00004`` of ``00004.00001`` and so on."""
        return self._session.number(_BLOCK, (KEY_TAIL, KEY_TAIL)) // KEY_TAIL - 1

    def use_block(self, head: int, needed: int = KEY_TAIL) -> None:
        """Use only the keys of a block from now on, unless that was done already."""
        self._session.lock_counter("keys")
        left = self._session.value(_LEFT)
        if left is not None and left >= needed:
            return
        self._session.run(_SET, ("keys", head * KEY_TAIL + 1))
        self._session.run(_SET, ("keys until", (head + 1) * KEY_TAIL))
        self._next = self._stop = 0

    @property
    def used(self) -> bool:
        """Whether this store has ever assigned a key."""
        return self._session.value(_USED) not in (None, FIRST)

    @property
    def lent(self) -> bool:
        """Whether this store is a node of another room, from which it gets its keys."""
        return self._session.row(_LENT) is not None

    def committed(self) -> None:
        self._fresh = False

    def rolled_back(self) -> None:
        """Forget blocks reserved in a failed transaction."""
        if self._fresh:
            self._next = self._stop = 0
            self._fresh = False

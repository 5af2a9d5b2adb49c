"""The key dispenser: a counter in the store, taken from in blocks that grow with use.

A process that sends once takes one key; one that sends all day asks the counter rarely. What a process reserved and
did not use is a gap, never a repetition.
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
        """A key that needs no look at the counter, if there is one."""
        key = self._next
        if key == self._stop:
            return None
        self._next = key + 1
        return key

    @property
    def block(self) -> int:
        """How many to take from the counter next."""
        return self._block

    def use(self, first: int, stop: int) -> None:
        """Give out keys that were taken from the counter by a commit of their own."""
        self._next, self._stop = first, stop
        self._block = min(self._block * 2, KEY_RESERVE_MAX)

    def ready_many(self, count: int) -> Sequence[int] | None:
        """Likewise so many in a row."""
        first = self._next
        if self._stop - first < count:
            return None
        self._next = first + count
        return range(first, self._next)

    def give_back(self, key: int) -> None:
        """The key that ``ready`` gave last was not used after all, or the first of many and those behind it."""
        self._next = key

    def take(self, count: int) -> Sequence[int]:
        if self._stop - self._next >= count:
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
        """The head of a block of keys that this store will not use: ``00004`` of ``00004.00001`` and so on."""
        return self._session.number(_BLOCK, (KEY_TAIL, KEY_TAIL)) // KEY_TAIL - 1

    def use_block(self, head: int, needed: int = KEY_TAIL) -> None:
        """Give out the keys of a block from now on, and no others; unless someone has seen to it already."""
        self._session.lock_counter("keys")
        left = self._session.value(_LEFT)
        if left is not None and left >= needed:
            return
        self._session.run(_SET, ("keys", head * KEY_TAIL + 1))
        self._session.run(_SET, ("keys until", (head + 1) * KEY_TAIL))
        self._next = self._stop = 0

    @property
    def used(self) -> bool:
        """Whether this store has ever given out a key."""
        return self._session.value(_USED) not in (None, FIRST)

    @property
    def lent(self) -> bool:
        """Whether this store is a node of another room, and takes its keys from there."""
        return self._session.row(_LENT) is not None

    def committed(self) -> None:
        self._fresh = False

    def rolled_back(self) -> None:
        """A block reserved in a transaction that failed was never ours."""
        if self._fresh:
            self._next = self._stop = 0
            self._fresh = False

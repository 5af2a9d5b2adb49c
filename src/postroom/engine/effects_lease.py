"""The lease under which effects are tried: one process has it at a time, and every commit checks its number.

The engine that leads takes it when an effect is due. A sender process has precedence over engines. It holds a second
lease while it lives: an engine that sees that lease finishes what it has begun, releases the lease of the effects, and
takes it again when the sender process has ended or is silent for too long.
"""

from __future__ import annotations

import threading
from time import monotonic

from postroom.errors import LeaseHeld
from postroom.limits import ENGINE_LEASE_SECONDS
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction

EFFECTS = "effects"
SENDERS = "senders"  # of the process that does nothing else


class EffectsLease:
    """This process's view of that lease. ``alone`` is for the sender process, which never gives way."""

    def __init__(self, store: Store, owner: str, *, alone: bool = False) -> None:
        self.alone = alone
        self.fence = 0  # 0: another process has it, or nobody
        self._store = store
        self._owner = owner
        self._changing = threading.Lock()  # it is not renewed while it is given up
        self._sure_until = 0.0  # by the clock of this process

    def makes_way(self, tx: Transaction) -> bool:
        """Whether a sender process lives, so that this one gives way."""
        senders = None if self.alone else tx.leases.named(SENDERS)
        return senders is not None and senders.is_held(tx.now)

    def is_sure(self, fence: int) -> bool:
        """Whether no other process can have it now. A process that was suspended for long cannot know before it
        asks."""
        return self.fence == fence and monotonic() < self._sure_until

    def take(self) -> bool:
        """Take it if it is free; False if another process has it."""
        with self._changing:
            if not self.fence and self._store.read(self._is_free):
                began = monotonic()
                try:
                    self.fence = self._store.transact("lease", self._acquire)
                except LeaseHeld:  # another process was faster
                    return False
                self._sure_until = began + ENGINE_LEASE_SECONDS
            return self.fence != 0

    def renew(self) -> None:
        """Keep it; raises ``LeaseLost`` if another process has taken it."""
        with self._changing:
            if self.fence:
                began, fence = monotonic(), self.fence
                self._store.transact("lease", lambda tx: tx.leases.renew(EFFECTS, fence, ENGINE_LEASE_SECONDS))
                self._sure_until = began + ENGINE_LEASE_SECONDS

    def forget(self, fence: int) -> None:
        """Forget the lease that had this number: another process has it."""
        with self._changing:
            if self.fence == fence:
                self.fence = 0

    def give_up(self) -> None:
        """Release it; no attempt may be running."""
        with self._changing:
            if self.fence and not self._store.stopped:
                self._store.transact("release-lease", self._release)
            self.fence = 0

    def _is_free(self, tx: Transaction) -> bool:
        lease = tx.leases.named(EFFECTS)
        return lease is None or lease.owner == self._owner or not lease.is_held(tx.now)

    def _acquire(self, tx: Transaction) -> int:
        return tx.leases.acquire(EFFECTS, self._owner, ENGINE_LEASE_SECONDS)

    def _release(self, tx: Transaction) -> None:
        tx.leases.release(EFFECTS, self.fence)
        tx.wake()  # who waits for it may take it

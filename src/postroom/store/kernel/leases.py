"""Leases of engines and streams, with fencing: one holder at a time, and a late one cannot commit.

Leases of messages are in ``deliveries.py``.

Each acquisition increments the lease's number, the fencing token. The holder checks it in each commit; after a pause, a
clock jump or a takeover the number is outdated and the commit is refused.
"""

from __future__ import annotations

from typing import NamedTuple

from postroom.errors import LeaseHeld, LeaseLost
from postroom.model.moment import in_microseconds, to_datetime, to_iso
from postroom.store.kernel.journal import JournaledTable
from postroom.store.kernel.owner import described, is_alive
from postroom.store.kernel.statement import FOR_UPDATE

_FIND = "SELECT l.owner, l.fence, l.expires FROM leases l WHERE l.name = ?" + FOR_UPDATE
_INSERT = "INSERT INTO leases (name, owner, fence, expires) VALUES (?, ?, 1, ?) ON CONFLICT (name) DO NOTHING"
_FOLLOW = """
INSERT INTO leases (name, owner, fence, expires) VALUES (?, 'control', ?, 0)
ON CONFLICT (name) DO UPDATE SET fence = excluded.fence WHERE leases.fence <= excluded.fence
"""
_TAKE = "UPDATE leases SET owner = ?, fence = ?, expires = ? WHERE name = ?"
_RENEW = "UPDATE leases SET expires = ? WHERE name = ? AND fence = ?"
_SEIZE = """
INSERT INTO leases (name, owner, fence, expires) VALUES (?, ?, 1, ?)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, fence = leases.fence + 1, expires = excluded.expires
RETURNING fence
"""
_QUIT = "UPDATE leases SET expires = 0, owner = '' WHERE name = ? AND fence = ?"
_NAMED = "SELECT name, owner, fence, expires FROM leases WHERE name = ?"
_ALL = "SELECT name, owner, fence, expires FROM leases ORDER BY name"
_FREE = 0  # when a lease has expired that nobody holds


class Lease(NamedTuple):
    """A lease and its current or last holder."""

    name: str
    owner: str
    fence: int
    expires: int

    @property
    def released(self) -> bool:
        """Whether it was released; one that expired was not, and its holder may have ended."""
        return self.expires == _FREE

    def is_held(self, now: int) -> bool:
        """Whether it is held: not expired, and its process is not known to have ended."""
        return self.expires > now and is_alive(self.owner) is not False


class Leases(JournaledTable):
    def acquire(self, name: str, owner: str, seconds: float) -> int:
        """Acquire a lease and return its number; raises if a live holder has it."""
        expires = self._session.now + in_microseconds(seconds)
        if self._session.run(_INSERT, (name, owner, expires)) == 1:
            fence = 1
        else:
            held_by, last, until = self._find(name)
            if until > self._session.now and held_by != owner and is_alive(held_by) is not False:
                raise LeaseHeld(lease=name, owner=described(held_by), until=to_iso(to_datetime(until)))
            fence = last + 1
            self._session.run(_TAKE, (owner, fence, expires, name))
        self._journal.add("lease", detail={"lease": name, "owner": owner, "number": fence})
        return fence

    def check(self, name: str, fence: int) -> None:
        """Raise unless ``fence`` is still the lease's number."""
        _, current, _ = self._find(name)
        if current != fence:
            raise LeaseLost(lease=name, ours=fence, theirs=current)

    def follow(self, name: str, fence: int) -> None:
        """For a store where this lease is not acquired: accept only the highest number seen so far."""
        if self._session.run(_FOLLOW, (name, fence)) == 0:
            _, current, _ = self._find(name)
            raise LeaseLost(lease=name, ours=fence, theirs=current)

    def renew(self, name: str, fence: int, seconds: float) -> None:
        self.check(name, fence)
        self._session.run(_RENEW, (self._session.now + in_microseconds(seconds), name, fence))

    def release(self, name: str, fence: int) -> None:
        """Release a lease; does nothing if it was lost."""
        if self._session.run(_RENEW, (_FREE, name, fence)) == 1:
            self._journal.add("release-lease", detail={"lease": name, "number": fence})

    def take(self, name: str, owner: str, expires: int) -> int:
        """Take a lease regardless of its holder, and return its number; for engines that agree on who may."""
        return self._session.number(_SEIZE, (name, owner, expires))

    def prolong(self, name: str, fence: int, microseconds: int) -> None:
        """Extend a lease, if the number is still current."""
        self._session.run(_RENEW, (self._session.now + microseconds, name, fence))

    def quit(self, name: str, fence: int) -> None:
        """Release a taken lease, unless it was taken since."""
        self._session.run(_QUIT, (name, fence))

    def named(self, name: str) -> Lease | None:
        """A lease as it is now; it may change before the transaction ends."""
        return self._session.one(Lease._make, _NAMED, (name,))

    def all(self) -> list[Lease]:
        return [Lease(*row) for row in self._session.rows(_ALL)]

    def _find(self, name: str) -> tuple[str, int, int]:
        row = self._session.row(_FIND, (name,))
        if row is None:
            raise LeaseLost(lease=name, ours=0, theirs=0)
        return row[0], row[1], row[2]

"""Several engines on one room: each has some of the queues, under leases of their own.

One engine leads and does everything that cannot be divided. Queues whose rules read only the message itself are divided
between all engines that stay. Each engine renews a lease that has its place among them. The lease of a queue does not
expire: it is valid while the lease of its engine is. Taking a queue raises its number, and every commit checks the
numbers of its queues: an engine that comes too late cannot commit. None of this is in the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from postroom.errors import LeaseLost
from postroom.limits import ENGINE_LEASE_SECONDS, ENGINES_MAX
from postroom.model.moment import in_microseconds
from postroom.store.kernel.base import Store
from postroom.store.kernel.batch import Stale
from postroom.store.kernel.leases import Lease
from postroom.store.kernel.owner import described
from postroom.store.kernel.transaction import Transaction

LEASE = "engine"
_PLACE = "engine "  # and the number of a place among the engines
_QUEUE = "queue "  # and its name
_UNENDING = 2**62


class Divided(NamedTuple):
    """The queues of a stage, and those of them that other engines may have."""

    watched: frozenset[str]
    free: frozenset[str]


class EngineSeen(NamedTuple):
    """An engine that shares a room, and the queues that it has taken."""

    place: int
    owner: str  # in words
    leads: bool
    queues: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        return {"number": self.place, "owner": self.owner, "leads": self.leads, "queue_names": list(self.queues)}

    def __str__(self) -> str:
        has = "everything that is not divided" if self.leads else ""
        alone = ", ".join(self.queues)
        return f"engine {self.place} ({self.owner}) has {' and '.join(filter(None, (has, alone))) or 'nothing yet'}"


def engines(tx: Transaction) -> list[EngineSeen]:
    """The engines that share a room now."""
    known = {lease.name: lease for lease in tx.leases.all()}
    leader = known.get(LEASE)
    seen = []
    for place, lease in sorted(_living(tx, known).items()):
        queues = [name.removeprefix(_QUEUE) for name, other in known.items() if other.owner == _owner(place, lease)]
        leads = leader is not None and not leader.released and leader.owner == lease.owner
        seen.append(EngineSeen(place, described(lease.owner), leads, tuple(sorted(queues))))
    return seen


def _living(tx: Transaction, known: Mapping[str, Lease]) -> dict[int, Lease]:
    """The leases of live engines by place; without those that have ended or are silent for too long."""
    return {
        int(name.removeprefix(_PLACE)): lease
        for name, lease in known.items()
        if name.startswith(_PLACE) and lease.is_held(tx.now)
    }


def _owner(place: int, lease: Lease) -> str:
    """The owner that a queue's lease names: the engine's place and number, so that losing the place loses the
    queues."""
    return f"{_PLACE}{place}, {lease.fence}"


class Holding:
    """The queues of one engine. ``divided`` returns what there is to divide."""

    def __init__(self, store: Store, owner: str, divided: Callable[[Transaction], Divided]) -> None:
        self._store = store
        self._owner = owner
        self._divided = divided
        self._place = 0  # among the engines; 0 is none
        self._fence = 0
        self._queues: dict[str, int] = {}  # with the numbers of their leases
        self._known = Divided(frozenset(), frozenset())
        self.leads = False

    @property
    def queues(self) -> frozenset[str]:
        """The queues that this engine has."""
        return frozenset(self._queues)

    def others(self) -> frozenset[str]:
        """The queues that another engine has or will have: this one must not take messages from them."""
        left = self._known.free if self.leads else self._known.watched
        return left - self._queues.keys()

    def check(self, tx: Transaction, names: Collection[str]) -> None:
        """Raise ``Stale`` if a queue of a step now belongs to another engine; holds the leases until the commit."""
        for name in sorted(set(names)):
            fence = self._queues.get(name)
            if fence is None and self.leads and name not in self._known.free:
                continue
            try:
                tx.leases.check(_QUEUE + name, fence or 0)
            except LeaseLost as lost:
                raise Stale from lost

    def beat(self, tx: Transaction) -> None:
        """Renew this engine's lease."""
        if self._place:
            tx.leases.prolong(f"{_PLACE}{self._place}", self._fence, in_microseconds(ENGINE_LEASE_SECONDS))

    def balance(self) -> bool:
        """Take this engine's share of the queues and release the rest; True if something has changed."""
        if not self._store.read(self._is_to_do):
            return False
        self._place, self._fence, self._queues = self._store.transact("lease", self._divide)
        return True

    def leave(self) -> None:
        """Release everything."""
        if self._place and not self._store.stopped:
            self._store.transact("release-lease", self._part)
            self._place, self._queues = 0, {}

    def _is_to_do(self, tx: Transaction) -> bool:
        known = {lease.name: lease for lease in tx.leases.all()}
        self._known = self._divided(tx)
        own = known.get(f"{_PLACE}{self._place}")
        if own is None or own.fence != self._fence:
            return True
        kept = self._kept(known)
        return kept != self._queues or self._share(tx, known, self._place, kept) != kept.keys()

    def _kept(self, known: Mapping[str, Lease]) -> dict[str, int]:
        """The queues that no other engine has taken from this one meanwhile."""
        leases = {name: known.get(_QUEUE + name) for name in self._queues}
        return {name: lease.fence for name, lease in leases.items() if lease and lease.fence == self._queues[name]}

    def _divide(self, tx: Transaction) -> tuple[int, int, dict[str, int]]:
        """Its place among the engines, the number of that lease, and its queues from now on."""
        tx.definitions.lock()  # one engine after another
        known = {lease.name: lease for lease in tx.leases.all()}
        place, fence, queues = self._place, self._fence, self._kept(known)
        own = known.get(f"{_PLACE}{place}")
        if own is None or own.fence != fence:  # it is new, or was taken for gone
            living = _living(tx, known)
            place, queues = next(candidate for candidate in range(1, ENGINES_MAX + 1) if candidate not in living), {}
            until = tx.now + in_microseconds(ENGINE_LEASE_SECONDS)
            fence = tx.leases.take(f"{_PLACE}{place}", self._owner, until)
            known = {lease.name: lease for lease in tx.leases.all()}
        share = self._share(tx, known, place, queues)
        for name in sorted(queues.keys() - share):
            tx.leases.quit(_QUEUE + name, queues.pop(name))
        for name in sorted(share - queues.keys()):
            queues[name] = tx.leases.take(_QUEUE + name, f"{_PLACE}{place}, {fence}", _UNENDING)
        tx.wake()  # who waits for a queue that was let go may take it
        return place, fence, queues

    def _share(self, tx: Transaction, known: Mapping[str, Lease], place: int, queues: Collection[str]) -> set[str]:
        """The queues that an engine can have now; all of them if it leads and shares nothing."""
        return self._meant(tx, known, place) - self._elsewhere(tx, known, queues)

    def _elsewhere(self, tx: Transaction, known: Mapping[str, Lease], queues: Collection[str]) -> set[str]:
        """Queues that another engine still has and will release."""
        owners = {_owner(place, lease) for place, lease in _living(tx, known).items()}
        held = {name for name in self._known.free if (lease := known.get(_QUEUE + name)) and lease.owner in owners}
        return held - set(queues)

    def _meant(self, tx: Transaction, known: Mapping[str, Lease], place: int) -> set[str]:
        """The queues for the engine at a place: dealt in turn to all engines that share the room."""
        living = _living(tx, known)
        leader = known.get(LEASE)
        leads = leader is not None and leader.is_held(tx.now)
        if leads and leader is not None and leader.owner not in {lease.owner for lease in living.values()}:
            return set()  # it shares nothing
        turns = sorted(living)
        names = enumerate(sorted(self._known.free))
        return {name for number, name in names if turns and turns[number % len(turns)] == place}

    def _part(self, tx: Transaction) -> None:
        for name, fence in self._queues.items():
            tx.leases.quit(_QUEUE + name, fence)
        tx.leases.quit(f"{_PLACE}{self._place}", self._fence)
        tx.wake()

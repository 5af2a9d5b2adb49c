"""Whether an engine runs, as far as another process can tell: by its lease."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from postroom.engine.holding import LEASE
from postroom.store.kernel.owner import described, is_alive
from postroom.store.kernel.transaction import Transaction


class State(StrEnum):
    FREE = "free"  # no engine, and the last one has ended as it should
    RUNS = "runs"
    SILENT = "silent"  # it has not renewed its lease in time; on another machine it may have ended
    ENDED = "ended"  # its process is gone, and it did not give its lease back


class Presence(NamedTuple):
    """The engine of a room in one moment."""

    state: State
    owner: str = ""  # in words: who has the lease, or had it last
    number: int = 0
    until: int = 0

    @property
    def works(self) -> bool:
        return self.state is State.RUNS


def presence(tx: Transaction) -> Presence:
    lease = next((lease for lease in tx.leases.all() if lease.name == LEASE), None)
    if lease is None or lease.released:
        return Presence(State.FREE)
    if is_alive(lease.owner) is False:
        state = State.ENDED
    else:
        state = State.RUNS if lease.expires > tx.now else State.SILENT
    return Presence(state, described(lease.owner), lease.fence, lease.expires)

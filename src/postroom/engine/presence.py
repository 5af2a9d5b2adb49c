"""Whether an engine or a sender process runs, as its lease tells other processes."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from postroom.engine.effects_lease import SENDERS
from postroom.engine.holding import LEASE
from postroom.store.kernel.owner import described, is_alive
from postroom.store.kernel.transaction import Transaction


class EngineState(StrEnum):
    """What is known of the process of an engine, by its lease."""

    FREE = "free"  # none, and the last one has ended as it should
    RUNS = "runs"
    SILENT = "silent"  # it has not renewed its lease in time; on another machine it may have ended
    ENDED = "ended"  # its process is gone, and it did not give its lease back


class Presence(NamedTuple):
    """The state of a room's engine or sender process at one moment."""

    state: EngineState
    owner: str = ""  # in words: who has the lease, or had it last
    number: int = 0
    until: int = 0

    @property
    def works(self) -> bool:
        """Whether it runs, and has renewed its lease in time."""
        return self.state is EngineState.RUNS


def presence(tx: Transaction) -> Presence:
    """The engine that leads."""
    return _seen(tx, LEASE)


def senders(tx: Transaction) -> Presence:
    """The sender process; if there is none, the engine sends."""
    return _seen(tx, SENDERS)


def _seen(tx: Transaction, name: str) -> Presence:
    lease = tx.leases.named(name)
    if lease is None or lease.released:
        return Presence(EngineState.FREE)
    if is_alive(lease.owner) is False:
        state = EngineState.ENDED
    else:
        state = EngineState.RUNS if lease.expires > tx.now else EngineState.SILENT
    return Presence(state, described(lease.owner), lease.fence, lease.expires)

"""Spheres: messages, databases and recipients with one outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from postroom.limits import COMMIT_SECONDS, HEARTBEAT_SECONDS
from postroom.room.parts import RoomPart
from postroom.spheres import machine as machines
from postroom.spheres import watching
from postroom.spheres.compensation import Checked, Compensator
from postroom.spheres.machine import MachineHandle
from postroom.spheres.monitor import SphereShown, SphereTold
from postroom.spheres.sphere import Sphere
from postroom.store.kernel.queues import STATE


class RoomSpheres(RoomPart):
    """Starting, inspecting and ending spheres; state machines."""

    def open(
        self, id: str | None = None, *, heartbeat: float = HEARTBEAT_SECONDS, commit_within: float = COMMIT_SECONDS
    ) -> Sphere:
        """Start a sphere: a transaction over messages, databases and the answers of recipients.

        Leaving its ``with`` block normally commits it, an exception aborts it, and so does the end of this thread or
        process: ``heartbeat`` is the longest time in seconds between two heartbeats. An ``id`` can be used once.
        """
        return self._parts.monitor.start(id, heartbeat=heartbeat, commit_within=commit_within)

    def all(self, state: str | None = None) -> list[SphereShown]:
        """All spheres, or those in a state."""
        return self._parts.monitor.spheres(state)

    def show(self, id: str) -> SphereTold:
        """Everything about a sphere: its sends, their outcomes, and what it waits for."""
        return self._parts.monitor.show(id)

    def abort(self, id: str, reason: str = "an operator aborted it") -> str:
        """Abort a sphere from outside; returns its state: ABORTED, or ABORTING while compensations are pending."""
        return self._parts.monitor.abort(id, reason)

    def acknowledge(self, key: str, *, processed: bool = False) -> bool:
        """Acknowledge for a recipient that a message was received or processed; False if no sphere sent it."""
        return self._parts.monitor.acknowledge(key, processed=processed)

    def settle(self, participant: Any) -> dict[str, str]:
        """After a crash: commit or roll back prepared transactions of spheres in a database; returns their outcomes."""
        return self._parts.monitor.settle(participant)

    def settle_database(self, url: str) -> dict[str, str]:
        """Like ``settle``, for a PostgreSQL database by URL."""
        from postroom.store.postgres.store import two_phase

        with two_phase(url) as connection:
            return self._parts.monitor.settle(connection)

    def compensator(self, check: float | None = None) -> Compensator:
        """The compensation engine, which finds spheres whose owner has ended; ``run``, ``once`` or ``stop`` it."""
        return self._parts.monitor.compensator(check)

    def compensate(self, check: float | None = None) -> Checked:
        """One check of the compensation engine: undo the spheres of owners that have ended."""
        return self._parts.monitor.compensator(check).once()

    def watch_state(self, state: str, *queue: str, stop: bool = False) -> None:
        """Have the engine send a message to a queue for each arrival in a state of a machine; ``stop`` ends that.

        The message has the entity, its state, the state before and the reason; rules and arcs may read the queue. The
        states of spheres are ACTIVE, COMMITTING, ABORTING, COMMITTED and ABORTED.
        """
        target = self._parts.store.transact("watch", lambda tx: self._parts.verbs.find(tx, queue).name)
        watching.watch(self._parts.store, state, target, wanted=not stop)

    def is_state(self, queue: Sequence[str]) -> bool:
        """Whether a name is a state of a machine."""
        return len(queue) == 1 and self._parts.store.read(lambda tx: tx.queues.kind(queue[0])) == STATE

    def follow_state(self, state: str, wait: float | None = None) -> Iterator[dict[str, Any]]:
        """The entities in a state of a machine, and new arrivals, until none has come for ``wait`` seconds."""
        return watching.follow(self._parts.store, state, wait)

    def machine(self, states: Sequence[str], transitions: Iterable[tuple[str, str]]) -> MachineHandle:
        """A state machine whose states are queues: an entity is a token in exactly one of them."""
        return MachineHandle(self._parts.store, machines.made(states, transitions))

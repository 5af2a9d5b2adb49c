"""Spheres: messages, databases and recipients with one outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from postroom.limits import COMMIT_SECONDS, HEARTBEAT_SECONDS
from postroom.room.parts import Parts
from postroom.spheres import machine as machines
from postroom.spheres import watching
from postroom.spheres.compensation import Checked, Compensator
from postroom.spheres.machine import MachineHandle
from postroom.spheres.monitor import SphereShown, SphereTold
from postroom.spheres.sphere import Sphere
from postroom.store.queues import STATE


class SpheresFace(Parts):
    """Starting spheres, looking at them, ending them from outside; machines of states."""

    def sphere(
        self, id: str | None = None, *, heartbeat: float = HEARTBEAT_SECONDS, commit_within: float = COMMIT_SECONDS
    ) -> Sphere:
        """Start a sphere: messages, databases and the answers of recipients with one outcome.

        Leaving its ``with`` block normally commits it, an exception aborts it, and so does the end of this thread or
        process: ``heartbeat`` is how often, in seconds, others are told that it lives. An ``id`` is used once.
        """
        return self._monitor.start(id, heartbeat=heartbeat, commit_within=commit_within)

    def spheres(self, state: str | None = None) -> list[SphereShown]:
        """All spheres, or those in a state."""
        return self._monitor.spheres(state)

    def show_sphere(self, id: str) -> SphereTold:
        """Everything about a sphere: what it sent, what became of it, what it waits for."""
        return self._monitor.show(id)

    def abort_sphere(self, id: str, reason: str = "an operator aborted it") -> str:
        """Let a sphere fail from outside; answers with its state: ABORTED, or ABORTING while something is left."""
        return self._monitor.abort(id, reason)

    def acknowledge(self, key: str, *, processed: bool = False) -> bool:
        """Say for a recipient that a message was received or processed; False if no sphere sent it."""
        return self._monitor.acknowledge(key, processed=processed)

    def settle(self, participant: Any) -> dict[str, str]:
        """After a crash: end what a database has prepared for spheres, by their state; tells what became of them."""
        return self._monitor.settle(participant)

    def settle_database(self, url: str) -> dict[str, str]:
        """The same for a PostgreSQL database by its URL."""
        from postroom.store.postgres import two_phase

        with two_phase(url) as connection:
            return self._monitor.settle(connection)

    def compensator(self, check: float | None = None) -> Compensator:
        """The detached engine that finds spheres whose owner has ended; ``run``, ``once`` or ``stop`` it."""
        return self._monitor.compensator(check)

    def compensate(self, check: float | None = None) -> Checked:
        """One check of the compensation engine: undo what owners that have ended left behind."""
        return self._monitor.compensator(check).once()

    def watch_state(self, state: str, *queue: str, stop: bool = False) -> None:
        """Let a queue be told by the engine what comes into a state of a machine, or ``stop`` that.

        Each arrival is a message with the entity, its state, the one before and the reason; rules and arcs may watch
        the queue. The states of spheres are ACTIVE, COMMITTING, ABORTING, COMMITTED and ABORTED.
        """
        target = self.store.transact("watch", lambda tx: self._verbs.find(tx, queue).name)
        watching.watch(self.store, state, target, wanted=not stop)

    def is_state(self, queue: Sequence[str]) -> bool:
        """Whether a name is that of a state of a machine."""
        return len(queue) == 1 and self.store.read(lambda tx: tx.queues.kind(queue[0])) == STATE

    def follow_state(self, state: str, wait: float | None = None) -> Iterator[dict[str, Any]]:
        """What is in a state of a machine, and what comes into it, until nothing has come for ``wait`` seconds."""
        return watching.follow(self.store, state, wait)

    def machine(self, states: Sequence[str], transitions: Iterable[tuple[str, str]]) -> MachineHandle:
        """A state machine whose states are queues: an entity is a token in exactly one of them."""
        return MachineHandle(self.store, machines.made(states, transitions))

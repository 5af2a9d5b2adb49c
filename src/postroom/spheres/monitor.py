"""The spheres of a room: start one, list and show them, abort them from outside, settle databases in doubt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from secrets import token_hex
from typing import Any

from postroom.engine.machine import SPHERES
from postroom.engine.spheres import RETURN
from postroom.errors import ArgumentInvalid, EntityExists, SphereExists, SphereOver, SphereUnknown
from postroom.limits import CHECK_SECONDS, COMMIT_SECONDS, HEARTBEAT_SECONDS, HEARTBEAT_SECONDS_MIN
from postroom.model.key import key_number, key_text
from postroom.model.message import Message
from postroom.model.moment import in_microseconds, to_datetime, to_iso
from postroom.spheres import membership
from postroom.spheres.access import QueueAccess
from postroom.spheres.compensation import Compensator
from postroom.spheres.heartbeat import Hearts, beat, check_heartbeat, check_seconds
from postroom.spheres.machine import check_id
from postroom.spheres.settling import settle
from postroom.spheres.sphere import Sphere
from postroom.store.kernel.base import Store
from postroom.store.kernel.owner import described
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.spheres import ABORTED, COMMITTED, STATES, Kept, Send


@dataclass(frozen=True)
class SphereShown:
    """A sphere as it was when it was read."""

    id: str
    state: str
    owner: str
    started: datetime
    sends: int
    reason: str | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "state": self.state,
            "owner": self.owner,
            "started": to_iso(self.started),
            "send_count": self.sends,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class SendShown:
    """One send of a sphere: recipient and outcome; or a message that it has received (``when`` is ``return``)."""

    when: str
    recipient: str
    key: str | None
    remembered: str | None
    target: str | None
    received: datetime | None
    processed: datetime | None
    outcome: str
    why: str | None  # it is parked, or nothing undoes it
    maker: str | None = None  # the rule, arc, counter or procedure that made it

    @property
    def is_receive(self) -> bool:
        """Whether the sphere has received it, and the recipient is the queue that it comes back to on abort."""
        return self.when == RETURN

    def as_dict(self) -> dict[str, Any]:
        return {
            "when": self.when,
            "recipient": self.recipient,
            "key": self.key,
            "compensation": self.remembered,
            "target": self.target,
            "received": to_iso(self.received) if self.received else None,
            "processed": to_iso(self.processed) if self.processed else None,
            "outcome": self.outcome,
            "why": self.why,
            "by": self.maker,
        }


@dataclass(frozen=True)
class SphereTold:
    """Everything about one sphere."""

    sphere: SphereShown
    token: str
    requires: tuple[str, ...]
    parts: tuple[tuple[str, str, bool], ...]  # message, who, done
    sends: tuple[SendShown, ...]
    in_doubt: tuple[str, ...] = ()  # databases that may not know how it has ended

    def as_dict(self) -> dict[str, Any]:
        return {
            **self.sphere.as_dict(),
            "token": self.token,
            "requires": list(self.requires),
            "parts": [{"key": key, "owner": who, "done": done} for key, who, done in self.parts],
            "sends": [send.as_dict() for send in self.sends],
            "in_doubt": list(self.in_doubt),
        }


class Monitor:
    """``open`` makes a separate connection to the same store for heartbeats, so that owners do not block them."""

    def __init__(self, store: Store, open: Callable[[], Store], access: QueueAccess) -> None:
        self._store = store
        self._access = access
        self._hearts = Hearts(store, open)

    def start(
        self, id: str | None = None, *, heartbeat: float = HEARTBEAT_SECONDS, commit_within: float = COMMIT_SECONDS
    ) -> Sphere:
        """Start a sphere, owned by this thread."""
        name = token_hex(8) if id is None else id
        check_id("sphere", name)
        check_seconds("heartbeat", heartbeat, HEARTBEAT_SECONDS_MIN)
        check_seconds("commit_within", commit_within)
        heart = self._hearts.mine()
        late = heart.late
        microseconds = in_microseconds(heartbeat)

        def work(tx: Transaction) -> None:
            check_heartbeat(tx, microseconds)
            token = SPHERES.start(tx, name)
            tx.spheres.add(token, name, heart.owner, microseconds)
            if late:
                beat(tx, [heart])

        try:
            self._store.transact("sphere", work)
        except EntityExists as exists:
            raise SphereExists(sphere=name, state=exists.facts["state"]) from None
        self._hearts.depend(heart, name, heartbeat, beaten=late)
        return Sphere(self._store, self._access, self._hearts, heart, name, commit_within)

    def bind(self, message: Message) -> Message:
        """A received message, bound to the sphere that sent it."""
        return membership.bind(message, self._store, self._access, self._hearts)

    def acknowledge(self, key: str, *, processed: bool = False) -> bool:
        """Acknowledge for a recipient that a message was received or processed; False if no sphere sent it."""
        number = key_number(key)
        return self._store.transact("acknowledge", lambda tx: membership.acknowledge(tx, number, processed=processed))

    def abort(self, id: str, reason: str) -> str:
        """Abort a sphere; returns its state afterwards."""
        check_id("sphere", id)
        state = membership.abort(self._store, self._access, id, reason)
        if state in (COMMITTED, ABORTED):
            raise SphereOver(sphere=id, state=state, reason="")
        return self._store.read(lambda tx: SPHERES.state(tx, id))

    def settle(self, participant: Any) -> dict[str, str]:
        return settle(self._store, participant)

    def compensator(self, check: float | None = None) -> Compensator:
        """A compensation engine; by default with the check interval of the last one."""
        if check is None:
            known = self._store.read(lambda tx: tx.spheres.announced())
            check = CHECK_SECONDS if known is None else known / 1_000_000
        return Compensator(self._store, self._access, check)

    def spheres(self, state: str | None = None) -> list[SphereShown]:
        """All spheres, or those in a state; the oldest of each state first."""
        if state is not None and state not in STATES:
            raise ArgumentInvalid(argument="state", why=f"{state!r} is none of {', '.join(STATES)}")
        wanted = STATES if state is None else (state,)
        return self._store.read(lambda tx: [_shown(kept) for wanted_state in wanted for kept in _all(tx, wanted_state)])

    def show(self, id: str) -> SphereTold:
        check_id("sphere", id)
        return self._store.read(lambda tx: _told(tx, id))

    def close(self) -> None:
        """Stop the heartbeats. Open spheres are left to the compensation engine."""
        self._hearts.stop()


def _all(tx: Transaction, state: str) -> Iterator[Kept]:
    spheres = (tx.spheres.find(entity.name) for entity in tx.tokens.every(SPHERES.name, state))
    return (kept for kept in spheres if kept is not None)


def _shown(kept: Kept) -> SphereShown:
    return SphereShown(kept.id, kept.state, described(kept.owner), to_datetime(kept.started), kept.sends, kept.reason)


def _told(tx: Transaction, id: str) -> SphereTold:
    kept = tx.spheres.find(id)
    if kept is None:
        raise SphereUnknown(sphere=id)
    requires = [
        f"{requirement.enough} of {', '.join(requirement.recipients)}: "
        f"{'processed' if requirement.processing else 'received'} within {requirement.within / 1_000_000:g} s"
        for requirement in tx.spheres.requirements(id)
    ]
    parts = [(key_text(part.message), described(part.owner), part.done) for part in tx.spheres.parts(id)]
    sends = [_send(send) for send in tx.spheres.sends(id)]
    doubts = tuple(f"{share.place}, {share.branch}" for share in tx.spheres.in_doubt() if share.sphere == id)
    return SphereTold(_shown(kept), key_text(kept.token), tuple(requires), tuple(parts), tuple(sends), doubts)


def _send(send: Send) -> SendShown:
    received = send.sent if send.moment == RETURN else send.received
    return SendShown(
        send.moment,
        send.recipient,
        None if send.message is None else key_text(send.message),
        None if send.remembered is None else key_text(send.remembered),
        send.target,
        None if received is None else to_datetime(received),
        None if send.processed is None else to_datetime(send.processed),
        send.outcome or ("parked" if send.why else "open"),
        send.why,
        send.maker,
    )

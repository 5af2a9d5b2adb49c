"""The recipient's side of a sphere: acknowledge a message, vote against the sphere, or join it."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from types import TracebackType

from postroom.engine.machine import SPHERES
from postroom.errors import ArgumentInvalid, NotInSphere, ParticipantInDoubt, PostroomError, SphereAborted
from postroom.limits import COMMIT_SECONDS, HEARTBEAT_SECONDS, HEARTBEAT_SECONDS_MIN, RETRY_SECONDS
from postroom.model.arguments import check_methods
from postroom.model.key import key_number
from postroom.model.message import SPHERE, Message
from postroom.model.moment import in_microseconds
from postroom.spheres import outcome
from postroom.spheres.access import QueueAccess
from postroom.spheres.acting import Acting
from postroom.spheres.heartbeat import Heart, Hearts, beat, check_heartbeat, check_seconds
from postroom.spheres.machine import check_reason, reason_of
from postroom.spheres.participants import Share, share_of
from postroom.spheres.settling import forget
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.spheres import ACTIVE, COMMITTED, COMMITTING


@check_methods
class Membership:
    """The sphere of one received message, for its recipient."""

    def __init__(self, store: Store, access: QueueAccess, hearts: Hearts, id: str, key: str) -> None:
        self.id = id
        self.key = key
        self._store = store
        self._access = access
        self._hearts = hearts

    def __repr__(self) -> str:
        return f"<sphere {self.id} of message {self.key}>"

    @property
    def state(self) -> str:
        return self._store.read(lambda tx: SPHERES.state(tx, self.id))

    def acknowledge(self, *, processed: bool = False) -> None:
        """Acknowledge that the message was received, or that the work on it is done."""
        number = key_number(self.key)
        if not self._store.transact("acknowledge", lambda tx: acknowledge(tx, number, processed=processed)):
            raise NotInSphere(key=self.key)

    def abort(self, reason: str) -> None:
        """Vote against the sphere: it fails, unless its end is decided already."""
        abort(self._store, self._access, self.id, reason)

    def join(self, heartbeat: float = HEARTBEAT_SECONDS) -> Part:
        """Join: the sphere does not commit before this recipient is done, and fails if the recipient fails."""
        check_seconds("heartbeat", heartbeat, HEARTBEAT_SECONDS_MIN)
        heart = self._hearts.mine()
        number, microseconds = key_number(self.key), in_microseconds(heartbeat)

        def work(tx: Transaction) -> None:
            check_heartbeat(tx, microseconds)
            outcome.require_state(tx, self.id, ACTIVE, COMMITTING)
            if not tx.spheres.join(self.id, number, heart.owner, microseconds):
                raise ArgumentInvalid(argument="join", why=f"message {self.key} takes part in {self.id} already")
            beat(tx, [heart])

        self._store.transact("sphere-join", work)
        self._hearts.depend(heart, f"{self.id} {self.key}", heartbeat, beaten=True)
        return Part(self, self._store, self._access, heart)

    def bound(self, message: Message) -> Message:
        """A message that this recipient has received, bound to the sphere that sent it."""
        return bind(message, self._store, self._access, self._hearts)

    def done(self, heart: Heart, shares: Sequence[Share] = ()) -> None:
        """Vote yes; ``shares`` are branches of databases that follow the sphere's outcome."""

        def work(tx: Transaction) -> None:
            outcome.require_state(tx, self.id, ACTIVE, COMMITTING)
            if shares:
                tx.spheres.add_branches(self.id, shares)
            tx.spheres.done(self.id, key_number(self.key))
            tx.wake()

        try:
            self._store.transact("sphere-join", work)
        finally:
            self._hearts.release(heart, f"{self.id} {self.key}")

    def leave(self, heart: Heart, reason: str) -> None:
        """This recipient has failed, and so does the sphere."""
        try:
            self.abort(reason)
        finally:
            self._hearts.release(heart, f"{self.id} {self.key}")


class Part(Acting):
    """A recipient that has joined. Leaving the ``with`` block votes yes; an exception aborts the sphere.

    It can send, receive, require and enlist like the owner; only the owner commits.
    """

    def __init__(self, membership: Membership, store: Store, access: QueueAccess, heart: Heart) -> None:
        super().__init__(store, access, membership.id, (ACTIVE, COMMITTING), key_number(membership.key))
        self._membership = membership
        self._heart = heart
        self._participants = []

    def _bound(self, message: Message) -> Message:
        return self._membership.bound(message)

    @property
    def state(self) -> str:
        """The state of the sphere's token."""
        return self._membership.state

    def abort(self, reason: str) -> None:
        """Vote no: the sphere fails."""
        self._roll_back()
        self._membership.leave(self._heart, reason)

    def done(self) -> None:
        """Vote yes. Enlisted databases are prepared, and wait for ``follow``."""
        try:
            self._prepare()
        except SphereAborted as refusal:
            self.abort(refusal.facts["reason"])
            raise
        self._membership.done(self._heart, self._shares())

    def follow(self, wait: float = COMMIT_SECONDS) -> str:
        """Wait for the outcome, and end enlisted databases accordingly; returns the state of the sphere."""
        with self._store.waiter() as waiter:
            ends = monotonic() + wait
            while (state := self.state) in (ACTIVE, COMMITTING):
                left = ends - monotonic()
                if left <= 0:
                    who = ", ".join(type(participant).__name__ for participant in self._participants) or "nobody"
                    raise ParticipantInDoubt(sphere=self.id, participant=who, why="its end is not decided")
                waiter.wait(min(left, RETRY_SECONDS))
        if state != COMMITTED:
            self._roll_back()
            return state
        for participant in self._participants:
            share = share_of(participant)
            try:
                participant.commit()
            except Exception as error:  # whatever a foreign database may raise
                name = type(participant).__name__
                raise ParticipantInDoubt(sphere=self.id, participant=name, why=str(error)) from error
            if share is not None:
                forget(self._store, [share.branch])
        self._participants = []
        return state

    def __enter__(self) -> Part:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.done()
            if self._participants:
                self.follow()
            return
        try:
            self.abort(reason_of(error))
        except PostroomError as failure:  # no more beats: the compensation engine finds what is left
            error.add_note(f"sphere {self._membership.id} could not be aborted at once ({failure})")


def bind(message: Message, store: Store, access: QueueAccess, hearts: Hearts) -> Message:
    """Bind a received message to the sphere that sent it, if there is one."""
    id = message.properties.get(SPHERE)
    if isinstance(id, str):
        message.sphere = Membership(store, access, hearts, id, message.key)
    return message


def acknowledge(tx: Transaction, message: int, *, processed: bool) -> bool:
    """Record an acknowledgement; False if no sphere sent the message. Ended spheres do not change."""
    known = (tx.spheres.processed if processed else tx.spheres.received)([message]) > 0
    if known:
        tx.wake()
    return known


def abort(store: Store, access: QueueAccess, id: str, reason: str) -> str:
    """Abort a sphere and undo what it did; returns its previous state."""
    check_reason(reason)
    state = store.transact("sphere-aborting", lambda tx: outcome.begin_abort(tx, id, reason))
    if state != COMMITTED:
        outcome.undo(store, id, access)
    return state

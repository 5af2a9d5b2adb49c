"""The other side: what the recipient of a message can say to the sphere that sent it."""

from __future__ import annotations

from types import TracebackType

from postroom.engine.spheres import SPHERE
from postroom.errors import ArgumentInvalid, PostroomError
from postroom.limits import HEARTBEAT_SECONDS, HEARTBEAT_SECONDS_MIN
from postroom.model.key import key_number
from postroom.model.message import Message
from postroom.spheres import outcome
from postroom.spheres.entrance import Entrance
from postroom.spheres.heartbeat import Heart, Hearts, beat, check_heartbeat, check_seconds
from postroom.spheres.machine import check_reason, said
from postroom.spheres.sender import Sender
from postroom.store.base import Store
from postroom.store.spheres import ACTIVE, COMMITTED, COMMITTING
from postroom.store.transaction import Transaction


class Membership:
    """That of one received message. Its sphere counts what it says, and may come to its end by it."""

    def __init__(self, store: Store, entrance: Entrance, hearts: Hearts, id: str, key: str) -> None:
        self.id = id
        self.key = key
        self._store = store
        self._entrance = entrance
        self._hearts = hearts

    def __repr__(self) -> str:
        return f"<sphere {self.id} of message {self.key}>"

    @property
    def state(self) -> str:
        return self._store.read(lambda tx: outcome.SPHERES.state(tx, self.id))

    def acknowledge(self) -> None:
        """The message was received."""
        self._store.transact("acknowledge", lambda tx: acknowledge(tx, key_number(self.key), processed=False))

    def processed(self) -> None:
        """What the message asked for is done."""
        self._store.transact("acknowledge", lambda tx: acknowledge(tx, key_number(self.key), processed=True))

    def abort(self, reason: str) -> None:
        """Vote against: the whole sphere fails, unless its end is decided. The vote of a recipient needs no second."""
        abort(self._store, self._entrance, self.id, reason)

    def join(self, heartbeat: float = HEARTBEAT_SECONDS) -> Part:
        """Take part: the sphere is not committed before this recipient is done, and fails if it ends before that."""
        check_seconds("heartbeat", heartbeat, HEARTBEAT_SECONDS_MIN)
        heart = self._hearts.mine()
        number, microseconds = key_number(self.key), int(heartbeat * 1_000_000)

        def work(tx: Transaction) -> None:
            check_heartbeat(tx, microseconds)
            outcome.require_state(tx, self.id, ACTIVE, COMMITTING)
            if not tx.spheres.join(self.id, number, heart.owner, microseconds):
                raise ArgumentInvalid(argument="join", why=f"message {self.key} takes part in {self.id} already")
            beat(tx, [heart])

        self._store.transact("sphere-join", work)
        self._hearts.depend(heart, f"{self.id} {self.key}", heartbeat, beaten=True)
        return Part(self, self._store, self._entrance, heart)

    def done(self, heart: Heart) -> None:
        def work(tx: Transaction) -> None:
            outcome.require_state(tx, self.id, ACTIVE, COMMITTING)
            tx.spheres.done(self.id, key_number(self.key))
            tx.wake()

        try:
            self._store.transact("sphere-join", work)
        finally:
            self._hearts.release(heart, f"{self.id} {self.key}")

    def leave(self, heart: Heart, reason: str) -> None:
        """This recipient has failed, and so has the sphere."""
        try:
            self.abort(reason)
        finally:
            self._hearts.release(heart, f"{self.id} {self.key}")


class Part(Sender):
    """A recipient that takes part. Leaving the ``with`` block normally is its yes; an exception aborts the sphere."""

    def __init__(self, membership: Membership, store: Store, entrance: Entrance, heart: Heart) -> None:
        super().__init__(store, entrance, membership.id, (ACTIVE, COMMITTING), key_number(membership.key))
        self._membership = membership
        self._heart = heart

    def done(self) -> None:
        """This recipient's yes."""
        self._membership.done(self._heart)

    def __enter__(self) -> Part:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.done()
            return
        try:
            self._membership.leave(self._heart, said(error))
        except PostroomError as failure:  # no more beats: the compensation engine finds what is left
            error.add_note(f"sphere {self._membership.id} could not be aborted at once ({failure})")


def bind(message: Message, store: Store, entrance: Entrance, hearts: Hearts) -> Message:
    """Give a received message the voice that it has in its sphere, if it was sent in one."""
    id = message.properties.get(SPHERE)
    if isinstance(id, str):
        message.sphere = Membership(store, entrance, hearts, id, message.key)
    return message


def acknowledge(tx: Transaction, message: int, *, processed: bool) -> bool:
    """Note what a recipient says; False if no sphere waits for it. What has ended stays as it is."""
    known = (tx.spheres.processed if processed else tx.spheres.received)([message]) > 0
    if known:
        tx.wake()
    return known


def abort(store: Store, entrance: Entrance, id: str, reason: str) -> str:
    """Let a sphere fail and undo what it did; answers with its state before."""
    check_reason(reason)
    state = store.transact("sphere-aborting", lambda tx: outcome.begin_abort(tx, id, reason))
    if state != COMMITTED:
        store.transact("compensate", lambda tx: outcome.compensate(tx, id, entrance))
    return state

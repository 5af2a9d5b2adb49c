"""A sphere in the hands of its owner.

Leaving the ``with`` block normally commits, an exception aborts. Whoever comes late, because others have ended the
sphere meanwhile, is told so at the next call and changes nothing.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from time import monotonic, sleep
from types import TracebackType
from typing import Any

from postroom.errors import (
    ArgumentInvalid,
    ParticipantInDoubt,
    PostroomError,
    SphereAborted,
    SphereOver,
    StoreBusy,
    StoreError,
)
from postroom.limits import RETRY_SECONDS, SETTLED_SECONDS
from postroom.model.message import Message
from postroom.model.moment import in_microseconds
from postroom.spheres import outcome, sending
from postroom.spheres.conditions import failed, fulfilled
from postroom.spheres.entrance import Entrance
from postroom.spheres.heartbeat import Heart, Hearts
from postroom.spheres.machine import check_reason, clean, said
from postroom.spheres.membership import bind
from postroom.spheres.participants import Participant, adapted, can_tell
from postroom.spheres.sender import Sender
from postroom.spheres.settling import settle
from postroom.store.base import Store
from postroom.store.spheres import ABORTED, ACTIVE, COMMITTED, COMMITTING
from postroom.store.transaction import Transaction


class Sphere(Sender):
    """What an owner can do with its sphere. Made by ``room.sphere``."""

    def __init__(self, store: Store, entrance: Entrance, hearts: Hearts, heart: Heart, id: str, within: float) -> None:
        super().__init__(store, entrance, id, (ACTIVE,))
        self._within = within
        self._participants: list[Participant] = []
        self._over = False
        self._lost = False  # it is to be aborted, and the store was not there for it
        self._let_go = weakref.finalize(self, hearts.give_up, heart, id)
        self._let_go.atexit = False
        self._hearts, self._heart = hearts, heart

    def __repr__(self) -> str:
        return f"<sphere {self.id}>"

    # --- while it is active ---

    def receive(self, *queue: str, wait: float | None = None) -> Message | None:
        """Take the next message of a queue; None if there is none. If the sphere fails, the queue has it again.

        Taking it and noting that are one commit: whenever its owner ends, it is not lost. What comes again is a new
        message that says the same, behind all that wait.
        """

        def within(tx: Transaction, take: Callable[[], Message | None]) -> None:
            outcome.require_state(tx, self.id, ACTIVE)
            message = take()
            if message is not None:
                sending.take_back(tx, self.id, message)

        found = self._entrance.receive(sending.path(queue), wait, within)
        return None if found is None else bind(found, self._store, self._entrance, self._hearts)

    def require(
        self,
        *recipients: str | Sequence[str],
        receipt_within: float | None = None,
        processing_within: float | None = None,
        at_least: int | None = None,
    ) -> None:
        """Succeed only if recipients, by queue or station, say in time that they have received or processed theirs.

        All of them must, or ``at_least`` so many. The time counts from this call, or from a later send.
        """
        if not recipients:
            raise ArgumentInvalid(argument="recipients", why="name at least one queue")
        if (receipt_within is None) == (processing_within is None):
            raise ArgumentInvalid(argument="require", why="give receipt_within or processing_within")
        seconds = receipt_within if receipt_within is not None else processing_within
        if not isinstance(seconds, (int, float)) or not 0 < seconds < 1e9:
            raise ArgumentInvalid(argument="require", why="give a time in seconds")
        enough = len(recipients) if at_least is None else at_least
        if not isinstance(enough, int) or not 0 < enough <= len(recipients):
            raise ArgumentInvalid(argument="at_least", why=f"1 to {len(recipients)}, the number of recipients")

        def work(tx: Transaction) -> None:
            outcome.require_state(tx, self.id, ACTIVE)
            names = [self._entrance.recipient(tx, sending.path(each)) for each in recipients]
            tx.spheres.require(
                self.id, names, processing_within is not None, enough, in_microseconds(float(seconds or 0))
            )

        self._store.transact("sphere-require", work)

    def enlist(self, participant: Any) -> Any:
        """Let a database or another object share the outcome. What it had in doubt before is settled first."""
        self._store.read(lambda tx: outcome.check_state(tx, self.id, ACTIVE))
        share = adapted(participant)
        if can_tell(participant):
            share.rollback()  # it can begin, so nobody's work is on it: what is in doubt can be ended
            settle(self._store, participant, living=False)
            share = adapted(participant)
        self._participants.append(share)
        return participant

    @property
    def state(self) -> str:
        """The state its token is in, such as ``ACTIVE`` or ``COMMITTED``."""
        return self._store.read(lambda tx: outcome.SPHERES.state(tx, self.id))

    # --- its end ---

    def commit(self) -> None:
        """End well: conditions are met, participants prepared, and everything takes effect. Otherwise it is aborted."""
        if self._lost:
            raise SphereAborted(sphere=self.id, reason="an abort of it has begun")
        branches = [branch for each in self._participants if (branch := getattr(each, "branch", None))]
        ends = monotonic() + self._within
        try:
            moment = in_microseconds(self._within)
            met = self._store.transact(
                "sphere-committing", lambda tx: outcome.begin_commit(tx, self.id, tx.now + moment, branches)
            )
            if not met:
                self._fulfil(ends)
            self._prepare()
            self._conclude(ends)
        except BaseException as error:
            self._fail(error)
            raise
        self._end()
        self._finish(branches)

    def abort(self, reason: str = "its owner aborted it") -> None:
        """End badly: all that was sent is undone. Compensations whose queue takes nothing now follow later."""
        check_reason(reason)
        try:
            state = self._store.transact("sphere-aborting", lambda tx: outcome.begin_abort(tx, self.id, reason))
        except BaseException:
            self._lose()
            raise
        if state == COMMITTED:
            raise SphereOver(sphere=self.id, state=state, reason="")
        self._roll_back()
        self._end()
        if state != ABORTED:
            self._store.transact("compensate", lambda tx: outcome.compensate(tx, self.id, self._entrance))

    def __enter__(self) -> Sphere:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._over:
            return
        if error is None:
            self.commit()
            return
        self._abort_for(error, said(error))

    # --- commit, in its parts ---

    def _fulfil(self, ends: float) -> None:
        """Wait until the conditions are met."""
        if self._store.read(self._look):
            return
        with self._store.waiter() as waiter:
            while not self._store.read(self._look):
                left = ends - monotonic()
                if left <= 0:
                    raise SphereAborted(sphere=self.id, reason=f"its commit took longer than {self._within:g} s")
                waiter.wait(min(left, RETRY_SECONDS))

    def _look(self, tx: Transaction) -> bool:
        outcome.check_state(tx, self.id, COMMITTING)
        why = failed(tx, self.id)
        if why is not None:
            raise SphereAborted(sphere=self.id, reason=why)
        return fulfilled(tx, self.id)

    def _prepare(self) -> None:
        for participant in self._participants:
            try:
                participant.prepare()
            except Exception as error:
                why = f"{type(participant).__name__} is not prepared: {said(error)}"
                raise SphereAborted(sphere=self.id, reason=why) from error

    def _conclude(self, ends: float) -> None:
        """The point of no return; a queue on hold may keep us waiting, until the time is up."""
        while True:
            try:
                if self._store.transact("sphere-committed", lambda tx: outcome.conclude(tx, self.id, self._entrance)):
                    return
                why = "someone who takes part is not done"
            except SphereOver:
                raise
            except PostroomError as refusal:
                if isinstance(refusal, StoreError) and not isinstance(refusal, StoreBusy):
                    raise
                why = str(refusal)
            if monotonic() > ends:
                raise SphereAborted(sphere=self.id, reason=f"its commit took longer than {self._within:g} s: {why}")
            sleep(RETRY_SECONDS)
            self._store.read(self._look)

    def _fail(self, error: BaseException) -> None:
        """The commit has failed: nothing of it may stand. If nobody knows whether it has, participants wait."""
        if isinstance(error, PostroomError) and error.happened == "unknown":
            return
        self._abort_for(error, error.facts["reason"] if isinstance(error, SphereAborted) else said(error))

    def _abort_for(self, error: BaseException, reason: str) -> None:
        """Abort because of an error, which is the one to tell."""
        try:
            self.abort(clean(reason))
        except PostroomError as failure:
            self._hearts.give_up(self._heart, self.id)
            error.add_note(f"sphere {self.id} could not be aborted at once ({failure}); it will be")

    def _finish(self, branches: list[str]) -> None:
        doubtful: list[tuple[Participant, Exception]] = []
        for participant in self._participants:
            try:
                participant.commit()
            except Exception as error:  # whatever a foreign database may raise
                if not self._settled(participant):
                    doubtful.append((participant, error))
        self._participants = []
        if doubtful:
            first, why = doubtful[0]
            raise ParticipantInDoubt(sphere=self.id, participant=type(first).__name__, why=why) from why
        if branches:
            self._store.transact("settle", lambda tx: tx.spheres.forget_branches(self.id))

    def _settled(self, participant: Participant) -> bool:
        """Whether someone has ended a share meanwhile, as the token says; they note it a moment later."""
        branch = getattr(participant, "branch", None)
        ends = monotonic() + SETTLED_SECONDS
        while branch is not None and monotonic() < ends:
            if self._store.read(lambda tx: tx.spheres.sphere_of(branch)) is None:
                return True
            sleep(SETTLED_SECONDS / 10)
        return False

    def _lose(self) -> None:
        """It cannot be aborted now and must not be committed any more: it is aborted with the next beat, or later."""
        if not self._over:
            self._roll_back()
            self._lost = True
            self._hearts.give_up(self._heart, self.id)

    def _roll_back(self) -> None:
        """Participants follow; one that cannot has nothing that would be committed."""
        for participant in self._participants:
            try:
                participant.rollback()
            except Exception:  # noqa: S112  # its transaction ends with its connection, or is settled later
                continue
        self._participants = []

    def _end(self) -> None:
        self._over = True
        self._let_go.detach()
        self._hearts.release(self._heart, self.id)

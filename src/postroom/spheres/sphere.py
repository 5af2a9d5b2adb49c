"""A sphere, for its owner.

Leaving the ``with`` block commits, an exception aborts. If others have ended the sphere meanwhile, the next call raises
and changes nothing.
"""

from __future__ import annotations

import weakref
from time import monotonic, sleep
from types import TracebackType

from postroom.engine.machine import SPHERES
from postroom.errors import ParticipantInDoubt, PostroomError, SphereAborted, SphereOver, StoreBusy, StoreError
from postroom.limits import RETRY_SECONDS, SETTLED_SECONDS
from postroom.model.arguments import check_methods
from postroom.model.message import Message
from postroom.model.moment import in_microseconds
from postroom.spheres import outcome
from postroom.spheres.access import QueueAccess
from postroom.spheres.acting import Acting
from postroom.spheres.conditions import failed, fulfilled
from postroom.spheres.heartbeat import Heart, Hearts
from postroom.spheres.machine import check_reason, clean, reason_of
from postroom.spheres.membership import bind
from postroom.spheres.participants import Participant
from postroom.spheres.settling import forget
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.spheres import ABORTED, ACTIVE, COMMITTED, COMMITTING


@check_methods
class Sphere(Acting):
    """A sphere, for its owner. Created by ``room.sphere``."""

    def __init__(self, store: Store, access: QueueAccess, hearts: Hearts, heart: Heart, id: str, within: float) -> None:
        super().__init__(store, access, id, (ACTIVE,))
        self._within = within
        self._participants = []
        self._over = False
        self._lost = False  # it is to be aborted, and the store was not there for it
        self._let_go = weakref.finalize(self, hearts.give_up, heart, id)
        self._let_go.atexit = False
        self._hearts, self._heart = hearts, heart

    def __repr__(self) -> str:
        return f"<sphere {self.id}>"

    def _bound(self, message: Message) -> Message:
        return bind(message, self._store, self._access, self._hearts)

    @property
    def ended(self) -> bool:
        """Whether its owner has committed or aborted it."""
        return self._over

    @property
    def state(self) -> str:
        """The state its token is in, such as ``ACTIVE`` or ``COMMITTED``."""
        return self._store.read(lambda tx: SPHERES.state(tx, self.id))

    # --- its end ---

    def commit(self) -> None:
        """Commit: wait for the conditions, prepare all participants, then make everything final; else abort."""
        if self._lost:
            raise SphereAborted(sphere=self.id, reason="an abort of it has begun")
        try:
            if not self._commit_at_once():
                self._commit_in_steps()
        except BaseException as error:
            self._fail(error)
            raise
        self._end()
        self._finish()

    def abort(self, reason: str = "its owner aborted it") -> None:
        """Abort: undo everything that was sent. Compensations whose queue accepts nothing now are retried later."""
        check_reason(reason)
        try:
            state, undone = self._begin_abort(reason)
        except BaseException:
            self._lose()
            raise
        if state == COMMITTED:
            raise SphereOver(sphere=self.id, state=state, reason="")
        self._roll_back()
        self._end()
        if state != ABORTED and not undone:
            outcome.undo(self._store, self.id, self._access)

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
        self._abort_for(error, reason_of(error))

    def _begin_abort(self, reason: str) -> tuple[str, bool]:
        """The state before, and whether everything was undone in the same commit: databases are rolled back first."""
        if not self._participants:
            try:
                return self._store.transact(
                    "sphere-aborting", lambda tx: outcome.abort_at_once(tx, self.id, reason, self._access)
                )
            except StoreBusy:  # of a queue; the decision needs none
                pass
        return self._store.transact("sphere-aborting", lambda tx: outcome.begin_abort(tx, self.id, reason)), False

    # --- commit, in its parts ---

    def _commit_at_once(self) -> bool:
        """One commit, if there is no database to prepare, nobody to wait for, and no queue that refuses."""
        if self._participants:
            return False
        moment = in_microseconds(self._within)
        try:
            return self._store.transact(
                "sphere-committing", lambda tx: outcome.commit_at_once(tx, self.id, tx.now + moment, self._access)
            )
        except SphereOver:
            raise
        except PostroomError as refusal:
            if isinstance(refusal, StoreError) and not isinstance(refusal, StoreBusy):
                raise
            return False

    def _commit_in_steps(self) -> None:
        shares = self._shares()
        ends = monotonic() + self._within
        moment = in_microseconds(self._within)
        met = self._store.transact(
            "sphere-committing", lambda tx: outcome.begin_commit(tx, self.id, tx.now + moment, shares)
        )
        if not met:
            self._fulfil(ends)
        self._prepare()
        self._conclude(ends)

    def _fulfil(self, ends: float) -> None:
        """Wait until the conditions are met."""
        if self._store.read(self._look):
            return
        with self._store.waiter() as waiter:
            while not self._store.read(self._look):
                left = ends - monotonic()
                if left <= 0:
                    raise SphereAborted(sphere=self.id, reason=f"its commit exceeded {self._within:g} s")
                waiter.wait(min(left, RETRY_SECONDS))

    def _look(self, tx: Transaction) -> bool:
        outcome.check_state(tx, self.id, COMMITTING)
        why = failed(tx, self.id)
        if why is not None:
            raise SphereAborted(sphere=self.id, reason=why)
        return fulfilled(tx, self.id)

    def _conclude(self, ends: float) -> None:
        """Commit the token. A queue on hold delays it, up to a limit."""
        while True:
            try:
                if self._store.transact("sphere-committed", lambda tx: outcome.conclude(tx, self.id, self._access)):
                    return
                why = "a participant is not done"
            except SphereOver:
                raise
            except PostroomError as refusal:
                if isinstance(refusal, StoreError) and not isinstance(refusal, StoreBusy):
                    raise
                why = str(refusal)
            if monotonic() > ends:
                raise SphereAborted(sphere=self.id, reason=f"its commit exceeded {self._within:g} s: {why}")
            sleep(RETRY_SECONDS)
            self._store.read(self._look)

    def _fail(self, error: BaseException) -> None:
        """Abort after a failed commit. If the outcome is unknown, participants stay prepared."""
        if isinstance(error, PostroomError) and error.happened == "unknown":
            return
        self._abort_for(error, error.facts["reason"] if isinstance(error, SphereAborted) else reason_of(error))

    def _abort_for(self, error: BaseException, reason: str) -> None:
        """Abort because of an error. If the abort fails too, the error gets a note."""
        try:
            self.abort(clean(reason))
        except PostroomError as failure:
            self._hearts.give_up(self._heart, self.id)
            error.add_note(f"sphere {self.id} could not be aborted at once ({failure}); it will be")

    def _finish(self) -> None:
        shares = self._shares()
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
        forget(self._store, [share.branch for share in shares])

    def _settled(self, participant: Participant) -> bool:
        """Whether someone else has settled this branch. They record it a moment afterwards."""
        branch = getattr(participant, "branch", None)
        ends = monotonic() + SETTLED_SECONDS
        while branch is not None and monotonic() < ends:
            if self._store.read(lambda tx: tx.spheres.sphere_of(branch)) is None:
                return True
            sleep(SETTLED_SECONDS / 10)
        return False

    def _lose(self) -> None:
        """Give up: the sphere cannot be aborted now, and is aborted with the next heartbeat or later."""
        if not self._over:
            self._roll_back()
            self._lost = True
            self._hearts.give_up(self._heart, self.id)

    def _end(self) -> None:
        self._over = True
        self._let_go.detach()
        self._hearts.release(self._heart, self.id)

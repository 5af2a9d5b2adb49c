"""What the owner of a sphere and joined recipients can do: receive, require, enlist databases."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from postroom.errors import ArgumentInvalid, SphereAborted
from postroom.model.arguments import check_methods
from postroom.model.message import Message
from postroom.model.moment import in_microseconds
from postroom.spheres import outcome, sending
from postroom.spheres.machine import reason_of
from postroom.spheres.participants import Participant, Share, adapted, can_tell, share_of
from postroom.spheres.sender import Sender
from postroom.spheres.settling import forget, settle
from postroom.store.kernel.transaction import Transaction


@check_methods
class Acting(Sender):
    """Operations that share the outcome of the sphere."""

    _participants: list[Participant]

    @abstractmethod
    def _bound(self, message: Message) -> Message:
        """A received message, bound to the sphere that sent it."""

    def receive(self, *queue: str, wait: float | None = None) -> Message | None:
        """Receive the next message of a queue; None if there is none. If the sphere fails, it returns to its place.

        Taking and recording it are one commit, so it is not lost if the owner ends. The returned message is the same,
        with its key. If it was sent in a sphere that has failed meanwhile, it is withdrawn instead.
        """

        def within(tx: Transaction, take: Callable[[], Message | None]) -> None:
            outcome.require_state(tx, self.id, *self._states)
            message = take()
            if message is not None:
                sending.note_received(tx, self.id, message)

        message = self._access.receive(sending.path(queue), wait, within)
        return None if message is None else self._bound(message)

    def require(
        self,
        *recipients: str | Sequence[str],
        receipt_within: float | None = None,
        processing_within: float | None = None,
        at_least: int | None = None,
    ) -> None:
        """Succeed only if recipients, by queue or station, acknowledge in time that they have received or processed
        theirs.

        All of them must, or ``at_least`` so many. The time starts with this call, or with a later send.
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
            outcome.require_state(tx, self.id, *self._states)
            names = [self._access.recipient(tx, sending.path(recipient)) for recipient in recipients]
            tx.spheres.require(
                self.id, names, processing_within is not None, enough, in_microseconds(float(seconds or 0))
            )

        self._store.transact("sphere-require", work)

    def enlist(self, participant: Any) -> Any:
        """Let a database or another object share the outcome. Its transactions in doubt are settled first."""
        self._store.read(lambda tx: outcome.check_state(tx, self.id, *self._states))
        share = adapted(participant)
        if can_tell(participant):
            share.rollback()  # it can begin, so nobody's work is on it: what is in doubt can be ended
            settle(self._store, participant, living=False)
            share = adapted(participant)
        self._participants.append(share)
        return participant

    # --- two phases ---

    def _shares(self) -> list[Share]:
        """The databases' branches: name and place of each."""
        shares = map(share_of, self._participants)
        return [share for share in shares if share is not None]

    def _prepare(self) -> None:
        for participant in self._participants:
            try:
                participant.prepare()
            except Exception as error:
                why = f"{type(participant).__name__} is not prepared: {reason_of(error)}"
                raise SphereAborted(sphere=self.id, reason=why) from error

    def _roll_back(self) -> None:
        """Roll participants back. One that fails has committed nothing, or stays in doubt until it is settled."""
        gone: list[str] = []
        for participant in self._participants:
            share = share_of(participant)
            try:
                participant.rollback()
            except Exception:  # noqa: S112  # its transaction ends with its connection, or is settled later
                continue
            if share is not None:
                gone.append(share.branch)
        self._participants = []
        if not self._store.stopped:
            forget(self._store, gone)

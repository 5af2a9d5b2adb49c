"""Sending in a sphere, for its owner and for recipients that have joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from postroom.model.arguments import check_methods
from postroom.model.body import Format
from postroom.model.message import Draft, Value, cause_number
from postroom.spheres import outcome, sending
from postroom.spheres.access import QueueAccess
from postroom.spheres.sending import Order, SphereSent
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction


class Writer(Protocol):
    """A station that was authenticated."""

    @property
    def name(self) -> str: ...


@check_methods
class Sender:
    """Can send while the sphere is in one of some states."""

    id: str

    def __init__(
        self, store: Store, access: QueueAccess, id: str, states: Sequence[str], cause: int | None = None
    ) -> None:
        self.id = id
        self._cause = cause  # of what is sent, unless it says another
        self._store = store
        self._access = access
        self._states = states

    def send(
        self,
        queue: str | Sequence[str],
        body: Any,
        *,
        when: str = "now",
        compensation: Any = None,
        on_commit: str | Sequence[str] | None = None,
        format: str | Format | None = None,
        type: str | None = None,
        properties: Mapping[str, Value] | None = None,
        cause: str | None = None,
    ) -> SphereSent:
        """Send a message: ``now``, visible immediately, or when the outcome is known, on ``commit`` or on ``abort``.

        ``compensation`` undoes a message that is sent now: a body, or a ``Compensation`` with a queue of its own. It is
        stored in the same commit. When the sphere commits it is dropped, or moved to the queue ``on_commit``. ``cause``
        is the key of the message that caused this one; for a recipient that has joined, the one it received.
        """
        draft = Draft.of(body, format, type, properties)
        order = sending.order(queue, draft, when, compensation, on_commit, format)
        return self._fire(order, cause_number(body, cause))

    def mail(
        self,
        writer: Writer,
        to: str,
        type: str,
        fields: Mapping[str, Any] | None = None,
        *,
        when: str = "now",
        compensation: Any = None,
        cause: str | None = None,
    ) -> SphereSent:
        """Put a form into a station's mailbox, written by another station.

        ``compensation`` has the fields of a second form of the type, for the same mailbox; or it is a ``Compensation``
        with a queue.
        """
        order = sending.mail_order(writer, to, type, fields or {}, compensation, when)
        return self._fire(order, cause_number(None, cause))

    def _fire(self, made: Order, cause: int | None) -> SphereSent:
        order = replace(made, cause=self._cause if cause is None else cause)

        def work(tx: Transaction) -> SphereSent:
            outcome.require_state(tx, self.id, *self._states)
            return sending.send(tx, self.id, order, self._access)

        return self._store.transact("sphere-send", work)

"""Admission: what each capability does to messages before they enter a queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from postroom.model.message import Draft
from postroom.store.kernel.batch import Put
from postroom.store.kernel.queues import Admission, Queue
from postroom.store.kernel.transaction import Transaction

if TYPE_CHECKING:
    from postroom.flows.admission import FlowAdmission
    from postroom.flows.graph.by import By
    from postroom.flows.graph.versions import RoomGraphs
    from postroom.rules.admission import RuleAdmission
    from postroom.rules.programs import Programs


class RoomAdmission:
    """Admission by all capabilities in order: an event must fit its space before rules see it."""

    def __init__(
        self, programs: Callable[[], Programs], room_graphs: Callable[[], RoomGraphs], by: Callable[[], By]
    ) -> None:
        self._programs = programs  # loaded when a queue has rules
        self._room_graphs, self._by = room_graphs, by  # when it is a space

    @cached_property
    def _flows(self) -> FlowAdmission:
        from postroom.flows.admission import FlowAdmission

        return FlowAdmission(self._room_graphs(), self._by())

    @cached_property
    def _rules(self) -> RuleAdmission:
        from postroom.rules.admission import RuleAdmission

        return RuleAdmission(self._programs())

    def __call__(self, tx: Transaction, queue: Queue, drafts: Sequence[Draft], *, again: bool = False) -> list[Put]:
        if queue.admission & Admission.FLOWS:
            drafts = self._flows(tx, queue, drafts)
        if queue.admission & Admission.RULES:
            return (self._rules.again if again else self._rules)(tx, queue, drafts)
        return [Put(queue, draft, None, tx.journal.actor) for draft in drafts]

    def again(self, tx: Transaction, queue: Queue, drafts: Sequence[Draft]) -> list[Put]:
        """Admit messages that were sent before and come from another queue."""
        return self(tx, queue, drafts, again=True)

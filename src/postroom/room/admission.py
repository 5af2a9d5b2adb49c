"""Admission to a queue: what each capability does to messages before they are let into a queue."""

from __future__ import annotations

from collections.abc import Sequence

from postroom.flows.admission import FlowAdmission
from postroom.flows.graph.meta import By
from postroom.flows.graph.versions import RoomGraphs
from postroom.model.message import Draft
from postroom.rules.admission import RuleAdmission
from postroom.rules.catalog import Programs
from postroom.store.kernel.batch import Put
from postroom.store.kernel.queues import Admission, Queue
from postroom.store.kernel.transaction import Transaction


class RoomAdmission:
    """One after another: an event must fit its space before rules look at it."""

    def __init__(self, programs: Programs, room_graphs: RoomGraphs, by: By) -> None:
        self._flows = FlowAdmission(room_graphs, by)
        self._rules = RuleAdmission(programs)

    def __call__(self, tx: Transaction, queue: Queue, drafts: Sequence[Draft]) -> list[Put]:
        if queue.admission & Admission.FLOWS:
            drafts = self._flows(tx, queue, drafts)
        if queue.admission & Admission.RULES:
            return self._rules(tx, queue, drafts)
        return [Put(queue, draft, None, tx.journal.actor) for draft in drafts]

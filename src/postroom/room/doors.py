"""The doors of a room: what each capability does to messages before they are let into a queue."""

from __future__ import annotations

from collections.abc import Sequence

from postroom.flows.chart import Charts
from postroom.flows.door import FlowDoor
from postroom.flows.meta import By
from postroom.model.message import Draft
from postroom.rules.catalog import Programs
from postroom.rules.door import RulesDoor
from postroom.store.batch import Put
from postroom.store.queues import Door, Queue
from postroom.store.transaction import Transaction


class Doors:
    """One after another: an event must fit its space before rules look at it."""

    def __init__(self, programs: Programs, charts: Charts, by: By) -> None:
        self._flows = FlowDoor(charts, by)
        self._rules = RulesDoor(programs)

    def __call__(self, tx: Transaction, queue: Queue, drafts: Sequence[Draft]) -> list[Put]:
        if queue.door & Door.FLOWS:
            drafts = self._flows(tx, queue, drafts)
        if queue.door & Door.RULES:
            return self._rules(tx, queue, drafts)
        return [Put(queue, draft, None, tx.journal.actor) for draft in drafts]

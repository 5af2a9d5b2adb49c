"""Messages from gateways, and error messages of gateways.

Errors use the same error queues as those of rules: of the rule that made the message, of its queue, of the module, of
the system.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from postroom.engine.steps.effects import Document
from postroom.engine.steps.failures import Failure, error_body, error_queue
from postroom.engine.steps.step import ENGINE
from postroom.errors import EntryRefused
from postroom.limits import ERROR_DEPTH_MAX
from postroom.model.message import Draft
from postroom.rules import entries
from postroom.rules.admission import admitted
from postroom.rules.answers import Answers
from postroom.rules.entries import Candidate
from postroom.rules.programs import Programs
from postroom.store.kernel.batch import Put
from postroom.store.kernel.queues import SYSTEM_ERRORS, Admission, Queue
from postroom.store.kernel.transaction import Transaction


class Outside:
    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self._answers = Answers()

    def entered(
        self, tx: Transaction, queue: Queue, arrived: Sequence[tuple[Draft, Mapping[str, Any]]]
    ) -> list[Put | EntryRefused]:
        """Admit messages from a gateway, with system properties: the sender, the connection."""
        candidates = [
            Candidate(Document(0, draft.format, draft.type, draft.body), entries.stored(draft.properties), system)
            for draft, system in arrived
        ]
        return [
            EntryRefused(queue=queue.name, why=put.description, reason=put.code) if isinstance(put, Failure) else put
            for put in admitted(tx, self._programs.plan(tx), queue, candidates, self._answers, ENGINE)
        ]

    def failed(
        self, tx: Transaction, failure: Failure, queue: str, document: Document, properties: Mapping[str, Any]
    ) -> Put:
        """The error message for the most specific queue that accepts it; ``document`` is the failed message, in
        ``queue``."""
        depth = properties.get("errors", 0)
        depth = (max(depth, 0) if type(depth) is int else 0) + 1
        rule = properties.get("rule")
        system = {"rule": rule if isinstance(rule, str) else queue, "errors": depth}
        if "connection" in properties:
            system["connection"] = properties["connection"]
        body = error_body(failure, queue, document.key, document)
        source = Document(0, "xml", None, body)
        for name in self._ladder(tx, queue, rule if isinstance(rule, str) else None, depth):
            goal = tx.queues.named(name)
            if goal is None or goal.retired or not goal.accepts or goal.admission & Admission.FLOWS:
                continue
            plan = self._programs.plan(tx)
            taken = entries.inherited(plan.target(name), properties, {})
            (put,) = admitted(tx, plan, goal, [Candidate(source, taken, system)], self._answers, ENGINE)
            if isinstance(put, Put):
                return put._replace(cause=document.key or None)
        last = Draft(body, "xml", None, entries.said(system))
        return Put(error_queue(tx), last, document.key or None, ENGINE)

    def _ladder(self, tx: Transaction, queue: str, rule: str | None, depth: int) -> list[str]:
        if depth > ERROR_DEPTH_MAX:
            return []
        levels = self._programs.program(tx).error_queues(queue, rule)
        return [name for name in levels if name != SYSTEM_ERRORS]

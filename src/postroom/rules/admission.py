"""Admission to queues with properties, slices, a schema or a timer: what a message gets before it enters."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from postroom.engine.steps.effects import Document
from postroom.engine.steps.failures import Failure
from postroom.errors import EntryRefused
from postroom.model.message import Draft
from postroom.rules import entries as admission
from postroom.rules.catalog import Programs
from postroom.rules.entries import Candidate
from postroom.rules.evaluation.xquery import QueryFailed
from postroom.rules.evaluation.xquery_process import BoundedXQuery
from postroom.store.kernel.base import Unprepared
from postroom.store.kernel.batch import Places, Put
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.transaction import Transaction

_KEPT = 64  # answers that are worked out and were not asked for again


class RuleAdmission:
    """What must be evaluated is evaluated before the transaction, in a process apart: see ``Unprepared``."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self._answers: OrderedDict[tuple[str, str], str | QueryFailed] = OrderedDict()

    def run(self, query: str, document: str, parameters: Mapping[str, str] | None = None) -> str:
        """The answer to a query that was worked out before."""
        try:
            said = self._answers.pop((query, document))
        except KeyError:
            raise Unprepared(partial(self._work_out, query, document)) from None
        if isinstance(said, QueryFailed):
            raise said
        return said

    def _work_out(self, query: str, document: str) -> None:
        said: str | QueryFailed
        try:
            said = BoundedXQuery().run(query, document)
        except QueryFailed as error:
            said = error
        self._answers[query, document] = said
        while len(self._answers) > _KEPT:
            self._answers.popitem(last=False)

    def __call__(self, tx: Transaction, queue: Queue, drafts: Sequence[Draft]) -> list[Put]:
        """The messages as they enter the queue; raises, and lets none in, if one cannot."""
        plan = self._programs.plan(tx)
        target = plan.target(queue.name)
        sender = tx.journal.actor
        candidates = []
        for draft in drafts:
            system: dict[str, Any] = {"sender": sender}
            if target.connection:
                system["connection"] = secrets.token_hex(8)
            document = Document(0, draft.format, draft.type, draft.body)
            candidates.append(Candidate(document, admission.stored(draft.properties), system))
        slicings, indexes = tx.slices.ids("slicing"), tx.slices.ids("index")
        puts = []
        for draft, entry in zip(drafts, admission.admit(plan, target, candidates, self), strict=True):
            if isinstance(entry, Failure):
                raise EntryRefused(queue=queue.name, why=entry.description, reason=entry.code)
            places = Places(
                tuple((slicings[name], value) for name, value in entry.slices),
                tuple((indexes[name], value) for name, value in entry.entries),
            )
            due = None if entry.delay is None else tx.now + entry.delay
            draft = draft._replace(properties=entry.properties)
            puts.append(Put(queue, draft, None, sender, places, due))
        return puts

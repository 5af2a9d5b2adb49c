"""Admission to queues with properties, slices, a schema or a timer: what is computed before a message enters."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import Any

from postroom.engine.steps.effects import Document, moment
from postroom.engine.steps.failures import Failure
from postroom.errors import EntryRefused
from postroom.model.message import Draft
from postroom.rules import entries as admission
from postroom.rules.answers import Answers
from postroom.rules.compilation.plan import Plan
from postroom.rules.entries import Candidate
from postroom.rules.programs import Programs
from postroom.store.kernel.batch import Places, Put
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.transaction import Transaction


class RuleAdmission:
    """Admission by rules; expressions are evaluated before the transaction, in a separate process."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self._answers = Answers()

    def __call__(self, tx: Transaction, queue: Queue, drafts: Sequence[Draft]) -> list[Put]:
        """The messages as they enter the queue; raises, and admits none, if one is invalid."""
        target = self._programs.plan(tx).target(queue.name)
        candidates = []
        for draft in drafts:
            system: dict[str, Any] = {"sender": tx.journal.actor}
            if target.connection:
                system["connection"] = secrets.token_hex(8)
            document = Document(0, draft.format, draft.type, draft.body)
            candidates.append(Candidate(document, admission.stored(draft.properties), system))
        return self._let_in(tx, queue, candidates)

    def again(self, tx: Transaction, queue: Queue, drafts: Sequence[Draft]) -> list[Put]:
        """Admit messages that were sent before: system properties stay, computed ones are computed again."""
        target = self._programs.plan(tx).target(queue.name)
        candidates = []
        for draft in drafts:
            properties = admission.stored(draft.properties)
            system = {name: value for name, value in properties.items() if name in admission.RESERVED}
            system.setdefault("sender", tx.journal.actor)
            explicit = admission.settable(target, properties)
            candidates.append(Candidate(Document(0, draft.format, draft.type, draft.body), explicit, system))
        return self._let_in(tx, queue, candidates)

    def _let_in(self, tx: Transaction, queue: Queue, candidates: Sequence[Candidate]) -> list[Put]:
        puts: list[Put] = []
        for put in admitted(tx, self._programs.plan(tx), queue, candidates, self._answers, tx.journal.actor):
            if isinstance(put, Failure):
                raise EntryRefused(queue=queue.name, why=put.description, reason=put.code)
            puts.append(put)
        return puts


def admitted(
    tx: Transaction, plan: Plan, queue: Queue, candidates: Sequence[Candidate], answers: Answers, actor: str
) -> Iterator[Put | Failure]:
    """Messages for a queue with everything computed; or why one cannot enter."""
    slicings, indexes = tx.slices.ids("slicing"), tx.slices.ids("index")
    entries = admission.admit(plan, plan.target(queue.name), candidates, answers.of(tx))
    for (document, _, _), entry in zip(candidates, entries, strict=True):
        if isinstance(entry, Failure):
            yield entry
            continue
        places = Places(
            tuple((slicings[name], value) for name, value in entry.slices),
            tuple((indexes[name], value) for name, value in entry.entries),
        )
        draft = Draft(document.body, document.format, document.type, entry.properties)
        yield Put(queue, draft, None, actor, places, moment(entry.delay, tx.now))

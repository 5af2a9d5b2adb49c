"""The dry run: what proposed rules would do with stored messages.

Changes nothing. Each message is evaluated alone, against the current sets; the proposed program is compiled like a
loaded one.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from postroom.engine.steps.effects import Arrival
from postroom.engine.steps.step import base_of
from postroom.engine.steps.tryout import Tried, begins, unsent
from postroom.limits import TRYOUT_SECONDS
from postroom.model.key import key_text
from postroom.model.message import Draft, Stored
from postroom.rules import catalog
from postroom.rules.compilation.plan import Plan
from postroom.rules.evaluation.arrivals import arrivals_of
from postroom.rules.evaluation.evaluate import evaluate_alone
from postroom.rules.evaluation.xquery_process import BoundedXQuery
from postroom.rules.language.definitions import AnyDefinition
from postroom.rules.programs import Programs, planned, read
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction


def tried_alone(store: Store, programs: Programs, queue: str, draft: Draft) -> Tried | None:
    """What the rules in force would do with a message if it were sent now; None if no rule reads the queue."""

    def work(tx: Transaction) -> tuple[Plan, list[Arrival], Any]:
        plan = programs.plan(tx)
        arrivals = arrivals_of(plan, tx, [unsent(tx, queue, draft)]) if queue in plan.queues else []
        return plan, arrivals, base_of(tx, arrivals)

    plan, arrivals, base = store.read(work)
    if not arrivals:
        return None
    effects = evaluate_alone(plan, arrivals, base, BoundedXQuery(TRYOUT_SECONDS))
    return Tried("", queue, effects.get(0, ()))


def tried(store: Store, proposed: Sequence[AnyDefinition], since: datetime | None) -> Iterator[Tried]:
    """Every stored message that the proposed rules read, oldest first, with what they would do."""

    def work(tx: Transaction) -> tuple[Plan, list[Stored]]:
        program = catalog.check(tx, proposed)
        mine = {definition.name for definition in proposed if definition.what == "rule"}
        # Indexes that only the proposed rules need are not there: these rules read whole queues instead.
        mark = secrets.token_hex(4)
        filled = frozenset(planned(tx, read(tx), 0, mark).indexes)
        plan = planned(tx, program, 0, mark, filled)
        watched = [queue for queue, queue_plan in plan.queues.items() if mine & set(queue_plan.rules)]
        messages = [stored for queue in watched for stored in tx.slices.queue(queue) if stored.sound]
        after = begins(since)
        return plan, sorted((stored for stored in messages if stored.created >= after), key=lambda stored: stored.key)

    plan, messages = store.read(work)
    for start in range(0, len(messages), 500):
        some = messages[start : start + 500]

        def look(tx: Transaction, some: Sequence[Stored] = some) -> Any:
            arrivals = arrivals_of(plan, tx, some)
            return arrivals, base_of(tx, arrivals)

        arrivals, base = store.read(look)
        effects = evaluate_alone(plan, arrivals, base, BoundedXQuery(TRYOUT_SECONDS))
        for stored, arrival in zip(some, arrivals, strict=True):
            yield Tried(key_text(stored.key), stored.queue, effects.get(arrival.order, ()))

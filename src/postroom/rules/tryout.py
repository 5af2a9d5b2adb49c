"""The dry run: what proposed rules would have done with the messages that are stored. Nothing is changed.

Each message is looked at alone, against the sets as they are now; a changed program is compiled like a loaded one.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from postroom.engine.steps.step import base_of
from postroom.engine.steps.tryout import Tried, begins
from postroom.limits import TRYOUT_SECONDS
from postroom.model.key import key_text
from postroom.model.message import Stored
from postroom.rules import catalog
from postroom.rules.compilation.plan import Plan
from postroom.rules.evaluation.arrivals import arrivals_of
from postroom.rules.evaluation.evaluate import evaluate_alone
from postroom.rules.evaluation.xquery_process import BoundedXQuery
from postroom.rules.language.definitions import AnyDefinition
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction


def tried(store: Store, proposed: Sequence[AnyDefinition], since: datetime | None) -> Iterator[Tried]:
    """Every stored message that the proposed rules watch, oldest first, with what they would do."""

    def work(tx: Transaction) -> tuple[Plan, list[Stored]]:
        program = catalog.check(tx, proposed)
        mine = {each.name for each in proposed if each.what == "rule"}
        # Indexes that only the proposed rules need are not there: these rules read whole queues instead.
        mark = secrets.token_hex(4)
        filled = frozenset(catalog.planned(tx, catalog.read(tx), 0, mark).indexes)
        plan = catalog.planned(tx, program, 0, mark, filled)
        watched = [queue for queue, each in plan.queues.items() if mine & set(each.rules)]
        found = [stored for queue in watched for stored in tx.slices.queue(queue) if stored.sound]
        after = begins(since)
        return plan, sorted((each for each in found if each.created >= after), key=lambda each: each.key)

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

"""Keeping indexes in step with the rules: an index that a new rule needs is filled from the messages there are."""

from __future__ import annotations

from postroom.engine.effects import Document
from postroom.rules.compiler import answered
from postroom.rules.exchange import answer, batch, element, parts
from postroom.rules.plan import Index, Plan
from postroom.rules.translation import indexed, prolog
from postroom.rules.xquery import saxon
from postroom.store.slices import Member
from postroom.store.transaction import Transaction

_BATCH = 1_000


def fill(tx: Transaction, before: Plan, after: Plan) -> None:
    """Empty the indexes that no rule needs any more and fill the new ones."""
    for name in before.indexes:
        if name not in after.indexes:
            tx.slices.empty_index(tx.slices.index(name))
    for name, index in after.indexes.items():
        number = tx.slices.index(name)
        if name not in before.indexes:
            tx.slices.empty_index(number)
            _fill(tx, after, index, number)


def _fill(tx: Transaction, plan: Plan, index: Index, number: int) -> None:
    query = (
        f"{prolog(plan.mark, ())}\nfor $qs:m in /b/m let $qs:message := qs:doc($qs:m/d) return "
        f"{answered(indexed(index, plan.mark))}"
    )
    stored = tx.slices.queue(index.queue)
    for start in range(0, len(stored), _BATCH):
        some = stored[start : start + _BATCH]
        shown = [f"<m>{element(Document(each.key, each.format, each.type, each.body), plan)}</m>" for each in some]
        said = parts(saxon().run(query, batch(shown)), plan.mark)
        members = [
            # Arrival numbers stand in for positions: both grow in the order of arrival, and these are the older ones.
            Member(number, value, each.number - 2**40, each.key)
            for each, part in zip(some, said, strict=True)
            for _, value in answer(part, plan.mark).entries
        ]
        tx.slices.add((), members)

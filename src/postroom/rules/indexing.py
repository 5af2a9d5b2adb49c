"""Keeping indexes in step with the rules: an index that a new rule needs is filled from the messages there are."""

from __future__ import annotations

from postroom.engine.effects import Document
from postroom.rules.exchange import answers, batch, element
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
        f'(<r-{plan.mark} i="{{$qs:m/@i}}"/>, {indexed(index, plan.mark)})'
    )
    stored = tx.slices.queue(index.queue)
    for start in range(0, len(stored), _BATCH):
        some = stored[start : start + _BATCH]
        parts = [
            f'<m i="{number}">{element(Document(each.key, each.format, each.type, each.body), plan)}</m>'
            for number, each in enumerate(some)
        ]
        members = [
            # Arrival numbers stand in for positions: both grow in the order of arrival, and these are the older ones.
            Member(number, value, some[answer.index].number - 2**40, some[answer.index].key)
            for answer in answers(saxon().run(query, batch(parts)), plan.mark)
            for _, value in answer.entries
        ]
        tx.slices.add((), members)

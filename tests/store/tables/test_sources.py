"""Sources by name, with their queues."""

from __future__ import annotations

from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.sources import Source


def test_a_source_is_added_disabled_and_removed_and_the_journal_tells_it(tx: Transaction) -> None:
    tx.sources.add(Source("T1", 0, "in", None))
    assert tx.sources.all() == [Source("T1", 0, "in", None)]
    tx.sources.set_disabled("T1", True)
    assert tx.sources.locked("T1") == Source("T1", 1, "in", None)
    assert tx.sources.locked("T2") is None
    tx.sources.remove("T1")
    assert tx.sources.find("T1") is None
    assert [event.verb for event in tx.journal.tail(3)] == ["add-source", "disable-source", "remove-source"]

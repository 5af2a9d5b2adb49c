"""The columns of a line are those of the table and of ``Line``, in one order."""

from __future__ import annotations

from postroom.store.kernel.columns import JOURNAL, LINE
from postroom.store.kernel.journal import Line
from postroom.store.kernel.transaction import Transaction


def test_a_line_has_the_columns_of_the_journal(tx: Transaction) -> None:
    assert Line._fields == JOURNAL
    seq = tx.journal.add("note", detail={"a": 1})
    (row,) = tx.session.rows(f"SELECT {LINE} FROM journal WHERE seq = ?", (seq,))
    line = Line(*row)
    assert (line.seq, line.verb, line.detail, line.actor) == (seq, "note", '{"a":1}', "tester")
    assert line.sound

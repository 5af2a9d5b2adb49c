"""Dossiers: in the order of putting, each message once, told in the journal."""

from __future__ import annotations

from tests.store.places import put, queue

from postroom.store.kernel.transaction import Transaction


def test_a_dossier_holds_each_message_once_in_the_order_of_putting(tx: Transaction) -> None:
    station = queue(tx, "station")
    first, second = put(tx, station), put(tx, station)
    assert tx.dossiers.add(station, "case", second.key)
    assert tx.dossiers.add(station, "case", first.key)
    assert not tx.dossiers.add(station, "case", first.key)
    assert tx.dossiers.messages(station, "case") == [second.key, first.key]
    assert [event.verb for event in tx.journal.trace(first.key)] == ["put", "dossier"]
    assert tx.dossiers.remove(station, "case", first.key)
    assert not tx.dossiers.remove(station, "case", first.key)
    tx.dossiers.put([(station, "other", first.key, 1), (station, "other", first.key, 1)])
    assert tx.dossiers.counts(station) == {"case": 1, "other": 1}
    tx.dossiers.leave(second.key)
    tx.dossiers.leave_many([first.key])
    assert tx.dossiers.counts(station) == {}

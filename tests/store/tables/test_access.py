"""Grants and tokens as rows."""

from __future__ import annotations

from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.access import Grant, TokenRow


def test_grants_and_tokens_come_and_go_and_each_change_is_counted_and_told(tx: Transaction) -> None:
    before = tx.access.version()
    grant, token = Grant("ann", "send", "orders"), TokenRow("id1", "ann", "laptop", b"digest", "send look", 5, None)
    assert (tx.access.add(grant), tx.access.add(grant)) == (True, False)
    tx.access.add_token(token)
    assert tx.access.of("ann") == tx.access.all() == [grant]
    assert tx.access.token("id1") == token
    assert tx.access.tokens() == [token]
    assert (tx.access.remove(grant), tx.access.remove(grant)) == (True, False)
    tx.access.remove_token(token)
    assert tx.access.token("id1") is None
    assert tx.access.version() == before + 4
    events = list(tx.journal.tail(4))
    assert [event.verb for event in events] == ["grant", "token", "withdraw", "remove-token"]
    assert "digest" not in str([event.detail for event in events])


def test_whoever_is_gone_leaves_no_right_behind(tx: Transaction) -> None:
    tx.access.add(Grant("ann", "operate", "*"))
    tx.access.add_token(TokenRow("id2", "ann", "laptop", b"d", None, 5, 6))
    tx.access.forget("ann")
    assert (tx.access.of("ann"), tx.access.token("id2")) == ([], None)

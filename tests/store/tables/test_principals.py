"""Secrets by kind and name."""

from __future__ import annotations

from postroom.store.kernel.transaction import Transaction


def test_a_secret_is_set_replaced_and_removed_and_the_journal_tells_no_secret(tx: Transaction) -> None:
    tx.principals.set_secret("principal", "ann", "old-secret")
    tx.principals.set_secret("principal", "ann", "new-secret")
    tx.principals.set_secret("login", "ann", "token")
    assert tx.principals.secret("principal", "ann") == "new-secret"
    assert tx.principals.secrets("principal") == {"ann": "new-secret"}
    tx.principals.remove("principal", "ann")
    tx.principals.remove("principal", "ann")
    assert tx.principals.secret("principal", "ann") is None
    events = list(tx.journal.tail(4))
    assert [event.verb for event in events] == ["password", "password", "password", "remove-password"]
    assert "secret" not in str([event.detail for event in events])

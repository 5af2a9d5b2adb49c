"""Requests that wait for an answer."""

from __future__ import annotations

from postroom.store.kernel.transaction import Transaction


def test_a_request_is_answered_once_and_then_forgotten(tx: Transaction) -> None:
    tx.requests.add("c", "e", 7)
    found = tx.requests.find("c")
    assert found is not None
    assert (found.message, found.response, tx.requests.connection_of(7)) == (7, None, "c")
    assert tx.requests.answer("c", 8)
    assert not tx.requests.answer("c", 9)
    assert not tx.requests.answer("d", 9)
    assert tx.requests.forget(tx.now) == 0
    assert tx.requests.forget(tx.now + 1) == 1
    assert tx.requests.find("c") is None

"""Requests that wait for an answer."""

from __future__ import annotations

import pytest

from postroom.store.kernel.transaction import Transaction
from postroom.store.tables import requests


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


def test_a_message_is_an_answer_as_long_as_its_request_is_kept(
    tx: Transaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    tx.requests.add("c", "e", 7)
    assert not tx.requests.is_answer(8)
    tx.requests.answer("c", 8)
    assert (tx.requests.is_answer(8), tx.requests.is_answer(7)) == (True, False)
    monkeypatch.setattr(requests, "REQUEST_KEPT_SECONDS", -1.0)
    assert not tx.requests.is_answer(8)

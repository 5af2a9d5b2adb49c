"""An idempotency key makes one message."""

from __future__ import annotations

import pytest

from postroom.errors import ArgumentInvalid
from postroom.store.kernel.transaction import Transaction


def test_a_receipt_is_found_by_its_name_and_only_for_the_same_message(tx: Transaction) -> None:
    for number, name in enumerate(("a:1", "a:2", "b:1"), 1):
        tx.receipts.add(name, number, b"same")
    assert tx.receipts.find("a:1", b"same") == 1
    assert tx.receipts.find("none", b"same") is None
    with pytest.raises(ArgumentInvalid, match="another message"):
        tx.receipts.find("a:1", b"other")
    tx.receipts.forget("a:1", "b:1")
    assert [tx.receipts.find(name, b"same") for name in ("a:1", "a:2", "b:1")] == [None, None, 3]

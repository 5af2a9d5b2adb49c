"""Answers of executors: each chunk once, in parts, until a step is over."""

from __future__ import annotations

import pytest

from postroom.store.kernel.transaction import Transaction
from postroom.store.tables import staging


def test_the_quicker_attempt_counts_and_parts_come_together_again(
    tx: Transaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "STAGED_PART_BYTES", 4)
    assert tx.staging.add(2, 1, 1, 0, b"0123456789")
    assert not tx.staging.add(2, 1, 1, 0, b"late")
    assert tx.staging.add(2, 1, 1, 1, b"")
    assert tx.staging.answers(2, 1, 1) == {0: b"0123456789", 1: b""}
    assert tx.staging.answers(2, 1, 2) == {}
    assert tx.staging.parts == 4
    tx.staging.add(1, 9, 1, 0, b"old")
    tx.staging.add(2, 5, 1, 0, b"next")
    tx.staging.clear(2, 1, 1)
    assert (tx.staging.answers(2, 1, 1), tx.staging.answers(1, 9, 1)) == ({}, {})
    assert tx.staging.answers(2, 5, 1) == {0: b"next"}

"""Saved results of queries: a table of images by station and name."""

from __future__ import annotations

import pytest

from postroom.store.kernel.transaction import Transaction
from postroom.store.tables import images
from postroom.store.tables.images import ImageTable, KeptImage


def test_a_table_takes_the_place_of_one_of_its_name(tx: Transaction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "SEARCH_ROWS", 2)
    pictures = [KeptImage(key, "ann", "NOTE", 1, f"body {key}") for key in range(5)]
    tx.image_tables.keep(1, "old", "NOTE", 1, 0, pictures[:1])
    tx.image_tables.keep(1, "saved", "NOTE", 1, 7, pictures[:2])
    tx.image_tables.keep(1, "saved", "NOTE", 2, 8, pictures)
    assert tx.image_tables.all(1) == [
        ImageTable("old", "NOTE", 1, 0, tx.now, 1),
        ImageTable("saved", "NOTE", 2, 8, tx.now, 5),
    ]
    assert list(tx.image_tables.images(1, "NOTE", "saved")) == pictures
    assert tx.image_tables.drop(1, "old")
    assert not tx.image_tables.drop(1, "old")
    assert tx.image_tables.all(2) == []
    tx.image_tables.forget(1)
    assert tx.image_tables.all(1) == []
    assert list(tx.image_tables.images(1, "NOTE", "saved")) == []

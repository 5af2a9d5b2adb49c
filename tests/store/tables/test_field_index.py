"""Messages found by what their fields say, page by page in the order of the value, with tests of other fields."""

from __future__ import annotations

import json

import pytest
from tests.store.places import put, queue

from postroom.store.kernel.transaction import Transaction
from postroom.store.tables import field_index
from postroom.store.tables.field_index import Entry, Span, key_value
from postroom.store.tables.field_index import Test as FieldTest


def test_a_search_goes_through_one_index_in_its_order(tx: Transaction, monkeypatch: pytest.MonkeyPatch) -> None:
    station = queue(tx, "station")
    filing = tx.field_index.declare("NOTE", "No", "int", ready=False)
    bodies = [{"No": number, "Text": text} for number, text in ((3, "é"), (1, "b"), (2, "b"), (9, "b"))]
    some = [put(tx, station, json.dumps(body), format="json", type="NOTE") for body in bodies]
    tx.field_index.add(
        station.id, [(s.key, Entry(filing.id, f"{b['No']:03d}")) for s, b in zip(some, bodies, strict=True)]
    )
    monkeypatch.setattr(field_index, "SEARCH_ROWS", 2)

    def numbers(high: str = "005", **how: object) -> list[int]:
        pages = tx.field_index.search(
            (station.id, "station"),
            Span(filing.id, "", high),
            tx.journal.newest(),
            **how,  # type: ignore[arg-type]
        )
        found = [stored for page in pages for stored in page]
        assert all(stored.sound and stored.queue == "station" for stored in found)
        return [json.loads(stored.body)["No"] for stored in found]

    assert numbers() == [1, 2, 3]
    assert numbers(limit=1) == [1]
    assert numbers(tests=[[FieldTest("Text", "b", "b")]]) == [1, 2]
    assert numbers(tests=[[FieldTest("Text", "a", "a"), FieldTest("Text", "c", "\U0010ffff")]]) == [3], "by bytes"
    within = numbers(tests=[[FieldTest("No", 2, 9)]])
    assert within == ([2, 3] if tx.session.compares_json_numbers else [1, 2, 3]), "tested where the database can"
    tx.field_index.remove_entries(station.id, [(some[1].key, Entry(filing.id, "001"))])
    assert numbers() == [2, 3]


def test_a_filing_is_declared_made_ready_and_removed(tx: Transaction) -> None:
    filing = tx.field_index.declare("NOTE", "", "key", ready=False)
    tx.field_index.set_ready(filing)
    assert tx.field_index.of_type("NOTE") == [filing._replace(ready=1)] == tx.field_index.all()
    tx.field_index.remove(filing)
    assert tx.field_index.of_type("NOTE") == []
    assert key_value(42) == "00000000000000042"

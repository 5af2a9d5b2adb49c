"""Messages as tables of Arrow, pandas, Polars and DuckDB."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from tests.stations.world import CLAIM, desk, network

from postroom.errors import LibraryMissing
from postroom.room import Postroom


def orders(room: Postroom) -> None:
    room.queues.create("orders")
    room.send_many("orders", [{"id": n, "item": f"item {n}", "price": n * 1.5} for n in range(4)])
    room.send("orders", {"id": 4, "tags": ["a"], "key": "mine"})


def test_members_of_json_are_columns(room: Postroom) -> None:
    orders(room)
    table = room.frame("orders")
    assert table.columns == ["key", "queue", "created", "id", "item", "price", "tags", "body.key"]
    assert (len(table), repr(table)[:22]) == (5, "<table orders: 5 rows ")
    rows = table.arrow().to_pylist()
    assert [row["id"] for row in rows] == [0, 1, 2, 3, 4]
    assert (rows[4]["tags"], rows[4]["body.key"], rows[4]["item"]) == (["a"], "mine", None)
    room.receive("orders")
    assert (len(room.frame("orders")), len(room.frame("orders", processed=True))) == (4, 1)


def test_other_bodies_are_one_column_and_mixed_values_are_texts(room: Postroom) -> None:
    room.queues.create("q")
    assert room.frame("q").columns == ["key", "queue", "created", "body"]
    room.send_many("q", [{"n": 1}, {"n": "one"}, {"n": 2**70}])
    assert room.frame("q").arrow().column("n").to_pylist() == ["1", "one", str(2**70)]
    room.send("q", "text")
    assert room.frame("q").arrow().column("body").to_pylist()[-1] == "text"


def test_pandas_polars_and_duckdb_read_the_same(room: Postroom) -> None:
    orders(room)
    table = room.frame("orders")
    assert list(table.pandas()["id"]) == [0, 1, 2, 3, 4]
    assert table.polars()["id"].to_list() == [0, 1, 2, 3, 4]
    arrow = table.arrow()
    assert duckdb.sql("SELECT count(*), sum(price) FROM arrow WHERE id < 4").fetchall() == [(4, 9.0)]
    assert arrow.num_rows == 5


def test_a_query_is_a_table_with_its_fields(tmp_path: Path) -> None:
    with network(str(tmp_path / "room.db"), tmp_path, {}, {"ann": "control"}, CLAIM) as room:
        for name, amount in (("Bob", "12.50"), ("Cid", "7")):
            desk(room, "ann").create("CLAIM", {"Claimant": name, "Amount": amount})
        answer = desk(room, "ann").query("CLAIM")
        assert answer.arrow().column("Amount").to_pylist() == [Decimal("12.50"), Decimal("7.00")]
        assert list(answer.pandas()["Claimant"]) == ["Bob", "Cid"]
        assert answer.polars()["place"].to_list() == ["ann", "ann"]
        assert desk(room, "ann").query("CLAIM", Claimant="none").arrow().num_rows == 0


def test_a_library_that_is_missing_is_named(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    room.queues.create("q")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(LibraryMissing, match=r"needs polars.*pip install polars"):
        room.frame("q").polars()

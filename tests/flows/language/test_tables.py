"""Static tables: their rows from CSV, JSON, Parquet and collections, and what is not a row."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from postroom.errors import FileUnreadable, FlowInvalid
from postroom.flows.graph.versions import RoomGraphs
from postroom.room import Postroom

FLOW = """
domain d
space Seen : [broker: string]
space Where : [city: string, since: date, size: int, open: boolean, rate: decimal]
table places : [broker: string, city: string, since: date, size: int, open: boolean, rate: decimal] from {}
arc where : Seen -> Where
    transform [broker: b] join places [broker: b, city: c, since: s, size: z, open: o, rate: r]
    => [city: c, since: s, size: z, open: o, rate: r]
"""
ROWS = (
    ("b1", "Hawthorne", "1998-01-02", 3, True, "1.5"),
    ("b2", "Zürich, city", "1999-12-31", -4, False, "0.25"),
)
NAMES = ("broker", "city", "since", "size", "open", "rate")


def write_csv(file: Path) -> None:
    quoted = [[f'"{value}"' if isinstance(value, str) else str(value).lower() for value in row] for row in ROWS]
    file.write_text("\n".join([",".join(NAMES), *(",".join(row) for row in quoted)]) + "\n", "utf-8-sig")


def write_json(file: Path) -> None:
    file.write_text(json.dumps([dict(zip(NAMES, row, strict=True)) for row in ROWS]))


def write_lines(file: Path) -> None:
    file.write_text("\n".join(json.dumps(dict(zip(NAMES, row, strict=True))) for row in ROWS))


def write_parquet(file: Path) -> None:
    rows = [{**dict(zip(NAMES, row, strict=True)), "since": date.fromisoformat(str(row[2]))} for row in ROWS]
    pq.write_table(pa.Table.from_pylist(rows), file)


@pytest.mark.parametrize(
    ("name", "write"),
    [("p.csv", write_csv), ("p.json", write_json), ("p.jsonl", write_lines), ("p.parquet", write_parquet)],
)
def test_rows_come_from_files_and_stay_when_the_file_goes(
    room: Postroom, tmp_path: Path, run: Callable[..., int], name: str, write: Callable[[Path], None]
) -> None:
    write(tmp_path / name)
    (tmp_path / "g.flow").write_text(FLOW.format(f'"{name}"'))
    room.load(tmp_path / "g.flow")
    (tmp_path / name).unlink()
    assert room.store.read(RoomGraphs().now).rows["places"] == ROWS
    room.flows.publish_many("Seen", [{"broker": "b2"}, {"broker": "nowhere"}])
    run()
    assert [json.loads(message.body) for message in room.queues.info("Where")] == [
        {"city": "Zürich, city", "since": "1999-12-31", "size": -4, "open": False, "rate": "0.25"}
    ]


def test_rows_come_from_a_collection_and_follow_it(room: Postroom, tmp_path: Path, run: Callable[..., int]) -> None:
    (tmp_path / "c.demaq").write_text("create collection places")
    room.load(tmp_path / "c.demaq")
    document = tmp_path / "p.xml"

    def places(city: str) -> None:
        cells = zip(NAMES, ("b1", city, "1998-01-02", 3, "true", "1.5"), strict=True)
        row = "".join(f"<{name}>{value}</{name}>" for name, value in cells)
        document.write_text(f"<places><place>{row}</place><note>none</note></places>")
        room.definitions.load_collection("places", document)

    places("Hawthorne")
    (tmp_path / "g.flow").write_text(FLOW.format("collection places"))
    room.load(tmp_path / "g.flow")
    room.publish("Seen", {"broker": "b1"})
    run()
    places("Zurich")
    room.publish("Seen", {"broker": "b1"})
    run()
    assert [json.loads(message.body)["city"] for message in room.queues.info("Where")] == ["Hawthorne", "Zurich"]
    assert room.flows.graph().tables[0].as_dict()["source"] == "collection places"


def test_a_collection_that_does_not_fit_its_tables_is_refused(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "c.demaq").write_text("create collection seats")
    room.load(tmp_path / "c.demaq")
    document = tmp_path / "s.xml"
    document.write_text("<s><r><issue>IBM</issue><n>many</n></r></s>")
    room.definitions.load_collection("seats", document)
    (tmp_path / "g.flow").write_text("domain d table t : [issue: string, n: int] from collection seats")
    with pytest.raises(FileUnreadable, match="row 1: n: a value of type int is wanted"):
        room.load(tmp_path / "g.flow")
    document.write_text("<s><r><issue>IBM</issue><n>5</n></r></s>")
    room.definitions.load_collection("seats", document)
    room.load(tmp_path / "g.flow")
    document.write_text("<s><r><issue>IBM</issue><n>many</n></r></s>")
    with pytest.raises(FileUnreadable, match="row 1: n: a value of type int is wanted"):
        room.definitions.load_collection("seats", document)
    assert room.flows.graph().tables[0].rows == 1


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("p.json", "[" * 100_000, "nested too deeply"),
        ("p.csv", ",".join(NAMES) + "\nb1,c,1998-01-02,1e99999999,true,1", "a value of type int is wanted"),
        ("p.csv", None, "No such file"),
        ("p.txt", "", "a table is read from .csv, .json, .jsonl, .parquet, not from '.txt'"),
        ("p.csv", "broker,city\nb1,c\n", "its first line names no column since"),
        ("p.csv", ",".join(NAMES) + "\nb1,c,yesterday,3,true,1", "row 1: since: 'yesterday' is not a date"),
        ("p.csv", ",".join(NAMES) + "\nb1,c,1998-01-02,3.5,true,1", "row 1: size: a whole number is wanted"),
        ("p.csv", ",".join(NAMES) + "\nb1,c,1998-01-02,x,true,1", "row 1: size: a value of type int is wanted"),
        ("p.json", "{", "Expecting"),
        ("p.json", "[1]", "1 is not an object"),
        ("p.parquet", "no parquet", "Parquet"),
    ],
)
def test_what_is_not_a_row_is_told_with_its_number(
    room: Postroom, tmp_path: Path, name: str, text: str | None, why: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    (tmp_path / "g.flow").write_text(FLOW.format(f'"{name}"'))
    with pytest.raises(FileUnreadable, match=why):
        room.load(tmp_path / "g.flow")
    assert room.flows.graph().tables == ()


def test_a_table_has_rows_of_simple_values(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "g.flow").write_text('domain d table t : {string} from "t.csv"')
    with pytest.raises(FlowInvalid, match="the rows of table t are"):
        room.load(tmp_path / "g.flow")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b"\n \n", "it is empty"),
        (b"\xef\xbb\xbf", "it is empty"),
        (b"code,city\n\0\0,Bern\n", "characters that no text may have"),
        (b"\x89PNG\r\n\x1a\n\0\0", "codec can't decode"),
        (b"code,city,code\nZH,Zug,BE\n", "two columns 'code'"),
        (b"code,town\nZH,Zug\n", "names no column city"),
        (b"code,city\nZH,Zug,BE\n", "line 2 has 3 cells, and there are 2 columns"),
        (b"code,city\nZH\n", "line 2 has 1 cells, and there are 2 columns"),
    ],
)
def test_what_is_no_table_is_refused_and_nothing_is_loaded(
    room: Postroom, tmp_path: Path, content: bytes, why: str
) -> None:
    (tmp_path / "cities.csv").write_bytes(content)
    (tmp_path / "g.flow").write_text('domain d table t : [code: string, city: string] from "cities.csv"')
    with pytest.raises(FileUnreadable, match=why):
        room.load(tmp_path / "g.flow")
    assert room.flows.graph().tables == ()


def test_a_table_with_names_only_has_no_rows(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "cities.csv").write_text("city,code\n\n")
    (tmp_path / "g.flow").write_text('domain d table t : [code: string, city: string] from "cities.csv"')
    room.load(tmp_path / "g.flow")
    assert [table.rows for table in room.flows.graph().tables] == [0]

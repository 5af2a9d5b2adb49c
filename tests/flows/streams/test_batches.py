"""One micro-batch: what fits goes through the graph, what does not is told, and states are those of the store."""

from __future__ import annotations

import json
from pathlib import Path

from tests.flows.streams.conftest import Folders

from postroom.room import Postroom

GRAPH = """
domain d
space Bids : [auction: int, name: string, time: timestamp] from files "data/in" format json
space Big : [auction: int, name: string, time: timestamp] to files "data/big" format json
space Double : [a: int, t: timestamp] to files "data/double" format json
space Kept : [a: int]
space Passed : [auction: int, name: string, time: timestamp] retain
space Names : [name: string] to files "data/names" format json
space Counts : [name: string, n: int] to files "data/counts" format json
arc big : Bids -> Big select [auction: a > 2]
arc double : Bids -> Double transform [auction: a, time: t] => [a: a * 2, t: t]
arc kept : Bids -> Kept transform [auction: a = 3] => [a: a]
arc passed : Bids -> Passed select [auction: 4]
arc names : Passed -> Names transform [name: n] => [name: n]
arc counts : Bids -> Counts collapse [name: n] by n => [name: n, n: count()]
"""
TIME = "2026-03-01T10:00:00Z"
WHOLE = "2026-03-01T10:00:00.000000Z"


def loaded(room: Postroom, tmp_path: Path, text: str = GRAPH) -> None:
    (tmp_path / "graph.flow").write_text(text)
    room.load(tmp_path / "graph.flow")


def errors(room: Postroom) -> list[str]:
    return [message.body for message in room.queues.info("postroom-errors")]


def test_events_go_from_folder_to_folder_and_what_does_not_fit_is_told(
    streaming: Postroom, folders: Folders, tmp_path: Path
) -> None:
    folders.put("in", [{"auction": each, "name": f"n{each % 2}", "time": TIME} for each in range(5)])
    odd = [
        "garbage",
        '{"auction": 1}',
        '{"auction":1.5,"name":"x","time":"' + TIME + '"}',
        '{"auction":1,"name":5,"time":"x"}',
    ]
    fitting = [
        '["7", 1]',
        '[7, "n1", "2026-03-01T11:00:00+01:00"]',
        "",
        '{"name":"n0","auction":8,"time":"' + TIME + '"}',
    ]
    huge = {"auction": 2**63 - 1, "name": "huge", "time": TIME}
    folders.put("in", [*odd, *fitting, huge])
    loaded(streaming, tmp_path)
    (totals,) = streaming.stream(until_idle=True)
    big = folders.read("big")
    assert sorted(each["auction"] for each in big) == [3, 4, 7, 8, 2**63 - 1]
    assert {each["time"] for each in big} == {WHOLE}, "every event is written in the one form of its type"
    assert sorted(each["a"] for each in folders.read("double")) == [0, 2, 4, 6, 8, 14, 16]
    assert [json.loads(message.body) for message in streaming.peek("Kept")] == [{"a": 3}]
    assert [json.loads(message.body)["auction"] for message in streaming.queues.history("Passed")] == [4]
    assert folders.read("names") == [{"name": "n0"}], "what the room keeps on the way is led on by the stream alone"
    assert streaming.run_until_idle() == 0
    assert folders.read("counts")[-3:] == [{"name": "n1", "n": 3}, {"name": "n0", "n": 4}, {"name": "huge", "n": 1}]
    said = errors(streaming)
    assert len(said) == totals.refused == 6
    assert sum("a value is too large for its type" in each and "9223372036854775807" in each for each in said) == 1
    assert sum("a whole number is wanted" in each for each in said) == 1
    assert any("garbage" in each for each in said)
    assert (totals.batches, totals.delivered, totals.stored, totals.version) == (1, 5 + 7 + 1 + 8, 2, 1)


def test_dead_letters_go_to_a_folder_if_an_operator_says_so(
    streaming: Postroom, folders: Folders, tmp_path: Path
) -> None:
    folders.put("in", [{"auction": 1, "name": "a", "time": TIME}, "nothing", {"auction": 2}])
    folders.add("in", "latin-1.json", '{"name": "Zürich"}\n'.encode("latin-1"))
    loaded(streaming, tmp_path)
    streaming.stream(until_idle=True, refused="data/refused")
    no_text, *found = folders.read("refused")
    assert (no_text["body"], no_text["reason"]) == ('{"name": "Z\ufffdrich"}', "it is not UTF-8")
    assert [each["body"] for each in found] == ["nothing", '{"auction": 2}']
    assert all(each["space"] == "Bids" and each["batch"] == 0 and each["version"] == 1 for each in found)
    assert "the field name is missing" in found[1]["reason"]
    assert errors(streaming) == []


def test_a_change_takes_effect_with_the_next_batch_and_states_go_on(
    streaming: Postroom, folders: Folders, tmp_path: Path
) -> None:
    folders.put("in", [{"auction": 1, "name": "a", "time": TIME}])
    loaded(streaming, tmp_path)
    streaming.stream(until_idle=True)
    loaded(streaming, tmp_path, GRAPH.replace("a > 2", "a > 0"))
    folders.put("in", [{"auction": 1, "name": "a", "time": TIME}])
    streaming.stream(until_idle=True)
    assert [each["auction"] for each in folders.read("big")] == [1]
    assert [each["n"] for each in folders.read("counts")] == [1, 2]
    lines = [each.detail for each in streaming.journal.after(0) if each.verb == "stream" and each.detail]
    assert [(each["batch"], each["version"]) for each in lines] == [(0, 1), (1, 2)]


def test_sources_come_and_go_and_nothing_is_read_twice(streaming: Postroom, folders: Folders, tmp_path: Path) -> None:
    more = """
space More : [auction: int, name: string, time: timestamp] from files "data/more" format json
arc more : More -> Big merge
"""
    folders.put("in", [{"auction": 3, "name": "a", "time": TIME}])
    folders.put("more", [{"auction": 30, "name": "a", "time": TIME}])
    for text in (GRAPH, GRAPH + more, GRAPH):
        loaded(streaming, tmp_path, text)
        streaming.stream("Big", until_idle=True)
    assert sorted(each["auction"] for each in folders.read("big")) == [3, 30]


def test_a_table_is_joined_and_formats_are_read_and_written(
    streaming: Postroom, folders: Folders, tmp_path: Path
) -> None:
    (tmp_path / "rates.csv").write_text("name,rate\na,2\nb,3\n")
    text = """
domain d
table Rates : [name: string, rate: int] from "rates.csv"
space In : [name: string, price: decimal, day: date] from files "data/in" format csv
space Out : [name: string, rate: int, price: decimal, day: date] to files "data/out" format parquet
arc rated : In -> Out transform [name: n, price: p, day: d] join Rates [name: n, rate: r]
    => [name: n, rate: r, price: p, day: d]
"""
    folders.add("in", "1.csv", b'name,price,day\na,1.50,2026-03-01\n"b",2,2026-03-02\nb,x,2026-03-02\nc,1,2026-03-02\n')
    folders.add("in", "2.csv", b"\xff\xfe\x00")
    loaded(streaming, tmp_path, text)
    (totals,) = streaming.stream(until_idle=True)
    import pyarrow.parquet as pq

    (file,) = (folders.root / "out").glob("*.parquet")
    rows = pq.read_table(file).to_pylist()
    assert sorted((row["name"], row["rate"], str(row["day"])) for row in rows) == [
        ("a", 2, "2026-03-01"),
        ("b", 3, "2026-03-02"),
    ]
    assert totals.refused == 2
    said = " ".join(errors(streaming))
    assert "is not a decimal" in said
    assert "the file is not csv, or damaged" in said

"""The journal as XES: by the public rules, and read back by pm4py."""

from __future__ import annotations

import gzip
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from tests.exchange import schemas
from tests.exchange.mining import pm4py
from tests.faults.upkeep_workload import write_here
from tests.stations.world import desk, network

from postroom.engine import archiving
from postroom.errors import ArgumentInvalid, FileUnwritable
from postroom.exchange import sorting
from postroom.exchange.xes import EventLog
from postroom.room import Postroom

RULES = etree.XMLSchema(etree.fromstring(schemas.XES))
NAMES = {"x": "http://www.xes-standard.org/"}


def traces(file: Path) -> dict[str, list[str]]:
    """The activities of each case, by its name; checked against the rules of XES."""
    log = etree.parse(str(file))
    RULES.assertValid(log)

    def said(node: Any, key: str) -> str:
        return str(node.xpath(f"x:*[@key='{key}']/@value", namespaces=NAMES)[0])

    return {
        said(trace, "concept:name"): [
            said(event, "concept:name") for event in trace.iterfind("x:event", namespaces=NAMES)
        ]
        for trace in log.getroot().iterfind("x:trace", namespaces=NAMES)
    }


def itineraries(room: Postroom) -> dict[str, list[str]]:
    """Messages that went different ways through three queues, and how each went."""
    for name in ("intake", "review", "done"):
        room.queues.create(name)
    ways = [("intake", "review", "done"), ("intake", "done"), ("intake", "review", "review", "done")]
    went = {}
    for number in range(9):
        way = ways[number % 3]
        root = key = room.send(way[0], f"case {number}").key
        events = [f"put {way[0]}"]
        for place in way[1:]:
            room.receive(room.show(key).queue)
            events.append(f"take {room.show(key).queue}")
            key = room.send(place, "next", cause=key).key
            events.append(f"put {place}")
        went[root] = events
        room.receive("done")
        went[root].append("take done")
    return went


def test_a_trace_is_what_happened_to_a_message(room: Postroom, tmp_path: Path) -> None:
    room.queues.create("q")
    keys = [room.send("q", str(number)).key for number in range(3)]
    room.receive("q")
    log = room.journal.export_xes(tmp_path / "log.xes")
    assert log == EventLog(str(tmp_path / "log.xes"), 4, 3, log.room_event_count, 0)
    assert log.room_event_count == 1, "the queue was created"
    assert traces(tmp_path / "log.xes") == {
        keys[0]: ["put q", "take q"],
        keys[1]: ["put q"],
        keys[2]: ["put q"],
    }


def test_an_itinerary_that_went_in_comes_out(room: Postroom, tmp_path: Path) -> None:
    went = itineraries(room)
    log = room.journal.export_xes(tmp_path / "log.xes", case="cause")
    assert traces(tmp_path / "log.xes") == went
    assert (log.case_count, log.event_count) == (9, sum(map(len, went.values())))


def test_a_log_that_does_not_fit_into_memory_is_the_same(
    room: Postroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    went = itineraries(room)
    monkeypatch.setattr(sorting, "SORT_ROWS", 3)
    monkeypatch.setattr(sorting, "SORT_FILES_MAX", 4)
    room.journal.export_xes(tmp_path / "log.xes", case="cause")
    assert traces(tmp_path / "log.xes") == went


def test_what_was_archived_is_in_the_log(room: Postroom, tmp_path: Path) -> None:
    went = itineraries(room)
    before = room.journal.export_xes(tmp_path / "before.xes", case="cause")
    room.queues.set_mode("intake", keep_processed=False)  # some messages are gone, with their cause and type
    archiving.archive(room.store, 2**62, tmp_path / "old", write_here)
    key = room.send("intake", "later").key
    after = room.journal.export_xes(tmp_path / "after.xes", case="cause")
    assert traces(tmp_path / "before.xes") == went
    assert traces(tmp_path / "after.xes")[key] == ["put intake"]
    assert {case: events[: len(went.get(case, []))] for case, events in traces(tmp_path / "after.xes").items()} == {
        **went,
        key: [],
    }
    assert after.event_count > before.event_count


def test_names_are_escaped_and_the_file_can_be_compressed(room: Postroom, tmp_path: Path) -> None:
    odd = 'a"<&>é'
    room.queues.create(odd)
    key = room.send(odd, "x").key
    room.journal.export_xes(tmp_path / "log.xes.gz")
    (tmp_path / "plain.xes").write_bytes(gzip.decompress((tmp_path / "log.xes.gz").read_bytes()))
    assert traces(tmp_path / "plain.xes") == {key: [f"put {odd}"]}


def test_a_file_is_not_replaced_and_not_left_half(sqlite_url: str, tmp_path: Path) -> None:
    import postroom

    with postroom.open(sqlite_url) as room:
        file = tmp_path / "log.xes"
        room.journal.export_xes(file)
        assert traces(file) == {}
        with pytest.raises(ArgumentInvalid, match="exists"):
            room.journal.export_xes(file)
        room.journal.export_xes(file, replace=True)
        with pytest.raises(FileUnwritable, match="does not exist"):
            room.journal.export_xes(tmp_path / "nowhere" / "log.xes")
        for name, case in (("log.txt", "message"), ("log2.xes", "queue")):
            with pytest.raises(ArgumentInvalid):
                room.journal.export_xes(tmp_path / name, case=case)
        assert sorted(each.name for each in tmp_path.glob("*.xes*")) == ["log.xes"]


@pytest.mark.slow
def test_pm4py_discovers_the_itineraries(sqlite_url: str, tmp_path: Path) -> None:
    import postroom

    with postroom.open(sqlite_url) as room:
        went = itineraries(room)
        room.journal.export_xes(tmp_path / "log.xes", case="cause")
    with pm4py() as mining:
        log = mining.read_xes(str(tmp_path / "log.xes"))
        variants = mining.get_variants(log)
        graph, starts, ends = mining.discover_dfg(log)
    assert variants == Counter(map(tuple, went.values()))
    pairs = [pair for events in went.values() for pair in pairwise(events)]
    assert graph == Counter(pairs)
    assert (dict(starts), dict(ends)) == ({"put intake": 9}, {"take done": 9})


@pytest.mark.slow
def test_pm4py_discovers_the_way_of_forms(tmp_path: Path) -> None:
    stations = {"ann": "control", "bob": "control", "cid": "control"}
    with network(str(tmp_path / "room.db"), tmp_path, {}, stations) as room:
        for number in range(4):
            key = desk(room, "ann").create("NOTE", {"To": f"{number}"})
            at = ["ann", *(["bob"] if number % 2 else []), "cid"]
            for sender, recipient in pairwise(at):
                desk(room, sender).ship(key, recipient)
                desk(room, recipient).get()
        room.journal.export_xes(tmp_path / "log.xes")
    with pm4py() as mining:
        variants = mining.get_variants(mining.read_xes(str(tmp_path / "log.xes")))
    straight = ("create ann", "ship mailbox:cid", "get cid")
    round_about = ("create ann", "ship mailbox:bob", "get bob", "ship mailbox:cid", "get cid")
    assert variants == {straight: 2, round_about: 2}

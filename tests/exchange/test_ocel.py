"""The journal as OCEL 2.0, as JSON and XML: by the public rules, and read back by pm4py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from tests.exchange import schemas
from tests.exchange.mining import pm4py
from tests.exchange.test_xes import itineraries
from tests.interfaces.shapes import problems

from postroom.errors import ArgumentInvalid
from postroom.exchange import sorting
from postroom.room import Postroom


def document(file: Path) -> dict[str, Any]:
    """A log in JSON, checked: every relation leads to an object, every type is declared."""
    log: dict[str, Any] = json.loads(file.read_text())
    assert problems(log, schemas.OCEL, "log") == []
    objects, types = {each["id"] for each in log["objects"]}, {each["name"] for each in log["objectTypes"]}
    assert len(objects) == len(log["objects"])
    assert {each["type"] for each in log["objects"]} == types
    assert {each["type"] for each in log["events"]} == {each["name"] for each in log["eventTypes"]}
    related = [one["objectId"] for each in (*log["events"], *log["objects"]) for one in each["relationships"]]
    assert set(related) <= objects
    return log


def test_messages_are_objects_and_causes_relations(room: Postroom, tmp_path: Path) -> None:
    room.queues.create("orders")
    room.queues.create("bills")
    order = room.send("orders", "17")
    bill = room.send("bills", "17", cause=order.key)
    room.receive("orders")
    told = room.journal.export_ocel(tmp_path / "log.json")
    log = document(tmp_path / "log.json")
    assert (told.event_count, told.case_count) == (3, 2) == (len(log["events"]), len(log["objects"]))
    assert log["objects"] == [
        {"id": order.key, "type": "orders", "attributes": [], "relationships": []},
        {
            "id": bill.key,
            "type": "bills",
            "attributes": [],
            "relationships": [{"objectId": order.key, "qualifier": "caused by"}],
        },
    ]
    first = log["events"][0]
    assert (first["type"], first["relationships"]) == (
        "put orders",
        [{"objectId": order.key, "qualifier": "message"}],
    )
    assert {one["name"]: one["value"] for one in first["attributes"]}["to"] == "orders"


def test_json_and_xml_say_the_same_also_if_it_does_not_fit_into_memory(
    room: Postroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    itineraries(room)
    room.journal.export_ocel(tmp_path / "whole.json")
    monkeypatch.setattr(sorting, "SORT_ROWS", 3)
    monkeypatch.setattr(sorting, "SORT_FILES_MAX", 4)
    room.journal.export_ocel(tmp_path / "log.json")
    room.journal.export_ocel(tmp_path / "log.xml")
    log = document(tmp_path / "log.json")
    assert document(tmp_path / "whole.json") == log
    tree = etree.parse(str(tmp_path / "log.xml")).getroot()
    assert [child.tag for child in tree] == ["object-types", "event-types", "objects", "events"]
    assert [(each.get("id"), each.get("type")) for each in tree.find("objects")] == [
        (each["id"], each["type"]) for each in log["objects"]
    ]
    assert [
        {
            "id": each.get("id"),
            "type": each.get("type"),
            "time": each.get("time"),
            "attributes": [{"name": one.get("name"), "value": one.text} for one in each.find("attributes")],
            "relationships": [
                {"objectId": one.get("object-id"), "qualifier": one.get("qualifier")} for one in each.find("objects")
            ],
        }
        for each in tree.find("events")
    ] == log["events"]


def test_a_name_says_which_format(sqlite_url: str, tmp_path: Path) -> None:
    import postroom

    with postroom.open(sqlite_url) as room, pytest.raises(ArgumentInvalid, match=r"NAME\.json or NAME\.xml"):
        room.journal.export_ocel(tmp_path / "log.csv")
    assert not (tmp_path / "log.csv").exists()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["json", "xml"])
def test_pm4py_reads_the_same_objects_and_events(sqlite_url: str, tmp_path: Path, suffix: str) -> None:
    import postroom

    with postroom.open(sqlite_url) as room:
        went = itineraries(room)
        told = room.journal.export_ocel(tmp_path / f"log.{suffix}")
    with pm4py() as mining:
        read = mining.read_ocel2_json if suffix == "json" else mining.read_ocel2_xml
        log = read(str(tmp_path / f"log.{suffix}"))
        flat = mining.ocel_flattening(log, "intake")
        variants = mining.get_variants(flat)
        causes = len(log.o2o)
    assert (len(log.events), len(log.objects)) == (told.event_count, told.case_count)
    assert sum(variants.values()) == len(went) == 9
    assert causes == told.case_count - 9

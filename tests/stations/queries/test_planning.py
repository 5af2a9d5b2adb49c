"""The plan of a query: which fields the database may test, because they have always had the same kind."""

from __future__ import annotations

from pathlib import Path

from postroom.room import Postroom
from postroom.stations.forms.catalog import Forms
from postroom.stations.queries.conditions import sketch
from postroom.stations.queries.planning import planned
from postroom.stations.queries.reading import Plan
from postroom.store.kernel.transaction import Transaction

FORM = "type PART\n| Name: ____ Size: ____ |\nfield Name string free\nfield Size {kind} free\n"


def plan(room: Postroom, folder: Path, kind: str) -> Plan:
    (folder / "part.form").write_text(FORM.format(kind=kind))
    room.load(folder / "part.form")

    def work(tx: Transaction) -> Plan:
        edition = Forms().named(tx, "PART")
        return planned(tx, edition, sketch(edition.form, {"Name": "bolt", "Size": ">1"}))

    return room.store.read(work)


def test_a_field_is_tested_by_the_database_while_its_kind_stays_the_same(room: Postroom, tmp_path: Path) -> None:
    first = plan(room, tmp_path, "int")
    assert [(field.name, field.testable) for field in first.fields] == [("Name", True), ("Size", True)]
    second = plan(room, tmp_path, "decimal")
    assert [(field.name, field.testable) for field in second.fields] == [("Name", True), ("Size", False)]
    lists = plan(room, tmp_path, "list of decimal")
    assert not lists.fields[1].testable


def test_a_plan_travels_as_plain_data(room: Postroom, tmp_path: Path) -> None:
    made = plan(room, tmp_path, "int")
    assert Plan.unpacked(made.packed()) == made

"""An office is loaded as a whole: procedures and counters may need what the same load brings."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroom.errors import FormInvalid
from postroom.room import Postroom
from postroom.stations import office
from postroom.stations.office import read
from postroom.stations.procedures.errors import ERROR

TYPE = "type ORDER\n| No: ___ |\nfield No int required\n"
PROCEDURE = "procedure p at ann\n  precondition a : ORDER\n  destination d on a copy 0 leave\n"
COUNTER = "counter front at bob takes ORDER from orders\n"


@pytest.fixture
def stations(room: Postroom) -> Postroom:
    for name in ("ann", "bob"):
        room._parts.network.add_station(name, "control", None)
    return room


def test_a_procedure_may_need_a_type_of_the_same_load(stations: Postroom) -> None:
    loaded = stations.store.transact("load", lambda tx: office.load_within(tx, read(PROCEDURE + TYPE, "f"), ["f"]))
    assert set(loaded.added) == {"ORDER", "p", ERROR.name}, "errors of procedures have a type of their own"
    again = stations.store.transact("load", lambda tx: office.load_within(tx, read(PROCEDURE + TYPE, "f"), ["f"]))
    assert (again.added, again.version) == ((), loaded.version)


def test_what_is_missing_is_refused_and_nothing_is_loaded(stations: Postroom) -> None:
    with pytest.raises(FormInvalid, match="there is no type ORDER"):
        stations.store.transact("load", lambda tx: office.load_within(tx, read(PROCEDURE, "f"), ["f"]))
    assert stations.store.read(lambda tx: tx.definitions.version()) == 0
    office.check(None, read(TYPE + PROCEDURE, "f"))  # without a room


def test_the_type_of_errors_is_not_for_others() -> None:
    own = f"type {ERROR.name}\n| No: ___ |\nfield No int required\n"
    with pytest.raises(FormInvalid, match="is the system's own"):
        office.check(None, read(own, "f"))


def test_counters_are_checked_with_the_types_and_queues_of_the_load(stations: Postroom) -> None:
    both = read(TYPE + COUNTER, "f")
    with pytest.raises(FormInvalid, match="orders"):
        stations.store.read(lambda tx: office.check_counters(tx, both, alone=True))
    stations.store.read(lambda tx: office.check_counters(tx, both, alone=False))
    stations.queues.create("orders")
    kept, forms = stations.store.read(lambda tx: office.proposed_counters(tx, both))
    assert [(counter.counter.name, counter.queue) for counter in kept] == [("front", "orders")]
    assert list(forms) == [ERROR.name, "ORDER"]


def test_counters_are_loaded_after_their_types(stations: Postroom, tmp_path: Path) -> None:
    stations.queues.create("orders")
    (tmp_path / "office.form").write_text(COUNTER + TYPE)
    stations.load(tmp_path / "office.form")
    assert [counter.name for counter in stations.stations.counters()] == ["front"]

"""The network: a node that does not answer, a message that got stuck on its way."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.stations.world import NOTE

import postroom
from postroom import faults
from postroom.diagnosis.finding import Severity
from postroom.room import Postroom

from .conftest import HandClock, Told, fine


@pytest.fixture
def office(timed: Postroom, tmp_path: Path) -> Postroom:
    (tmp_path / "note.form").write_text(NOTE)
    timed.load(tmp_path / "note.form")
    timed.stations.add_node("north", str(tmp_path / "north.db"))
    timed.stations.add("ann", "pw", "north")
    timed.stations.add("bob", "pw")
    return timed


def test_a_node_that_does_not_answer(office: Postroom, url: str, clock: HandClock, tmp_path: Path, told: Told) -> None:
    assert [each.what for each in told(office, "nodes")] == ["all 2 nodes answer"]
    office.close()
    (tmp_path / "north.db").rename(tmp_path / "away.db")
    with postroom.open(url, clock=clock) as room:
        (found,) = told(room, "nodes")
        assert (found.level, found.where) == (Severity.WRONG, "north")
        assert found.what.endswith("; 1 station(s) are on it")
        assert found.do == "let its store answer; if it has moved: postroom node move north URL"
        room.stations.move_node("north", str(tmp_path / "away.db"))
        assert fine(told(room, "nodes"))


@pytest.mark.parametrize("verb", ["ship", "get"])
def test_a_message_between_two_stores(office: Postroom, clock: HandClock, told: Told, verb: str) -> None:
    sender, receiver = ("ann", "bob") if verb == "ship" else ("bob", "ann")
    desks = {name: office.station(name, "pw") for name in ("ann", "bob")}
    key = desks[sender].create("NOTE", To=receiver)
    if verb == "get":
        desks["bob"].ship(key, "ann")
    faults.arm("arrive.begun", "raise")
    with pytest.raises(faults.FaultInjected):
        desks["ann"].ship(key, "bob") if verb == "ship" else desks["ann"].get()
    faults.disarm()
    assert fine(told(office, "hand-overs")), "it may still be under way"
    clock.pass_by(61)
    (found,) = told(office, "hand-overs")
    assert (found.level, found.do) == (Severity.WARNING, "postroom get --as ann")
    assert found.where == ("node north" if verb == "ship" else "node control")
    assert found.what.startswith(f"message {key} left for {receiver} at 2027-01-15T08:00:00")
    desks["ann"].get()
    assert fine(told(office, "hand-overs"))

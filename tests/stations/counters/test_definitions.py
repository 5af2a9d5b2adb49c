"""Counters as they are written: what is read, printed, and refused by which rule."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.stations.counters.claims import CLAIM, IN, JSON, OUT, load
from tests.stations.world import desk

from postroom.errors import DefinitionUnknown, FormInvalid, QueueWatched, StationInUse
from postroom.model.definitions import Position
from postroom.room import Postroom
from postroom.stations.counters import definitions as counters
from postroom.stations.counters.definitions import parse
from postroom.stations.office import read

# --- in ---


# --- out ---


# --- what is refused ---

REFUSED = [
    ("counter-stations", "counter c at Nobody takes CLAIM from claims", "there is no station Nobody"),
    ("counter-types", "counter c at North takes CLAIMS from claims", "there is no type CLAIMS; did you mean CLAIM?"),
    ("counter-queues", "counter c at North takes CLAIM from clams", "there is no queue clams; did you mean claims?"),
    ("counter-queues", "counter c at North gives to station:North", "not for everyone's messages"),
    ("counter-sources", "counter c at North takes CLAIM from claims\n" + IN, "taken by counter c"),
    ("counter-sources", "counter c at Archive gives to claims\n" + OUT, "the mail of Archive are taken by counter c"),
    ("counter-sources", "counter c at North takes CLAIM from ruled", "are taken by rules"),
    ("counter-sources", "counter c at North takes CLAIM from postroom-errors", "taken by people alone"),
    ("counter-types", "counter c at North takes PROCEDURE ERROR from claims", "there is no type PROCEDURE ERROR"),
    ("counter-loops", "counter c at North gives to claims\n" + IN, "would come back to North"),
    ("name-twice", IN + IN, "counter front is already at "),
    ("syntax", "counter c at North", "counter NAME at STATION takes TYPE from QUEUE"),
    ("syntax", "counter c at North takes from claims", "counter NAME at STATION takes TYPE from QUEUE"),
]


@pytest.mark.parametrize(("rule", "text", "what"), REFUSED, ids=[each[0] for each in REFUSED])
def test_what_breaks_a_rule_is_refused_with_its_place(
    here: Postroom, tmp_path: Path, rule: str, text: str, what: str
) -> None:
    (tmp_path / "rules.demaq").write_text(
        "create queue ruled kind basic mode persistent\ncreate rule r for ruled\n"
        "if (true()) then do enqueue <a/> into settled\n"
    )
    here.load(tmp_path / "rules.demaq")
    here.store.transact("station", lambda tx: tx.queues.create("station:North", "station", path="station:North"))
    before = here.definitions.catalog()
    with pytest.raises(FormInvalid, match=r"claims\.form:1[34]:1: ") as refusal:
        load(here, tmp_path, CLAIM + text)
    assert what in str(refusal.value)
    assert refusal.value.facts["rule"] == rule
    with pytest.raises(FormInvalid):
        here.definitions.check(tmp_path / "claims.form")
    assert here.definitions.catalog() == before
    assert here.stations.counters() == []


def test_a_long_loop_is_found(here: Postroom, tmp_path: Path) -> None:
    text = (
        "counter a at North takes CLAIM from claims\ncounter b at North gives to settled\n"
        "counter c at Archive takes CLAIM from settled\ncounter d at Archive gives to claims\n"
    )
    with pytest.raises(FormInvalid, match="counter-loops"):
        load(here, tmp_path, CLAIM + text)


def test_the_mail_of_a_station_with_a_counter_is_not_for_procedures(here: Postroom, tmp_path: Path) -> None:
    load(here, tmp_path, CLAIM + OUT)
    keep = "procedure keep at Archive\n  precondition claim : CLAIM\n"
    with pytest.raises(FormInvalid, match="the mail of Archive is handled by procedure keep") as refusal:
        load(here, tmp_path, keep, "keep.form")
    assert "claims.form:13:1" in str(refusal.value), "the place of the counter, which was there first"
    assert here.stations.procedures() == []


def test_others_may_not_take_what_a_counter_takes(here: Postroom, tmp_path: Path) -> None:
    made = "create queue made kind basic mode persistent\n"
    (tmp_path / "rules.demaq").write_text(made)
    here.load(tmp_path / "rules.demaq")
    load(here, tmp_path, CLAIM + "counter c at North takes CLAIM from made\n")
    (tmp_path / "rules.demaq").write_text(
        f"{made}create rule r for made\nif (true()) then do enqueue <a/> into settled\n"
    )
    with pytest.raises(QueueWatched, match="the messages of made are taken by counters"):
        here.load(tmp_path / "rules.demaq")
    here.stations.remove_counter("c")
    assert here.load(tmp_path / "rules.demaq").added == ("rule r",)


def test_a_station_with_a_counter_cannot_go(here: Postroom, tmp_path: Path) -> None:
    load(here, tmp_path, CLAIM + OUT)
    with pytest.raises(StationInUse, match="counter back is there; postroom counter remove back"):
        here.stations.remove("Archive")
    here.stations.remove_counter("back")
    here.stations.remove("Archive")
    with pytest.raises(DefinitionUnknown, match="counter back"):
        here.stations.remove_counter("back")


def test_a_queue_that_has_gone_is_told_of_and_may_come_back(here: Postroom, tmp_path: Path) -> None:
    load(here, tmp_path, CLAIM + OUT)
    north = desk(here, "North")
    north.ship(north.create("CLAIM", Claimant="Ann", Amount=1), "Archive")
    here.queues.remove("settled")
    assert here.run_until_idle() == 0
    (shown,) = here.stations.counters()
    assert (shown.waiting, shown.state) == (1, "there is no queue settled any more")
    load(
        here, tmp_path, "type NOTE\n| Text: ___ |\nfield Text string free\n", "note.form"
    )  # this is no matter of the load
    here.queues.create("settled")
    assert here.run_until_idle() == 1


def test_loading_again_changes_nothing_and_a_new_version_replaces(here: Postroom, tmp_path: Path) -> None:
    load(here, tmp_path, CLAIM + IN)
    version = here.store.read(lambda tx: tx.definitions.version())
    load(here, tmp_path, CLAIM + IN)
    assert here.store.read(lambda tx: tx.definitions.version()) == version
    load(here, tmp_path, "counter front at Archive takes CLAIM from settled\n")
    here.send("claims", JSON)
    here.send("settled", JSON)
    assert here.run_until_idle() == 1
    (mail,) = desk(here, "Archive").mail()
    assert mail.type == "CLAIM"


def test_a_path_of_a_description_is_a_queue_and_a_level_is_none(here: Postroom, tmp_path: Path) -> None:
    (tmp_path / "tree.qdl").write_text(
        "01 INPUT-QUEUE (TREE)\n   02 SUB-QUEUE-1 (NORTH)\n   02 SUB-QUEUE-1 (SOUTH)\n99\n"
    )
    (tmp_path / "claims.form").write_text(CLAIM + "counter c at North takes CLAIM from TREE NORTH\n")
    here.load(tmp_path / "tree.qdl", tmp_path / "claims.form")
    here.send(("TREE", "NORTH"), JSON)
    assert here.run_until_idle() == 1
    with pytest.raises(FormInvalid, match="name one, not a level"):
        load(here, tmp_path, "counter d at North takes CLAIM from TREE\n")


def test_what_is_printed_parses_back_to_itself() -> None:
    for row in ("counter a at North takes MEETING NOTE from TREE NORTH", "counter b at Archive gives to settled"):
        assert str(parse(row, Position("f", 1))) == row
    office = read(CLAIM + "  counter  a at North   takes CLAIM from  q # here\n", "f.form")
    (counter,) = office.counters
    assert (str(counter), counter.position) == ("counter a at North takes CLAIM from q", Position("f.form", 13, 3))
    assert office.count == 2


def test_without_a_room_only_what_files_say_is_checked() -> None:
    office = read(CLAIM + IN, "f.form")
    counters.check(counters.proposed(None, office.counters, ["CLAIM"], {}))
    with pytest.raises(FormInvalid, match="counter-types"):
        counters.check(counters.proposed(None, office.counters, [], {}))


# --- others meanwhile ---


# --- queries by example meanwhile ---


# --- try ---


# --- all together ---

"""Nodes, stations and logins as a room offers them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import postroom
from postroom.errors import (
    ArgumentInvalid,
    DefinitionUnknown,
    NodeUnknown,
    PrincipalRefused,
    StationTaken,
    StationUnknown,
    TypeUnknown,
)
from postroom.model.message import Message
from postroom.room import Postroom


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Postroom]:
    with postroom.open(tmp_path / "room.db", actor="ann") as room:
        yield room


FORM = "type FEE\n| Payer: _________ |\nfield Payer string required\n"


def test_a_station_is_on_its_node_and_a_node_is_a_store(small: Postroom, tmp_path: Path) -> None:
    small.stations.add_node("north", str(tmp_path / "north.db"))
    small.stations.add("Ada", "a", "north")
    small.stations.add("Bob", "b")
    assert small.stations.all() == {"Ada": "north", "Bob": "control"}
    assert [(node.name, node.answers) for node in small.stations.nodes()] == [("control", True), ("north", True)]
    with pytest.raises(NodeUnknown):
        small.stations.add("Eve", "e", "south")
    with pytest.raises(StationTaken, match="on node north"):
        small.stations.add("Ada", "another")
    with pytest.raises(StationTaken):
        small.stations.add("Ada", "a")
    small.stations.remove("Ada")
    small.stations.remove_node("north")
    with pytest.raises(StationUnknown):
        small.stations.remove("Ada")
    assert small.stations.secure_nodes() == []


def test_a_login_stands_for_the_password_until_it_ends(small: Postroom) -> None:
    small.stations.add("Ada", "a")
    token = small.stations.login("Ada", "a")
    assert small.station("Ada", token=token).name == "Ada"
    small.stations.logout("Ada", token)
    with pytest.raises(PrincipalRefused, match="this login has ended"):
        small.station("Ada", token=token)
    for password in ("b", "", None):
        with pytest.raises(PrincipalRefused):
            small.station("Ada", password)


def test_a_registered_name_becomes_a_station_with_its_own_password(small: Postroom) -> None:
    small.flows.add_principal("Ada", "a")
    with pytest.raises(PrincipalRefused):
        small.stations.add("Ada", "other")
    assert small.stations.add("Ada", "a").name == "Ada"


def test_a_message_knows_the_form_it_was_made_with(small: Postroom, tmp_path: Path) -> None:
    (tmp_path / "f.form").write_text(FORM)
    small.load(tmp_path / "f.form")
    ada = small.stations.add("Ada", "a")
    made = small.show(ada.create("FEE", {"Payer": "IBM"}))
    edition = small.stations.form_of(made)
    assert edition is not None
    assert edition == small.stations.form("FEE")
    small.queues.create("q")
    for properties in ({}, {"form": "FEE"}, {"form": 99}):
        shown: Message = small.show(small.send("q", "x", properties=properties).key)
        assert small.stations.form_of(shown) is None
    with pytest.raises(TypeUnknown):
        small.stations.form("NONE")


def test_there_is_nothing_to_switch_or_to_wait_for_in_an_empty_room(small: Postroom) -> None:
    assert (small.stations.procedures(), small.stations.counters()) == ([], [])
    for verb in (
        small.stations.enable_procedure,
        small.stations.disable_procedure,
        small.stations.remove_procedure,
        small.stations.remove_counter,
    ):
        with pytest.raises(DefinitionUnknown):
            verb("nothing")
    with pytest.raises(ArgumentInvalid, match="at least 1"):
        small.stations.waiting(limit=0)

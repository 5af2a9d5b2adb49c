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
    small.add_node("north", str(tmp_path / "north.db"))
    small.add_station("Ada", "a", "north")
    small.add_station("Bob", "b")
    assert small.stations() == {"Ada": "north", "Bob": "control"}
    assert [(node.name, node.answers) for node in small.nodes()] == [("control", True), ("north", True)]
    with pytest.raises(NodeUnknown):
        small.add_station("Eve", "e", "south")
    with pytest.raises(StationTaken):
        small.add_station("Ada", "a")
    small.remove_station("Ada")
    small.remove_node("north")
    with pytest.raises(StationUnknown):
        small.remove_station("Ada")
    assert small.secure_nodes() == []


def test_a_login_stands_for_the_password_until_it_ends(small: Postroom) -> None:
    small.add_station("Ada", "a")
    token = small.login("Ada", "a")
    assert small.station("Ada", token=token).name == "Ada"
    small.logout("Ada", token)
    with pytest.raises(PrincipalRefused, match="this login has ended"):
        small.station("Ada", token=token)
    for password in ("b", "", None):
        with pytest.raises(PrincipalRefused):
            small.station("Ada", password)


def test_a_registered_name_becomes_a_station_with_its_own_password(small: Postroom) -> None:
    small.add_principal("Ada", "a")
    with pytest.raises(PrincipalRefused):
        small.add_station("Ada", "other")
    assert small.add_station("Ada", "a").name == "Ada"


def test_a_message_knows_the_form_it_was_made_with(small: Postroom, tmp_path: Path) -> None:
    (tmp_path / "f.form").write_text(FORM)
    small.load(tmp_path / "f.form")
    ada = small.add_station("Ada", "a")
    made = small.show(ada.create("FEE", {"Payer": "IBM"}))
    edition = small.form_of(made)
    assert edition is not None
    assert edition == small.form("FEE")
    small.create_queue("q")
    for properties in ({}, {"form": "FEE"}, {"form": 99}):
        shown: Message = small.show(small.send("q", "x", properties=properties).key)
        assert small.form_of(shown) is None
    with pytest.raises(TypeUnknown):
        small.form("NONE")


def test_there_is_nothing_to_switch_or_to_wait_for_in_an_empty_room(small: Postroom) -> None:
    assert (small.procedures(), small.counters()) == ([], [])
    for verb in (small.enable_procedure, small.disable_procedure, small.remove_procedure, small.remove_counter):
        with pytest.raises(DefinitionUnknown):
            verb("nothing")
    with pytest.raises(ArgumentInvalid, match="at least 1"):
        small.waiting(limit=0)

"""Publishing into spaces, and the names that are registered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import postroom
from postroom.errors import ArgumentInvalid, NotAllowed, PasswordNeeded, PrincipalInUse, PrincipalRefused
from postroom.room import Postroom


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Postroom]:
    with postroom.open(tmp_path / "room.db", actor="ann") as room:
        yield room


def test_a_name_needs_its_password_when_it_is_registered(small: Postroom) -> None:
    small.flows.add_principal("op", "pw")
    assert small.flows.principals() == ["op"]
    with pytest.raises(PrincipalRefused, match="this name is registered: give its password"):
        small.client("op")
    assert small.client("op", "pw").name == "op"
    small.flows.remove_principal("op")
    assert small.client("op").by.proven is False


def test_the_login_of_a_station_is_not_removed_before_the_station(small: Postroom) -> None:
    small.stations.add("Ann", "pw")
    small.flows.add_principal("ann", "pw")
    with pytest.raises(PrincipalInUse, match="it is the login of the station Ann on node control"):
        small.flows.remove_principal("Ann")
    assert small.station("Ann", "pw").inventory() == []
    small.flows.remove_principal("ann")
    small.stations.remove("Ann")
    small.flows.remove_principal("Ann")
    assert small.flows.principals() == []


def test_a_password_is_changed_with_the_old_one_or_by_an_operator(small: Postroom) -> None:
    small.flows.add_principal("op", "one")
    with pytest.raises(PasswordNeeded):
        small.flows.add_principal("op", "two")
    with pytest.raises(PrincipalRefused):
        small.flows.add_principal("op", "two", old="wrong")
    small.flows.add_principal("op", "two", old="one")
    small.flows.add_principal("op", "three", replace=True)
    assert small.client("op", "three").by.proven


def test_without_a_password_a_token_is_made_that_is_one(small: Postroom) -> None:
    token = small.flows.add_principal("robot")
    assert token
    assert small.client("robot", token).by.proven


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 101])
def test_a_name_that_no_journal_can_show_is_refused(small: Postroom, name: str) -> None:
    with pytest.raises(ArgumentInvalid):
        small.client(name)


def test_the_rooms_user_publishes_under_its_name_and_may_what_everyone_may(small: Postroom, tmp_path: Path) -> None:
    (tmp_path / "g.flow").write_text("domain d allow ann : addSpace space S : [n: int]")
    small.load(tmp_path / "g.flow")
    sent = small.publish("S", {"n": 1}, idempotency_key="k")
    assert small.publish("S", {"n": 1}, idempotency_key="k") == sent
    assert [event.by for event in small.trace(sent.key)] == ["ann"]
    with pytest.raises(NotAllowed):
        small.publish("meta:d", 'AddSpace: ["T : [n: int]"]')
    assert {space.name for space in small.flows.graph().spaces} == {"S", "meta:d"}

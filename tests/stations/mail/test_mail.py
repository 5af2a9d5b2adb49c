"""Mail between stations of all nodes: all or none of it, in order, and finished by whoever comes by after a crash."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tests.stations.world import HOMES, desk, three_nodes, unreachable

import postroom
from postroom.errors import (
    ArgumentInvalid,
    NodeDown,
    StationInUse,
    StationUnknown,
)
from postroom.room import Postroom
from postroom.stations.mail import mail


@pytest.fixture
def room(url: str, tmp_path: Path) -> Iterator[Postroom]:
    with three_nodes(url, tmp_path) as opened:
        yield opened


def test_mail_between_all_kinds_of_nodes(room: Postroom) -> None:
    names = list(HOMES)
    key = desk(room, "ann").create("NOTE", To="x")
    way = ["ann", "bob", "cid", "ann", "cid", "cid", "bob", "bob", "ann"]
    for sender, receiver in pairwise(way):
        (shipped,) = desk(room, sender).ship(key, receiver)
        assert shipped.as_dict() == {"key": key, "station": receiver, "delivered": True}
        assert room.journal.locate(key) == f"mailbox:{receiver}"
        assert [each.key for each in desk(room, receiver).mail()] == [key]
        for other in names:
            assert key not in [image.key for image in desk(room, other).messages()]
        assert desk(room, receiver).get() == [key]
        assert room.journal.locate(key) == receiver
        assert desk(room, receiver).get() == []
    visited = [event.detail["to"] for event in room.trace(key) if event.verb == "get" and event.detail]
    assert list(dict.fromkeys(visited)) == ["bob", "cid", "ann"]
    assert room.show(key).queue == "station:ann"
    with pytest.raises(StationUnknown, match="did you mean bob"):
        desk(room, "ann").ship(key, "bobb")


def test_ship_all_or_none_and_get_in_order(room: Postroom) -> None:
    ann, bob = desk(room, "ann"), desk(room, "bob")
    keys = ann.create_many("NOTE", [{"To": str(n)} for n in range(5)])
    with pytest.raises(postroom.errors.MessageElsewhere):
        ann.ship([*keys, "00099.00001"], "bob")
    assert len(ann.messages()) == 5
    ann.ship(list(reversed(keys)), "bob")
    assert bob.get(limit=2) == [keys[4], keys[3]]
    assert bob.get() == [keys[2], keys[1], keys[0]]
    with pytest.raises(ArgumentInvalid):
        bob.get(limit=0)


def test_what_is_on_its_way_is_delivered_by_whoever_comes(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    ann, bob = desk(room, "ann"), desk(room, "bob")
    key = ann.create("NOTE", To="bob")
    with monkeypatch.context() as patch:
        patch.setattr(mail, "deliver", unreachable)
        (shipped,) = ann.ship(key, "bob")
        assert not shipped.delivered
    assert room.journal.locate(key) is not None
    assert room.show(key).key == key
    assert not ann.messages()
    assert mail.recover(room._parts.network, "north") == [int(key.replace(".", ""))]
    assert mail.recover(room._parts.network, "north") == []
    with monkeypatch.context() as patch:
        patch.setattr(mail, "deliver", unreachable)
        with pytest.raises(NodeDown):
            bob.get()
    assert not bob.messages()
    bob.get()
    assert [image.key for image in bob.messages()] == [key]


def test_get_names_what_was_on_its_way(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what an attempt that was cut short had taken out of the mailbox; a damaged one stops nobody."""
    cid, bob, ann = desk(room, "cid"), desk(room, "bob"), desk(room, "ann")
    bad, good, other = cid.create_many("NOTE", [{"To": "x"}] * 3)
    cid.ship([bad, good], "bob")
    cid.ship(other, "ann")
    with monkeypatch.context() as patch:
        patch.setattr(mail, "deliver", unreachable)
        for each in (bob, ann):
            with pytest.raises(NodeDown):
                each.get()
    with pytest.raises(StationInUse, match="mail is on its way"):
        room.stations.remove("bob")
    number = int(bad.replace(".", ""))
    room.store.transact("send", lambda tx: tx.session.run("UPDATE messages SET body = '{}' WHERE key = ?", (number,)))
    assert ann.get() == [other]
    assert bob.get() == [good]
    assert [event.verb for event in room.trace(bad)][-1] == "get"


def test_damaged_mail_is_set_aside(room: Postroom) -> None:
    cid, bob = desk(room, "cid"), desk(room, "bob")
    bad, good = cid.create_many("NOTE", [{"To": "x"}] * 2)
    cid.ship([bad, good], "bob")
    number = int(bad.replace(".", ""))
    room.store.transact("send", lambda tx: tx.session.run("UPDATE messages SET body = '{}' WHERE key = ?", (number,)))
    assert bob.get() == [good]
    assert [event.verb for event in room.trace(bad)][-1] == "set-aside"

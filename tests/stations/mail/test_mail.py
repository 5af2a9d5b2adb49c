"""Mail between stations of all nodes: all or none of it, in order, and finished by whoever comes by after a crash."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, product
from pathlib import Path
from threading import Barrier

import pytest
from tests.stations.procedures.office import office
from tests.stations.world import HOMES, desk, network, three_nodes, unreachable

import postroom
from postroom.errors import (
    ArgumentInvalid,
    MessageElsewhere,
    NodeDown,
    StationInUse,
    StationUnknown,
    StoreCorrupt,
)
from postroom.room import Postroom
from postroom.stations.mail import mail
from postroom.stations.places.desk import SHIP
from postroom.store.kernel.transfers import Parcel

PASS_ON = """\
procedure pass at ann
  precondition order : ORDER
  destination it on order copy 0 ship bob
  destination more on order copy 1 ship bob
"""


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


# --- taking back ---


def test_mail_comes_back_from_any_node_until_somebody_has_got_it(room: Postroom) -> None:
    for sender, receiver in product(HOMES, HOMES):
        back, got = desk(room, sender).create_many("NOTE", [{"To": "x", "Text": receiver}] * 2)
        desk(room, sender).add_to_dossier("mine", back)
        desk(room, sender).ship([back, got], receiver)
        assert desk(room, sender).take_back(back) == [back]
        assert room.journal.locate(back) == sender
        assert [event.verb for event in room.trace(back) if event.verb in ("ship", "get")][-1] == "get"
        assert desk(room, sender).dossiers() == {}, "it has left it when it was shipped"
        assert back in [image.key for image in desk(room, sender).query("NOTE", Text=receiver)]
        assert desk(room, receiver).get() == [got]
        if sender != receiver:
            with pytest.raises(MessageElsewhere, match=f"is not in a mailbox to which {sender} has shipped it"):
                desk(room, sender).take_back(got)
        assert room.journal.locate(got) == receiver
    assert room.journal.verify().differences == ()


def test_all_of_it_comes_back_or_none_and_in_the_order_asked_for(room: Postroom) -> None:
    cid, ann, bob = (desk(room, name) for name in ("cid", "ann", "bob"))
    keys = cid.create_many("NOTE", [{"To": str(n)} for n in range(4)])
    cid.ship(keys[:2], "bob")
    cid.ship(keys[2:], "ann")
    here = cid.create("NOTE", To="x")
    theirs = ann.create("NOTE", To="x")
    ann.ship(theirs, "bob")
    for wrong in ("00099.00001", here, theirs):
        with pytest.raises(MessageElsewhere, match=wrong):
            cid.take_back([*keys, wrong])
    assert [each.key for each in bob.mail()] == [*keys[:2], theirs]
    assert [each.key for each in ann.mail()] == keys[2:]
    with pytest.raises(MessageElsewhere):
        bob.take_back(theirs)  # whose mailbox it is in gets it
    ann.get()
    with pytest.raises(MessageElsewhere, match=keys[2]):
        cid.take_back(keys)
    assert cid.take_back([keys[1], keys[0], keys[1]]) == [keys[1], keys[0]]
    assert [each.key for each in bob.mail()] == [theirs]
    assert cid.take_back([]) == []
    assert ann.take_back(theirs) == [theirs]


def test_what_is_shipped_on_belongs_to_whoever_shipped_it_last(room: Postroom) -> None:
    cid, ann, bob = (desk(room, name) for name in ("cid", "ann", "bob"))
    key = cid.create("NOTE", To="x")
    cid.ship(key, "ann")
    ann.get()
    ann.ship(key, "bob")
    with pytest.raises(MessageElsewhere):
        cid.take_back(key)
    assert ann.take_back(key) == [key]
    assert ann.messages()[0].key == key
    ann.ship(key, "bob")
    assert bob.get() == [key]


def test_what_a_sphere_has_posted_in_a_stations_name_is_not_the_stations(room: Postroom) -> None:
    sphere = room.sphere("s")
    sphere.mail(desk(room, "cid"), "bob", "NOTE", {"To": "bob"})
    (mail,) = desk(room, "bob").mail()
    assert room.show(mail.key).properties["from"] == "cid"
    with pytest.raises(MessageElsewhere):
        desk(room, "cid").take_back(mail.key)
    sphere.abort()
    assert desk(room, "bob").mail() == []


def test_what_a_counter_has_posted_was_never_the_stations(url: str, tmp_path: Path) -> None:
    with network(url, tmp_path, {}, {"ann": "control"}) as room:
        room.queues.create("claims")
        (tmp_path / "front.form").write_text("counter front at ann takes NOTE from claims\n")
        room.load(tmp_path / "front.form")
        room.send("claims", "To: x")
        room.run_until_idle()
        (posted,) = desk(room, "ann").mail()
        with pytest.raises(MessageElsewhere):
            desk(room, "ann").take_back(posted.key)


@pytest.mark.parametrize("node", ["control", "north"])
def test_what_a_procedure_has_shipped_comes_back_to_its_station(url: str, tmp_path: Path, node: str) -> None:
    """It acts for the station. A copy that it has made in the mailbox was never at the station of the control node."""
    nodes, stations = {"north": str(tmp_path / "north.db")}, {"ann": node, "bob": "control"}
    with office(url, tmp_path, PASS_ON, stations, nodes) as room:
        ann, bob = desk(room, "ann"), desk(room, "bob")
        key = ann.create("ORDER", No=1)
        room.run_until_idle()
        copies = [each.key for each in bob.mail() if each.key != key]
        assert (len(copies), room.journal.locate(key)) == (1, "mailbox:bob")
        assert room.trace(key)[-2 if node == "north" else -1].by == "procedure pass"
        room.stations.disable_procedure("pass")  # it would pass it on again
        assert ann.take_back(key) == [key]
        if node == "control":
            with pytest.raises(MessageElsewhere):
                ann.take_back(copies)
        else:
            assert ann.take_back(copies) == copies
        room.run_until_idle()
        assert room.journal.locate(key) == "ann"
        assert room.journal.verify().differences == ()


def test_what_is_on_its_way_comes_back_too(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of the node it was shipped from; and if it is cut off on its way back, the next to come gets it."""
    ann = desk(room, "ann")
    key = ann.create("NOTE", To="bob")
    with monkeypatch.context() as patch:
        patch.setattr(mail, "deliver", unreachable)
        assert [each.delivered for each in ann.ship(key, "bob")] == [False]
    with monkeypatch.context() as patch:
        patch.setattr(mail, "deliver", _only(mail.deliver, SHIP))
        with pytest.raises(NodeDown):
            ann.take_back(key)
    assert desk(room, "bob").mail() == []
    assert desk(room, "bob").get() == []
    assert ann.get() == [key]
    assert [image.key for image in ann.messages()] == [key]


def _only(deliver: Callable[..., dict[int, int]], verb: str) -> Callable[..., dict[int, int]]:
    """What arrives for one verb only."""

    def some(network: object, source: object, parcels: Sequence[Parcel]) -> dict[int, int]:
        return deliver(network, source, parcels) if parcels[0].verb == verb else unreachable()

    return some


def test_damaged_mail_does_not_come_back(room: Postroom) -> None:
    cid = desk(room, "cid")
    bad, good = cid.create_many("NOTE", [{"To": "x"}] * 2)
    cid.ship([bad, good], "bob")
    number = int(bad.replace(".", ""))
    room.store.transact("send", lambda tx: tx.session.run("UPDATE messages SET body = '{}' WHERE key = ?", (number,)))
    with pytest.raises(StoreCorrupt, match=bad):
        cid.take_back([good, bad])
    assert cid.take_back(good) == [good]


def test_mail_is_got_or_taken_back_and_never_both(url: str, tmp_path: Path) -> None:
    """Both stations reach for the same mail at the same moment, also with shipping in between."""
    stations = dict.fromkeys(("ann", "bob"), "control")
    with network(url, tmp_path, {}, stations) as one, postroom.open(url) as other, ThreadPoolExecutor(2) as pool:
        ann, bob = desk(one, "ann"), desk(other, "bob")
        keys = ann.create_many("NOTE", [{"To": str(n)} for n in range(40)])
        for key in keys:
            ann.ship(key, "bob")
            both = Barrier(2)

            def back(key: str = key, both: Barrier = both) -> list[str]:
                both.wait(60)
                try:
                    return ann.take_back(key)
                except MessageElsewhere:
                    return []

            def got(both: Barrier = both) -> list[str]:
                both.wait(60)
                return bob.get()

            taken, fetched = pool.submit(back), pool.submit(got)
            assert sorted([*taken.result(60), *fetched.result(60)]) == [key]
            assert one.journal.locate(key) == ("ann" if taken.result() else "bob")
        assert sorted(image.key for room in (ann, bob) for image in room.messages()) == keys
        assert one.journal.verify().differences == ()

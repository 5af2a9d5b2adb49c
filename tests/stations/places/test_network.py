"""Nodes and stations: who may join, what happens when one does not answer, keys, mail, logins."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.stations.world import HOMES, desk, network, three_nodes, unreachable

import postroom
from postroom.errors import (
    ArgumentInvalid,
    KeysExhausted,
    NameInvalid,
    NodeDown,
    NodeUnfit,
    NodeUnknown,
    PasswordNeeded,
    PrincipalRefused,
    StationInUse,
    StationTaken,
    StationUnknown,
)
from postroom.room import Postroom
from postroom.stations.mail import mail
from postroom.stations.places.network import CONTROL, within
from postroom.stations.queries.query import Scope, _Query
from postroom.stations.queries.reading import Plan
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.tracking import MAILBOXES


@pytest.fixture
def room(url: str, tmp_path: Path) -> Iterator[Postroom]:
    with three_nodes(url, tmp_path) as opened:
        yield opened


def test_a_network_shows_its_nodes(room: Postroom, tmp_path: Path) -> None:
    shown = {node.name: (node.stations, node.answers) for node in room.stations.nodes()}
    assert shown == {"control": (1, True), "north": (1, True), "south": (1, True)}
    assert room.stations.all() == HOMES
    room._parts.network.close()  # whoever moves a store has closed it
    os.rename(tmp_path / "south.db", tmp_path / "elsewhere.db")
    for suffix in ("-wal", "-shm"):
        (tmp_path / f"south.db{suffix}").unlink(missing_ok=True)
    with postroom.open(room.url) as other:
        (down,) = [node for node in other.stations.nodes() if not node.answers]
        assert (down.name, "there is no store" in down.why) == ("south", True)
        assert down.as_dict()["why"] == down.why
        with pytest.raises(NodeDown, match="node south does not answer"):
            desk(other, "bob").create("NOTE", To="x")
        key = desk(other, "ann").create("NOTE", To="bob")
        assert desk(other, "ann").ship(key, "bob")[0].delivered, "mail waits for a node that is down"
        with pytest.raises(NodeDown):
            desk(other, "bob").get()
        assert other.journal.locate(key) == "mailbox:bob"
        other.stations.move_node("south", str(tmp_path / "elsewhere.db"))
        assert desk(other, "bob").get() == [key]


def test_a_store_that_is_not_the_nodes_is_not_used(room: Postroom, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger.db"
    postroom.open(stranger).close()
    with pytest.raises(NodeDown, match="is not the store that was added as south"):
        room.stations.move_node("south", str(stranger))
    assert desk(room, "bob").create("NOTE", To="x")


def test_who_cannot_be_a_node(room: Postroom, tmp_path: Path) -> None:
    used = tmp_path / "used.db"
    with postroom.open(used) as other:
        other.queues.create("q").send("x")
    for name, where, why in (
        ("more", str(used), "messages or stations of its own"),
        ("more", str(tmp_path / "north.db"), "a node already, named north"),
        ("north", str(tmp_path / "new.db"), "there is a node north already"),
    ):
        with pytest.raises(NodeUnfit, match=why):
            room.stations.add_node(name, where)
        assert {node.name for node in room.stations.nodes()} == {"control", "north", "south"}
    with pytest.raises(ArgumentInvalid):
        room.stations.add_node("control", str(tmp_path / "new.db"))
    with postroom.open(tmp_path / "north.db") as node:
        with pytest.raises(NodeUnfit, match="this room is a node itself"):
            node.stations.add_node("deeper", str(tmp_path / "deeper.db"))
        with pytest.raises(NodeUnfit, match="add stations in its control"):
            node.stations.add("Eve", "pw")
    with pytest.raises(
        StationInUse, match=r"node north cannot be added or removed: 1 station\(s\) are on it, such as ann"
    ):
        room.stations.remove_node("north")
    with pytest.raises(NodeUnknown, match="did you mean north"):
        room.stations.remove_node("nort")
    for name in ("spare", "again"):
        room.stations.add_node(name, str(tmp_path / "spare.db"))
        room.stations.remove_node(name)


def test_a_room_cannot_be_its_own_node(tmp_path: Path) -> None:
    with postroom.open(tmp_path / "room.db") as room, pytest.raises(NodeUnfit, match="it is this room"):
        room.stations.add_node("self", str(tmp_path / "room.db"))


def test_stations_have_passwords(url: str) -> None:
    with postroom.open(url) as room:
        room.stations.add("John", "secret")
        assert room.station("John", "secret").name == "John"
        for name, password in (("John", "wrong"), ("Jim", "secret"), ("John", None)):
            with pytest.raises(PrincipalRefused):
                room.station(name, password)
        with pytest.raises(StationTaken, match="on node control"):
            room.stations.add("John", "secret")
        with pytest.raises(ArgumentInvalid):
            room.stations.add("not a name", "secret")
        with pytest.raises(ArgumentInvalid):
            room.stations.add("Jim", "")
        with pytest.raises(NodeUnknown):
            room.stations.add("Jim", "secret", "nowhere")
        room.flows.add_principal("Simon", "his own")
        with pytest.raises(PrincipalRefused):
            room.stations.add("Simon", "another")
        assert room.stations.add("Simon", "his own").node == "control"
        room.flows.add_principal("Oscar", "pw")
        with pytest.raises(StationUnknown):
            room.station("Oscar", "pw")


def test_a_registered_name_gets_another_password_only_by_its_own_or_the_operators_word(url: str) -> None:
    with postroom.open(url) as room:
        room.flows.add_principal("Ann", "first")
        for password in ("second", None):
            with pytest.raises(PasswordNeeded, match=r"Ann is registered.*--replace"):
                room.flows.add_principal("Ann", password)
            with pytest.raises(PrincipalRefused):
                room.flows.add_principal("Ann", password, old="wrong")
        room.client("Ann", "first")
        room.flows.add_principal("Ann", "second", old="first")
        room.client("Ann", "second")
        token = room.flows.add_principal("Ann", replace=True)
        room.client("Ann", token)
        with pytest.raises(PrincipalRefused):
            room.flows.add_principal("Nobody", "pw", old="there is none")
        assert room.flows.principals() == ["Ann"]


def test_a_login_stands_for_a_password_until_it_ends(url: str) -> None:
    now = 1_000_000_000_000_000
    with postroom.open(url, clock=lambda: now) as room:
        room.stations.add("John", "secret")
        token = room.stations.login("John", "secret")
        assert room.station("John", token=token).name == "John"
        with pytest.raises(PrincipalRefused):
            room.stations.login("John", "wrong")
        for name, said in (("John", "x.y"), ("Simon", token), ("John", token + "x"), ("John", "")):
            with pytest.raises(PrincipalRefused):
                room.station(name, token=said)
        room.flows.add_principal("John", "other", old="secret")
        with pytest.raises(PrincipalRefused, match="login has ended"):
            room.station("John", token=token)
        room.flows.add_principal("John", "secret", replace=True)
        second = room.stations.login("John", "secret")
        room.stations.logout("John", token)
        with pytest.raises(PrincipalRefused, match="login has ended"):
            room.station("John", token=token)
        now += 13 * 3_600_000_000
        with pytest.raises(PrincipalRefused, match="login has ended"):
            room.station("John", token=second)
        room.stations.login("John", "secret")
        assert len(room.store.read(lambda tx: tx.principals.secrets("login"))) == 1, "ended logins are forgotten"


def test_names_that_are_no_text_are_nobodys(room: Postroom) -> None:
    strange = "\udcff"
    with pytest.raises(PrincipalRefused):
        room.station(strange, "x")
    with pytest.raises(PrincipalRefused):
        room.station(strange, token="x.y")
    with pytest.raises(StationUnknown):
        room.stations.remove(strange)
    key = desk(room, "ann").create("NOTE", To="x")
    with pytest.raises(StationUnknown):
        desk(room, "ann").ship(key, strange)


def test_queues_of_stations_have_names_of_their_own(room: Postroom) -> None:
    for name in ("station:Eve", "mailbox:Eve", "leaving"):
        with pytest.raises(NameInvalid, match="name the queues of stations"):
            room.queues.create(name)


def test_removing_a_station_needs_it_empty(room: Postroom) -> None:
    key = desk(room, "ann").create("NOTE", To="x")
    with pytest.raises(StationInUse, match="ann cannot be added or removed: it has 1 message"):
        room.stations.remove("ann")
    desk(room, "ann").ship(key, "bob")
    room.stations.remove("ann")
    with pytest.raises(StationInUse, match="in its mailbox"):
        room.stations.remove("bob")
    assert room.stations.all() == {"bob": "south", "cid": "control"}
    with pytest.raises(StationUnknown):
        desk(room, "ann")


def test_keys_are_unique_in_blocks_from_the_control_node(room: Postroom) -> None:
    blocks = {name: {desk(room, name).create("NOTE", To="x").partition(".")[0] for _ in range(3)} for name in HOMES}
    assert all(len(heads) == 1 for heads in blocks.values())
    heads = {head for some in blocks.values() for head in some}
    assert len(heads) == 3
    north = room._parts.network.store("north")

    def spend(tx: object) -> None:
        head = tx.keys.take(1)[0] // 100_000  # type: ignore[attr-defined]
        tx.session.run("UPDATE counters SET value = ? WHERE name = 'keys'", ((head + 1) * 100_000 - 2,))  # type: ignore[attr-defined]
        tx.keys._next = tx.keys._stop = 0  # type: ignore[attr-defined]

    north.transact("create", spend)
    keys = desk(room, "ann").create_many("NOTE", [{"To": "x"}] * 5)
    assert len(set(keys)) == 5
    assert {key.partition(".")[0] for key in keys}.isdisjoint(heads)
    north.transact("create", spend)
    with pytest.raises(KeysExhausted, match="is a node"):
        north.transact("create", lambda tx: tx.keys.take(5))


def test_nodes_and_names_that_are_left(room: Postroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = desk(room, "ann")
    key = ann.create("NOTE", To="bob")
    with monkeypatch.context() as patch:
        patch.setattr(mail, "deliver", unreachable)
        ann.ship(key, "cid")
    for name in ("ann", "cid"):
        with pytest.raises(StationInUse, match="mail is on its way"):
            room.stations.remove(name)
    room.store.transact("station", lambda tx: tx.nodes.remove_station("ann"))
    with pytest.raises(StationInUse, match=r"1 message\(s\) are on their way out of it"):
        room.stations.remove_node("north")
    mail.recover(room._parts.network, "north")
    room.store.transact("station", lambda tx: tx.nodes.remove_station("cid"))
    with pytest.raises(StationInUse, match="mail for a former station"):
        room.stations.add("cid", "pw")
    room._parts.network.close()
    (tmp_path / "north.db").unlink()
    with pytest.raises(NodeDown):
        room.stations.remove_node("north")
    room.stations.remove_node("north", force=True)
    assert "north" not in [node.name for node in room.stations.nodes()]


def test_a_node_makes_no_more_at_once_than_a_block_has(room: Postroom) -> None:
    with pytest.raises(ArgumentInvalid, match="at most 99998 at once"):
        desk(room, "ann").create_many("NOTE", [{"To": "x"}] * 99_999)


def test_whoever_closes_a_query_waits_for_one_that_is_opened(postgres_url: str, tmp_path: Path) -> None:
    """What is kept for the next query must not go with the last: the look comes behind the lock."""
    homes = {"A": "n", "B": "control"}
    with (
        network(postgres_url, tmp_path, {"n": str(tmp_path / "n.db")}, homes) as room,
        postroom.open(postgres_url) as other,
    ):
        scope = Scope(("control", "n"), None)
        first, second = (_Query(room._parts.network, Plan("NOTE", ()), scope, f"other/{n}", 60) for n in (1, 2))
        first.open()
        second._begin()
        number = 4_200_001
        room.store.transact("send", lambda tx: tx.tracking.come(MAILBOXES, number, second.number))
        closing = threading.Thread(
            target=lambda: other.store.transact("query-close", lambda tx: tx.tracking.close(first.number))
        )

        def open_slowly(tx: Transaction) -> None:
            tx.tracking.open(second.number, MAILBOXES, "other/2", 60)
            closing.start()
            time.sleep(0.5)

        room.store.transact("query-open", open_slowly)
        closing.join(10)
        assert room.store.read(lambda tx: tx.tracking.hidden_from(second.number, MAILBOXES)) == {number}
        second.close()


def test_a_call_that_does_not_come_back_is_left_behind() -> None:
    forever = threading.Event()
    with pytest.raises(NodeDown, match=r"no answer for 0\.05 s"):
        within(0.05, "n", forever.wait)
    forever.set()
    with pytest.raises(ZeroDivisionError):
        within(60, "n", lambda: 1 // 0)


@pytest.mark.parametrize("is_open", [False, True])
def test_a_connection_of_a_late_call_is_closed_when_the_call_ends(room: Postroom, is_open: bool) -> None:
    node = next(each.name for each in room.stations.nodes() if each.name != CONTROL)
    network = room._parts.network
    used: list[Store] = []
    seconds = 1.0
    while not used:  # until the call has opened its connection in the time that it has
        network._forget(node)
        over = threading.Event()
        if is_open:
            network.store(node)

        def work(over: threading.Event = over) -> None:
            used.append(network.store(node))
            over.wait(60)

        with pytest.raises(NodeDown):
            network.ask(node, seconds, work)
        is_used = bool(used)
        over.set()
        if not is_used:
            while not used:
                time.sleep(0.01)
            used.clear()
            seconds *= 4
    end = time.monotonic() + 60
    while not used[0].stopped:
        assert time.monotonic() < end, "the connection stays open"
        time.sleep(0.01)
    assert network.ask(node, 60, lambda: not network.store(node).stopped), "the next call has a new one"


def test_a_call_that_ends_as_its_time_does_is_answered_or_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread has done its work, and is not yet gone."""

    class Lingering(threading.Thread):
        def join(self, timeout: float | None = None) -> None:
            super().join()

        def is_alive(self) -> bool:
            return True

    monkeypatch.setattr(threading, "Thread", Lingering)
    dropped: list[int] = []
    answered: list[int] = []
    with suppress(NodeDown):
        answered.append(within(60, "n", lambda: 1, lambda: lambda: dropped.append(1)))
    assert answered or dropped

"""Spheres, their sends, who takes part, and the heartbeats of their owners."""

from __future__ import annotations

from tests.store.places import put, queue

from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.spheres import ABORTED, ACTIVE, STANDS, Part, Send


def begun(tx: Transaction, id: str, owner: str = "owner", heartbeat: int = 5) -> int:
    token = put(tx, queue(tx, ACTIVE), id)
    tx.spheres.add(token.key, id, owner, heartbeat)
    return token.key


def test_a_sphere_is_in_the_state_that_its_token_is_in(tx: Transaction) -> None:
    token = begun(tx, "s1")
    begun(tx, "s2", "other", 9)
    kept = tx.spheres.find("s1")
    assert kept is not None
    assert (kept.state, kept.owner, kept.token, kept.sends, kept.ends) == (ACTIVE, "owner", token, 0, None)
    assert tx.spheres.find("s9") is None
    assert [each.id for each in tx.spheres.in_state(ACTIVE, 0, 10)] == ["s1", "s2"]
    assert tx.spheres.owners(ACTIVE) == {"owner": 1, "other": 1}
    assert tx.spheres.owned(ACTIVE, "other") == ["s2"]
    assert tx.spheres.slowest(ACTIVE) == ("s2", 9)
    assert tx.spheres.slowest(ABORTED) is None
    tx.spheres.commit_by("s1", 77)
    tx.spheres.set_reason("s1", "why")
    kept = tx.spheres.find("s1")
    assert kept is not None
    assert (kept.ends, kept.reason) == (77, "why")


def test_sends_are_numbered_remembered_and_settled(tx: Transaction) -> None:
    begun(tx, "s1")
    assert (tx.spheres.next_send("s1"), tx.spheres.next_send("s1", 2), tx.spheres.next_send("s1")) == (0, 1, 3)
    place = queue(tx, "q")
    message, undo = put(tx, place).key, put(tx, place).key
    send = Send("s1", 0, "now", "q", message, place.id, undo, "q", None, tx.now, maker="rule r")
    tx.spheres.remember(send, send._replace(number=1, message=None, remembered=None))
    assert tx.spheres.sent(message) == send == tx.spheres.origin(undo)
    assert [each.number for each in tx.spheres.open_sends("s1")] == [1, 0]
    assert tx.spheres.received([message, 999_999_999]) == 1
    assert tx.spheres.processed([message]) == 1
    tx.spheres.settle(send, STANDS, "done")
    tx.spheres.delivered_as(send, 4711)
    assert [each.number for each in tx.spheres.open_sends("s1")] == [1]
    settled = tx.spheres.sends("s1")[0]
    assert (settled.outcome, settled.why, settled.received, settled.processed) == (STANDS, "done", tx.now, tx.now)
    assert tx.spheres.nodes("s1") == []


def test_recipients_take_part_until_they_are_done(tx: Transaction) -> None:
    begun(tx, "s1")
    assert tx.spheres.join("s1", 5, "me", 3)
    assert not tx.spheres.join("s1", 5, "me", 3)
    assert tx.spheres.parts("s1") == [Part(5, "me", False)]
    assert tx.spheres.part_owners(ACTIVE) == [("me", "s1", 3)]
    tx.spheres.done("s1", 5)
    assert (tx.spheres.parts("s1"), tx.spheres.part_owners(ACTIVE)) == ([Part(5, "me", True)], [])
    tx.spheres.require("s1", ["a", "b"], True, 1, 50)
    (required,) = tx.spheres.requirements("s1")
    assert required == (("a", "b"), True, 1, tx.now, 50)


def test_shares_of_databases_are_known_by_their_names(tx: Transaction) -> None:
    token = begun(tx, "s1")
    tx.spheres.add_branches("s1", [("b1", "place"), ("b2", "place"), ("b1", "place")])
    assert tx.spheres.sphere_of("b1") == "s1"
    assert tx.spheres.in_doubt() == [], "its end is not decided"
    stored = tx.messages.find(token)
    assert stored is not None
    tx.messages.move(stored, queue(tx, ACTIVE), queue(tx, ABORTED))
    assert [doubt.branch for doubt in tx.spheres.in_doubt()] == ["b1", "b2"]
    tx.spheres.forget_branches(["b1", "b2"])
    assert tx.spheres.sphere_of("b1") is None


def test_beats_are_counted(tx: Transaction) -> None:
    assert tx.spheres.beaten("me") == 0
    tx.spheres.beat("me")
    tx.spheres.beat("me")
    assert tx.spheres.beaten("me") == 2
    tx.spheres.still("me")
    assert tx.spheres.beaten("me") == 0
    assert tx.spheres.announced() is None
    tx.spheres.announce(500)
    assert tx.spheres.announced() == 500

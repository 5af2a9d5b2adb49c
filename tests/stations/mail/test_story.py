"""A trace with causes: what a message came from and led to, through every capability, on both stores."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

import postroom
from postroom import limits
from postroom.errors import ArgumentInvalid, KeyInvalid, MessageUnknown
from postroom.model.types import Field, Kind, MessageType
from postroom.room import Postroom
from postroom.stations.mail.story import Story, StoryMessage

MASTER = "local[2]"
PROGRAM = """
create queue incoming kind basic mode persistent
create queue offers kind basic mode persistent
create queue notes kind basic mode persistent
create rule answer for incoming
if (//order) then (
  do enqueue <offer>{string(//order)}</offer> into offers,
  do enqueue <note/> into notes)
create rule fail for notes
if (//note) then do enqueue <x>{1 idiv 0}</x> into offers
"""
FLOW = """
domain trading
space Trades : [issue: string, price: int]
space High   : [issue: string, price: int]
arc high : Trades -> High select [price: p > 75]
"""
FORMS = """
type ORDER
| No: ____ |
field No int required
type BILL
| No: ____ |
field No int required
type RECEIPT
| No: ____ |
field No int required
procedure settle at Desk
  precondition order : ORDER
  precondition bill : BILL
    No: ?order.No
  create receipt : RECEIPT
    No: ?order.No
"""


def told(story: Story, key: str) -> StoryMessage:
    (found,) = [each for each in story.messages if each.key == key]
    return found


def tree(story: Story) -> list[tuple[int, str]]:
    return [(each.depth, each.key) for each in story.messages]


def test_rules_and_their_errors(room: Postroom, tmp_path: Path, spark: object) -> None:
    file = tmp_path / "shop.demaq"
    file.write_text(PROGRAM)
    room.load(file)
    order = room.send("incoming", "<order>7</order>", format="xml").key
    other = room.send("incoming", "<order>8</order>", format="xml").key
    room.run_until_idle(master=MASTER)
    story = room.trace(order, causes=True)
    first, *rest = story.messages
    assert (first.key, first.depth, first.causes) == (order, 0, ())
    assert [(each.depth, each.events[0].by, each.events[0].target) for each in rest] == [
        (1, "rule answer", "offers"),
        (1, "rule answer", "notes"),
        (2, "rule fail", "postroom-errors"),
    ]
    assert rest[2].causes == (rest[1].key,), "an error is told below the message that broke the rule"
    assert first.effects == (rest[0].key, rest[1].key)
    assert other not in {each.key for each in story.messages}
    assert story.complete

    room.engine.sweep()
    assert room.journal.locate(order) is None, "nothing holds it"
    after = room.trace(rest[2].key, causes=True)
    assert tree(after) == [(0, order), (1, rest[1].key), (2, rest[2].key)], "backwards, also over what is gone"
    assert after.messages[0].place is None
    assert after.messages[2].place == "postroom-errors"
    assert tree(room.trace(order, causes=True)) == tree(story)


def test_arcs_and_queues_that_keep_nothing(room: Postroom, tmp_path: Path, spark: object) -> None:
    file = tmp_path / "trading.flow"
    file.write_text(FLOW)
    room.load(file)
    event = room.publish("Trades", ["IBM", 80]).key
    room.run_until_idle(master=MASTER)
    taken = room.receive("High").message
    assert taken is not None
    story = room.trace(taken.key, causes=True)
    assert tree(story) == [(0, event), (1, taken.key)]
    assert told(story, taken.key).events[0].by == "arc high"


def test_a_procedure_has_made_a_message_of_several(room: Postroom, tmp_path: Path, spark: object) -> None:
    file = tmp_path / "desk.form"
    file.write_text(FORMS)
    room.load(file)
    desk = room.stations.add("Desk", "secret")
    bill = desk.create("BILL", No=7)
    order = desk.create("ORDER", No=7)
    room.run_until_idle(master=MASTER)
    (receipt,) = [image.key for image in desk.query("RECEIPT")]
    for key in (bill, order):
        story = room.trace(key, causes=True)
        assert receipt in told(story, key).effects, "each of the set has led to it"
        assert {each.key for each in story.messages} == {bill, order, receipt}, "those it was handled with are told"
    story = room.trace(receipt, causes=True)
    assert set(told(story, receipt).causes) == {bill, order}
    assert told(story, receipt).causes[0] == order, "the one that completed the set"
    assert told(story, receipt).events[0].by == "procedure settle"
    assert (told(story, receipt).type, told(story, receipt).place) == ("RECEIPT", "Desk")
    (copy,) = desk.copy(receipt)
    assert room.show(copy).cause == receipt, "a copy follows from what it was made of"


def test_a_compensation_is_told_below_what_it_undoes(room: Postroom) -> None:
    room.queues.create("work")
    room.queues.create("bank")
    asked = room.send("work", "pay 17").key
    sphere = room.sphere("pay-17")
    sent = sphere.send("bank", "17 to Ada", compensation="17 back", cause=asked)
    later = sphere.send("work", "paid", when="commit", cause=asked)
    assert room.receive("bank").message is not None
    sphere.abort("the account is closed")
    assert sent.key is not None
    assert sent.remembered is not None
    assert later.remembered is not None
    story = room.trace(asked, causes=True)
    assert tree(story) == [(0, asked), (1, sent.key), (2, sent.remembered), (1, later.remembered)]
    payment, undo, letter = (told(story, key) for key in (sent.key, sent.remembered, later.remembered))
    assert (payment.sphere, payment.outcome) == ("pay-17", "compensated")
    assert [event.target for event in undo.events] == ["COMP.Q", "bank"]
    assert undo.events[0].detail == {"sphere": "pay-17", "recipient": "bank", "compensates": sent.key, "when": "now"}
    assert [event.verb for event in letter.events] == ["put", "withdraw"]
    assert (letter.place, letter.sphere) == (None, "pay-17")


def test_a_message_that_is_passed_on_says_the_same_and_is_the_cause(room: Postroom) -> None:
    room.definitions.define_type(MessageType("Order", (Field("No", Kind.INT), Field("Price", Kind.DECIMAL))))
    for queue in ("in", "out", "bank"):
        room.queues.create(queue)
    for body, format in (("No: 7\nPrice: 1.50", "text"), ({"No": 7, "Price": "1.50"}, "json")):
        room.send("in", body, format=format, type="Order")
        taken = room.receive("in").message
        assert taken is not None
        room.send("out", taken)
        with room.sphere() as sphere:
            sphere.send("bank", taken, compensation=taken)
        for queue in ("out", "bank"):
            found = room.receive(queue).message
            assert found is not None
            assert (found.body, found.format, found.type, found.cause) == (
                taken.body,
                taken.format,
                "Order",
                taken.key,
            )
            assert room.journal.fields(found) == {"No": 7, "Price": Decimal("1.50")}
    plain = room.send("in", "no type").key
    with pytest.raises(ArgumentInvalid, match="has no type"):
        room.journal.fields(room.show(plain))


def test_what_a_recipient_sends_follows_from_what_it_received(room: Postroom) -> None:
    room.queues.create("hotel")
    room.queues.create("rooms")
    with room.sphere("trip") as sphere:
        sphere.send("hotel", "two nights")
        received = room.receive("hotel").message
        assert received is not None
        with received.membership.join() as part:
            made = part.send("rooms", "room 5")
    assert made.key is not None
    assert room.show(made.key).cause == received.key


def test_over_nodes_and_without_one(tmp_path: Path, sqlite_url: str, spark: object) -> None:
    file = tmp_path / "desk.form"
    file.write_text(FORMS)
    with postroom.open(sqlite_url) as room:
        room.load(file)
        room.stations.add_node("north", str(tmp_path / "north.db"))
        desk = room.stations.add("Desk", "secret", "north")
        bill, order = desk.create("BILL", No=7), desk.create("ORDER", No=7)
        room.stations.add("Home", "secret")
        room.run_until_idle(master=MASTER)
        (receipt,) = [image.key for image in desk.query("RECEIPT")]
        desk.ship(receipt, "Home")
        story = room.trace(receipt, causes=True)
        assert set(told(story, receipt).causes) == {bill, order}
        assert told(story, receipt).place == "mailbox:Home"
        assert [event.verb for event in told(story, receipt).events][:2] == ["create", "ship"]
        (tmp_path / "north.db").rename(tmp_path / "away.db")
    with postroom.open(sqlite_url) as room:
        story = room.trace(receipt, causes=True)
        assert story.silent == ("north",)
        assert [each.key for each in story.messages] == [receipt], "its causes are where nobody answers"
        with pytest.raises(postroom.errors.NodeDown):
            room.trace(bill, causes=True)


def test_a_story_has_a_bound(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom.stations.mail.story.STORY_MESSAGES_MAX", 20)
    room.queues.create("chain")
    first = key = room.send("chain", "0").key
    for number in range(30):
        key = room.send("chain", str(number), cause=key).key
    story = room.trace(first, causes=True)
    assert not story.complete
    assert [each.depth for each in story.messages] == list(range(20))
    assert story.messages[0].key == first
    back = room.trace(key, causes=True)
    assert not back.complete
    assert back.messages[-1].key == key
    assert limits.STORY_MESSAGES_MAX == 500


def test_wide_stories_are_cut_too(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom.stations.mail.story.STORY_MESSAGES_MAX", 20)
    room.queues.create("wide")
    first = room.send("wide", "0").key
    keys = [room.send("wide", str(number), cause=first).key for number in range(30)]
    story = room.trace(first, causes=True)
    assert not story.complete
    assert [each.key for each in story.messages] == [first, *keys[:19]]


def test_a_cause_must_have_been_there(room: Postroom) -> None:
    room.queues.create("work")
    with pytest.raises(MessageUnknown):
        room.send("work", "answer", cause="00009.00009")
    with pytest.raises(KeyInvalid):
        room.send("work", "answer", cause="nine")
    with pytest.raises(MessageUnknown), room.sphere() as sphere:
        sphere.send("work", "answer", cause="00009.00009")
    with pytest.raises(MessageUnknown):
        room.trace("00009.00009", causes=True)
    assert list(room.queues.info("work")) == []


def test_a_cause_that_is_gone_is_still_one(room: Postroom) -> None:
    room.queues.create("work", keep_processed=False)
    room.queues.create("done")
    asked = room.send("work", "question").key
    assert room.receive("work").message is not None
    answer = room.send("done", "answer", cause=asked).key
    story = room.trace(answer, causes=True)
    assert tree(story) == [(0, asked), (1, answer)]
    assert [event.verb for event in story.messages[0].events] == ["put", "take"]
    assert story.as_dict()["messages"][1]["causes"] == [asked]

"""The door of a queue: what a sender's message gets, and that what is refused changes nothing."""

from __future__ import annotations

from pathlib import Path
from random import Random
from string import ascii_letters
from typing import Any

import pytest

import postroom
from postroom.errors import EntryRefused
from postroom.model.types import Field, Kind, MessageType
from postroom.room import Postroom

SCHEMA = (
    '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="x"><xs:complexType><xs:sequence>'
    '<xs:element name="n" type="xs:integer"/></xs:sequence></xs:complexType></xs:element></xs:schema>'
)
PROGRAM = """create queue a kind basic mode persistent create queue checked kind basic mode persistent schema x.xsd
create queue wait kind echo mode persistent create queue gate kind incomingGateway mode persistent
create queue plain kind basic mode persistent
create property n as xs:integer queue a value //n create slicing s on n
create property fixed as xs:string fixed queue a value "always"
"""


@pytest.fixture
def shop(room: Postroom, tmp_path: Path) -> Postroom:
    (tmp_path / "x.xsd").write_text(SCHEMA)
    (tmp_path / "p.demaq").write_text(PROGRAM)
    room.load(tmp_path / "p.demaq")
    return room


def counts(room: Postroom) -> dict[str, int]:
    return {each.queue: each.unprocessed for each in room.queues.accept().queues if each.unprocessed}


def test_a_message_gets_typed_properties_and_its_slices(shop: Postroom) -> None:
    key = shop.send("a", "<x><n>007</n></x>", format="xml").key
    message = shop.show(key)
    sender = message.properties["sender"]
    assert message.properties == {"n": 7, "fixed": "always", "sender": sender}
    assert [each.key for each in shop.journal.slice("s", "7")] == [key]
    assert shop.journal.why(key).as_dict() == {
        "key": key,
        "held_by": [{"slicing": "s", "slicekey": "7"}],
        "removable": False,
    }


def test_what_the_sender_sets_is_typed_and_comes_first(shop: Postroom) -> None:
    key = shop.send("a", "<x><n>1</n></x>", format="xml", properties={"n": "42", "mine": "x"}).key
    found = shop.show(key).properties
    assert (found["n"], found["mine"]) == (42, "x")
    assert len(shop.journal.slice("s", "42")) == 1


@pytest.mark.parametrize(
    ("queue", "body", "properties", "reason"),
    [
        ("a", "<x><n>no</n></x>", {}, "FORG0001"),
        ("a", "<x><n>1</n><n>2</n></x>", {}, "PR0002"),
        ("a", "<x/>", {"n": "no"}, "FORG0001"),
        ("a", "<x/>", {"fixed": "mine"}, "PR0003"),
        ("a", "<x/>", {"sender": "someone"}, "PR0003"),
        ("a", "<x/>", {"errors": 1}, "PR0003"),
        ("checked", "<x/>", {}, "schema-invalid"),
        ("wait", "<x/>", {}, "PR0004"),
        ("wait", "<x/>", {"target": "nowhere", "timeout": 1}, "PR0004"),
        ("wait", "<x/>", {"target": "plain", "timeout": "soon"}, "PR0004"),
        ("gate", "<x/>", {"connection": "mine"}, "PR0003"),
    ],
)
def test_what_cannot_be_worked_out_is_refused_and_nothing_is_stored(
    shop: Postroom, queue: str, body: str, properties: dict[str, Any], reason: str
) -> None:
    before = len(shop.journal.last(1000))
    with pytest.raises(EntryRefused) as caught:
        shop.send(queue, body, format="xml", properties=properties)
    assert caught.value.facts["reason"] == reason
    assert (caught.value.code, caught.value.status, caught.value.happened) == ("entry-refused", "50", "no")
    assert len(shop.journal.last(1000)) == before
    assert counts(shop) == {}
    assert shop.send(queue="plain", body="next").key


def test_long_values_are_refused_as_slice_keys_and_fit_an_index(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "p.demaq").write_text(
        """create queue sliced kind basic mode persistent create queue indexed kind basic mode persistent
        create property p as xs:string queue sliced value string(/x) create slicing s on p
        create rule r for sliced if (qs:queue("indexed")[x = qs:property("p")]) then do enqueue . into indexed"""
    )
    room.load(tmp_path / "p.demaq")
    long = "".join(Random(7).choices(ascii_letters, k=20_000))  # what repeats itself, a database makes shorter
    for queue, size in (("sliced", 2_000), ("indexed", 2_000), ("indexed", 20_000)):
        assert room.send(queue, f"<x>{long[:size]}</x>", format="xml").key
    with pytest.raises(EntryRefused, match="a slice of s is known by at most 2000 bytes"):
        room.send("sliced", f"<x>{long[:2_001]}</x>", format="xml")


def test_text_and_json_do_not_fit_a_schema(shop: Postroom) -> None:
    for body in ("text", {"n": 1}):
        with pytest.raises(EntryRefused, match="only XML messages fit a schema"):
            shop.send("checked", body)
    assert shop.send("checked", "<x><n>1</n></x>", format="xml").key


def test_many_are_all_let_in_or_none(shop: Postroom) -> None:
    bodies = [f"<x><n>{number % 3}</n></x>" for number in range(30)]
    keys = list(shop.send_many("a", bodies, format="xml").keys)
    assert [each.key for each in shop.journal.slice("s", "1")] == keys[1::3]
    assert [each.properties["n"] for each in shop.queues.info("a")] == [number % 3 for number in range(30)]
    with pytest.raises(EntryRefused):
        shop.send_many("a", [*bodies, "<x><n>no</n></x>"], format="xml")
    assert counts(shop) == {"a": 30}
    assert list(shop.send_many("a", [], format="xml").keys) == []


def test_one_message_to_several_queues_gets_what_each_asks_for(shop: Postroom) -> None:
    sent = shop.queues.distribute(["plain", "a", "nowhere"], "<x><n>5</n></x>", format="xml")
    assert [(each.queue, each.key is not None) for each in sent.deliveries] == [
        ("plain", True),
        ("a", True),
        ("nowhere", False),
    ]
    assert [each.properties.get("n") for each in (*shop.queues.info("plain"), *shop.queues.info("a"))] == [None, 5]


def test_the_same_idempotency_key_sends_once(shop: Postroom) -> None:
    first = shop.send("a", "<x><n>1</n></x>", format="xml", idempotency_key="k")
    again = shop.send("a", "<x><n>1</n></x>", format="xml", idempotency_key="k")
    assert first.key == again.key
    assert len(shop.journal.slice("s", "1")) == 1


def test_a_refused_send_does_not_use_up_its_idempotency_key(shop: Postroom) -> None:
    with pytest.raises(EntryRefused):
        shop.send("a", "<x><n>no</n></x>", format="xml", idempotency_key="k")
    assert shop.send("a", "<x><n>1</n></x>", format="xml", idempotency_key="k").key


def test_json_and_typed_forms_are_worked_out_over_what_they_are(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "p.demaq").write_text(
        """create queue j kind basic mode persistent create queue t kind basic mode persistent
        create property n as xs:integer queue j value ?order?n queue t value /order/n"""
    )
    room.load(tmp_path / "p.demaq")
    room.definitions.define_type(MessageType("order", (Field("n", Kind.INT),)))
    assert room.show(room.send("j", {"order": {"n": 5}}).key).properties["n"] == 5
    assert room.show(room.send("t", {"n": 6}, type="order").key).properties["n"] == 6
    with pytest.raises(EntryRefused):
        room.send("j", "<x/>", format="xml")


def test_a_message_for_later_has_its_timer(shop: Postroom) -> None:
    now = shop.store.read(lambda tx: tx.now)
    shop.send("wait", "<x/>", format="xml", properties={"target": "plain", "timeout": "PT1H"})
    due = shop.store.read(lambda tx: tx.timers.next_due())
    assert due is not None
    assert 3_600_000_000 <= due - now < 3_700_000_000


def test_every_message_through_a_gateway_begins_a_conversation(shop: Postroom) -> None:
    keys = shop.send_many("gate", ["<x/>", "<x/>"], format="xml").keys
    first, second = (shop.show(key).properties["connection"] for key in keys)
    assert first != second


def test_the_sender_is_the_one_who_opened_the_room(url: str, tmp_path: Path) -> None:
    (tmp_path / "x.xsd").write_text(SCHEMA)
    (tmp_path / "p.demaq").write_text(PROGRAM)
    with postroom.open(url, actor="ann") as room:
        room.load(tmp_path / "p.demaq")
        assert room.show(room.send("a", "<x/>", format="xml").key).properties["sender"] == "ann"


def test_a_queue_on_hold_refuses_before_its_door_is_asked(shop: Postroom) -> None:
    shop.queues.set_password("a", password="pw")
    shop.queues.disable("a", password="pw")
    with pytest.raises(postroom.errors.QueueHeld):
        shop.send("a", "<x><n>no</n></x>", format="xml")


def test_moving_a_message_by_receiving_and_sending_works_out_its_properties_anew(shop: Postroom) -> None:
    shop.send("a", "<x><n>1</n></x>", format="xml")
    received = shop.receive("a").message
    assert received is not None
    shop.send("a", received.body, format="xml")
    assert len(shop.journal.slice("s", "1")) == 2

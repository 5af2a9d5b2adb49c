"""What a space lets in: events of its type, all of a call or none."""

from __future__ import annotations

import pytest
from tests.flows.conftest import Load

from postroom.errors import EventInvalid
from postroom.room import Postroom

TRADES = "[issue: string, price: int]"
GRAPH = f"""
domain trading
allow operator : addArc, deleteArc, addSpace, deleteSpace, disableArc, enableArc
space NYSE : {TRADES}
space Big  : {TRADES}
space Hot  : {TRADES} retain
space Out  : {TRADES}
arc big : NYSE -> Big select [price: p > 75]
arc hot : NYSE -> Hot select [price: p > 100]
arc out : Hot -> Out merge
"""


def test_an_event_that_does_not_fit_is_refused_and_changes_nothing(room: Postroom, load: Load) -> None:
    load(GRAPH)
    before = room.store.read(lambda tx: tx.journal.newest())
    for event, what in (
        ('["IBM", "x"]', "price: a value of type int is wanted"),
        ({"issue": "IBM"}, "the field price is missing"),
        ({"issue": "IBM", "price": 1, "more": 2}, "there is no field more"),
    ):
        with pytest.raises(EventInvalid, match=what):
            room.publish("NYSE", event)
    with pytest.raises(EventInvalid, match="event 2: price"):
        room.flows.publish_many("NYSE", ['["IBM", 1]', '["IBM", 1.5]'])
    with pytest.raises(EventInvalid, match="event 2: "):
        room.flows.publish_many("NYSE", ['["IBM", 1]', '["IBM" 1]'])
    with pytest.raises(EventInvalid, match="the field issue is missing"):
        room.send("NYSE", "<trade/>", format="xml")
    with pytest.raises(EventInvalid, match="price: a value of type int is wanted"):
        room.send("NYSE", "<trade><issue>IBM</issue><price>x</price></trade>", format="xml")
    with pytest.raises(EventInvalid, match="it is a Gryphon literal or JSON, not XML"):
        room.send("meta:trading", "<trade/>", format="xml")
    assert room.store.read(lambda tx: tx.journal.newest()) == before


def test_a_send_to_a_space_is_checked_like_a_publication(room: Postroom, load: Load) -> None:
    load(GRAPH)
    room.send("NYSE", '["IBM", 80]')
    room.send_many("NYSE", [{"price": 1, "issue": "HP"}])
    assert [message.body for message in room.queues.info("NYSE")] == [
        '{"issue":"IBM","price":80}',
        '{"issue":"HP","price":1}',
    ]
    with pytest.raises(EventInvalid):
        room.send("Big", "anything")

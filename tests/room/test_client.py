"""A client of a room: its name, what it publishes, and what it may not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import postroom
from postroom.errors import ArgumentInvalid, DefinitionUnknown, EventInvalid, PrincipalRefused
from postroom.room import Postroom, client


@pytest.fixture
def market(tmp_path: Path) -> Iterator[Postroom]:
    (tmp_path / "g.flow").write_text("domain d space S : [n: int]")
    with postroom.open(tmp_path / "room.db", broker="north") as room:
        room.load(tmp_path / "g.flow")
        room.queues.create("plain")
        yield room


def test_a_client_is_known_by_its_name_and_its_broker(market: Postroom) -> None:
    assert repr(market.client("desk")) == "<client desk at north>"
    assert repr(market.client("desk", broker="south")) == "<client desk at south>"
    market.flows.add_principal("op", "pw")
    assert market.client("op", "pw").by.proven
    with pytest.raises(PrincipalRefused):
        market.client("op", "other")


def test_what_a_client_publishes_is_told_of_it(market: Postroom) -> None:
    sent = market.client("desk").publish("S", {"n": 1})
    assert [event.by for event in market.trace(sent.key)] == ["desk"]
    assert len(market.client("desk").publish_many("S", ["[2]", "[3]"]).keys) == 2
    assert [message.body for message in market.peek("S")] == ['{"n":1}', '{"n":2}', '{"n":3}']


def test_the_same_idempotency_key_publishes_once(market: Postroom) -> None:
    desk = market.client("desk")
    assert desk.publish("S", "[1]", idempotency_key="k") == desk.publish("S", "[1]", idempotency_key="k")
    assert market.count("S").queues[0].unprocessed == 1


def test_only_a_space_has_events_and_of_many_all_must_fit(market: Postroom) -> None:
    desk = market.client("desk")
    with pytest.raises(DefinitionUnknown):
        desk.publish("plain", "[1]")
    with pytest.raises(EventInvalid):
        desk.publish_many("S", ["[1]", "[1.5]"])
    assert market.count("S").queues[0].unprocessed == 0


def test_a_publication_has_an_end(market: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "BATCH_MESSAGES_MAX", 2)
    with pytest.raises(ArgumentInvalid, match="at most 2 events"):
        market.client("desk").publish_many("S", ["[1]"] * 3)


def test_a_client_sees_and_ends_its_own_subscriptions(market: Postroom) -> None:
    desk, other = market.client("desk"), market.client("other")
    desk.subscribe("S")
    other.subscribe("S", "[n: 1]")
    assert [each.arc for each in desk.subscriptions()] == ["desk_S"]
    assert [each.connected for each in desk.disconnect()] == [False]
    assert [each.connected for each in desk.connect()] == [True]
    assert len(desk.unsubscribe()) == 1
    assert desk.subscriptions() == []
    assert [each.client for each in market.flows.subscriptions()] == ["other"]

"""Clients: their spaces, their arcs, and what they may call themselves."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.flows.conftest import Load

from postroom.errors import (
    ArgumentInvalid,
    DefinitionUnknown,
    EventRefused,
    FlowInvalid,
    NameTaken,
    NotAllowed,
    QueueUnknown,
)
from postroom.room import Postroom

GRAPH = """
domain trading
space NYSE : [issue: string, price: int]
space Capital : [capital: int]
domain weather
space Rain : [issue: string, price: int]
"""


@pytest.fixture(autouse=True)
def _graph(load: Load) -> None:
    load(GRAPH)


def test_a_client_receives_what_it_has_subscribed_to(room: Postroom, run: Callable[..., int]) -> None:
    desk = room.client("desk")
    made = desk.subscribe("NYSE", "[price: p > 75]")
    assert made.as_dict() == {
        "client": "desk",
        "arc": "desk_NYSE",
        "space": "NYSE",
        "pattern": "[price: p > 75]",
        "durable": False,
        "connected": True,
    }
    room.flows.publish_many("NYSE", ['["IBM", 80]', '["HP", 20]'])
    run()
    received = desk.receive().message
    assert received is not None
    assert received.body == '{"issue":"IBM","price":80}'
    assert desk.receive().message is None
    assert {event.by for event in room.trace(received.key)} == {"arc desk_NYSE", room._parts.by.principal}


def test_the_same_subscription_again_changes_nothing_but_connects(room: Postroom) -> None:
    desk = room.client("desk")
    desk.subscribe("NYSE", "[price: p > 75]")
    version = room.flows.graph().version
    assert desk.subscribe("NYSE", "[price:p>75]").arc == "desk_NYSE"
    assert room.flows.graph().version == version
    desk.disconnect()
    assert desk.subscribe("NYSE", "[price: p > 75]").connected
    assert [each.connected for each in room.flows.subscriptions()] == [True]


def test_the_same_subscription_may_become_durable(room: Postroom) -> None:
    desk = room.client("desk")
    desk.subscribe("NYSE", "[price: p > 75]")
    assert desk.subscribe("NYSE", "[price: p > 75]", durable=True).durable
    assert [(each.arc, each.durable) for each in room.flows.subscriptions()] == [("desk_NYSE", True)]
    assert not desk.subscribe("NYSE", "[price: p > 75]").durable


def test_a_client_may_have_several_subscriptions_to_spaces_of_one_type(room: Postroom, run: Callable[..., int]) -> None:
    desk = room.client("desk")
    arcs = [desk.subscribe("NYSE", "[price: p > 75]").arc, desk.subscribe("NYSE", '[issue: "HP"]').arc]
    arcs.append(desk.subscribe("Rain").arc)
    assert arcs == ["desk_NYSE", "desk_NYSE_2", "desk_Rain"]
    room.publish("NYSE", '["HP", 80]')
    room.publish("Rain", '["wet", 1]')
    run()
    assert len(room.queues.info("desk").messages) == 3
    assert {arc.name: arc.state for arc in room.flows.graph().arcs}["desk_Rain"] == "enabled", "both domains have it"
    desk.unsubscribe("NYSE")
    assert [each.arc for each in desk.subscriptions()] == ["desk_Rain"]
    assert len(room.queues.info("desk").messages) == 3


def test_a_space_of_another_type_needs_another_client(room: Postroom) -> None:
    desk = room.client("desk")
    desk.subscribe("NYSE")
    with pytest.raises(FlowInvalid, match=r"Capital has \[capital: int\], and desk takes"):
        desk.subscribe("Capital")


def test_what_cannot_be_subscribed_to_is_refused(room: Postroom) -> None:
    desk = room.client("desk")
    with pytest.raises(
        DefinitionUnknown, match=r"there is no space NYES \(postroom catalog lists everything\); did you mean NYSE"
    ):
        desk.subscribe("NYES")
    with pytest.raises(FlowInvalid, match="pattern:1"):
        desk.subscribe("NYSE", "[price: >")
    with pytest.raises(FlowInvalid, match="volume"):
        desk.subscribe("NYSE", "[volume: v > 1]")
    with pytest.raises(ArgumentInvalid, match="is a space of the graph"):
        room.client("Capital").subscribe("NYSE")
    with pytest.raises(ArgumentInvalid, match="is not a name"):
        room.client("a b").subscribe("NYSE")
    for verb in (desk.unsubscribe, desk.connect, desk.disconnect):
        with pytest.raises(DefinitionUnknown, match="subscription of desk"):
            verb()
    with pytest.raises(QueueUnknown):
        desk.receive()


def test_a_domain_may_say_who_reads(room: Postroom, load: Load) -> None:
    load(GRAPH.replace("domain trading", "domain trading allow auditor : subscribe"))
    with pytest.raises(NotAllowed, match="desk may not subscribe in the domain trading; allowed to: auditor"):
        room.client("desk").subscribe("NYSE")
    room.client("desk").subscribe("Rain")
    room.flows.add_principal("auditor", "pw")
    room.client("auditor", "pw").subscribe("NYSE")


def test_a_clients_space_is_its_own(room: Postroom, load: Load, run: Callable[..., int]) -> None:
    room.client("desk").subscribe("NYSE")
    with pytest.raises(ArgumentInvalid, match="desk is a client's own"):
        room.client("eve").subscribe("desk")
    with pytest.raises(NameTaken, match="a client"):
        load(GRAPH.replace("domain weather", "space desk : [issue: string, price: int] domain weather"))


def test_what_someone_else_has_disabled_or_added_is_not_the_clients(room: Postroom, load: Load) -> None:
    load(GRAPH.replace("domain trading", "domain trading allow operator : addArc, disableArc, enableArc"))
    room.flows.add_principal("operator", "pw")
    operator, eve = room.client("operator", "pw"), room.client("eve")
    eve.subscribe("NYSE")
    operator.publish("meta:trading", 'DisableArc: ["eve_NYSE"]')
    assert not eve.connect()[0].connected
    operator.publish("meta:trading", 'EnableArc: ["eve_NYSE"]')
    eve.disconnect()
    assert eve.connect()[0].connected
    operator.publish("meta:trading", 'AddArc: ["feed", "NYSE", "eve", Merge: []]')
    assert [each.arc for each in eve.subscriptions()] == ["eve_NYSE"]
    eve.unsubscribe()
    assert {arc.name for arc in room.flows.graph().arcs} == {"feed"}
    assert "eve" in {space.name for space in room.flows.graph().spaces}, "the operator's arc still leads there"


def test_a_durable_subscription_may_end_and_begin_again(room: Postroom, run: Callable[..., int]) -> None:
    desk = room.client("desk")
    desk.subscribe("NYSE", durable=True)
    desk.disconnect()
    room.publish("NYSE", '["old", 1]')
    run()
    desk.unsubscribe()
    desk.subscribe("NYSE", durable=True)
    room.publish("NYSE", '["new", 1]')
    run()
    assert [message.body for message in room.queues.info("desk")] == ['{"issue":"new","price":1}']


def test_only_an_arc_puts_events_aside(room: Postroom) -> None:
    room.client("desk").subscribe("NYSE", durable=True)
    with pytest.raises(EventRefused, match="only its arc puts events there"):
        room.send("arc:desk_NYSE", '["a", 1]', format="text")


@pytest.mark.parametrize("name", ["", "a\nb", "a\ud800", "x" * 101, 5])
def test_what_is_not_a_name_is_refused(room: Postroom, name: str) -> None:
    with pytest.raises(ArgumentInvalid, match=r"printable|is expected"):
        room.client(name)
    with pytest.raises(ArgumentInvalid, match=r"printable|is expected"):
        room.client("desk", broker=name or " \n")


def test_connecting_twice_is_harmless(room: Postroom) -> None:
    desk = room.client("desk")
    desk.subscribe("NYSE")
    version = room.flows.graph().version
    assert desk.connect()[0].connected
    assert room.flows.graph().version == version

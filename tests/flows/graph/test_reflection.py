"""The meta-space: what it tells of changes, what may be published there, and by whom."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.flows.conftest import Load

import postroom
from postroom.errors import (
    ArgumentInvalid,
    EventInvalid,
    EventRefused,
    FlowInvalid,
    NotAllowed,
    PrincipalRefused,
    ProgramInvalid,
)
from postroom.flows.graph.meta import META_TYPE
from postroom.flows.language.values import parse_event
from postroom.room import Postroom

GRAPH = """
domain trading
allow operator : addArc, deleteArc, addSpace, deleteSpace, disableArc, enableArc
allow service  : requestProcessed
allow *        : requestAddArc, requestDeleteArc
space NYSE : [issue: string, price: int]
space Big  : [issue: string, price: int]
arc big : NYSE -> Big select [price: p > 75]
"""
META = "meta:trading"


def told(room: Postroom, meta: str = META) -> list[tuple[str, str, Any]]:
    """Who, what, and its first value."""
    found = []
    for message in room.queues.info(meta):
        event = json.loads(message.body)
        assert parse_event(message.body, META_TYPE, meta), "an ordinary event of the formal type"
        ((action, said),) = event["action"].items()
        found.append((event["principal"], action, next(iter(said.values()))))
    return found


@pytest.fixture
def operator(room: Postroom, load: Load) -> Any:
    load(GRAPH)
    room.flows.add_principal("operator", "pw")
    return room.client("operator", "pw", broker="north")


def last(room: Postroom) -> Any:
    *_, message = room.queues.info(META)
    return json.loads(message.body)


# --- what is told ---


def test_a_load_is_told_with_its_principal_and_broker(room: Postroom, load: Load) -> None:
    load(GRAPH)
    me = json.loads(room.queues.info(META).messages[0].body)
    assert me["principal"] == room._parts.by.principal
    assert me["broker"] == room._parts.by.broker
    assert [each[1:] for each in told(room)] == [("AddSpace", "NYSE"), ("AddSpace", "Big"), ("AddArc", "big")]
    load(GRAPH)
    assert len(told(room)) == 3, "nothing has changed"


def test_an_arc_is_told_with_its_ends_and_its_label(room: Postroom, load: Load) -> None:
    load(GRAPH + "arc all : NYSE -> Big merge")
    arcs = [json.loads(message.body)["action"].get("AddArc") for message in room.queues.info(META)]
    assert [arc for arc in arcs if arc] == [
        {"arcName": "big", "srcNode": "NYSE", "destNode": "Big", "func": {"Select": {"pat": "[price: p > 75]"}}},
        {"arcName": "all", "srcNode": "NYSE", "destNode": "Big", "func": {"Merge": {}}},
    ]


def test_another_load_tells_what_went_what_came_and_what_is_another_now(room: Postroom, load: Load) -> None:
    load(GRAPH)
    load(
        """domain trading
        space NYSE : [issue: string, price: int] space Small : [issue: string, price: int]
        space Big : [issue: string, price: int]
        arc small : NYSE -> Small select [price: p < 5] arc big : NYSE -> Big select [price: p > 80]"""
    )
    assert [each[1:] for each in told(room)][3:] == [
        ("DeleteArc", "big"),
        ("AddSpace", "Small"),
        ("AddArc", "small"),
        ("AddArc", "big"),
    ]


def test_a_client_that_comes_leaves_and_goes_is_told(room: Postroom, load: Load) -> None:
    load(GRAPH)
    desk = room.client("desk", broker="north")
    desk.subscribe("NYSE")
    room.client("desk", broker="south").disconnect()
    desk.connect()
    desk.unsubscribe()
    assert told(room)[3:] == [
        ("desk", "AddSpace", "desk"),
        ("desk", "AddArc", "desk_NYSE"),
        ("desk", "DisableArc", "desk_NYSE"),
        ("desk", "EnableArc", "desk_NYSE"),
        ("desk", "DeleteArc", "desk_NYSE"),
        ("desk", "DeleteSpace", "desk"),
    ]
    brokers = [json.loads(message.body)["broker"] for message in room.queues.info(META)][3:]
    assert brokers == ["north", "north", "south", "north", "north", "north"]


def test_meta_events_flow_like_all_others(room: Postroom, load: Load, run: Callable[..., int]) -> None:
    load(GRAPH)
    room.client("watcher").subscribe(META, '[action: AddArc: [arcName: "desk_NYSE"]]')
    room.client("desk").subscribe("NYSE")
    run()
    (message,) = room.queues.info("watcher")
    assert json.loads(message.body)["action"]["AddArc"]["destNode"] == "desk"
    assert len(told(room)) == 3, "those from before someone subscribed have nowhere to go"
    passed = [next(iter(json.loads(message.body)["action"])) for message in room.queues.history(META)]
    assert passed == ["AddSpace", "AddArc", "AddSpace", "AddArc"], "a meta-space retains what has passed"


# --- what may be published ---


def test_an_authorised_event_changes_the_graph(room: Postroom, operator: Any, run: Callable[..., int]) -> None:
    operator.publish(META, {"AddSpace": {"nodeName": "Small : [issue: string, price: int] retain"}})
    arc = {"arcName": "small", "srcNode": "NYSE", "destNode": "Small", "func": {"Select": {"pat": "[price: p < 10]"}}}
    operator.publish(META, {"AddArc": arc})
    room.publish("NYSE", '["penny", 1]')
    run()
    assert json.loads(room.queues.info("Small").messages[0].body)["issue"] == "penny"
    operator.publish(META, 'DeleteArc: ["small"]')
    room.publish("NYSE", '["penny", 2]')
    run()
    assert len(room.queues.info("Small").messages) == 1
    operator.publish(META, 'DeleteSpace: ["Small"]')
    assert "Small" not in {space.name for space in room.flows.graph().spaces}
    assert [each for each in told(room) if each[0] == "operator"] == [
        ("operator", "AddSpace", "Small"),
        ("operator", "AddArc", "small"),
        ("operator", "DeleteArc", "small"),
        ("operator", "DeleteSpace", "Small"),
    ]
    assert last(room)["broker"] == "north"


def test_the_whole_event_may_be_written_and_its_principal_must_be_true(room: Postroom, operator: Any) -> None:
    operator.publish(META, '[principal: "operator", broker: "x", action: DisableArc: ["big"]]')
    assert last(room)["broker"] == "north", "the broker is where the client is, whatever it says"
    with pytest.raises(EventRefused, match="its principal is root_of_all, and operator publishes it"):
        operator.publish(META, {"principal": "root_of_all", "broker": "x", "action": {"EnableArc": {"arcName": "big"}}})


def test_a_space_without_a_type_gets_that_of_its_first_arc(
    room: Postroom, operator: Any, run: Callable[..., int]
) -> None:
    operator.publish(META, 'AddSpace: ["Prices"]')
    with pytest.raises(EventInvalid, match="the first arc to it will tell its type"):
        room.publish("Prices", "[1]")
    func = {"Transform": {"srcPat": "[price: p]", "resultPat": "[cents: 100 * p]"}}
    operator.publish(META, {"AddArc": {"arcName": "c", "srcNode": "NYSE", "destNode": "Prices", "func": func}})
    (space,) = [space for space in room.flows.graph().spaces if space.name == "Prices"]
    assert space.type == "[cents: int]"
    room.publish("NYSE", '["IBM", 3]')
    run()
    assert [message.body for message in room.queues.info("Prices")] == ['{"cents":300}']
    assert [action for _, action, _ in told(room)][-2:] == ["AddSpace", "AddArc"]


def test_an_unauthorised_event_is_refused_and_changes_nothing(room: Postroom, operator: Any) -> None:
    before = room.store.read(lambda tx: tx.journal.newest())
    stranger = room.client("stranger")
    with pytest.raises(NotAllowed, match="stranger may not disableArc in the domain trading; allowed to: operator"):
        stranger.publish(META, 'DisableArc: ["big"]')
    with pytest.raises(NotAllowed, match="allowed to: service"):
        operator.publish(META, 'RequestProcessed: [1, true, ""]')
    assert room.store.read(lambda tx: tx.journal.newest()) == before


def test_a_name_alone_proves_nothing(room: Postroom, operator: Any) -> None:
    with pytest.raises(PrincipalRefused, match="give its password"):
        room.client("operator")
    with pytest.raises(PrincipalRefused, match="there is no such principal, or the password is not its own"):
        room.client("operator", "guess")
    with pytest.raises(PrincipalRefused, match="there is no such principal, or the password is not its own"):
        room.client("nobody", "pw")
    room._parts.by = type(room._parts.by)("operator", "here")
    with pytest.raises(PrincipalRefused, match="this name is registered: give its password"):
        room.publish(META, 'RequestDeleteArc: [1, "big"]')
    impostor = postroom.open(room.url, actor="operator")
    with pytest.raises(PrincipalRefused, match="this name is registered: give its password"):
        impostor.send(META, 'RequestDeleteArc: [1, "big"]')
    impostor.close()


def test_a_token_is_as_good_as_a_password_and_is_shown_once(room: Postroom, operator: Any) -> None:
    token = room.flows.add_principal("service")
    assert token is not None
    assert len(token) >= 32
    room.client("service", token).publish(META, 'RequestProcessed: [7, false, "no"]')
    assert last(room)["action"] == {"RequestProcessed": {"id": 7, "success": False, "reason": "no"}}
    assert room.flows.principals() == ["operator", "service"]
    room.flows.remove_principal("service")
    with pytest.raises(PrincipalRefused):
        room.client("service", token)


def test_a_request_is_published_and_waits(room: Postroom, operator: Any) -> None:
    arc = {"arcName": "wish", "srcNode": "NYSE", "destNode": "Big", "func": {"Merge": {}}}
    room.client("anyone").publish(META, {"RequestAddArc": {"id": 1, **arc}})
    room.client("anyone").publish(META, 'RequestDeleteArc: [2, "big"]')
    assert {arc.name for arc in room.flows.graph().arcs} == {"big"}
    assert told(room)[-2:] == [("anyone", "RequestAddArc", 1), ("anyone", "RequestDeleteArc", 2)]
    bad = {"id": 3, **arc, "func": {"Select": {"pat": "[price: >"}}}
    with pytest.raises(FlowInvalid, match="pat:1"):
        room.client("anyone").publish(META, {"RequestAddArc": bad})


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ('DeleteArc: ["none"]', "there is no arc none"),
        ('DeleteSpace: ["none"]', "there is no space none to delete"),
        ('DeleteSpace: ["meta:trading"]', "there is no space meta:trading to delete"),
        ('EnableArc: ["big"]', "arc big is enabled already"),
        ('DeleteSpace: ["Big"]', "arc big uses space Big; delete it first"),
        ('AddSpace: ["Big"]', "there is a space Big already"),
        ('AddArc: ["big", "NYSE", "Big", Merge: []]', "there is an arc big already"),
        ('AddArc: ["a b", "NYSE", "Big", Merge: []]', "is not a name"),
        ('AddSpace: ["A space B"]', "is not NAME, nor NAME : TYPE"),
    ],
)
def test_an_event_that_asks_for_what_cannot_be_is_refused(room: Postroom, operator: Any, event: str, why: str) -> None:
    with pytest.raises(EventRefused, match=why):
        operator.publish(META, event)


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ('AddArc: ["new", "NYSE", "None", Merge: []]', "there is no space None"),
        ('AddArc: ["new", "NYSE", "NYSE", Merge: []]', "leads from NYSE to itself"),
        ('AddArc: ["back", "Big", "NYSE", Merge: []]', "closes a circle"),
        ('AddArc: ["new", "NYSE", "Big", Select: ["[none: any]"]]', "none"),
        ('AddSpace: ["X : nonsense"]', "nonsense is not a type"),
        ('AddArc: ["new", "NYSE", "meta:trading", Merge: []]', "nothing flows into meta:trading"),
    ],
)
def test_a_graph_that_would_be_wrong_is_refused(room: Postroom, operator: Any, event: str, why: str) -> None:
    with pytest.raises(FlowInvalid, match=why):
        operator.publish(META, event)


def test_an_event_of_another_type_is_refused(room: Postroom, operator: Any) -> None:
    with pytest.raises(EventInvalid):
        operator.publish(META, 'Explode: ["big"]')
    with pytest.raises(EventInvalid):
        operator.publish(META, {"DisableArc": {"arcName": 7}})


@pytest.mark.parametrize(
    ("said", "name"), [("Small retain", "Small"), ("S2 # a comment", "S2"), ("S3 : [n: int]", "S3")]
)
def test_a_new_space_is_told_by_its_name_alone(room: Postroom, operator: Any, said: str, name: str) -> None:
    operator.publish(META, {"AddSpace": {"nodeName": said}})
    assert last(room)["action"] == {"AddSpace": {"nodeName": name}}
    assert name in {space.name for space in room.flows.graph().spaces}


def test_what_a_refused_transaction_had_in_mind_is_forgotten(room: Postroom, load: Load, url: str) -> None:
    load("domain one allow * : addSpace domain two")
    with pytest.raises(NotAllowed):
        room.queues.distribute(["meta:one", "meta:two"], 'AddSpace: ["Ghost : [x: int]"]')
    with postroom.open(url) as other:
        other.client("c").publish("meta:one", 'AddSpace: ["Real : [x: int]"]')
    assert {space.name for space in room.flows.graph().spaces} == {"meta:one", "meta:two", "Real"}
    room.send("Real", "[1]")


def test_rules_cannot_publish_in_a_meta_space(room: Postroom, load: Load, tmp_path: Any) -> None:
    load(GRAPH)
    file = tmp_path / "sneak.demaq"
    file.write_text(
        "create queue q kind basic mode persistent create rule r for q if (/m) then do enqueue <x/> into meta:trading"
    )
    with pytest.raises(ProgramInvalid):
        room.load(file)


# --- two domains ---

TWO = """
domain east
allow a : addArc, deleteArc, disableArc, enableArc
space E : [n: int]
domain west
allow b : addArc, deleteArc, disableArc, enableArc
space W : [n: int]
"""
CROSS = {"AddArc": {"arcName": "x", "srcNode": "E", "destNode": "W", "func": {"Merge": {}}}}


@pytest.fixture
def both(room: Postroom, load: Load) -> tuple[Any, Any]:
    load(TWO)
    for name in ("a", "b"):
        room.flows.add_principal(name, "pw")
    return room.client("a", "pw"), room.client("b", "pw")


def test_an_arc_across_domains_is_there_when_both_have_published_it(
    room: Postroom, both: tuple[Any, Any], run: Callable[..., int]
) -> None:
    east, west = both
    east.publish("meta:east", CROSS)
    (arc,) = room.flows.graph().arcs
    assert arc.state == "waits for the domain west"
    room.publish("E", {"n": 1})
    run()
    assert room.queues.info("W").messages == []
    west.publish("meta:west", CROSS)
    (arc,) = room.flows.graph().arcs
    assert (arc.state, arc.domains) == ("enabled", ("east", "west"))
    room.publish("E", {"n": 2})
    run()
    assert [message.body for message in room.queues.info("W")] == ['{"n":2}']
    for meta, who in (("meta:east", "a"), ("meta:west", "b")):
        assert told(room, meta)[-1] == (who, "AddArc", "x")


def test_a_policy_counts_in_its_own_domain_alone(room: Postroom, both: tuple[Any, Any]) -> None:
    east, _ = both
    with pytest.raises(NotAllowed, match="a may not addArc in the domain west"):
        east.publish("meta:west", CROSS)


def test_two_domains_must_mean_the_same_arc(room: Postroom, both: tuple[Any, Any]) -> None:
    east, west = both
    east.publish("meta:east", CROSS)
    other = {"AddArc": {**CROSS["AddArc"], "func": {"Select": {"pat": "[n: n > 1]"}}}}
    with pytest.raises(FlowInvalid, match="is not what east says of it"):
        west.publish("meta:west", other)


def test_either_domain_may_disable_or_delete_and_both_are_told(room: Postroom, both: tuple[Any, Any]) -> None:
    east, west = both
    east.publish("meta:east", CROSS)
    west.publish("meta:west", CROSS)
    west.publish("meta:west", 'DisableArc: ["x"]')
    west.publish("meta:west", 'EnableArc: ["x"]')
    east.publish("meta:east", 'DeleteArc: ["x"]')
    assert room.flows.graph().arcs == ()
    for meta in ("meta:east", "meta:west"):
        assert [each[:2] for each in told(room, meta)][-3:] == [
            ("b", "DisableArc"),
            ("b", "EnableArc"),
            ("a", "DeleteArc"),
        ]


def test_an_arc_across_domains_is_enabled_again_when_both_have_enabled_it(
    room: Postroom, both: tuple[Any, Any]
) -> None:
    east, west = both
    east.publish("meta:east", CROSS)
    west.publish("meta:west", CROSS)

    def state() -> str:
        (arc,) = room.flows.graph().arcs
        return arc.state

    west.publish("meta:west", 'DisableArc: ["x"]')
    with pytest.raises(EventRefused, match="enabled already"):
        east.publish("meta:east", 'EnableArc: ["x"]')
    assert state() == "disabled", "it was the other domain that disabled it"
    east.publish("meta:east", 'DisableArc: ["x"]')
    west.publish("meta:west", 'EnableArc: ["x"]')
    assert state() == "disabled"
    assert [each[1] for each in told(room, "meta:east")][-2:] == ["DisableArc", "DisableArc"], "it flows no more yet"
    east.publish("meta:east", 'EnableArc: ["x"]')
    assert state() == "enabled"
    assert [told(room, meta)[-1][:2] for meta in ("meta:east", "meta:west")] == [("a", "EnableArc")] * 2


def test_names_of_arcs_are_per_domain(room: Postroom, load: Load, run: Callable[..., int]) -> None:
    load(
        """domain x allow * : disableArc, deleteArc space A : [n: int] space B : [n: int]
        arc big : A -> B select [n: > 5]
        domain y allow * : disableArc space C : [n: int] space D : [n: int]
        arc big : C -> D select [n: > 7]"""
    )
    for space in ("A", "C"):
        room.flows.publish_many(space, ["[6]", "[8]"])
    room.publish("meta:y", 'DisableArc: ["big"]')
    for space in ("A", "C"):
        room.publish(space, "[9]")
    run()
    assert [json.loads(each.body)["n"] for each in room.queues.info("B")] == [6, 8, 9]
    assert [json.loads(each.body)["n"] for each in room.queues.info("D")] == [8]
    assert [(arc.name, arc.domains, arc.state) for arc in room.flows.graph().arcs] == [
        ("big", ("x",), "enabled"),
        ("big", ("y",), "disabled"),
    ]
    with pytest.raises(ArgumentInvalid, match="x:big or y:big"):
        room.definitions.explain_arc("big")
    assert room.definitions.explain_arc("y:big").source == "C"
    room.publish("meta:x", 'DeleteArc: ["big"]')
    assert [arc.domains for arc in room.flows.graph().arcs] == [("y",)]


@pytest.mark.parametrize(
    "more",
    [
        "arc big : A -> B merge",
        "domain y space C : [n: int] arc big : A -> C merge domain x arc big : A -> C merge",
    ],
)
def test_a_name_is_there_once_in_a_domain(load: Load, more: str) -> None:
    with pytest.raises(FlowInvalid, match="name-twice"):
        load(f"domain x space A : [n: int] space B : [n: int] arc big : A -> B merge durable {more}")


DURABLE = """domain x allow * : disableArc, enableArc, deleteArc space A : [n: int] space B : [n: int]
    arc big : A -> B merge durable
    domain y allow * : disableArc, enableArc space C : [n: int] space D : [n: int]
    arc big : C -> D select [n: > 0] durable"""


def test_durable_arcs_of_one_name_in_two_domains_keep_each_its_own(
    room: Postroom, load: Load, run: Callable[..., int]
) -> None:
    def numbers(space: str) -> list[int]:
        return [json.loads(each.body)["n"] for each in room.queues.info(space)]

    def switch(action: str, *domains: str) -> None:
        for domain in domains:
            room.publish(f"meta:{domain}", f'{action}: ["big"]')

    load(DURABLE)
    switch("DisableArc", "x", "y")
    room.flows.publish_many("A", ["[1]", "[2]"])
    room.flows.publish_many("C", ["[7]", "[8]"])
    run()
    assert (numbers("arc:big"), numbers("arc:y:big")) == ([1, 2], [7, 8])
    assert [arc.kept for arc in room.flows.graph().arcs] == [2, 2]
    load(DURABLE)  # each has the queue that it had
    switch("EnableArc", "x")
    room.publish("A", "[3]")
    run()
    assert (numbers("B"), numbers("D"), numbers("arc:y:big")) == ([1, 2, 3], [], [7, 8])
    switch("DeleteArc", "x")  # also if the other is gone
    room.publish("C", "[9]")
    run()
    switch("EnableArc", "y")
    run()
    assert numbers("D") == [7, 8, 9]
    assert room.journal.verify().differences == ()


def test_an_arc_of_another_domain_is_none_of_its_business(room: Postroom, load: Load) -> None:
    load(TWO + "space W2 : [n: int] arc w : W -> W2 merge")
    room.flows.add_principal("a", "pw")
    with pytest.raises(EventRefused, match="arc w is in the domain west"):
        room.client("a", "pw").publish("meta:east", 'DisableArc: ["w"]')

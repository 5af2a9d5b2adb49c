"""What rules make: bodies that are checked, types that are kept, echoes that end, slices and what they cost."""

from __future__ import annotations

import time

import pytest
from tests.rules.conftest import Load

from postroom.engine.steps.effects import Arrival, Document, Enqueue, Granule
from postroom.errors import SlicingInUse
from postroom.limits import BODY_DEPTH_MAX, ECHO_PASSES_MAX, XML_ATTRIBUTES_MAX
from postroom.model.types import Field, Kind, MessageType
from postroom.rules.compilation.compiler import compiled
from postroom.rules.evaluation.evaluate import evaluate_chunk
from postroom.rules.language.definitions import Program
from postroom.rules.language.reader import parse

QUEUES = "".join(f"create queue {name} kind basic mode persistent\n" for name in ("a", "b", "out"))


def codes(load: Load, actions: str, body: str = "<x><y/><y/>text</x>") -> tuple[list[str], list[str]]:
    """The bodies that a rule makes, and the codes of errors."""
    room = load(f"{QUEUES}create rule r for a if (/x) then {actions}")
    room.send("a", body, format="xml")
    room.run_until_idle()
    errors = [each.body for each in room.queues.info("postroom-errors")]
    return [each.body for each in room.queues.info("out")], [each.split("<code>")[1].split("<")[0] for each in errors]


@pytest.mark.parametrize(
    "actions",
    [
        "typeswitch (/x/y) case $c as element()+ return do enqueue $c into out default return ()",
        "let $c := <one/> return typeswitch (/x/y) case $c as item()+ return do enqueue $c into out default return ()",
        "let $c := <one/> for $i in (1, 2) group by $g := 1 return do enqueue $c into out",
        "let $c := <one/> return for $c in (1) let $c := /x/y return do enqueue $c into out",
        "do enqueue /x/y into out",
        "do enqueue document { <a/>, <b/> } into out",
        'do enqueue document { <a/>, "text" } into out',
        "do enqueue parse-xml-fragment('<a/><b/>') into out",
        "do enqueue () into out",
    ],
)
def test_malformed_xml_made_inside_of_a_rule_is_an_error_of_the_rule(load: Load, actions: str) -> None:
    assert codes(load, actions) == ([], ["PR0001"])


@pytest.mark.parametrize(
    "content", ['comment {"x"}', 'processing-instruction p {"x"}', '"text", comment {"x"}', 'comment {"x"}, " "']
)
def test_an_xml_document_without_an_element_is_no_message(load: Load, content: str) -> None:
    assert codes(load, f"do enqueue document {{ {content} }} into out") == ([], ["PR0001"])


def test_a_document_that_is_only_text_is_a_message_of_text(load: Load) -> None:
    assert codes(load, 'do enqueue document { "text" } into out') == (["text"], [])


def test_what_is_too_deep_from_outside_is_too_deep_from_a_rule(load: Load) -> None:
    deep = "<x>" + "<y>" * (BODY_DEPTH_MAX - 1) + "</y>" * (BODY_DEPTH_MAX - 1) + "</x>"
    assert codes(load, "do enqueue <z>{/x}</z> into out", deep) == ([], ["xml-forbidden"])
    assert codes(load, "do enqueue <z>{/x/y}</z> into out", deep)[1] == []


def test_the_message_itself_keeps_its_type_and_what_is_made_of_it_has_none(load: Load) -> None:
    room = load(
        f"""{QUEUES}create rule r for a if (true()) then (
        do enqueue . into out, do enqueue qs:message() into out with k value "v", do enqueue / into b,
        let $m := qs:message() return do enqueue $m into b, do enqueue <order>{{/order/n}}</order> into out,
        do enqueue qs:queue()[1] into out)"""
    )
    room.definitions.define_type(MessageType("order", (Field("n", Kind.INT),)))
    room.send("a", {"n": 5}, type="order")
    room.run_until_idle()
    assert [(each.type, each.body) for each in room.queues.info("out")] == [
        ("order", "<order><n>5</n></order>"),
        ("order", "<order><n>5</n></order>"),
        (None, "<order><n>5</n></order>"),
        (None, "<order><n>5</n></order>"),
    ]
    assert [each.type for each in room.queues.info("b")] == ["order", "order"]


# --- echoes ------------------------------------------------------------------------------------------------------


def test_every_message_that_may_be_stored_can_be_read_by_rules(load: Load) -> None:
    """One that Java's parser would not take failed whoever looked at its queue."""
    room = load(f"{QUEUES}create rule r for a if (/x) then do enqueue <n>{{count(qs:queue('b')//*)}}</n> into out")
    attributes = " ".join(f'a{number}="1"' for number in range(XML_ATTRIBUTES_MAX))
    room.send("b", "<y>" * BODY_DEPTH_MAX + "</y>" * BODY_DEPTH_MAX, format="xml")
    room.send("b", f"<y {attributes}/>", format="xml")
    room.send("b", f"<{'y' * 2_000}/>", format="xml")
    for _ in range(2):
        room.send("a", "<x/>", format="xml")
        room.run_until_idle()
    assert [each.body for each in room.queues.info("out")] == [f"<n>{BODY_DEPTH_MAX + 2}</n>"] * 2


@pytest.mark.parametrize("target", ["wait", "other"])
def test_an_echo_into_an_echo_queue_ends_as_an_error(load: Load, target: str) -> None:
    room = load(
        f"{QUEUES}create queue wait kind echo mode persistent errorqueue b "
        "create queue other kind echo mode persistent errorqueue b"
    )
    room.send("wait", "<x/>", format="xml", properties={"target": target, "timeout": 0})
    for _ in range(3 * ECHO_PASSES_MAX):
        room.run_until_idle()
    (error,) = room.queues.info("b")
    assert "<code>PR0004</code>" in error.body
    assert f"the last target is the echo queue {target}" in error.body


# --- slices ------------------------------------------------------------------------------------------------------


def test_a_slice_by_connection_has_what_one_message_from_outside_led_to(load: Load) -> None:
    room = load("create queue nothing kind basic mode persistent")
    room.gateways.add("out", "fetched")
    load(
        """create queue gate kind incomingGateway mode persistent create queue work kind basic mode persistent
        create queue out kind outgoingGateway mode persistent create slicing talk on connection
        create rule begin for gate if (/x) then (do enqueue <w>1</w> into work, do enqueue <w>2</w> into work)
        create rule all for talk if (/w and count(qs:slice()/w) = 2)
        then do enqueue <done>{count(qs:slice())}</done> into out""",
        room,
    )
    first, second = (room.send("gate", f"<x>{number}</x>", format="xml").key for number in (1, 2))
    room.run_until_idle()
    found = list(room.queues.info("out"))
    connections = {room.show(key).properties["connection"] for key in (first, second)}
    assert {each.properties["connection"] for each in found} == connections
    assert len(connections) == 2
    assert sorted(each.body for each in found) == ["<done>3</done>"] * 2 + ["<done>4</done>"] * 2
    assert len(room.journal.slice("talk", str(room.show(first).properties["connection"]))) == 5


def sliced(by: str, type: str = "string") -> str:
    return f"""{QUEUES}create property k as xs:{type} queue a value string(/x/@k)
    create property p as xs:string queue a value string(/x/@p) create slicing s on {by}
    create rule r for s if (count(qs:slice()) = 2) then do enqueue <two/> into out"""


@pytest.mark.parametrize(("by", "type"), [("p", "string"), ("k", "integer")])
def test_a_slicing_does_not_change_what_it_slices_by_while_it_holds_messages(load: Load, by: str, type: str) -> None:
    room = load(sliced("k"))
    room.send("a", '<x k="1" p="2"/>', format="xml")
    room.run_until_idle()
    with pytest.raises(SlicingInUse, match="slicing s cannot change: its slice '1' has messages"):
        load(sliced(by, type), room)
    load(sliced("k"), room)
    load(sliced(by, type), room, drop=True)
    assert room.journal.slice("s", "1") == []
    room.send("a", '<x k="3" p="1"/>', format="xml")
    room.run_until_idle()
    assert len(room.journal.slice("s", "1" if by == "p" else "3")) == 1


def test_stored_messages_stay_as_they_entered_when_a_property_or_slicing_is_added(load: Load) -> None:
    room = load(QUEUES)
    key = room.send("a", '<x k="1" p="2"/>', format="xml").key
    load(sliced("k"), room)
    assert "k" not in room.show(key).properties
    assert room.journal.slice("s", "1") == []
    later = room.send("a", '<x k="1" p="2"/>', format="xml").key
    assert [each.key for each in room.journal.slice("s", "1")] == [later]


def hot(count: int) -> float:
    """The seconds of processor that a slice takes in which every message adds one."""
    program = f"""{QUEUES}create property k as xs:string queue a, b value string(/*/@k) create slicing s on k
    create rule r for s if (/x) then do enqueue <y k="1">{{count(qs:slice())}}</y> into b"""
    plan = compiled(Program(parse(program, "f.demaq")), 1, "m")
    granule = Granule("slice", "s", "1")
    bodies = [f'<x k="1">{number}</x>' for number in range(count)]
    base = {granule: [Document(100_000 + each, "xml", None, body, each) for each, body in enumerate(bodies)]}
    arrivals = [
        Arrival(each, "a", 100_000 + each, "xml", None, body, '{"k":"1"}', 0, None, ((granule,),))
        for each, body in enumerate(bodies)
    ]
    began = time.process_time()
    found, unsettled = evaluate_chunk(plan, arrivals, base)
    took = time.process_time() - began
    assert not unsettled
    made = [each for order in range(count) for each in found[order] if isinstance(each, Enqueue)]
    assert [each.body for each in made] == [f'<y k="1">{count + number}</y>' for number in range(count)]
    return took


def test_a_hot_slice_costs_about_as_much_as_it_has_messages() -> None:
    hot(50)
    few, many = hot(200), hot(800)
    assert many < 10 * few + 0.5
    assert many < 10

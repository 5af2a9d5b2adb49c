"""Messages that were not made for a graph: XML and forms enter a space as the tuple of their fields."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.test_views import FIELD_TEXT

from postroom import Field, Format, Kind, MessageType
from postroom.engine.steps.effects import Document
from postroom.errors import BodyMismatch, EventInvalid, PostroomError
from postroom.flows.conversion import _json, parse_elements, parse_typed
from postroom.flows.language.types import parse as parse_type
from postroom.flows.language.values import canonical, fitted
from postroom.model.body import json_text
from postroom.model.key import key_text
from postroom.model.message import Draft
from postroom.model.types import FieldValue, plain
from postroom.model.views import as_lines, as_xml, record
from postroom.room import Postroom
from postroom.rules.compilation.plan import Plan
from postroom.rules.evaluation.saxon_format import element

from .conftest import Load

GRAPH = """\
domain claims
space Intake : [Claimant: string, Amount: decimal, Loss_Date: date, Urgent: boolean, Share: float, Items: {string}]
space Large : [Claimant: string, Amount: decimal, Loss_Date: date, Urgent: boolean, Share: float, Items: {string}]
space Words : string
arc large : Intake -> Large select [Amount: a > 100]
"""
CLAIM = MessageType(
    "CLAIM",
    (
        Field("Claimant", required=True),
        Field("Amount", Kind.DECIMAL),
        Field("Loss Date", Kind.DATE),
        Field("Urgent", Kind.BOOLEAN),
        Field("Share", Kind.FLOAT),
        Field("Items", many=True),
        Field("KEY", Kind.KEY),
    ),
)
EVENT = {
    "Claimant": "A & <b>",
    "Amount": "120.50",
    "Loss_Date": "2026-11-30",
    "Urgent": True,
    "Share": 0.25,
    "Items": ["door", "roof"],
}
XML = (
    "<CLAIM><Claimant>A &amp; &lt;b&gt;</Claimant><Amount>120.50</Amount><Loss_Date>2026-11-30</Loss_Date>"
    "<Urgent>true</Urgent><Share>0.25</Share><Items>roof</Items><Items>door</Items></CLAIM>"
)
LINES = (
    "Claimant: A & <b>\nAmount: 120.50\nLoss Date: 2026-11-30\nUrgent: true\nShare: 0.25\n"
    "Items: roof\nItems: door\nKEY: 00004.00001\n"
)
JSON = {
    **{name: EVENT[name] for name in ("Claimant", "Urgent", "Share", "Items")},
    "Amount": 120.5,
    "Loss Date": "2026-11-30",
    "KEY": "00004.00001",
}
LENSES: list[tuple[Any, dict[str, str]]] = [
    (json.dumps(EVENT), {}),
    (XML, {"format": "xml"}),
    (XML, {"format": "xml", "type": "CLAIM"}),
    (LINES, {"type": "CLAIM"}),
    (json.dumps(JSON).replace("120.5", "120.50"), {"type": "CLAIM", "format": "json"}),
]


def test_every_lens_shows_the_same_event(room: Postroom, load: Load, run: Callable[..., int]) -> None:
    room.definitions.define_type(CLAIM)
    load(GRAPH)
    for body, options in LENSES:
        room.send("Intake", body, **options)  # type: ignore[arg-type]
    bodies = [json.loads(message.body) for message in room.queues.info("Intake")]
    assert bodies == [EVENT] * len(LENSES)
    assert {(message.type, message.format) for message in room.queues.info("Intake")} == {(None, "json")}
    run()
    assert [json.loads(message.body) for message in room.queues.info("Large")] == bodies


@pytest.mark.parametrize(
    ("body", "options", "what"),
    [
        ("<c><Amount>1</Amount></c>", {"format": "xml"}, "the field Claimant is missing"),
        (XML.replace("<Urgent>", "<Colour>red</Colour><Urgent>"), {"format": "xml"}, "there is no field Colour"),
        (XML.replace("<Urgent>", "<Amount>2</Amount><Urgent>"), {"format": "xml"}, "Amount is there twice"),
        (XML.replace("120.50", "1_000"), {"format": "xml"}, "Amount: a value of type decimal is wanted"),
        (XML.replace("true", "yes"), {"format": "xml"}, "Urgent: a value of type boolean is wanted"),
        (XML.replace("<CLAIM>", "<CLAIM a='1'>"), {"format": "xml"}, "more than the elements"),
        (XML.replace("true", "<b/>"), {"format": "xml"}, "more than text"),
        ("Claimant: Ann", {"type": "CLAIM"}, "the field Amount is missing"),
    ],
)
def test_what_does_not_fit_is_refused(
    room: Postroom, load: Load, body: str, options: dict[str, str], what: str
) -> None:
    room.definitions.define_type(CLAIM)
    load(GRAPH)
    with pytest.raises((EventInvalid, BodyMismatch), match=what):
        room.send("Intake", body, **options)  # type: ignore[arg-type]
    assert list(room.queues.info("Intake")) == []


def test_only_a_tuple_has_fields(room: Postroom, load: Load) -> None:
    load(GRAPH)
    with pytest.raises(EventInvalid, match="only a tuple has fields"):
        room.send("Words", "<w>a</w>", format="xml")


def test_a_rule_sends_xml_into_a_space_and_what_does_not_fit_is_an_error(
    room: Postroom, load: Load, run: Callable[..., int]
) -> None:
    room.definitions.define_type(CLAIM)
    load(GRAPH)
    load(
        "create queue raw kind basic mode persistent\n"
        "create rule in for raw if (/CLAIM) then do enqueue <c>{/CLAIM/*[not(self::KEY)]}</c> into Intake\n",
        "rules.demaq",
    )
    room.send("raw", LINES, type="CLAIM")
    room.send("raw", "Claimant: Bob", type="CLAIM")
    run()
    assert [json.loads(message.body) for message in room.queues.info("Large")] == [EVENT]
    (error,) = room.queues.info("postroom-errors")
    assert "the field Amount is missing" in error.body


#: A kind of fields, the type that a space has for it, and the values that both can hold.
KINDS: dict[Kind, tuple[str, st.SearchStrategy[Any]]] = {
    Kind.STRING: ("string", FIELD_TEXT.filter(bool)),
    Kind.INT: ("int", st.integers(-(2**63), 2**63 - 1)),
    Kind.DECIMAL: ("decimal", st.decimals(-(10**19), 10**19, places=6)),
    Kind.FLOAT: ("float", st.floats(-1e9, 1e9)),
    Kind.BOOLEAN: ("boolean", st.booleans()),
    Kind.DATE: ("date", st.dates()),
    Kind.TIME: ("string", st.times()),
    Kind.TIMESTAMP: ("timestamp", st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1))),
    Kind.KEY: ("atom", st.integers(0, 10**12).map(key_text)),
}


@st.composite
def claims(draw: st.DrawFn) -> tuple[MessageType, str, dict[str, FieldValue]]:
    """A type, the space for it, and a message."""
    fields, columns, values = [], [], dict[str, FieldValue]()
    for number in range(draw(st.integers(1, 5))):
        kind, many = draw(st.sampled_from(Kind)), draw(st.booleans())
        name, (column, some) = f"Field {number}", KINDS[kind]
        fields.append(Field(name, kind, many))
        columns.append(f"Field_{number}: {f'({column})' if many else column}")
        values[name] = tuple(draw(st.lists(some, min_size=1, max_size=3))) if many else draw(some)
    return MessageType("CLAIM", tuple(fields)), f"[{', '.join(columns)}]", values


@settings(deadline=None, max_examples=200)
@given(claims())
def test_all_lenses_agree_on_the_same_message(drawn: tuple[MessageType, str, dict[str, FieldValue]]) -> None:
    """Lines, JSON, XML with and without its type: one event, and back from it the same record and the same XML."""
    type, columns, values = drawn
    space = parse_type(columns)
    xml = as_xml(values, type)
    bodies = {
        Format.TEXT: "\n".join(as_lines(values)),
        Format.JSON: json_text({name: plain(value) for name, value in values.items()}),
        Format.XML: xml,
    }
    events = {canonical(parse_elements(xml, space, "s"), space)}
    plan = Plan(1, "m", types={"CLAIM": type})
    for format, body in bodies.items():
        events.add(canonical(parse_typed(Draft(body, format.value, "CLAIM", "{}"), type, space, "s"), space))
        assert element(Document(1, format.value, "CLAIM", body), plan) == f"<d>{xml}</d>"
    (event,) = events
    again = record(event, Format.JSON, type)
    assert (
        canonical(fitted({each.element: _json(again[each.name]) for each in type.fields}, space, "s"), space) == event
    )


def test_a_list_without_elements_is_empty_and_a_number_is_exact() -> None:
    type = parse_type("[n: int, some: (int)]")
    assert parse_elements("<x><n> 12 </n></x>", type, "s") == (12, ())
    assert parse_elements("<x><n>1000</n><some>2</some><some>1</some></x>", type, "s") == (1000, (2, 1))
    with pytest.raises(PostroomError, match="64 bits"):
        parse_elements(f"<x><n>1{'0' * 30}</n></x>", type, "s")
    with pytest.raises(PostroomError, match="a value of type int is wanted"):  # nor is it one to a rule or a form
        parse_elements("<x><n>1e3</n></x>", type, "s")

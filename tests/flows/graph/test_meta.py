"""Events of the meta-space: what is written of an action is read as the same."""

from __future__ import annotations

import json

import pytest

from postroom.errors import EventInvalid, FlowInvalid
from postroom.flows.graph.by import By
from postroom.flows.graph.meta import Action, arc_of, arc_said, body_of, read
from postroom.flows.language.definitions import Arc
from postroom.flows.language.reader import parse
from postroom.model.definitions import Position

ARCS = [
    "merge",
    'select [issue: "IBM", price: p > 75]',
    "transform [price: p] => [capital: p * 2]",
    "transform [issue: i] join names [issue: i, name: n] => [name: n]",
]
HERE = Position("event", 1)


@pytest.mark.parametrize("does", ARCS)
def test_an_arc_is_told_and_read_as_the_same(does: str) -> None:
    arc = parse(f"domain d arc a : A -> B {does}", "f")[1]
    assert isinstance(arc, Arc)
    body = body_of(Action("addArc", arc_said(arc)), By("ann", "here"))
    principal, action = read(body, "meta:d")
    assert (principal, action.name) == ("ann", "addArc")
    assert str(arc_of(action.said, "d", HERE)) == str(arc)


def test_an_event_says_who_did_what_and_where() -> None:
    said = json.loads(body_of(Action("disableArc", {"arcName": "a"}), By("ann", "here")))
    assert said == {"principal": "ann", "broker": "here", "action": {"DisableArc": {"arcName": "a"}}}


def test_an_action_alone_names_no_principal() -> None:
    assert read('{"DeleteSpace": {"nodeName": "A"}}', "meta:d") == (None, Action("deleteSpace", {"nodeName": "A"}))
    assert read('DeleteArc: ["a"]', "meta:d") == (None, Action("deleteArc", {"arcName": "a"}))


@pytest.mark.parametrize("text", ["", "Unknown: [1]", '{"AddSpace": {}}', '["ann", "here"]', "DisableArc: [1]"])
def test_what_is_none_of_the_nine_is_refused(text: str) -> None:
    with pytest.raises(EventInvalid, match="meta:d"):
        read(text, "meta:d")


def test_an_arc_whose_pattern_is_not_in_the_language_is_refused() -> None:
    _, action = read('AddArc: ["a", "A", "B", Select: ["[x"]]', "meta:d")
    with pytest.raises(FlowInvalid):
        arc_of(action.said, "d", HERE)

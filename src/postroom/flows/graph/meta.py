"""The meta-space: its type, and the nine events that report or cause a change of the graph."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from postroom.flows.graph.by import By
from postroom.flows.language import patterns
from postroom.flows.language.definitions import Arc, Does, Merge, Select, Stateful, Transform
from postroom.flows.language.reader import read_collapse, read_transform
from postroom.flows.language.types import Tuple, Type, Union, parse
from postroom.flows.language.values import Tagged, canonical, parse_event
from postroom.flows.language.words import Words
from postroom.model.definitions import Position
from postroom.model.words import END

_ARC = """
arcName: string, srcNode: string, destNode: string, func: union [
    Transform: [srcPat: string, resultPat: string], Select: [pat: string], Merge: []]
"""
#: As the text prints it, with the brackets that it lacks behind the two unions of arcs.
META_TYPE: Type = parse(
    f"""
[principal: string, broker: string, action: union [
    AddArc: [{_ARC}],
    DeleteArc: [arcName: string],
    AddSpace: [nodeName: string],
    DeleteSpace: [nodeName: string],
    RequestAddArc: [id: int, {_ARC}],
    RequestDeleteArc: [id: int, arcName: string],
    RequestProcessed: [id: int, success: boolean, reason: string],
    DisableArc: [arcName: string],
    EnableArc: [arcName: string]]]
""",
    "meta-space",
)
assert isinstance(META_TYPE, Tuple)
ACTION_TYPE = META_TYPE.fields[2].type
assert isinstance(ACTION_TYPE, Union)


@dataclass(frozen=True, slots=True)
class Action:
    """One of the nine actions: its name as in a policy, and its fields by name."""

    name: str
    said: Mapping[str, Any]

    @property
    def tag(self) -> str:
        return self.name[0].upper() + self.name[1:]


def body_of(action: Action, by: By) -> str:
    """The event of an action."""
    assert isinstance(ACTION_TYPE, Union)
    inside = ACTION_TYPE.of(action.tag)
    assert isinstance(inside, Tuple)
    values = tuple(action.said[str(field.name)] for field in inside.fields)
    return canonical((by.principal, by.broker, Tagged(action.tag, values)), META_TYPE)


_WHOLE = re.compile(r'\s*(\[|\{\s*"(principal|broker|action)")')


def read(text: str, space: str) -> tuple[str | None, Action]:
    """The action that someone publishes, and the principal if the event names one.

    The text is a whole event or only the action.
    """
    if _WHOLE.match(text):
        principal, _, action = parse_event(text, META_TYPE, space)
        return principal, _action(action)
    return None, _action(parse_event(text, ACTION_TYPE, space))


def _action(tagged: Tagged) -> Action:
    assert isinstance(ACTION_TYPE, Union)
    inside = ACTION_TYPE.of(tagged.tag)
    assert isinstance(inside, Tuple)
    fields = zip(inside.fields, tagged.value, strict=True)
    return Action(tagged.tag[0].lower() + tagged.tag[1:], {str(field.name): value for field, value in fields})


# --- arcs in events -----------------------------------------------------------------------------------------------


def arc_said(arc: Arc) -> dict[str, Any]:
    """An arc as addArc describes it. Further parts of a join or an arc with state are in the pattern."""
    does = arc.does
    func = Tagged("Merge", ())
    if isinstance(does, Select):
        func = Tagged("Select", (str(does.pattern),))
    elif isinstance(does, Transform):
        join = f" {does.join}" if does.join else ""
        func = Tagged("Transform", (f"{does.pattern}{join}", str(does.result)))
    elif isinstance(does, Stateful):
        func = Tagged("Transform", (does.begins, str(does.result)))
    return {"arcName": arc.name, "srcNode": arc.source, "destNode": arc.target, "func": func}


def arc_of(fields: Mapping[str, Any], domain: str, position: Position) -> Arc:
    """The arc that an event describes; raises for a pattern with a syntax error."""
    func = fields["func"]
    does: Does = Merge()
    if func.tag == "Select":
        does = Select(patterns.parse_pattern(func.value[0], "pat"))
    elif func.tag == "Transform":
        words = Words(func.value[0], "srcPat")
        begun: Transform | Stateful
        if words.is_name("collapse") and words.after_next.kind != END and words.after_next.text not in ("join", "at"):
            words.take()
            begun = read_collapse(words)
        else:
            begun = read_transform(words)
        words.end()
        does = replace(begun, result=patterns.parse_expression(func.value[1], "resultPat"))
    return Arc(fields["arcName"], domain, fields["srcNode"], fields["destNode"], does, False, position)

"""The meta-space: its type, and the nine events that tell or cause a change of the graph."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from postroom.flows.language import patterns
from postroom.flows.language.definitions import Arc, Join, Merge, Select, Transform
from postroom.flows.language.types import Tuple, Type, Union, parse
from postroom.flows.language.values import Tagged, canonical, parse_event
from postroom.flows.language.words import Words
from postroom.model.definitions import Position

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
class By:
    """On whose behalf something is done, and at which broker. ``proven``: they have shown their password."""

    principal: str
    broker: str
    proven: bool = False


@dataclass(frozen=True, slots=True)
class Action:
    """One of the nine: its name as in a policy, and what it says by the names of its fields."""

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
    said = tuple(action.said[str(each.name)] for each in inside.fields)
    return canonical((by.principal, by.broker, Tagged(action.tag, said)), META_TYPE)


_WHOLE = re.compile(r'\s*(\[|\{\s*"(principal|broker|action)")')


def read(text: str, space: str) -> tuple[str | None, Action]:
    """The action that someone wants to publish, and the principal if one is named: the whole event, or the action."""
    if _WHOLE.match(text):
        principal, _, action = parse_event(text, META_TYPE, space)
        return principal, _action(action)
    return None, _action(parse_event(text, ACTION_TYPE, space))


def _action(tagged: Tagged) -> Action:
    assert isinstance(ACTION_TYPE, Union)
    inside = ACTION_TYPE.of(tagged.tag)
    assert isinstance(inside, Tuple)
    fields = zip(inside.fields, tagged.value, strict=True)
    return Action(tagged.tag[0].lower() + tagged.tag[1:], {str(each.name): value for each, value in fields})


# --- arcs in events -----------------------------------------------------------------------------------------------


def arc_said(arc: Arc) -> dict[str, Any]:
    """An arc as addArc tells it. The row that a join transform needs stands behind its pattern."""
    does = arc.does
    func = Tagged("Merge", ())
    if isinstance(does, Select):
        func = Tagged("Select", (str(does.pattern),))
    elif isinstance(does, Transform):
        join = f" {does.join}" if does.join else ""
        func = Tagged("Transform", (f"{does.pattern}{join}", str(does.result)))
    return {"arcName": arc.name, "srcNode": arc.source, "destNode": arc.target, "func": func}


def arc_of(said: Mapping[str, Any], domain: str, position: Position) -> Arc:
    """The arc that an event tells of; raises where its patterns are not in the language."""
    func = said["func"]
    does: Select | Transform | Merge = Merge()
    if func.tag == "Select":
        does = Select(patterns.parse_pattern(func.value[0], "pat"))
    elif func.tag == "Transform":
        words = Words(func.value[0], "srcPat")
        pattern = patterns.read_pattern(words)
        join = None
        if words.is_name("join"):
            words.take()
            join = Join(words.name("the name of a table").text, patterns.read_pattern(words))
        words.end()
        does = Transform(pattern, patterns.parse_expression(func.value[1], "resultPat"), join)
    return Arc(said["arcName"], domain, said["srcNode"], said["destNode"], does, False, position)

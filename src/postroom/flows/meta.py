"""The type of a meta-space: the nine events that change a graph, each with who did it and where."""

from __future__ import annotations

from postroom.flows.types import Type, parse

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

"""Publishing in a meta-space: an authorised event changes the graph, any other is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from postroom.errors import EventRefused
from postroom.flows.graph import policy
from postroom.flows.graph.by import By
from postroom.flows.graph.changes import changed, with_statements, without
from postroom.flows.graph.meta import Action, arc_of, body_of, read
from postroom.flows.graph.versions import EVENT, Kept, RoomGraph, key_of, meta_of
from postroom.flows.language.definitions import Space
from postroom.flows.language.reader import parse
from postroom.flows.language.words import WORD
from postroom.model.definitions import Position
from postroom.store.kernel.transaction import Transaction


def published(tx: Transaction, room_graph: RoomGraph, domain: str, text: str, by: By) -> tuple[str, RoomGraph]:
    """Do what an event asks for; returns the event as it is stored in the meta-space, and the new graph."""
    space = meta_of(domain)
    principal, action = read(text, space)
    if principal is not None and principal != by.principal:
        raise EventRefused(space=space, why=f"its principal is {principal}, and {by.principal} publishes it")
    policy.require(room_graph.graph, domain, by, action.name)
    wishes = _Wanted(room_graph, domain, by)
    if action.name == "addSpace":
        made = wishes.space(action.said["nodeName"])
        action = replace(action, said={"nodeName": made.name})
        wanted: dict[str, Kept] | None = with_statements(room_graph, [Kept(made, EVENT)])
    else:
        wanted = wishes.after(action)
    if wanted is not None:
        room_graph = changed(tx, room_graph, wanted, by, {"event": action.name, **_named(action)}, told_in=domain)
    return body_of(action, by), room_graph


def _named(action: Action) -> dict[str, str]:
    return {key: str(action.said[key]) for key in ("arcName", "nodeName") if key in action.said}


class _Wanted:
    """The statements after an action; None if it changes nothing itself."""

    def __init__(self, room_graph: RoomGraph, domain: str, by: By) -> None:
        self._room_graph = room_graph
        self._domain = domain
        self._by = by
        self._position = Position(f"{meta_of(domain)} by {by.principal}", 1)

    def after(self, action: Action) -> dict[str, Kept] | None:
        fields = action.said
        if action.name == "addArc":
            return self._add_arc(fields)
        if action.name == "deleteSpace":
            self._check_space(fields["nodeName"])
            return without(self._room_graph, [f"space {fields['nodeName']}"])
        if action.name == "deleteArc":
            return without(self._room_graph, self._halves(fields["arcName"]))
        if action.name in ("disableArc", "enableArc"):
            return self._switch(fields["arcName"], disabled=action.name == "disableArc")
        if action.name == "requestAddArc":
            arc_of(fields, self._domain, self._position)  # what is not in the language need not be considered
        return None

    def _add_arc(self, fields: Mapping[str, Any]) -> dict[str, Kept]:
        arc = arc_of(fields, self._domain, self._position)
        if not WORD.match(arc.name):
            raise self._refused(f"{arc.name!r} is not a name: letters, digits and _")
        if key_of(arc) in self._room_graph.kept:
            raise self._refused(f"there is an arc {arc.name} already")
        others = [self._room_graph.kept[key] for key in self._room_graph.halves(arc)]
        durable = any(getattr(other.statement, "durable", False) for other in others)
        return with_statements(self._room_graph, [Kept(replace(arc, durable=durable), EVENT)])

    def space(self, node: str) -> Space:
        """A space from its name, or from its declaration as in a file: name, type, whether it retains."""
        statements = parse(f"domain {self._domain}\nspace {node}", meta_of(self._domain))
        if len(statements) != 2 or not isinstance(statements[1], Space):
            raise self._refused(f"{node!r} is not NAME, nor NAME : TYPE")
        space = replace(statements[1], position=self._position)
        if space.name in self._room_graph.graph.spaces:
            raise self._refused(f"there is a space {space.name} already")
        return space

    def _check_space(self, name: str) -> None:
        space = self._room_graph.graph.spaces.get(name)
        if space is None or f"space {name}" not in self._room_graph.kept:
            raise self._refused(f"there is no space {name} to delete")
        if space.domain != self._domain:
            raise self._refused(f"space {name} is in the domain {space.domain}")
        used = [arc.name for arc, *_ in self._room_graph.graph.arcs.values() if name in (arc.source, arc.target)]
        if used:
            raise self._refused(f"arc {used[0]} uses space {name}; delete it first")

    def _halves(self, name: str) -> list[str]:
        """The halves of an arc that belong to this domain."""
        graph = self._room_graph.graph
        arcs = graph.of_name(name, self._domain)
        if not arcs:
            others = {domain for key in graph.of_name(name) for domain in key.split(":")[:-1]}
            why = f"arc {name} is in the domain {' and '.join(sorted(others))}" if others else f"there is no arc {name}"
            raise self._refused(why)
        return self._room_graph.halves(graph.arcs[arcs[0]][0])

    def _switch(self, name: str, *, disabled: bool) -> dict[str, Kept]:
        """Each domain switches its own half: an arc across domains flows while both halves are enabled."""
        kept = self._room_graph.kept
        own = next((key for key in self._halves(name) if key == f"arc {name} in {self._domain}"), None)
        if own is None:
            raise self._refused(f"{self._domain} has not added arc {name}")
        if bool(kept[own].disabled) == disabled:
            raise self._refused(f"arc {name} is {'disabled' if disabled else 'enabled'} already")
        return {**kept, own: replace(kept[own], disabled=self._by.principal if disabled else "")}

    def _refused(self, why: str) -> EventRefused:
        return EventRefused(space=meta_of(self._domain), why=why)

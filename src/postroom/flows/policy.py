"""Who may do what in a domain. Each domain says so for itself, and no other one does."""

from __future__ import annotations

from postroom.errors import NotAllowed
from postroom.flows.definitions import EVERYONE, SUBSCRIBE
from postroom.flows.graph import Graph
from postroom.flows.meta import By


def allowed(graph: Graph, domain: str, by: By, action: str) -> bool:
    """What is allowed to a principal by name is for whoever has proven to be it; the rest is for everyone."""
    mine = [each for each in graph.policy if each.domain == domain and action in each.actions]
    if action == SUBSCRIBE and not mine:
        return True  # reading is open until a domain says who reads
    return any(each.principal == EVERYONE or (by.proven and each.principal == by.principal) for each in mine)


def require(graph: Graph, domain: str, by: By, action: str) -> None:
    if allowed(graph, domain, by, action):
        return
    names = sorted({each.principal for each in graph.policy if each.domain == domain and action in each.actions})
    if by.principal in names:
        advice = f"say who you are: --as {by.principal}, with the password"
    elif names:
        advice = f"allowed to: {', '.join(names)}"
    else:
        advice = f"nobody is; a policy says: allow NAME : {action}"
    raise NotAllowed(principal=by.principal, action=action, domain=domain, advice=advice)

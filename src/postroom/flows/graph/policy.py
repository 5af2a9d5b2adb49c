"""Who may do what in a domain. Each domain has its own policy."""

from __future__ import annotations

from postroom.errors import NotAllowed, PrincipalRefused
from postroom.flows.graph.by import By
from postroom.flows.graph.graph import Graph
from postroom.flows.language.definitions import EVERYONE, SUBSCRIBE
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.registry import KIND


def allowed(graph: Graph, domain: str, by: By, action: str) -> bool:
    """Whether an action is allowed. Rights of a named principal require its password; the others are for everyone."""
    mine = [allow for allow in graph.policy if allow.domain == domain and action in allow.actions]
    if action == SUBSCRIBE and not mine:
        return True  # reading is open until a domain says who reads
    return any(allow.principal == EVERYONE or (by.proven and allow.principal == by.principal) for allow in mine)


def prove(tx: Transaction, by: By) -> None:
    """Raise unless a principal whose name is registered has given its password."""
    if not by.proven and tx.principals.secret(KIND, by.principal) is not None:
        raise PrincipalRefused(principal=by.principal, why="this name is registered: give its password")


def require(graph: Graph, domain: str, by: By, action: str) -> None:
    if allowed(graph, domain, by, action):
        return
    names = sorted({allow.principal for allow in graph.policy if allow.domain == domain and action in allow.actions})
    if names:
        advice = f"allowed to: {', '.join(names)}"
    else:
        advice = f"nobody is; a policy says: allow NAME : {action}"
    raise NotAllowed(principal=by.principal, action=action, domain=domain, advice=advice)

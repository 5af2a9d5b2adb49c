"""Policies: what a domain allows to whom, and that a name must be proven."""

from __future__ import annotations

from pathlib import Path

import pytest

import postroom
from postroom.errors import NotAllowed, PrincipalRefused
from postroom.flows.graph.by import By
from postroom.flows.graph.graph import Graph
from postroom.flows.graph.policy import allowed, prove, require
from postroom.flows.language.reader import parse

GRAPH = Graph.of(
    parse("domain d allow * : requestAddArc allow op : addArc, subscribe allow Ann : addArc domain e", "f.flow")
)
OPERATOR = By("op", "here", proven=True)


@pytest.mark.parametrize(
    ("domain", "by", "action", "may"),
    [
        ("d", By("anyone", "here"), "requestAddArc", True),
        ("d", OPERATOR, "addArc", True),
        ("d", By("op", "here"), "addArc", False),
        ("d", By("other", "here", proven=True), "addArc", False),
        ("d", OPERATOR, "deleteArc", False),
        ("e", OPERATOR, "addArc", False),
        ("d", By("anyone", "here"), "subscribe", False),
        ("e", By("anyone", "here"), "subscribe", True),
    ],
)
def test_a_domain_allows_what_it_says_to_whom_it_says(domain: str, by: By, action: str, may: bool) -> None:
    assert allowed(GRAPH, domain, by, action) is may
    if may:
        require(GRAPH, domain, by, action)


def test_a_refusal_says_who_may() -> None:
    with pytest.raises(NotAllowed, match="allowed to: Ann, op"):
        require(GRAPH, "d", By("eve", "here"), "addArc")
    with pytest.raises(NotAllowed, match="nobody is; a policy says: allow NAME : deleteArc"):
        require(GRAPH, "d", OPERATOR, "deleteArc")


def test_a_registered_name_is_proven_by_its_password(tmp_path: Path) -> None:
    with postroom.open(tmp_path / "room.db") as room:
        room.flows.add_principal("op", "pw")
        room.store.read(lambda tx: prove(tx, OPERATOR))
        room.store.read(lambda tx: prove(tx, By("free", "here")))
        with pytest.raises(PrincipalRefused, match="this name is registered"):
            room.store.read(lambda tx: prove(tx, By("op", "here")))

"""The properties of messages of a sphere; ``tests/spheres`` has what becomes of them."""

from __future__ import annotations

import json

import pytest

from postroom.engine.spheres import COMPENSATES, RECIPIENT, bound_to, marked, sphere_of, unmarked
from postroom.errors import PropertyInvalid
from postroom.model.message import SPHERE, Draft
from postroom.room import Postroom


def test_a_message_is_marked_and_unmarked() -> None:
    draft = Draft("<m/>", "xml", None, '{"p":1}')
    inside = marked(draft, {SPHERE: "s", RECIPIENT: "bob"})
    assert json.loads(inside.properties) == {"p": 1, SPHERE: "s", RECIPIENT: "bob"}
    assert json.loads(unmarked(inside).properties) == {"p": 1}


@pytest.mark.parametrize("name", [SPHERE, RECIPIENT, COMPENSATES])
def test_nobody_else_sets_what_a_sphere_sets(name: str) -> None:
    with pytest.raises(PropertyInvalid):
        marked(Draft("<m/>", "xml", None, json.dumps({name: "mine"})), {name: "s"})


def test_a_message_belongs_to_the_sphere_that_it_names(room: Postroom) -> None:
    room.queues.create("q")
    room.send("q", "plain")
    (stored,) = room.store.read(lambda tx: list(tx.slices.queue("q")))
    assert sphere_of(stored) is None
    inside = stored._replace(properties=json.dumps({SPHERE: "s"}))
    assert sphere_of(inside) == "s"
    assert sphere_of(stored._replace(properties=json.dumps({SPHERE: 7}))) is None
    assert room.store.read(lambda tx: bound_to(tx, inside)) == "s"
    outcome = stored._replace(properties=json.dumps({SPHERE: "s", RECIPIENT: "bob"}))
    assert room.store.read(lambda tx: bound_to(tx, outcome)) is None, "it was sent when the outcome was known"

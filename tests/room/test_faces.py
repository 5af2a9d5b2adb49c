"""A room is one thing to its users, and one file for each capability to its readers."""

from __future__ import annotations

import inspect

from postroom import Postroom
from postroom.room.parts import Parts

FACES = [each for each in Postroom.__mro__ if issubclass(each, Parts) and each not in (Postroom, Parts)]


def test_each_verb_stands_in_one_face() -> None:
    homes: dict[str, list[str]] = {}
    for face in FACES:
        for name in vars(face):
            if not name.startswith("__"):
                homes.setdefault(name, []).append(face.__name__)
    assert len(FACES) == 8
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_every_verb_says_what_it_does() -> None:
    silent = [
        name
        for name, verb in inspect.getmembers(Postroom, inspect.isfunction)
        if not name.startswith("_") and not inspect.getdoc(verb)
    ]
    assert silent == []


def test_faces_know_the_parts_and_no_other_face() -> None:
    for face in FACES:
        assert face.__bases__ == (Parts,), f"{face.__name__}: what two faces need is a part"

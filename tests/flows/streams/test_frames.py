"""Names of sources and goals, which Spark and file systems take as they are."""

from __future__ import annotations

import re
from pathlib import Path

from postroom.flows.language.outside import Outside
from postroom.flows.streams.frames import folder_of, goal_name, source_name
from postroom.model.definitions import Position


def test_names_are_plain_and_differ() -> None:
    spaces = ["A", "a", "Ä", "meta:d", "x" * 500]
    for make, form in ((source_name, r"[a-z0-9_]{20,40}"), (goal_name, r"[a-z0-9-]{20,40}")):
        found = {make(space) for space in spaces}
        assert len(found) == len(spaces)
        assert all(re.fullmatch(form, name) for name in found)


def test_a_folder_is_below_that_of_its_gateway() -> None:
    outside = Outside("files", "g", "a/b", "json", Position("f", 1))
    assert folder_of(outside, {"folder": "/data"}) == Path("/data/a/b")

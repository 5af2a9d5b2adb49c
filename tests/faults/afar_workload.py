"""A sphere whose message is handled at another node; for tests that kill it on its way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.stations.world import desk

import postroom
from postroom.room import Postroom
from postroom.stations.procedures.evaluation import evaluate_here


@contextmanager
def working(url: str) -> Iterator[Postroom]:
    with postroom.open(url) as opened:
        opened._parts.interpreter.evaluate = evaluate_here
        opened._parts.runner._stages = (opened._parts.interpreter, opened._parts.counter_stage)
        yield opened


def work(url: str) -> None:
    """A sphere whose message is handled at another node, and which fails."""
    with working(url) as room:
        sphere = room.sphere("s")
        sphere.mail(desk(room, "North"), "South", "CLAIM", {"Claimant": "Ann", "Amount": 7})
        print("begun", flush=True)
        room.run_until_idle()
        sphere.abort()

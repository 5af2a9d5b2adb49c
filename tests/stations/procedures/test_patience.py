"""Working sets that take their time are worked out beside the others."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from tests.spheres.wait import until

from postroom.stations.procedures.actions import Outcome
from postroom.stations.procedures.claiming import Arrival, Look
from postroom.stations.procedures.patience import Patience

from .office import message
from .test_claiming import looked

TEXT = "procedure p at ann\n  precondition a : ORDER\n"


def look(number: int = 1) -> Look:
    return looked(TEXT, Arrival(message(number, "ORDER", No=number), False))


def test_a_station_waits_for_its_set_and_gets_the_outcome_with_the_same_keys() -> None:
    patience, over = Patience(), threading.Event()
    first = look()
    first.sets[0].keys = (5,)

    def work() -> Mapping[int, Outcome]:
        assert over.wait(10)
        return {0: Outcome(why="done")}

    patience.begin(first, first.sets[0], work)
    assert (patience.busy, patience.pause()) == ({"ann"}, True)
    over.set()
    until(lambda: not patience.busy)
    again = look()
    patience.give([again])
    assert (again.sets[0].keys, again.sets[0].outcome) == ((5,), Outcome(why="done"))
    assert not patience.pause(), "it is taken"


def test_an_outcome_is_void_if_the_station_has_another_set_by_then() -> None:
    patience = Patience()
    first = look()
    patience.begin(first, first.sets[0], lambda: {0: Outcome(why="old")})
    until(lambda: not patience.busy)
    other = look(2)
    patience.give([other])
    assert other.sets[0].outcome is None


def test_a_station_that_is_no_more_is_forgotten() -> None:
    patience = Patience()
    first = look()
    patience.begin(first, first.sets[0], lambda: {0: Outcome()})
    until(lambda: not patience.busy)
    patience.forget({"bob": "control"})
    assert not patience.pause()

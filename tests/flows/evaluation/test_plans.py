"""Plans of arcs, as far as they need no Spark: which arcs, in which order, and what of an error is said."""

from __future__ import annotations

import pyarrow as pa
import pytest

from postroom.engine.spark.executor_store import Damaged
from postroom.engine.steps.effects import Arrival
from postroom.flows.evaluation import plans
from postroom.flows.evaluation.events import error
from postroom.flows.evaluation.worker import DAMAGED, GONE, UNFIT
from postroom.flows.graph.versions import RoomGraph, kept_from
from postroom.flows.language.reader import parse
from postroom.store.kernel.batch import Stale

GRAPH = """domain d
space A : [n: int]
space B : [n: int]
space C : [n: int]
space D : [n: int]
arc ab : A -> B merge
arc ac : A -> C merge
arc bd : B -> D merge
arc cd : C -> D merge
"""


def room_graph(text: str) -> RoomGraph:
    return RoomGraph(1, kept_from(parse(text, "f.flow"), {}))


def problems(*told: str) -> pa.Table:
    return pa.table({"n": pa.array(range(len(told)), pa.int64()), "failure": pa.array(told, pa.string())})


def test_an_error_names_the_arc_and_keeps_the_event() -> None:
    arrival = Arrival(0, "A", 100_001, "json", None, '{"n":1}', "{}", 0, None)
    made = error(arrival, "no value", "ab")
    assert made.failed
    assert made.queue == "postroom-errors"
    for part in ("PF0001", "no value", "ab", "00001.00001"):
        assert part in made.body


def test_what_executors_did_not_find_as_it_was_claimed_is_no_error_of_an_event() -> None:
    assert plans._unfit(problems(f"{UNFIT}it has no n"), {0: 7}) == {0: "it has no n"}
    with pytest.raises(Stale):
        plans._unfit(problems(f"{UNFIT}x", GONE), {0: 7, 1: 8})
    with pytest.raises(Damaged):
        plans._unfit(problems(DAMAGED), {0: 7})

"""Arcs with state in a stream: the folding of the store, event by event."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path

import pytest
from tests.oracle import nexmark

from postroom.flows.evaluation.folding import MemoryStates, States
from postroom.flows.graph.versions import RoomGraph, kept_from
from postroom.flows.language.reader import parse
from postroom.flows.streams.routing import Ends, Router

NEXMARK = Path(__file__).parents[3] / "examples" / "nexmark" / "streams.flow"


def graph_of(text: str) -> RoomGraph:
    return RoomGraph(1, kept_from(parse(text, "f"), {}))


def routed(graph: RoomGraph) -> Router:
    states: dict[str, States] = defaultdict(MemoryStates)
    return Router(graph, lambda name, fold: states[name])


@pytest.mark.parametrize("seed", range(3))
def test_the_eight_queries_event_by_event(seed: int) -> None:
    router, events = routed(graph_of(NEXMARK.read_text())), nexmark.generated(seed, 300)
    router.lead([(space, json.dumps(body), False) for space, body in events])
    assert router.refused == []
    wanted = nexmark.answers(events)
    for query in wanted:
        found = [json.loads(body) for body in router.made[query]]
        assert sorted(json.dumps(each) for each in found if not nexmark.last(each)) == wanted[query], query


GRAPH = """domain d
space S : [k: string, n: int, t: timestamp] from files "g/s" format json
space Sums : [k: string, n: int] retain
space Twice : [n: int] to files "g/t" format json
space Late : [n: int]
arc sums : S -> Sums collapse [k: k, n: n, t: t] by k at t late 1 second every 10 seconds => [k: k, n: sum(n)]
arc twice : Sums -> Twice transform [n: n] => [n: n * 2]
arc plain : S -> Late transform [n: n = 7] => [n: n]
"""


def event(second: int, number: int, key: str = "a") -> str:
    return json.dumps({"k": key, "n": number, "t": f"2026-03-01T10:00:{second:02}Z"})


def test_what_is_behind_a_state_goes_on_and_is_kept_where_a_space_retains() -> None:
    router = routed(graph_of(GRAPH))
    given = ((0, 1), (5, 2), (11, 7), (3, 9), (30, 2**63 - 1), (50, 0))
    router.lead([("S", event(second, number), False) for second, number in given])
    assert [json.loads(each)["n"] for each in router.made["Sums"]] == [3, 7, 2**63 - 1]
    assert [json.loads(each)["n"] for each in router.made["Twice"]] == [6, 14]
    assert router.made["Late"] == ['{"n":7}']
    late, large = router.refused
    assert ("the event is late" in late.why, late.space, late.arc) == (True, "S", "sums")
    assert ("too large" in large.why, large.space, large.arc) == (True, "Sums", "twice")


@pytest.mark.parametrize("seed", range(3))
def test_events_that_are_led_together_lead_to_what_they_do_one_after_another(seed: int) -> None:
    dice = random.Random(seed)
    given = [(space, json.dumps(body), False) for space, body in nexmark.generated(seed, 200)]
    dice.shuffle(given)  # most are late
    for graph, events in (
        (graph_of(NEXMARK.read_text()), given),
        (graph_of(GRAPH), [("S", event(dice.randrange(60), dice.randrange(8) * 2**60), False) for _ in range(100)]),
    ):
        together, apart = routed(graph), routed(graph)
        while events:
            some = [events.pop() for _ in range(min(len(events), dice.randrange(1, 50)))]
            together.lead(some)
            for each in some:
                apart.lead([each])
        assert (together.made, together.refused) == (apart.made, apart.refused)
        assert together.made
        assert together.refused


def test_a_root_is_not_led_along_the_arcs_that_spark_has_followed() -> None:
    router = routed(graph_of(GRAPH))
    router.lead([("S", event(0, 7), True)])
    assert router.made == {}


def test_where_events_end() -> None:
    ends = Ends(graph_of(GRAPH))
    assert [ends.stored(name) for name in ("S", "Sums", "Twice", "Late")] == [False, True, False, True]
    assert [ends.folded(name) for name in ("S", "Sums", "Twice", "Late")] == [True, False, False, False]
    assert ends.passed("Sums")
    assert not ends.passed("Late")

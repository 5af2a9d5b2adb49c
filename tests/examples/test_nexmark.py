"""NEXMark's queries 1 to 8 as a flow, against loops over plain lists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.faults.here import evaluate_here
from tests.oracle import nexmark

from postroom.room import Postroom

FLOW = Path(__file__).parents[2] / "examples" / "nexmark" / "queries.flow"
QUERIES = [f"Q{number}" for number in range(1, 9)]


def answered(room: Postroom, query: str) -> list[str]:
    said = [json.loads(message.body) for message in room.queues.info(query)]
    return sorted(json.dumps(each) for each in said if not nexmark.last(each))


def compare(room: Postroom, seed: int, count: int, step: int) -> None:
    room.load(FLOW)
    events = nexmark.generated(seed, count)
    for start in range(0, len(events), step):
        for space, body in events[start : start + step]:
            room.flows.publish(space, json.dumps(body))
        room.run_until_idle()
    assert [message.body for message in room.queues.info("postroom-errors")] == []
    wanted = nexmark.answers(events)
    for query in QUERIES:
        assert answered(room, query) == wanted[query], query
        assert wanted[query], f"{query}: there is something to compare"


def test_the_eight_queries_in_the_store(room: Postroom) -> None:
    evaluate_here(room)
    compare(room, 7, 300, 150)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_the_eight_queries_in_steps_of_any_size(room: Postroom, seed: int) -> None:
    evaluate_here(room)
    compare(room, seed, 1_200, (1, 7, 50, 400, 1_300, 90)[seed])

"""Arcs in a worker: values, order and failures are those of the plain meaning, and of Spark."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

import pytest
from tests.flows.evaluation.test_plans import room_graph
from tests.oracle.flowing import PlainShare

from postroom.engine.steps.effects import Arrival, Effects, Enqueue
from postroom.engine.way import answered
from postroom.engine.worker_process import InWorker
from postroom.flows.evaluation import plain
from postroom.flows.evaluation.share import FlowShare
from postroom.flows.graph.versions import RoomGraph, kept_from
from postroom.flows.language.reader import parse
from postroom.limits import WORKER_ARCS

#: Results that overflow, divide, round and sort; each alone, so that one that fails takes no other along.
RESULTS = (
    "[n: x * y, d: d, f: f, t: t, b: b]",
    "[n: x, d: x / y, f: f, t: t, b: b]",
    "[n: x % y, d: d * d, f: f, t: t, b: b]",
    "[n: x, d: d / 3, f: f, t: t, b: b]",
    "[n: x, d: d, f: f * f, t: t, b: b]",
    "[n: x, d: d, f: f, t: t + t, b: b + {x, y}]",
    "[n: abs(x), d: decimal(x) + 0.10, f: float(y), t: upper(t), b: {y, x}]",
)


def graph(results: Sequence[str] = RESULTS) -> RoomGraph:
    lines = ["domain d space S : [n: int, m: int, d: decimal, f: float, t: string, b: {int}]"]
    for number, result in enumerate(results):
        lines.append(f"space T{number} : [n: int, d: decimal, f: float, t: string, b: {{int}}]")
        head = f"arc a{number} : S -> T{number} transform [n: x, m: y, d: d, f: f, t: t, b: b] => {result}"
        lines.append(head)
    return room_graph("\n".join(lines))


def events(chance: random.Random, count: int) -> list[Arrival]:
    edge = [0, 1, -1, 3, 2**63 - 1, -(2**63), 2**62]
    made = []
    for order in range(count):
        said = {
            "n": chance.choice(edge),
            "m": chance.choice(edge),
            "d": chance.choice(["0", "1.50", "-0.001", "99999999999999999999.5"]),
            "f": chance.choice([0.0, 1.5, -2.25, 1e300]),
            "t": chance.choice(["", "ä", "Straße", 'q"\\']),
            "b": sorted(chance.choices(edge, k=chance.randint(0, 3))),
        }
        body = json.dumps(said, ensure_ascii=False, separators=(",", ":"))
        made.append(Arrival(order, "S", order + 1, "json", None, body, "{}", 0, None))
    return made


def effects(kind: type[FlowShare], found: RoomGraph, some: Sequence[Arrival]) -> dict[int, Effects]:
    made = kind(1, found, found.places, {"S": (0, 0)})
    groups = made.evaluate(InWorker(), some, {}, {})
    return {order: each for group in groups for order, each in group.items()}


@pytest.mark.parametrize("seed", range(3))
def test_a_worker_delivers_what_the_plain_meaning_says(seed: int) -> None:
    some = events(random.Random(seed), 40)
    found = effects(FlowShare, graph(), some)
    expected = effects(PlainShare, graph(), some)
    assert found == expected
    failed = {each.rule for made in found.values() for each in made if isinstance(each, Enqueue) and each.failed}
    assert len(failed) > 2, "some values are too large, and each tells its own arc"


def test_an_arc_put_aside_tells_why_and_the_others_go_on() -> None:
    found = room_graph(
        "domain d space S : [n: int] space T : [n: int] space U : [n: int] "
        "arc a : S -> T merge arc b : T -> U transform [n: x] => [n: x + 1]"
    )
    kept = frozenset({"T", "U"})
    task = plain.task(found.running, kept, {}, "S", {"d:b": "it is slow"})
    answer = plain.unpacked(answered(task, plain.packed([Arrival(5, "S", 1, "json", None, '{"n":1}', "{}", 0, None)])))
    assert answer == {5: [plain.Delivery(0), plain.Delivery(1, failure="arc b: it is slow")]}


def test_very_many_arcs_or_rows_weigh_more() -> None:
    text = "domain d space S : [n: int] space T : [n: int] "
    few, many = (
        room_graph(text + " ".join(f"arc a{n} : S -> T select [n: {n}]" for n in range(count)))
        for count in (3, 2 * WORKER_ARCS)
    )
    event = Arrival(0, "S", 1, "json", None, '{"n":1}', "{}", 0, None)
    weights = [FlowShare(1, each, each.places, {}).weight([event, event]) for each in (few, many)]
    assert weights == [2, 6]
    joins = 'table t : [v: int] from "t.csv" space U : [n: int] ' + " ".join(
        f"arc {name} : {ends} transform [n: n] join t [v: v] => [n: v]"
        for name, ends in (("a", "S -> T"), ("b", "T -> U"))
    )
    rows = {"table t": tuple((number,) for number in range(WORKER_ARCS))}
    table = RoomGraph(1, kept_from(parse(text + joins, "f.flow"), rows))
    assert FlowShare(1, table, table.places, {}).weight([event]) > WORKER_ARCS, "rows multiply from join to join"

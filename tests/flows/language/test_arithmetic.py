"""One arithmetic: values at the edges of every type, as they are admitted, in the index, in Spark, by their meaning."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from postroom.errors import EventInvalid, FlowInvalid
from postroom.flows.evaluation import paths
from postroom.flows.evaluation.dataflow import ArcNetwork
from postroom.flows.evaluation.paths import NO_VALUE
from postroom.flows.graph.checks import check, typed
from postroom.flows.graph.graph import Graph
from postroom.flows.language.arithmetic import NoValue, widened
from postroom.flows.language.definitions import Arc, Select
from postroom.flows.language.functions import FUNCTIONS
from postroom.flows.language.inference import arithmetic
from postroom.flows.language.meaning import make, match
from postroom.flows.language.patterns import parse_expression, parse_pattern
from postroom.flows.language.reader import parse
from postroom.flows.language.sql import Variables, made, matches
from postroom.flows.language.types import SCALARS, Scalar, Type
from postroom.flows.language.types import parse as parse_type
from postroom.flows.language.values import canonical, parse_event
from postroom.room import Postroom

#: Of each type the least, the greatest and what is next to them, zeros, halves, and what looks like something else.
EDGES = {
    "int": "0 1 -1 7 -7 9223372036854775807 -9223372036854775808 9007199254740993 4294967296".split(),
    "float": "0.0 -0.0 1.0 -1.5 0.1 2.5 1e10 1e308 -1e308 5e-324 9007199254740992.0 9223372036854775808.0".split(),
    "decimal": [
        *"0 -0.00 1.50 1.5 -2.5 0.000000000000000001 99999999999999999999.999999999999999999".split(),
        *"-99999999999999999999.999999999999999999 12345678901234567890.123456789012345678 10000000000".split(),
    ],
    "string": ["", "a", "ab", " a ", "É", "ß", "İI", "ΑΣ", "ﬁ", "😀x", "Z", "null", '"', "\\", "1.50", "\n"],
    "atom": ["image", "", "é"],
    "boolean": ["true", "false"],
    "date": ["0001-01-01", "9999-12-31", "1582-10-10", "2024-02-29", "1970-01-01"],
    "timestamp": [
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999Z",
        "2026-03-29T02:30:00.000001Z",
        "1969-12-31T23:59:59.999999Z",
    ],
}
_TEXTS = ("string", "atom", "date", "timestamp")
#: What cannot be admitted: one beyond each edge.
BEYOND = {
    "int": ["9223372036854775808", "-9223372036854775809", "1.5", "1e400"],
    "float": ["1e309", "-1e309", "1e400"],
    "decimal": ["100000000000000000000", "0.1234567890123456789", "1e400", '"NaN"', '"1e999999999"'],
    "date": ['"10000-01-01"', '"2023-02-29"'],
    "timestamp": ['"0001-01-01T00:00:00+01:00"', '"9999-12-31T23:59:59-01:00"'],
}


def said(type: str, text: str) -> str:
    return json.dumps(text) if type in _TEXTS else text


@pytest.mark.parametrize(("type", "text"), [(type, text) for type, some in BEYOND.items() for text in some])
def test_what_lies_beyond_an_edge_is_not_admitted(type: str, text: str) -> None:
    with pytest.raises(EventInvalid):
        parse_event(text, parse_type(type), "S")


def test_a_room_keeps_what_lies_at_an_edge_as_its_arcs_deliver_it_and_refuses_what_lies_beyond(
    room: Postroom, tmp_path: Path
) -> None:
    lines = ["domain d"]
    for type in EDGES:
        lines += [f"space S{type} : [v: {type}] space T{type} : [v: {type}] space U{type} : [v: {type}]"]
        lines += [f"arc t{type} : S{type} -> T{type} transform [v: x] => [v: x] arc u{type} : S{type} -> U{type} merge"]
    (tmp_path / "edges.flow").write_text("\n".join(lines))
    room.load(tmp_path / "edges.flow")
    wanted = {}
    for type, texts in EDGES.items():
        kind = parse_type(f"[v: {type}]")
        for text in texts:
            room.publish(f"S{type}", f"[{said(type, text)}]")
        for text in BEYOND.get(type, ()):
            with pytest.raises(EventInvalid):
                room.publish(f"S{type}", f"[{text}]")
        wanted[type] = [canonical(parse_event(f"[{said(type, text)}]", kind, "S"), kind) for text in texts]
    waiting = {type: [message.body for message in room.queues.info(f"S{type}")] for type in EDGES}
    assert waiting == wanted
    room.run_until_idle()
    for space in "TU":
        assert {type: [message.body for message in room.queues.info(f"{space}{type}")] for type in EDGES} == wanted


@pytest.mark.parametrize(("type", "text"), [(type, text) for type, some in EDGES.items() for text in some])
def test_what_lies_at_an_edge_is_admitted_as_it_is(type: str, text: str) -> None:
    kind = parse_type(type)
    value = parse_event(said(type, text), kind, "S")
    assert parse_event(canonical(value, kind), kind, "S") == value
    if type == "decimal":
        assert canonical(value, kind) == json.dumps(text.removeprefix("-") if not value else text), "its scale is kept"
    if type == "float":
        assert math.copysign(1, value) == (1 if not value else math.copysign(1, float(text))), "there is one zero"


# --- the four compared ---


def expression(chance: random.Random, deep: int) -> str:
    """Signs and functions over the fields a, b and c."""
    if deep == 0 or chance.random() < 0.2:
        return chance.choice(["a", "b", "c", chance.choice(EDGES["int"]), chance.choice(EDGES["decimal"]), "2", "0"])
    if chance.random() < 0.5:
        return f"({expression(chance, deep - 1)} {chance.choice('+-*/%')} {expression(chance, deep - 1)})"
    name = chance.choice(sorted(FUNCTIONS))
    count = {"part": 3, "replace": 3, "greatest": 3, "least": 2, "concat": 2, "round": 2, "starts": 2, "ends": 2}
    return (
        f"{name}({', '.join(expression(chance, deep - 1) for _ in range(count.get(name, 2 if name == 'has' else 1)))})"
    )


def graph_of(types: tuple[str, str, str], results: list[str], patterns: list[str]) -> str:
    """A space with three fields, and an arc for each result and each pattern."""
    row = f"[n: int, a: {types[0]}, b: {types[1]}, c: {types[2]}]"
    lines = [f"domain d space S : {row}"]
    for number, result in enumerate(results):
        lines.append(f"space R{number}")
        lines.append(f"arc r{number} : S -> R{number} transform [n: n, a: a, b: b, c: c] => [n: n, v: {result}]")
    for number, pattern in enumerate(patterns):
        lines.append(f"space P{number} : {row} arc p{number} : S -> P{number} select {pattern}")
    return "\n".join(lines)


def planned(text: str) -> Graph:
    return check(typed(parse(text, "f")))


def is_planned(text: str) -> bool:
    """Whether a graph means something; what does not is refused with its place."""
    try:
        planned(text)
    except FlowInvalid:
        return False
    return True


def comparisons(chance: random.Random, types: tuple[str, str, str]) -> Iterator[str]:
    for name, type in zip("abc", types, strict=True):
        for text in EDGES[type]:
            signs = ["=", "!="] if type in ("boolean", "atom") else ["=", "!=", "<", "<=", ">", ">="]
            yield f"[{name}: {chance.choice(signs)} {said(type, text)}]"
    yield "[a: x, b: != x, c: x]"
    yield "[a: a, b: b, c: c >= a + b]"


def by_meaning(graph: Graph, arc: Arc, event: Any) -> str | None:
    """The body that an arc delivers, or why there is none; None if it passes nothing."""
    source, target = (graph.spaces[name].type for name in (arc.source, arc.target))
    try:
        bound = match(arc.does.pattern, source, event)  # type: ignore[union-attr]  # no merge is here
        if bound is None:
            return None
        made = event if isinstance(arc.does, Select) else make(arc.does.result, target, bound)  # type: ignore[union-attr]
    except NoValue:
        return NO_VALUE
    return canonical(made, target)


def combinations(chance: random.Random, types: tuple[str, str, str], count: int) -> list[str]:
    return [
        f"[{number}, {', '.join(said(type, chance.choice(EDGES[type])) for type in types)}]" for number in range(count)
    ]


def compare(spark: SparkSession, seed: int, results: int, monkeypatch: pytest.MonkeyPatch) -> int:
    chance = random.Random(seed)
    types = (chance.choice(SCALARS), chance.choice(["int", "decimal", "float", *SCALARS]), chance.choice(SCALARS))
    tried = (expression(chance, 2) for _ in range(results * 12))
    known = [each for each in tried if is_planned(graph_of(types, [each], []))][:results]
    patterns = [each for each in comparisons(chance, types) if is_planned(graph_of(types, [], [each]))]
    graph = planned(graph_of(types, known, patterns))
    source = graph.spaces["S"].type
    texts = combinations(chance, types, 30)
    events = [parse_event(text, source, "S") for text in texts]
    frame = spark.createDataFrame(
        [(n, canonical(each, source)) for n, each in enumerate(events)], "n long, body string"
    )
    wanted = {
        (n, arc.name): found
        for n, event in enumerate(events)
        for arc, *_ in graph.arcs.values()
        if (found := by_meaning(graph, arc, event)) is not None
    }
    stored = frozenset(graph.spaces)
    for least in (10_000, 1):  # every arc a column, then those that can be in the index
        monkeypatch.setattr(paths, "INDEXED_ARCS_MIN", least)
        rows = ArcNetwork(graph, stored).deliveries("S", frame).collect()
        delivered: dict[tuple[int, str], str] = {}
        for row in rows:
            target = graph.spaces[row.space].type
            body = NO_VALUE if row.failure else canonical(parse_event(row.body, target, row.space), target)
            delivered[row.n, row.arc] = body
        told = {
            key: (wanted.get(key), delivered.get(key))
            for key in wanted | delivered
            if wanted.get(key) != delivered.get(key)
        }
        said_of = {f"{texts[n]} {graph.arcs[f'd:{name}'][0].does}": both for (n, name), both in told.items()}
        assert said_of == {}
        assert len(rows) == len(delivered)
    return len(wanted)


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 60))])
def test_columns_index_and_meaning_agree_at_the_edges_of_every_type(
    spark: SparkSession, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert compare(spark, seed, 12, monkeypatch) > 50


def test_what_spark_works_out_of_decimals_is_exact(spark: SparkSession) -> None:
    """Whole numbers with constants stay in Java, for speed; everything else goes to a worker."""
    results = ["decimal(a) * 0.908", "a + 0.5", "0.5 * 0.25 + a", "a * 0.000000000000000001", "b * 2", "a + 0.5 - 3"]
    graph = planned(graph_of(("int", "decimal", "string"), results, []))
    source = graph.spaces["S"].type
    texts = [f'[{n}, {a}, {b}, "x"]' for n, (a, b) in enumerate(product(EDGES["int"], EDGES["decimal"]))]
    events = [parse_event(text, source, "S") for text in texts]
    frame = spark.createDataFrame(
        [(n, canonical(each, source)) for n, each in enumerate(events)], "n long, body string"
    )
    rows = ArcNetwork(graph, frozenset(graph.spaces)).deliveries("S", frame).collect()
    found = {(row.n, row.arc): NO_VALUE if row.failure else row.body for row in rows}
    assert found == {
        (n, arc.name): by_meaning(graph, arc, event)
        for n, event in enumerate(events)
        for arc, *_ in graph.arcs.values()
    }
    assert [_native(result) for result in results] == [True, True, True, False, False, False]


def _native(result: str) -> bool:
    variables = Variables()
    matches(parse_pattern("[a: a, b: b]"), parse_type("[a: int, b: decimal]"), "event", variables)
    made(parse_expression(result), Scalar("decimal"), variables)
    return not variables.works


# --- what the reference says ---


@pytest.mark.parametrize(
    ("type", "event", "result", "value"),
    [
        ("int", "-9223372036854775808", "abs(x)", None),
        ("int", "9223372036854775807", "x + 1", None),
        ("int", "-7", "x % 3", "-1"),
        ("int", "7", "x / 2", "3.5"),
        ("int", "7", "x / 0", None),
        ("int", "15", "round(x, 0 - 1)", "20"),
        ("float", "1e308", "x * 10", None),
        ("float", "0.0", "0 - x", "0.0"),
        ("float", "2.5", "round(x, 0)", "3.0"),
        ("float", "0.285", "round(x, 2)", "0.29"),
        ("float", "9223372036854775808.0", "int(x)", None),
        ("float", "0.1", "decimal(x)", '"0.1"'),
        ("decimal", "1200.50", "x", '"1200.50"'),
        ("decimal", "1200.50", "x * 2", '"2401.00"'),
        ("decimal", "1200.50", "x + 0.125", '"1200.625"'),
        ("decimal", "9" * 20 + "." + "9" * 18, "x - 0." + "0" * 17 + "1", f'"{"9" * 20}.{"9" * 17}8"'),
        ("decimal", "99999999999999999999.999999999999999999", "x + 1", None),
        ("decimal", "10.00", "x / 4", '"2.5"'),
        ("decimal", "1", "x / 3", '"0.333333333333333333"'),
        ("decimal", "0.000000001", "x * x * 0.5", '"0.000000000000000001"'),
        ("decimal", "-2.5", "round(x, 0)", '"-3"'),
        ("date", '"9999-12-31"', "x + 1", None),
        ("date", '"2024-02-29"', "x - 9223372036854775807", None),
        ("string", '"Gryphon"', "part(x, 0, 3)", '"Gr"'),
        ("string", '"Gryphon"', "part(x, 5, 9223372036854775807)", '"hon"'),
        ("string", '"Gryphon"', 'replace(x, "", "-")', '"Gryphon"'),
        ("timestamp", '"2026-03-29T02:30:00Z"', "string(x)", '"2026-03-29T02:30:00.000000Z"'),
    ],
)  # fmt: skip
def test_an_expression_has_this_value_or_none(type: str, event: str, result: str, value: str | None) -> None:
    graph = planned(f"domain d space S : [x: {type}] space R arc r : S -> R transform [x: x] => [v: {result}]")
    found = by_meaning(graph, graph.arcs["d:r"][0], parse_event(f"[{event}]", graph.spaces["S"].type, "S"))
    assert found == (NO_VALUE if value is None else f'{{"v":{value}}}')


def test_numbers_of_two_types_are_compared_as_the_wider_one() -> None:
    assert arithmetic("+", Scalar("int"), Scalar("float")) == Scalar("float")
    wide: Type = Scalar("float")
    assert widened(2**53 + 1, Scalar("int"), wide) == widened(2**53, Scalar("int"), wide)
    assert widened(Decimal("0.10"), Scalar("decimal"), wide) == 0.1


@pytest.mark.parametrize("type", ["string", "(string)", "{string}"])
def test_what_no_body_has_room_for_is_not_made(type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where arcs one behind another each make it longer. Spark agrees: see the tests of isolation."""
    monkeypatch.setattr("postroom.flows.language.arithmetic.BODY_BYTES_MAX", 100)
    parsed = parse_type(type)
    text = {"string": '"x"', "(string)": '("x")', "{string}": '{"x"}'}[type]
    value = parse_event(text, parsed, "S")
    double = parse_expression("v + v")
    while len(canonical(value, parsed)) <= 50:
        value = make(double, parsed, {"v": (value, parsed)})
    assert len(canonical(value, parsed)) < 110
    with pytest.raises(NoValue):
        make(double, parsed, {"v": (value, parsed)})

"""Aggregates: what they are of, what they make, and what cannot be, with line and column."""

from __future__ import annotations

import pytest

from postroom.errors import FlowInvalid
from postroom.flows.graph.checks import check, typed
from postroom.flows.language.aggregates import AGGREGATES, split
from postroom.flows.language.patterns import parse_expression
from postroom.flows.language.reader import parse

HEAD = """domain d
space A : [k: string, n: int, d: decimal, f: float, t: timestamp, u: timestamp]
space B : [k: string, m: int, s: timestamp]
space C
"""


def checked(arc: str) -> str:
    statements = parse(f"{HEAD}{arc}", "g.flow")
    graph = check(typed(statements))
    return str(next(iter(graph.arcs.values()))[0])


@pytest.mark.parametrize(
    "arc",
    [
        "arc c : A -> C collapse [k: k, n: n] by k => [k: k, n: sum(n), m: max(n) - min(n)]",
        "arc c : A -> C collapse any => [n: count()]",
        "arc c : A -> C collapse [k: k, d: d, t: t] by k at t late 5 seconds every 1 minute => [k, avg(d), start, end]",
        "arc c : A -> C collapse [k: k, f: f, t: t] by k at t every 1 second over 3 seconds => [k, max(f), end]",
        "arc c : A -> C collapse [k: k, t: t] by k at t session 1 minute => [k, count() * 2, start]",
        "arc c : A -> C collapse [k: k, t: t, u: e] by k, e at t until e => [k, e, first(t), last(t)]",
        "arc c : A -> C collapse [k: k, n: n] by k over 10 events => [k: k, mean: avg(n)]",
        "arc c : A -> C transform [k: k, t: t] at t join B [k: k, m: m, s: s] at s within 1 day late 1 day => [k, m]",
    ],
)
def test_an_arc_with_state_reads_back(arc: str) -> None:
    assert checked(arc) == arc
    assert checked(checked(arc)) == arc


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("collapse [n: n] => [n: n]", "5:39: arc c: n is not bound"),
        ("collapse [f: f] => [s: sum(f)]", "5:39: arc c: sum(float) is not sum(int or decimal); sums of floats"),
        ("collapse [n: n] => [s: sum()]", "5:39: arc c: sum() is not sum(int or decimal)"),
        ("collapse [n: n] => [s: sum(max(n))]", "there is no function max"),
        ("collapse [n: n] by m => [s: sum(n)]", "5:25: arc c: by m: it is not bound"),
        ("collapse [d: d] by d => [s: sum(d)]", "a key is of a simple type other than decimal"),
        ("collapse [n: n] by n every 1 hour => [n]", "5:37: arc c: every 1 hour: a window is of times"),
        (
            "collapse [n: n] at n every 1 hour => [n: count()]",
            "5:32: arc c: at n: a timestamp is wanted, and it is int",
        ),
        ("collapse [n: n] at t every 1 hour => [n: count()]", "at t: no field of every event is bound to it"),
        ("collapse [t: t, u: e] by e at t until u => [e]", "until u: it is one of the keys"),
        ("collapse [t: t, u: end] by end at t every 1 hour => [end]", "end is a variable of the window"),
        ("transform [t: t] at t => [t]", "5:38: join and another space is expected"),
        ("transform [t: t] at t join X [s: s] at s within 1 hour => [t]", "arc c: there is no space X"),
        ("transform [t: t] at t join A [t: s] at s within 1 hour => [t]", "arc c joins A with itself"),
        ("transform [n: k, t: t] at t join B [k: k, s: s] at s within 1 hour => [t]", "can never equal"),
        ("transform [t: t] at t join B [s: t] at t within 1 hour => [t]", "t is the time of both"),
        ("transform [t: t] at t late 1 hour join B [s: s] at s within 1 hour => [t]", "comes after within"),
        ("transform [t: t] at t join B [s: s] at s within 1 hour => [t] durable", "cannot be durable"),
    ],
)
def test_what_cannot_be_is_refused_where_it_stands(does: str, told: str) -> None:
    with pytest.raises(FlowInvalid) as refused:
        checked(f"arc c : A -> C {does}")
    assert told in str(refused.value)


def test_an_aggregate_becomes_a_variable_with_its_text_as_name() -> None:
    expression, found = split(parse_expression("[sum(p) / count(), upper(k), sum(p), count(tags)]"))
    assert list(found) == ["sum(p)", "count()"]
    assert str(expression) == "[sum(p) / count(), upper(k), sum(p), count(tags)]"


def test_every_aggregate_says_how_it_is_called() -> None:
    assert all(usage.startswith(f"{name}(") for name, (usage, _) in AGGREGATES.items())

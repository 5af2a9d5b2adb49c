"""Flow files: read and printed. Every refusal has its place."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.errors import FlowInvalid
from postroom.flows.graph.checks import check, typed
from postroom.flows.language.definitions import Arc, Merge, Select, Transform
from postroom.flows.language.patterns import parse_pattern
from postroom.flows.language.reader import parse
from postroom.flows.language.sql import Variables, matches
from postroom.flows.language.types import parse as parse_type

TRADING = """
# The graph of the text's first figure, and more.
domain trading
allow operator : addArc, deleteArc, addSpace, deleteSpace, disableArc, enableArc
allow *        : requestAddArc, requestDeleteArc
space NYSE    : [issue: string, price: int, volume: int]
space NASDAQ  : [issue: string, price: int, volume: int]
space Big     : [issue: string, price: int, volume: int] retain
space All     : [issue: string, price: int, volume: int]
space Capital : [issue: string, capital: int]
space Seen    : [broker: string, client: string]
space Where   : [client: string, city: string]
table brokerLocations : [broker: string, city: string] from "brokers.csv"
table prices : [issue: string, price: decimal] from collection prices
arc big     : NYSE -> Big     select [issue: any, price: p > 75, volume: any]
arc capital : NYSE -> Capital transform [issue: i, price: p, volume: v] => [issue: i, capital: p * v]
arc all     : NASDAQ -> All   merge durable
arc where   : Seen -> Where   transform [broker: b, client: c] join brokerLocations [broker: b, city: t]
                                => [client: c, city: t]
"""


def test_a_file_becomes_definitions_with_their_places() -> None:
    statements = parse(TRADING, "trading.flow")
    arcs = {each.name: each for each in statements if isinstance(each, Arc)}
    assert len(statements) == 16
    assert (arcs["big"].source, arcs["big"].target, arcs["big"].domain) == ("NYSE", "Big", "trading")
    assert isinstance(arcs["big"].does, Select)
    assert isinstance(arcs["capital"].does, Transform)
    assert arcs["all"].does == Merge()
    assert arcs["all"].durable
    assert str(arcs["capital"].position) == "trading.flow:16:1"
    where = arcs["where"].does
    assert isinstance(where, Transform)
    assert where.join is not None
    assert where.join.table == "brokerLocations"


def test_what_is_printed_reads_back_as_the_same() -> None:
    once = [str(statement) for statement in parse(TRADING, "f")]
    assert [str(statement) for statement in parse("\n".join(once), "f")] == once
    assert 'table brokerLocations : [broker: string, city: string] from "brokers.csv"' in once
    assert "arc all : NASDAQ -> All merge durable" in once


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("space A : int", "1:1: a space belongs to a domain: begin with domain NAME [domain-missing]"),
        ("domain d flow", "1:10: domain or allow or space or table or arc is expected here, not 'flow' [syntax]"),
        ("domain d allow x : paint", "1:20: paint is not an action; there are addArc, deleteArc, addSpace, "),
        ("domain d allow : addArc", "1:16: a principal or * is expected here, not ':' [syntax]"),
        ("domain d table t : [a: int] from file", "1:34: the name of a file, in quotes is expected here, not 'file'"),
        ("domain d arc a : B > C merge", "1:20: '->' behind B is expected here, not '>' [syntax]"),
        (
            "domain d arc a : B -> C filter",
            "1:25: select or transform or merge or collapse is expected here",
        ),
        (
            "domain d arc a : B -> C transform x",
            "1:36: '=>' and what becomes of an event is expected here, not the end",
        ),
        ('domain d space A : "int', "1:20: a text has no closing quote [syntax]"),
    ],
)
def test_what_is_not_in_the_language_is_refused_with_its_place(text: str, why: str) -> None:
    with pytest.raises(FlowInvalid) as caught:
        parse(text, "f")
    assert str(caught.value).startswith(f"f:{why}")


@settings(deadline=None)
@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from("domain d space A B : [ ] int arc a -> select merge x > 1 , { }".split())).map(" ".join)
)
def test_whatever_a_file_says_is_a_graph_or_refused(text: str) -> None:
    try:
        check(parse(text, "f"))
    except FlowInvalid:
        return


PIECES = [
    *"[ ] { } ( ) , : + - * / % < > = != -> => .".split(),
    *"domain allow space table arc select transform merge join from durable retain union any and between".split(),
    *'int string decimal float date a b "t" 1 1e400 99999999999999999999999 0.5 meta true concat replace round'.split(),
]


def hostile(chance: random.Random) -> str:
    """Ten kilobytes of words of the language: without order, or one form inside itself again and again."""
    if chance.random() < 0.4:
        return " ".join(chance.choice(PIECES) for _ in range(3_000))[:10_000]
    head = "domain d space S : [n: int, t: string, b: {int}, l: (int)] space T arc a : S -> T "
    opening, closing = chance.choice(
        [
            ("replace(", ', "a", "aaaaaaaaaa")'),
            ("(t + ", ")"),
            ("concat(t, ", ")"),
            ("-", ""),
            ("t + ", ""),
            ("upper(", ")"),
        ]
    )
    times = chance.choice([5, 50, 99, 800])
    forms = [
        f"transform [n: n, t: t] => [n: n, t: {opening * times}t{closing * times}]",
        f"select [b: {{{', '.join(map(str, range(times * 2)))}}} + rest]",
        f"select [b: {'1 + ' * times}rest]",
        f"select [l: {'(1) + ' * times}rest]",
        f"select [n: n{' and > n * 2' * times}]",
        f"transform [n: n, t: t, b: {{1, 2, 3}} + r] => [n: {' + '.join(['count(r)'] * times)}, t: t]",
        f"select {'[' * times}{']' * times}",
        f"select [n: > 1e{'9' * times}]",
    ]
    return (head + chance.choice(forms))[:10_000]


@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 20))])
def test_ten_kilobytes_of_anything_are_read_or_refused_within_a_second(part: int) -> None:
    read = refused = 0
    for seed in range(part * 100, part * 100 + 100):
        text = hostile(random.Random(seed))
        began = time.process_time()
        try:
            check(typed(parse(text, "f")))
            read += 1
        except FlowInvalid as error:
            refused += bool(error.facts["problems"][0].position.line)
        assert time.process_time() - began < 1, text[:200]
    assert read + refused == 100
    assert read, "not all of it is refused"


@pytest.mark.parametrize(
    "pattern",
    [
        "[b: {" + ", ".join("1" * 1 for _ in range(300)) + "} + rest]",
        "[b: " + "1 + " * 90 + "rest]",
        "[l: " + "(1) + " * 90 + "rest]",
    ],
)
def test_the_plan_of_an_arc_grows_no_faster_than_its_pattern(pattern: str) -> None:
    type = parse_type("[b: {decimal}, l: (decimal)]")
    assert len(matches(parse_pattern(pattern), type, "event", Variables())) < 100 * len(pattern) + 2_000

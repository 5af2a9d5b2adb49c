"""Plans as plain data: what a queue reads, and what must be worked out for a new message."""

from __future__ import annotations

import pickle

import pytest

from postroom.rules.compilation.compiler import compiled
from postroom.rules.compilation.plan import Key, Plan, PlannedProperty, QueuePlan, Read, Target
from postroom.rules.language.definitions import Program
from postroom.rules.language.reader import parse


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (Read("queue", "q"), "the whole queue q"),
        (Read("slice", "s", Key("property", "p")), "slice s by property p"),
        (Read("index", "q x", Key("probe", "q x")), "index q x by probe q x"),
    ],
)
def test_a_read_tells_what_it_looks_at(read: Read, text: str) -> None:
    assert str(read) == text


@pytest.mark.parametrize(
    "target",
    [
        Target("q", properties=(PlannedProperty("p", "string", False, False),)),
        Target("q", slicings=(("s", "p"),)),
        Target("q", indexes=("q x",)),
        Target("q", schema="<xs:schema/>"),
        Target("q", echo=True),
        Target("q", connection=True),
    ],
)
def test_a_message_enters_without_work_only_where_nothing_is_asked(target: Target) -> None:
    assert not target.plain
    assert Target("q").plain


def test_rules_that_ask_for_the_message_alone_are_bare() -> None:
    assert QueuePlan("q", 0, ()).bare
    assert not QueuePlan("q", 0, (), reads=(Read("queue", "q"),)).bare
    assert not QueuePlan("q", 0, (), inherited=("p",)).bare


def test_a_plan_answers_for_queues_that_it_does_not_name() -> None:
    plan = Plan(1, "m", targets={"a": Target("a", echo=True)}, error_queues={"a": ("e",), "a r": ("f", "e")})
    assert plan.target("a").echo
    assert plan.target("b") == Target("b")
    assert plan.errors_of("a", "r") == ("f", "e")
    assert plan.errors_of("a", "other") == plan.errors_of("a", None) == ("e",)


def test_a_plan_travels_to_workers_as_it_is() -> None:
    text = """create queue a kind basic mode persistent create property p as xs:string queue a value //p
    create slicing s on p create rule r for s if (qs:slice()) then do reset"""
    plan = compiled(Program(parse(text, "f.demaq")), 1, "m")
    assert pickle.loads(pickle.dumps(plan)) == plan

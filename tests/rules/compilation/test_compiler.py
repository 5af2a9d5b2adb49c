"""The rule compiler: what a program becomes for each of its queues."""

from __future__ import annotations

from postroom.rules.compilation.compiler import compiled, property_value
from postroom.rules.compilation.plan import Plan
from postroom.rules.language.definitions import Expression, Program
from postroom.rules.language.reader import parse

QUEUES = """create queue a kind basic mode persistent create queue b kind basic mode persistent
create queue plain kind basic mode persistent
create property p as xs:integer queue a, b value //p create slicing s on p
create property name as xs:string inherited queue a create collection c
"""


def program(text: str) -> Program:
    return Program(parse(QUEUES + text, "f.demaq"))


def plan(text: str) -> Plan:
    return compiled(program(text), 1, "m")


def test_a_plan_knows_what_each_queue_asks_of_its_messages() -> None:
    made = plan("create rule r for a if (qs:property('free') and qs:property('size')) then do enqueue . into plain")
    assert (made.queues["a"].properties, made.queues["a"].system) == (("free",), ("size",))
    assert made.queues["a"].inherited == ("name",)
    assert made.target("plain").plain
    assert made.target("never heard of").plain
    assert not made.target("b").plain
    assert made.target("b").slicings == (("s", "p"),)
    assert made.errors_of("a", "r") == ("postroom-errors",)


def test_a_query_has_the_numbers_of_its_rules_in_the_order_of_definition() -> None:
    made = plan("create rule z for s if (/x) then do reset create rule y for a if (/x) then do enqueue 1 into b")
    assert made.queues["a"].rules == ("z", "y")
    assert made.queues["b"].rules == ("z",)
    assert 'r="0"' in made.queues["b"].query


def test_a_value_of_a_property_may_ask_for_its_message() -> None:
    value = property_value(Expression("qs:message()//x | qs:message()/y", 1, 1))
    assert value.text == "$qs:message//x | $qs:message/y"

"""The rule compiler: what a program becomes for each of its queues."""

from __future__ import annotations

from postroom.rules.compilation.compiler import compiled, property_value
from postroom.rules.compilation.environment import Environment
from postroom.rules.compilation.plan import Plan
from postroom.rules.compilation.translation import cast
from postroom.rules.compilation.updates import RAISE
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
    assert 'r="0"' in made.queues["b"].queries[0].text


def test_a_value_of_a_property_may_ask_for_its_message() -> None:
    value = property_value(Expression("qs:message()//x | qs:message()/y", 1, 1), Environment(), "integer")
    assert value.text == f"{RAISE}, {cast('integer')}, $qs:message ! ($qs:message//x | $qs:message/y)"


def test_two_programs_with_other_master_data_are_two_queries() -> None:
    known = program("create rule r for a if (collection('c')/x) then do enqueue . into b")
    one, two, again = (
        compiled(known, 1, "m", collections={"c": text}).queues["a"].queries[0].text
        for text in ("<c>1</c>", "<c>2</c>", "<c>1</c>")
    )
    assert one != two
    assert one == again


def test_a_careful_query_is_another_one_that_holds_answers_back() -> None:
    made = plan("create rule r for a if (/x) then do enqueue . into b").queues["a"]
    assert "g-m" in made.queries[0].careful
    assert "g-m" not in made.queries[0].text


def test_a_queue_that_asks_for_nothing_has_no_query_for_entries() -> None:
    made = plan("")
    assert made.target("plain").entry_queries == ()
    assert "qs:as-integer" in made.target("a").entry_queries[0].text
    assert made.queues == {}


def test_errors_of_a_rule_go_to_the_nearest_error_queue() -> None:
    made = plan(
        """create queue e kind basic mode persistent create queue own kind basic mode persistent errorqueue e
        create rule r for own errorqueue b if (/x) then do enqueue . into a"""
    )
    assert made.errors_of("own", "r") == ("b", "e", "postroom-errors")
    assert made.errors_of("own", None) == ("e", "postroom-errors")

"""Definitions of a program: what belongs to a queue, and what the catalog keeps of them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from postroom.model.definitions import Definition
from postroom.rules.language.definitions import Program, as_catalog, from_catalog
from postroom.rules.language.reader import parse

TEXT = """create module shop errorqueue failed
create system errorqueue last
create queue failed kind basic mode persistent
create queue last kind basic mode persistent
create queue a kind basic mode persistent priority 3
create queue b kind basic mode transient errorqueue last
create queue wait kind echo mode persistent
create queue out kind outgoingGateway mode persistent interface i.wsdl port P using X policy p.xml
create collection c
create property p as xs:string inherited queue a value //p queue b
create slicing s on p
create slicing talks on connection
create rule one for a errorqueue b if (/x) then do enqueue . into b
create rule two for s if (qs:slice()) then do reset
"""
PROGRAM = Program(parse(TEXT, "shop.demaq"))


@pytest.mark.parametrize("definition", PROGRAM.definitions, ids=lambda each: f"{each.what} {each.name}")
def test_a_definition_comes_out_of_the_catalog_as_it_went_in(definition: object) -> None:
    kept = as_catalog(definition)  # type: ignore[arg-type]
    again = Definition(kept.kind, kept.name, json.loads(json.dumps(kept.body)), kept.position)
    assert from_catalog(again) == definition


def test_rules_of_a_queue_are_its_own_and_those_of_its_slicings() -> None:
    assert [rule.name for rule in PROGRAM.rules_of("a")] == ["one", "two"]
    assert [rule.name for rule in PROGRAM.rules_of("b")] == ["two"]
    assert PROGRAM.rules_of("wait") == []
    assert PROGRAM.watched == {"a": 3, "b": 0}


def test_a_property_has_a_value_where_one_is_written() -> None:
    (p,) = PROGRAM.properties_of("b")
    assert p.value_for("b") is None
    value = p.value_for("a")
    assert value is not None
    assert value.text.strip() == "//p"
    assert p.queues == ("a", "b")


def test_a_slicing_by_connection_has_the_queues_whose_messages_do_not_wait() -> None:
    assert PROGRAM.sliced(PROGRAM.slicings["talks"]) == ("failed", "last", "a", "b")
    assert PROGRAM.sliced(PROGRAM.slicings["s"]) == ("a", "b")


def test_error_queues_go_from_the_rule_to_the_system_and_never_back() -> None:
    assert PROGRAM.error_queues("a", "one") == ["b", "failed", "last", "postroom-errors"]
    assert PROGRAM.error_queues("b", None) == ["last", "failed", "postroom-errors"]
    assert PROGRAM.error_queues("last", None) == ["failed", "postroom-errors"]
    assert PROGRAM.error_queues("unknown", None) == ["last", "postroom-errors"]


def test_a_module_is_replaced_as_a_whole() -> None:
    other = [replace(each, module="other") for each in parse("create collection d", "other.demaq")]
    both = PROGRAM.with_modules(other)
    assert {"c", "d"} <= both.collections.keys()
    smaller = both.with_modules(parse("create module shop create collection e", "shop.demaq"))
    assert list(smaller.collections) == ["d", "e"]
    assert not smaller.rules
    assert not Program()

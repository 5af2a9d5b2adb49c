"""Declarations in a query: who may be called, what functions see, and library modules without files."""

from __future__ import annotations

import pytest

from postroom.rules.compilation.environment import Environment, call_edits, environment, finished, reference
from postroom.rules.language.definitions import Program
from postroom.rules.language.edits import edited
from postroom.rules.language.expression import read
from postroom.rules.language.reader import parse, parse_library

LOCAL = "Q{http://www.w3.org/2005/xquery-local-functions}"
DECLARED = (
    'import module namespace m = "urn:m"; declare function local:f($x) { local:g($x) }; '
    "declare function local:g($x) { qs:message() }; declare function local:h() { 1 }; declare variable $v := 2;"
)
LIBRARY = parse_library(
    'module namespace m = "urn:m"; declare variable $m:v := 1; declare function m:f() { 1 };', "m.xqm"
)


def around() -> Environment:
    return environment(Program((*parse(DECLARED, "p.demaq"), LIBRARY)), "p")


def test_functions_and_variables_are_known_by_their_namespaces() -> None:
    assert around().functions == {(f"{LOCAL}f", 1), (f"{LOCAL}g", 1), (f"{LOCAL}h", 0), ("Q{urn:m}f", 0)}
    assert around().variables == {("", "v"), ("urn:m", "v")}


def test_a_function_that_calls_one_that_sees_the_message_sees_it_too() -> None:
    assert around().seeing == {(f"{LOCAL}f", 1), (f"{LOCAL}g", 1)}
    called = [read(text, 0, len(text)) for text in ("local:h()", "local:f(1)")]
    assert around().reached(called[:1]) == {(f"{LOCAL}h", 0)}
    assert around().reached(called) == {(f"{LOCAL}f", 1), (f"{LOCAL}g", 1), (f"{LOCAL}h", 0)}


SEEN = "$qs:m, $qs:message, $qs:sets"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("p:f(1)", f"p:f({SEEN}, 1)"),
        ("p:f()", f"p:f({SEEN})"),
        ("p:f#1", f"function($qs:g0) {{ p:f({SEEN}, $qs:g0) }}"),
        ("p:f#0", f"function() {{ p:f({SEEN}) }}"),
        ("1 => p:f(2)", f"1 => (function($qs:g0, $qs:g1) {{ p:f({SEEN}, $qs:g0, $qs:g1) }})(2)"),
        ("p:f(?)", f"(function($qs:g0) {{ p:f({SEEN}, $qs:g0) }})"),
        (
            "p:f(1, ?, 3)",
            f"(let $qs:a0 := (1), $qs:a2 := (3) return function($qs:g1) {{ p:f({SEEN}, $qs:a0, $qs:g1, $qs:a2) }})",
        ),
    ],
)
def test_a_call_gives_what_the_rule_sees(text: str, wanted: str) -> None:
    (call,) = read(text, 0, len(text)).calls
    assert edited(text, 0, len(text), call_edits(call, text)).text == wanted


def test_a_library_module_is_its_own_address() -> None:
    assert reference({"urn:m": LIBRARY}, "urn:m").startswith("data:application/xquery;base64,")
    assert around().key != Environment().key


def test_our_elements_are_in_no_namespace() -> None:
    known = environment(Program(parse('declare default element namespace "urn:d";', "p.demaq")), "p")
    assert finished("<p-m n='1'/>, <q-x/>", known, "m") == "<p-m xmlns=\"\" n='1'/>, <q-x/>"
    assert finished("<p-m n='1'/>", Environment(), "m") == "<p-m n='1'/>"

"""Every check of a program: what breaks it, where that is told, and what does not break it."""

from __future__ import annotations

import pytest

from postroom.errors import ProgramInvalid
from postroom.model.definitions import Problem
from postroom.rules.compilation.checks import CHECKS, Subject, check
from postroom.rules.language.definitions import Program
from postroom.rules.language.reader import parse, parse_library
from postroom.store.tables.endpoints import Endpoint

#: What stands before each program of a case: on one line, so that a case's own lines begin with 2.
AROUND = (
    "create queue a kind basic mode persistent create queue b kind basic mode persistent "
    "create queue wait kind echo mode persistent create property p as xs:string queue a, b value //p "
    "create property f as xs:string fixed queue a value //f create slicing s on p create collection c\n"
)
RULE = "create rule r for a if (/x) then"
ENDPOINTS = {"partner": Endpoint("partner", "http", frozenset({"out"}), {}, "m")}
#: The name of the check, a program that breaks it, where, and what is said.
CASES = [
    ("name-unique", "create queue a kind basic mode persistent", "2:1", "the name a is taken: see f.demaq:1:1"),
    ("name-unique", "create slicing a on p", "2:1", "the name a is taken"),
    ("name-unique", "create queue s kind basic mode persistent", "2:1", "the name s is taken"),
    ("name-unique", "create property p as xs:string queue a", "2:1", "the name p is taken"),
    (
        "name-unique",
        f"{RULE} do enqueue . into b\n{RULE} do enqueue . into a",
        "3:1",
        "the name r is taken: see f.demaq:2:1",
    ),
    ("name-unique", "create system errorqueue a create system errorqueue b", "2:28", "the name errors is taken"),
    ("name-form", f"create collection {'x' * 201}", "2:1", "a name has at most 200 characters"),
    ("name-form", "create queue postroom-errors kind basic mode persistent", "2:1", "postroom-errors is reserved"),
    (
        "gateway-clauses",
        "create queue g kind basic mode persistent port P",
        "2:1",
        "interface, port and using belong to",
    ),
    ("gateway-clauses", "create queue g kind echo mode persistent using X policy y", "2:1", "g is echo"),
    (
        "reliable-persistent",
        "create queue g kind outgoingGateway mode transient using WS-ReliableMessaging policy x.xml",
        "2:1",
        "reliable messaging needs mode persistent; g is transient",
    ),
    ("extension-known", "create queue g kind outgoingGateway mode persistent using WS-Foo policy x", "2:1", "WS-Foo"),
    (
        "interface-usable",
        "create queue g kind outgoingGateway mode persistent using WS-ReliableMessaging",
        "2:1",
        "is for SOAP",
    ),
    ("gateway-known", "create queue g kind outgoingGateway mode persistent port prter", "2:1", "mean partner?"),
    ("error-queue-known", "create queue g kind basic mode persistent errorqueue bb", "2:1", "no queue bb for errors"),
    (
        "error-queue-known",
        "create queue g kind basic mode persistent errorqueue g",
        "2:1",
        "cannot take its own errors",
    ),
    ("error-queue-known", "create system errorqueue wait", "2:1", "wait is an echo queue and cannot take errors"),
    ("error-queue-known", "create rule r for a errorqueue no if (/x) then do enqueue . into b", "2:1", "no queue no"),
    ("property-queues", "create property q as xs:string queue a, aa", "2:1", "no queue aa; did you mean a?"),
    ("property-queues", "create property q as xs:string queue a, a", "2:1", "queue a appears twice"),
    ("property-queues", "create property q as xs:string queue a queue a value 1", "2:1", "queue a appears twice"),
    ("property-queues", "create property sender as xs:string queue a", "2:1", "sender is a property of the system"),
    ("property-fixed", "create property q as xs:string fixed inherited queue a value 1", "2:1", "cannot be inherited"),
    ("property-fixed", "create property q as xs:string fixed queue a", "2:1", "each of its queues needs a value"),
    (
        "property-value",
        "create property q as xs:string queue a value\n  do reset s key 1",
        "3:3",
        "cannot contain an action",
    ),
    ("property-value", "create property q as xs:string queue a value\n  (1, qs:slice())", "3:7", "is for rules"),
    ("property-value", "create property q as xs:string queue a value (1,\n  doc('x'))", "3:3", "reaches outside"),
    ("property-value", "create property q as xs:string queue a value 1 +", "2:49", "is expected here"),
    ("slicing-property", "create slicing t on pp", "2:1", "no property pp; did you mean p?"),
    ("slicing-property", "create slicing t on created", "2:1", "no property created"),
    (
        "absence",
        "create rule r for a unless (1) within 'P1D'\nif (/x) then do enqueue . into b else ()",
        "3:1",
        "a rule with unless has no else",
    ),
    (
        "library-updates",
        '===\nmodule namespace m = "urn:m";\ndeclare function m:f($x) {\n  copy $c := $x modify () return $c };',
        "3:3",
        "copy … modify is for programs",
    ),
    (
        "import-known",
        '---\nimport module namespace m = "urn:m" at "m.xqm";\n',
        "1:1",
        "no library module urn:m is loaded",
    ),
    (
        "rule-target",
        "create rule r for aa if (/x) then do enqueue . into b",
        "2:1",
        "no queue or slicing aa; did you mean a?",
    ),
    (
        "rule-target",
        "create rule r for shop/orders if (/x) then do enqueue . into b",
        "2:1",
        "no queue or slicing shop; a queue of a tree is named as postroom count lists it, such as INP_0000",
    ),
    (
        "rule-target",
        "create rule r for wait if (/x) then do enqueue . into b",
        "2:1",
        "an echo queue passes its messages on",
    ),
    (
        "rule-target",
        "create rule r for postroom-errors if (/x) then do enqueue . into b",
        "2:1",
        "the end of all errors",
    ),
    ("conditional", "create rule r for a do enqueue . into b", "2:21", "a body is one conditional"),
    ("conditional", f"{RULE} (1, 2)", "2:21", "at least one do enqueue or do reset"),
    (
        "conditional",
        "create rule r for a (if (/x) then do enqueue . into b else (),\n do enqueue . into a)",
        "2:21",
        "one conditional",
    ),
    (
        "only-actions",
        f"{RULE} do enqueue . into b else\n  <x/>",
        "3:3",
        "'<x/>' is a value; a rule returns actions",
    ),
    ("only-actions", f"{RULE} (do enqueue . into b, 1)", "2:56", "'1' is a value"),
    ("queue-known", f"{RULE}\n  do enqueue <x/> into bb", "3:24", "no queue bb; did you mean b?"),
    ("property-settable", f"{RULE} do enqueue . into b\n with key value 1", "3:7", "property key is set by the system"),
    ("property-settable", f"{RULE} do enqueue . into a with f value 1", "2:59", "property f is fixed"),
    (
        "property-settable",
        f"{RULE} do enqueue . into wait with p value 1 with target value 'a' with timeout value 1",
        "2:62",
        "not defined",
    ),
    (
        "property-settable",
        f"{RULE} do enqueue . into b with x value 1 with x value 2",
        "2:59 2:74",
        "property x is set twice",
    ),
    (
        "echo-properties",
        f"{RULE} do enqueue . into wait with target value 'a'",
        "2:52",
        "echo queue wait: set timeout with",
    ),
    ("echo-properties", f"{RULE} do enqueue . into wait", "2:52", "set target and timeout"),
    ("reset-slicing", f"{RULE}\n  do reset", "3:3", "say which slice: do reset SLICING key"),
    ("reset-slicing", f"{RULE} do reset ss key 1", "2:34", "no slicing ss; did you mean s?"),
    ("function-allowed", f"{RULE} do enqueue\n  doc('x') into b", "3:3", "doc() reaches outside of the room"),
    ("function-allowed", f"{RULE} do enqueue my:f() into b", "2:45", "my:f() is not a function that rules may call"),
    ("function-allowed", f"{RULE} do enqueue qs:nothing() into b", "2:45", "there is no function qs:nothing()"),
    (
        "function-arguments",
        f"{RULE} do enqueue qs:slice() into b",
        "2:45",
        "qs:slice() is for rules on slicings; a is a queue",
    ),
    ("function-arguments", f"{RULE} do enqueue qs:slicekey() into b", "2:45", "qs:slicekey() is for rules on slicings"),
    ("function-arguments", f"{RULE} do enqueue qs:queue('bb') into b", "2:45", "no queue bb; did you mean b?"),
    ("function-arguments", f"{RULE} do enqueue qs:queue(//q) into b", "2:45", "takes a name in quotes"),
    ("function-arguments", f"{RULE} do enqueue qs:queue('a', 'b') into b", "2:45", "takes 0 or 1 arguments, not 2"),
    ("function-arguments", f"{RULE} do enqueue qs:property() into b", "2:45", "takes 1 arguments, not 0"),
    ("function-arguments", f"{RULE} do enqueue qs:property('pp') into b", "2:45", "no property pp; did you mean p?"),
    ("function-arguments", f"{RULE} do enqueue qs:message#0 into b", "2:45", "must be called by its name"),
    ("function-arguments", f"{RULE} do enqueue 'a' => qs:queue() into b", "2:52", "must be called by its name"),
    ("function-arguments", f"{RULE} do enqueue collection('d') into b", "2:45", "no collection d"),
    ("function-arguments", f"{RULE} do enqueue fn:collection() into b", "2:45", "takes 1 arguments, not 0"),
    ("variable-name", f"{RULE} do enqueue\n  $qs:m into b", "3:3", "$qs:m: a variable with a prefix is one that"),
    (
        "variable-name",
        f"{RULE} let $qs:message := 1 return do enqueue . into b",
        "2:38",
        "a variable with a prefix",
    ),
    (
        "variable-name",
        f"{RULE} do enqueue $Q{{urn:postroom:qs}}m into b",
        "2:45",
        "a variable with a prefix",
    ),
    (
        "variable-name",
        f"{RULE} do enqueue <y xmlns:z='urn:postroom:qs'>{{$z:m}}</y> into b",
        "2:75",
        "$z:m: a variable with a prefix",
    ),
    ("variable-name", f"{RULE} do enqueue $Q{{urn:x}}m into b", "2:45", "a variable with a prefix"),
    (
        "variable-name",
        "create property q as xs:string queue a value $qs:m",
        "2:46",
        "a variable with a prefix",
    ),
]


def problems(
    text: str, queues: frozenset[str] = frozenset(), collections: frozenset[str] = frozenset()
) -> list[Problem]:
    before, cut, after = text.partition("---\n")  # declarations come first in a file
    text = f"{after}{before}" if cut else text
    text, _, module = text.partition("===\n")
    libraries = (parse_library(module, "f.xqm"),) if module else ()
    try:
        check(Program((*parse(text, "f.demaq"), *libraries)), queues, collections, ENDPOINTS)
    except ProgramInvalid as error:
        return list(error.facts["problems"])
    return []


def names() -> set[str]:
    return {each.__name__.replace("_", "-") for each in CHECKS}


@pytest.mark.parametrize(("name", "text", "where", "what"), CASES, ids=lambda value: str(value).split("\n")[0][:60])
def test_a_check_tells_what_breaks_it_and_where(name: str, text: str, where: str, what: str) -> None:
    found = [each for each in problems(AROUND + text) if each.rule == name]
    assert [str(each.position).partition(":")[2] for each in found] == where.split()
    assert what in found[0].what


@pytest.mark.parametrize("name", sorted(names()))
def test_every_check_has_a_case_here(name: str) -> None:
    assert name in {case[0] for case in CASES}


def test_every_case_is_of_a_check() -> None:
    assert {case[0] for case in CASES} <= names()


def test_what_surrounds_the_cases_breaks_no_check() -> None:
    assert problems(AROUND) == []


@pytest.mark.parametrize(
    "text",
    [
        f"{RULE} (do enqueue . into a, do enqueue . into b)",
        f"{RULE} do enqueue . into b else ()",
        f"{RULE} for $x in //y return do enqueue $x into b",
        f"{RULE} do enqueue . into wait with target value 'a' with timeout value 5",
        f"{RULE} do enqueue <m>{{qs:property('mine')}}</m> into b with mine value 1",
        f"{RULE} do enqueue qs:property('target') into b",
        f"{RULE} do enqueue collection('c')[1] into b",
        f"{RULE} do enqueue fn:collection('c')[1] into b",
        f"{RULE} do reset s key 1",
        f"{RULE} do enqueue . into postroom-errors",
        "create rule r for s if (qs:slice()) then do reset",
        "create property target as xs:string queue wait value 'a' "
        "create property timeout as xs:integer queue wait value 1 "
        f"{RULE} do enqueue . into wait",
        "create slicing t on connection",
        "create module m errorqueue postroom-errors",
    ],
)
def test_what_is_right_passes(text: str) -> None:
    assert problems(AROUND + text) == []


def test_queues_and_collections_of_the_room_count_too() -> None:
    text = (
        "create rule r for hand if (/x) then do enqueue collection('old') into made "
        "create property q as xs:int queue hand"
    )
    assert [each.rule for each in problems(text)] == [
        "rule-target",
        "function-arguments",
        "queue-known",
        "property-queues",
    ]
    assert problems(text, frozenset({"hand", "made"}), frozenset({"old"})) == []


def test_every_problem_is_told_in_the_order_of_the_text_with_syntax_errors_of_bodies() -> None:
    found = problems(
        AROUND
        + f"""{RULE} do enqueue . into;
        create rule r2 for nowhere if (/x) then do enqueue . into b
        create rule r3 for a if (/x) then
            do enqueue doc(qs:slicekey()) into c
        """
    )
    assert [(each.position.line, each.position.column, each.rule) for each in found] == [
        (2, 51, "syntax"),
        (3, 9, "rule-target"),
        (5, 24, "function-allowed"),
        (5, 28, "function-arguments"),
        (5, 48, "queue-known"),
    ]


def test_a_subject_reads_each_body_once_and_keeps_what_cannot_be_read() -> None:
    subject = Subject(
        Program(parse(f"{AROUND}{RULE} do enqueue . into b create rule x for a if (1) then", "f.demaq")), frozenset()
    )
    assert list(subject.bodies) == ["r"]
    assert [each.rule for each in subject.unreadable] == ["syntax"]

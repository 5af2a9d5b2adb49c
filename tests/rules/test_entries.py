"""What a message gets before it enters a queue: explicit, inherited and computed values, slices, times."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.rules.conftest import Load

from postroom.engine.steps.effects import Document
from postroom.engine.steps.failures import Failure
from postroom.limits import BODY_BYTES_MAX, ECHO_SECONDS_MAX
from postroom.rules.compilation.compiler import compiled
from postroom.rules.compilation.plan import Plan
from postroom.rules.entries import (
    RESERVED,
    Candidate,
    Entry,
    admit,
    inherited,
    stored,
    text_of,
    timeout_seconds,
    value_of,
)
from postroom.rules.language.definitions import Program
from postroom.rules.language.reader import TYPES, parse

QUEUES = """create queue a kind basic mode persistent create queue b kind basic mode persistent
create queue wait kind echo mode persistent
"""


def plan(text: str) -> Plan:
    return compiled(Program(parse(QUEUES + text, "f.demaq")), 1, "m", known=frozenset({"a", "b", "wait"}))


def entered(text: str, body: str = "<x/>", queue: str = "a", form: str = "xml", **explicit: Any) -> Entry | Failure:
    made = plan(text)
    (found,) = admit(made, made.target(queue), [Candidate(Document(0, form, None, body), explicit, {})])
    return found


def properties(text: str, body: str = "<x/>", **explicit: Any) -> Any:
    found = entered(text, body, **explicit)
    return json.loads(found.properties) if isinstance(found, Entry) else found.code


#: For each type: a text that fits, what is stored of it, and one that does not fit.
CASTS: dict[str, tuple[str, Any, str]] = {
    "anyURI": ("http://x.example/", "http://x.example/", ""),
    "boolean": (" 1 ", True, "yes"),
    "byte": ("-12", -12, "128"),
    "date": ("2026-02-28", "2026-02-28", "2026-02-30"),
    "dateTime": ("2026-01-01T10:00:00.50Z", "2026-01-01T10:00:00.5Z", "2026-01-01"),
    "dayTimeDuration": ("PT90S", "PT1M30S", "P1Y"),
    "decimal": ("1.500", "1.5", "1e3"),
    "double": ("1e3", "1000", "x"),
    "duration": ("P1DT36H", "P2DT12H", "1 day"),
    "float": ("0.10", "0.1", "x"),
    "int": ("007", 7, "2147483648"),
    "integer": ("0123456789012345678", 123456789012345678, "1.5"),
    "long": ("-5", -5, "9223372036854775808"),
    "nonNegativeInteger": ("0", 0, "-1"),
    "positiveInteger": ("1", 1, "0"),
    "short": ("1", 1, "40000"),
    "string": (" a ", " a ", ""),
    "time": ("10:00:00", "10:00:00", "25:00:00"),
    "yearMonthDuration": ("P14M", "P1Y2M", "P1D"),
}


@pytest.mark.parametrize("type", TYPES)
def test_a_value_is_cast_to_its_type_and_stored_in_one_form(type: str) -> None:
    good, kept, bad = CASTS[type]
    computed = f"create property p as xs:{type} queue a value //v"
    assert properties(computed, f"<x><v>{good}</v></x>") == {"p": kept}
    assert properties(f"create property p as xs:{type} queue a", p=good) == {"p": kept}
    if bad:
        assert properties(computed, f"<x><v>{bad}</v></x>") in ("FORG0001", "FOCA0003", "FODT0001")
        assert properties(f"create property p as xs:{type} queue a", p=bad) in ("FORG0001", "FOCA0003", "FODT0001")


def test_every_type_has_its_case() -> None:
    assert set(CASTS) == set(TYPES)


@pytest.mark.parametrize(
    ("value", "body", "expected"),
    [
        ("//v", "<x/>", {}),
        ("()", "<x/>", {}),
        ("//v", "<x><v>1</v><v>1</v></x>", {"p": "1"}),
        ("//v", "<x><v>1</v><v>2</v></x>", "PR0002"),
        ("//v/@a", "<x><v a='1'/></x>", {"p": "1"}),
        ("string(/x)", "<x/>", {"p": ""}),
        ("count(//v)", "<x><v/></x>", {"p": "1"}),
        ("qs:message()//v", "<x><v>1</v></x>", {"p": "1"}),
        ("1 div 0", "<x/>", "FOAR0001"),
        ("error()", "<x/>", "FOER0000"),
        ("if (//v) then 'yes' else 'no'", "<x><v/></x>", {"p": "yes"}),
    ],
)
def test_a_computed_value_is_one_value_or_none(value: str, body: str, expected: Any) -> None:
    assert properties(f"create property p as xs:string queue a value {value}", body) == expected


def test_true_and_false_are_constants_of_a_boolean() -> None:
    assert properties("create property p as xs:boolean queue a value true") == {"p": True}
    assert properties("create property p as xs:boolean queue a value false") == {"p": False}
    assert properties("create property p as xs:string queue a value true") == {}


def test_an_explicit_value_comes_before_a_computed_one_and_a_fixed_one_cannot_be_set() -> None:
    text = "create property p as xs:string queue a value 'computed'"
    assert properties(text) == {"p": "computed"}
    assert properties(text, p="explicit") == {"p": "explicit"}
    fixed = text.replace("queue", "fixed queue", 1)
    assert properties(fixed) == {"p": "computed"}
    assert properties(fixed, p="explicit") == "PR0003"


def test_undeclared_properties_are_kept_with_their_kind() -> None:
    text = "create property p as xs:string queue a value 'x'"
    assert properties(text, s="1", i=1, b=True, big=10**15) == {"p": "x", "s": "1", "i": 1, "b": True, "big": 10**15}
    assert properties("", s="1", i=1, f=1.5, none=None) == {"s": "1", "i": 1, "f": 1.5, "none": None}


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_what_the_system_writes_may_not_be_claimed(name: str) -> None:
    made = plan("create property p as xs:string queue a")
    (found,) = admit(made, made.target("a"), [Candidate(Document(0, "xml", None, "<x/>"), {name: "x"}, {})])
    assert isinstance(found, Failure)
    assert found.code == "PR0003"


def test_a_number_that_no_program_could_read_back_is_refused() -> None:
    assert (
        properties("create property p as xs:integer queue a value //v", f"<x><v>{10**20}</v></x>") == "property-invalid"
    )


def test_slices_are_known_by_the_canonical_text_of_their_property() -> None:
    text = (
        "create property n as xs:integer queue a value //n create slicing s on n "
        "create property b as xs:boolean queue a value //b create slicing t on b"
    )
    found = entered(text, "<x><n>007</n><b>1</b></x>")
    assert isinstance(found, Entry)
    assert found.slices == (("s", "7"), ("t", "true"))
    none = entered(text)
    assert isinstance(none, Entry)
    assert none.slices == ()


def test_a_slice_key_has_a_length_that_every_store_takes() -> None:
    text = "create property p as xs:string queue a value string(/x) create slicing s on p"
    fits = entered(text, f"<x>{'é' * 1_000}</x>")
    assert isinstance(fits, Entry)
    refused = entered(text, f"<x>{'é' * 1_001}</x>")
    assert isinstance(refused, Failure)
    assert (refused.kind, refused.code) == ("message", "property-invalid")


def test_a_body_or_a_property_that_is_too_large_is_a_failure_of_the_message() -> None:
    large = entered("create property p as xs:string queue a", f"<x>{'y' * BODY_BYTES_MAX}</x>")
    assert isinstance(large, Failure)
    assert (large.kind, large.code) == ("message", "body-too-large")
    assert (
        properties("create property p as xs:string queue a value string(/x)", f"<x>{'y' * 5000}</x>")
        == "property-invalid"
    )
    many: dict[str, Any] = {f"p{number}": 1 for number in range(101)}
    assert properties("", **many) == "property-invalid"


@pytest.mark.parametrize(
    ("timeout", "microseconds"),
    [
        (0, 0),
        (2, 2_000_000),
        ("2", 2_000_000),
        ("0.5", 500_000),
        ("PT0.25S", 250_000),
        ("P1DT1H1M1S", 90_061_000_000),
        (1.5, 1_500_000),
    ],
)
def test_an_echo_queue_waits_seconds_or_a_duration(timeout: Any, microseconds: int) -> None:
    found = entered("", queue="wait", target="b", timeout=timeout)
    assert isinstance(found, Entry)
    assert found.delay == microseconds


@pytest.mark.parametrize(
    "explicit",
    [
        {},
        {"target": "b"},
        {"timeout": 1},
        {"target": "nowhere", "timeout": 1},
        {"target": 5, "timeout": 1},
        {"target": "b", "timeout": "soon"},
        {"target": "b", "timeout": "-1"},
        {"target": "b", "timeout": -1},
        {"target": "b", "timeout": "P1Y"},
        {"target": "b", "timeout": "PT"},
        {"target": "b", "timeout": "P"},
        {"target": "b", "timeout": True},
        {"target": "b", "timeout": None},
        {"target": "b", "timeout": ECHO_SECONDS_MAX + 1},
        {"target": "b", "timeout": "1" * 13},
    ],
)
def test_an_echo_queue_refuses_what_has_no_target_or_no_time(explicit: dict[str, Any]) -> None:
    found = entered("", queue="wait", **explicit)
    assert isinstance(found, Failure)
    assert found.code == "PR0004"


def test_many_are_worked_out_at_once_and_each_has_its_own_answer() -> None:
    made = plan("create property p as xs:integer queue a value //v")
    bodies = ["<x><v>1</v></x>", "<x><v>no</v></x>", "<x/>", "<x><v>2</v><v>3</v></x>", "<x><v>4</v></x>"]
    found = admit(made, made.target("a"), [Candidate(Document(0, "xml", None, body), {}, {}) for body in bodies])
    told = [each.properties if isinstance(each, Entry) else each.code for each in found]
    assert told == ['{"p":1}', "FORG0001", "{}", "PR0002", '{"p":4}']
    assert admit(made, made.target("a"), []) == []


def test_values_of_json_and_text_messages_are_computed_over_what_they_are() -> None:
    json_value = entered("create property p as xs:integer queue a value ?n", '{"n": 5}', form="json")
    text_value = entered("create property p as xs:string queue a value string(.)", "hello", form="text")
    assert isinstance(json_value, Entry)
    assert isinstance(text_value, Entry)
    assert (json_value.properties, text_value.properties) == ('{"p":5}', '{"p":"hello"}')


# --- in a running room -------------------------------------------------------------------------------------------


def test_a_new_message_inherits_from_the_one_that_caused_it_unless_it_is_set(load: Load) -> None:
    room = load(
        f"""{QUEUES}create property p as xs:string inherited queue a, b value string(//v)
        create property q as xs:string queue a, b
        create rule r for a if (/x) then
          (do enqueue <y/> into b, do enqueue <y/> into b with p value "set", do enqueue <y><v>own</v></y> into b)"""
    )
    room.send("a", "<x><v>first</v></x>", format="xml", properties={"q": "not inherited"})
    room.run_until_idle()
    assert [each.properties for each in room.queues.info("b")] == [
        {"p": "first", "rule": "r"},
        {"p": "set", "rule": "r"},
        {"p": "first", "rule": "r"},
    ]


def test_without_a_value_to_inherit_it_is_computed(load: Load) -> None:
    room = load(
        f"""{QUEUES}create property p as xs:string inherited queue a queue b value string(//v)
        create rule r for a if (/x) then do enqueue <y><v>own</v></y> into b"""
    )
    room.send("a", "<x/>", format="xml")
    room.run_until_idle()
    assert [each.properties for each in room.queues.info("b")] == [{"p": "own", "rule": "r"}]


def test_true_is_not_one_and_one_is_not_true(load: Load) -> None:
    room = load(
        f"{QUEUES}create rule r for a if (/x) then "
        "(do enqueue <y/> into b with p value 1, do enqueue <y/> into b with p value true())"
    )
    room.send("a", "<x/>", format="xml")
    room.run_until_idle()
    assert [each.properties["p"] for each in room.queues.info("b")] == [1, True]
    assert [type(each.properties["p"]) for each in room.queues.info("b")] == [int, bool]


# --- the parts ---------------------------------------------------------------------------------------------------


def test_values_are_text_in_one_way() -> None:
    assert [text_of(value) for value in (True, False, 1, "x", 1.5)] == ["true", "false", "1", "x", "1.5"]
    target = plan("create property p as xs:integer queue a").target("a")
    assert value_of("p", None, "7", target) == 7
    assert value_of("other", None, "7", target) == "7"
    assert value_of("other", "boolean", "true", target) is True


def test_what_is_inherited_is_what_is_defined_so_and_not_set() -> None:
    target = plan("create property p as xs:string inherited queue a create property q as xs:string queue a").target("a")
    assert inherited(target, {"p": "1", "q": "2", "z": "3"}, {}) == {"p": "1"}
    assert inherited(target, {"p": "1"}, {"p": "set"}) == {}
    assert stored("{}") == {}
    assert stored('{"a":1}') == {"a": 1}


def test_a_time_is_seconds_or_a_duration_and_nothing_else() -> None:
    assert [timeout_seconds(each) for each in ("P1D", "PT1H", "1.5", 3, "1e3", "PT1.5S", "", " 1", True, None)] == [
        86400.0, 3600.0, 1.5, 3.0, None, 1.5, None, None, None, None,
    ]  # fmt: skip


@pytest.mark.parametrize("digits", [20, 4_000, 5_000])
def test_a_whole_number_beyond_64_bits_is_refused_however_many_digits_it_has(load: Load, digits: int) -> None:
    """Python reads no more than 4,300 digits: the sender got its error, and the engine lost its worker."""
    long = f"xs:integer(string-join((1 to {digits}) ! '9'))"
    declared = "create property p as xs:integer queue a"
    found = entered(f"{declared} value {long}")
    assert isinstance(found, Failure)
    assert (found.code, "64 bits" in found.description) == ("property-invalid", True)
    room = load(
        f"{QUEUES}create queue start kind basic mode persistent {declared} create slicing s on p\n"
        f"create rule r for start if (/x) then do enqueue <y/> into a with p value {long}\n"
        f"create rule t for start if (/x) then do enqueue <y/> into b with n value {long}"
    )
    room.send("start", "<x/>", format="xml")
    room.run_until_idle()
    (error,) = room.queues.info("postroom-errors")
    assert "64 bits" in error.body
    assert not list(room.queues.info("a"))

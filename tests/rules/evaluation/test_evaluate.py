"""From messages to effects: errors as messages, their levels and their end, budgets, echoes, what a rule may ask."""

from __future__ import annotations

from typing import Any

import pytest
from tests.rules.conftest import Load

from postroom.engine.steps.effects import Arrival, Enqueue, ResetSlice
from postroom.rules.compilation.compiler import compiled
from postroom.rules.compilation.plan import Plan
from postroom.rules.evaluation.evaluate import evaluate_alone, evaluate_chunk
from postroom.rules.language.definitions import Program
from postroom.rules.language.reader import parse

QUEUES = "".join(f"create queue {name} kind basic mode persistent\n" for name in ("a", "b", "c", "e1", "e2", "e3"))


def plan(text: str) -> Plan:
    return compiled(Program(parse(QUEUES + text, "f.demaq")), 1, "m")


def arrival(order: int, body: str, queue: str = "a", properties: str = "{}", **more: Any) -> Arrival:
    return Arrival(order, queue, 100_001 + order, "xml", None, body, properties, 0, None, **more)


def effects(text: str, *bodies: str, **more: Any) -> list[Any]:
    arrivals = [arrival(number, body, **more) for number, body in enumerate(bodies)]
    found, unsettled = evaluate_chunk(plan(text), arrivals, {})
    assert not unsettled
    return [found[number] for number in range(len(bodies))]


def told(body: str) -> dict[str, str]:
    """The parts of an error message."""
    parts = {}
    for name in ("class", "code", "description", "rule", "queue"):
        if f"<{name}>" in body:
            parts[name] = body.partition(f"<{name}>")[2].partition(f"</{name}>")[0]
    return parts


# --- actions -----------------------------------------------------------------------------------------------------


def test_all_rules_of_a_message_act_in_the_order_of_definition() -> None:
    (found,) = effects(
        """create property k as xs:string queue a value //k create slicing s on k
        create rule second for a if (/x) then (do enqueue <one/> into b, do reset s key "k")
        create rule first for a if (/x) then do enqueue <two/> into c""",
        "<x/>",
    )
    assert [(type(each).__name__, each.rule) for each in found] == [
        ("Enqueue", "second"),
        ("ResetSlice", "second"),
        ("Enqueue", "first"),
    ]
    assert found[1] == ResetSlice("second", "s", "k")
    assert found[2] == Enqueue("first", "c", "xml", None, '{"rule":"first"}', "<two/>")


def test_messages_of_one_query_do_not_mix() -> None:
    found = effects(
        "create rule r for a if (/x) then do enqueue <y>{string(/x)}</y> into b", "<x>1</x>", "<n/>", "<x>3</x>"
    )
    assert [[each.body for each in made] for made in found] == [["<y>1</y>"], [], ["<y>3</y>"]]


def test_a_failing_rule_takes_all_actions_of_its_message_back_and_of_no_other() -> None:
    found = effects(
        """create rule one for a if (/x) then (do enqueue <y/> into b, do enqueue <z/> into b)
        create rule two for a if (/x) then do enqueue <n>{xs:integer(/x)}</n> into c""",
        "<x>1</x>",
        "<x>no</x>",
        "<x>3</x>",
    )
    assert [[each.queue for each in made] for made in found] == [["b", "b", "c"], ["postroom-errors"], ["b", "b", "c"]]
    (error,) = found[1]
    assert error.failed
    assert told(error.body) == {
        "class": "application",
        "code": "FORG0001",
        "description": told(error.body)["description"],
        "rule": "two",
        "queue": "a",
    }
    assert '<initialMessage key="00001.00002"><x>no</x></initialMessage>' in error.body


def test_a_rule_that_fails_after_a_part_of_its_answer_was_written_leaves_none_of_it() -> None:
    text = "create rule r for a if (/x) then for $n in //n return do enqueue <y>{$n, 1 div xs:integer($n)}</y> into b"
    many = "".join(f"<n>{number}</n>" for number in range(50, -1, -1))
    found = effects(text, "<x><n>1</n></x>", f"<x>{many}</x>", "<x><n>2</n></x>")
    assert [len(made) for made in found] == [1, 1, 1]
    assert [made[0].failed for made in found] == [False, True, False]
    assert told(found[1][0].body)["code"] == "FOAR0001"


@pytest.mark.parametrize(
    ("action", "code"),
    [
        ("do enqueue () into b", "PR0001"),
        ("do enqueue (1, 2) into b", "PR0001"),
        ("do enqueue //@a into b", "PR0001"),
        ("do enqueue abs#1 into b", "PR0001"),
        ("do enqueue comment { 'x' } into b", "PR0001"),
        ("do enqueue <!-- x --> into b", "PR0001"),
        ("do enqueue <?go there?> into b", "PR0001"),
        ("do enqueue . into b with p value (1, 2)", "PR0002"),
        ("do enqueue . into b with n value 'x'", "FORG0001"),
        ("do reset s key 'x'", "FORG0001"),
        ("do reset s key (1, 2)", "XPTY0004"),
        ("do enqueue error(QName('urn:mine', 'm:MINE'), 'my own') into b", "m:MINE"),
        ("do enqueue map { 'f': abs#1 } into b", "SERE0021"),
    ],
)
def test_what_cannot_be_done_is_an_error_with_its_code(action: str, code: str) -> None:
    (found,) = effects(
        "create property n as xs:integer queue b create slicing s on n "
        f"create rule r for a if (/x) then (do enqueue <y/> into c, {action})",
        "<x a='1'/>",
    )
    assert [told(each.body)["code"] for each in found] == [code]


def test_a_json_null_is_nothing_and_those_behind_it_are_themselves() -> None:
    text = "create rule r for a if (true()) then do enqueue <n>{string(.)}</n> into b"
    arrivals = [
        Arrival(n, "a", 100_001 + n, "json", None, body, "{}", 0, None) for n, body in enumerate(("1", "null", "2"))
    ]
    found, unsettled = evaluate_chunk(plan(text), arrivals, {})
    assert not unsettled
    assert [[made.body for made in found[number] if isinstance(made, Enqueue)] for number in range(3)] == [
        ["<n>1</n>"],
        [],
        ["<n>2</n>"],
    ]


def test_too_many_actions_or_too_much_output_is_over_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "create rule r for a if (/x) then for $n in 1 to xs:integer(/x) return do enqueue <y>{$n}</y> into b"
    monkeypatch.setattr("postroom.rules.evaluation.evaluate.MESSAGE_ACTIONS_MAX", 5)
    small, large = effects(text, "<x>5</x>", "<x>6</x>")
    assert len(small) == 5
    assert (told(large[0].body)["class"], told(large[0].body)["code"]) == ("system", "PR0006")
    monkeypatch.setattr("postroom.rules.evaluation.evaluate.MESSAGE_OUTPUT_BYTES_MAX", 20)
    two, three = effects(text, "<x>2</x>", "<x>3</x>")
    assert (len(two), [told(each.body)["code"] for each in three]) == (2, ["PR0006"])


def test_an_arrival_that_killed_its_worker_becomes_an_error_and_is_not_evaluated() -> None:
    (found,) = effects("create rule r for a if (error()) then do enqueue . into b", "<x/>", failure="it took too long")
    assert (told(found[0].body)["class"], told(found[0].body)["code"]) == ("system", "PR0005")
    assert told(found[0].body)["description"] == "it took too long"
    assert told(found[0].body)["rule"] == "r"


def test_the_error_of_a_worker_that_was_killed_names_every_rule_that_was_evaluated() -> None:
    """One query has all rules of a queue; which of them took too long nobody can tell."""
    rules = "".join(f"create rule r{number} for a if (/x) then do enqueue . into b\n" for number in range(3))
    (found,) = effects(f"{rules} create rule other for c if (/x) then do enqueue . into b", "<x/>", failure="killed")
    assert len(found) == 1
    assert "<rule>r0</rule><rule>r1</rule><rule>r2</rule><queue>a</queue>" in found[0].body
    assert "other" not in found[0].body


def test_each_alone_sees_nothing_of_the_others() -> None:
    made = plan("create rule r for a if (/x) then do enqueue <y/> into b")
    found = evaluate_alone(made, [arrival(0, "<x/>"), arrival(1, "<n/>")], {})
    assert [len(found.get(number, ())) for number in (0, 1)] == [1, 0]


def test_an_error_message_of_a_very_large_message_refers_to_it() -> None:
    body = f"<x>{'y' * (4 * 1024 * 1024 - 100)}</x>"
    (found,) = effects("create rule r for a if (error()) then do enqueue . into b", body)
    assert found[0].body.endswith('<initialMessage key="00001.00001" omitted="true"/></error>')


# --- error queues ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "queue", "module", "system", "expected"),
    [
        (" errorqueue e1", "errorqueue e2", "errorqueue e3", True, "e1"),
        ("", "errorqueue e2", "errorqueue e3", True, "e2"),
        ("", "", "errorqueue e3", True, "e3"),
        ("", "", "", True, "c"),
        ("", "", "", False, "postroom-errors"),
    ],
)
def test_an_error_goes_to_the_nearest_error_queue(
    load: Load, rule: str, queue: str, module: str, system: bool, expected: str
) -> None:
    room = load(
        f"""create module m {module} {"create system errorqueue c" if system else ""}
        {QUEUES.replace("queue a kind basic mode persistent", f"queue a kind basic mode persistent {queue}")}
        create rule r for a{rule} if (error()) then do enqueue . into b"""
    )
    room.send("a", "<x/>", format="xml")
    room.run_until_idle()
    waiting = {each.queue: each.unprocessed for each in room.queues.accept().queues if each.unprocessed}
    assert waiting == {expected: 1}
    assert [each.body for each in room.queues.history("a")] == ["<x/>"]


def test_an_error_of_an_error_goes_one_level_up_and_never_back(load: Load) -> None:
    room = load(
        f"""create module m errorqueue e2 create system errorqueue e3 {QUEUES}
        create rule r for a errorqueue e1 if (error()) then do enqueue . into b
        create rule r1 for e1 errorqueue e1 if (error()) then do enqueue . into b
        create rule r2 for e2 if (error()) then do enqueue . into b"""
    )
    room.send("a", "<x/>", format="xml")
    room.run_until_idle()
    assert [len(list(room.queues.history(queue))) for queue in ("a", "e1", "e2")] == [1, 1, 1]
    (last,) = room.queues.info("e3")
    assert told(last.body)["rule"] == "r2"
    assert last.body.count("<error>") == 3
    assert last.properties["errors"] == 3


def test_errors_that_go_round_end(load: Load) -> None:
    room = load(
        f"""{QUEUES}create rule r for a errorqueue e1 if (error()) then do enqueue . into b
        create rule r1 for e1 errorqueue e2 if (error()) then do enqueue . into b
        create rule r2 for e2 errorqueue e1 if (error()) then do enqueue . into b"""
    )
    room.send("a", "<x/>", format="xml")
    room.run_until_idle()
    (last,) = room.queues.info("postroom-errors")
    assert last.properties["errors"] == 9
    assert sum(len(list(room.queues.history(queue))) for queue in ("a", "e1", "e2")) == 9


def test_an_error_queue_that_refuses_the_error_is_passed_over(load: Load, tmp_path: Any) -> None:
    (tmp_path / "x.xsd").write_text(
        '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="x"/></xs:schema>'
    )
    room = load(
        f"""{QUEUES}create queue strict kind basic mode persistent schema x.xsd
        create rule r for a errorqueue strict if (error()) then do enqueue . into b"""
    )
    room.send("a", "<x/>", format="xml")
    room.run_until_idle()
    assert list(room.queues.info("strict")) == []
    assert len(list(room.queues.info("postroom-errors"))) == 1


@pytest.mark.parametrize("errors", ["abc", True, -(10**6), 2**40, None, 1.5])
def test_what_a_sender_writes_as_its_number_of_errors_harms_nothing(load: Load, errors: Any) -> None:
    room = load(f"{QUEUES}create rule r for a if (error()) then do enqueue . into b")
    room.send("a", "<x/>", format="xml", properties={"errors": errors})
    room.run_until_idle()
    assert len(list(room.queues.info("postroom-errors"))) == 1


def test_a_body_that_does_not_fit_the_schema_of_its_target_is_an_error_of_the_message(
    load: Load, tmp_path: Any
) -> None:
    (tmp_path / "x.xsd").write_text(
        '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="x"/></xs:schema>'
    )
    room = load(
        f"""{QUEUES}create queue strict kind basic mode persistent schema x.xsd
        create rule r for a if (true()) then do enqueue . into strict"""
    )
    for body in ("<x/>", "<y/>", "text"):
        room.send("a", body, format="xml" if body[0] == "<" else "text")
    room.run_until_idle()
    assert [each.body for each in room.queues.info("strict")] == ["<x/>"]
    assert [(told(each.body)["class"], told(each.body)["code"]) for each in room.queues.info("postroom-errors")] == [
        ("message", "schema-invalid")
    ] * 2


# --- what a rule may ask -----------------------------------------------------------------------------------------


def test_system_properties_tell_what_the_system_knows(load: Load) -> None:
    names = ("key", "queue", "rule", "cause", "sender", "connection", "size")
    asked = "".join(f"<{name}>{{qs:property('{name}')}}</{name}>" for name in names)
    room = load(
        f"""{QUEUES}create rule one for a if (/x) then do enqueue <y>{asked}</y> into b
        create rule two for b if (/y) then do enqueue <z>{asked}
          {{qs:property("created") instance of xs:dateTime}}</z> into c"""
    )
    sent = room.send("a", "<x>é</x>", format="xml").key
    room.run_until_idle()
    (first,), (second,) = room.queues.history("b"), room.queues.info("c")
    assert first.body == (
        f"<y><key>{sent}</key><queue>a</queue><rule/><cause/><sender>tester</sender><connection/><size>9</size></y>"
    )
    assert second.body == (
        f"<z><key>{first.key}</key><queue>b</queue><rule>one</rule><cause>{sent}</cause><sender/><connection/>"
        f"<size>{len(first.body)}</size>true</z>"
    )
    assert second.cause == first.key


def test_a_rule_reads_typed_and_given_properties(load: Load) -> None:
    room = load(
        f"""{QUEUES}create property n as xs:integer queue a create property d as xs:date queue a
        create rule r for a if (qs:property("n") + 1 = 8 and qs:property("d") lt xs:date("2027-01-01")) then
        do enqueue <y>{{qs:property("free"), empty(qs:property("none"))}}</y> into b
        create rule never for b if (/never) then do enqueue . into b with free value 1 with none value 2"""
    )
    room.send("a", "<x/>", format="xml", properties={"n": 7, "d": "2026-01-01", "free": "f"})
    room.run_until_idle()
    assert [each.body for each in room.queues.history("b")] == ["<y>f true</y>"]


def test_a_rule_cannot_claim_what_the_system_writes(load: Load) -> None:
    room = load(f'{QUEUES}create rule r for a if (qs:property("rule")) then do enqueue <y/> into b')
    with pytest.raises(Exception, match="property rule is set by the system"):
        room.send("a", "<x/>", format="xml", properties={"rule": "forged"})


# --- echoes ------------------------------------------------------------------------------------------------------


def test_an_echo_passes_its_message_on_with_what_was_set_on_it(load: Load) -> None:
    room = load(
        f"""{QUEUES}create queue wait kind echo mode persistent
        create property k as xs:string queue b value string(//k)
        create rule r for a if (/x) then do enqueue . into wait
          with target value "b" with timeout value 0 with mine value 5"""
    )
    room.send("a", "<x><k>1</k></x>", format="xml")
    room.run_until_idle()
    (echo,), (found,) = room.queues.history("wait"), room.queues.info("b")
    assert found.body == echo.body == "<x><k>1</k></x>"
    assert found.cause == echo.key
    assert {name: value for name, value in found.properties.items() if name != "rule"} == {"k": "1", "mine": 5}
    assert echo.properties["target"] == "b"


def test_an_echo_whose_target_is_gone_or_refuses_becomes_an_error(load: Load) -> None:
    room = load(
        f"{QUEUES}create queue wait kind echo mode persistent create property n as xs:integer queue c value //n"
    )
    room.queues.create("hand")
    room.send("wait", "<x/>", format="xml", properties={"target": "hand", "timeout": 0})
    room.send("wait", "<x><n>no</n></x>", format="xml", properties={"target": "c", "timeout": 0})
    room.queues.remove("hand")
    room.run_until_idle()
    codes = [(told(each.body)["class"], told(each.body)["code"]) for each in room.queues.info("postroom-errors")]
    assert codes == [("system", "PR0004"), ("application", "FORG0001")]

"""Which reads of a queue an index answers, and which read all of it."""

from __future__ import annotations

import pytest
from tests.rules.conftest import Load

from postroom.rules.compilation.compiler import compiled
from postroom.rules.compilation.plan import Index, Plan, Read
from postroom.rules.language.definitions import Program
from postroom.rules.language.reader import parse

QUEUES = """create queue a kind basic mode persistent create queue b kind basic mode persistent
create property p as xs:string queue a value //p create property n as xs:integer queue a value //n
create slicing s on p
"""


def plan(condition: str, target: str = "a") -> Plan:
    text = f"{QUEUES}create rule r for {target} if ({condition}) then do enqueue <x/> into b"
    return compiled(Program(parse(text, "f.demaq")), 1, "m")


def reads(condition: str, target: str = "a") -> list[str]:
    return [str(each) for each in plan(condition, target).queues["a"].reads]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ('qs:queue("b")[x = "v"]', "index b x by literal v"),
        ('qs:queue("b")["v" = x]', "index b x by literal v"),
        ('qs:queue("b")[//x = "v"]', "index b //x by literal v"),
        ('qs:queue("b")[x/@y = "v&amp;w"]', "index b x/@y by literal v&w"),
        ('qs:queue("b")[.//x = "v"]', "index b .//x by literal v"),
        ('qs:queue("b")[x = qs:message()/y]', "index b x by probe a ./y"),
        ('qs:queue("b")[x = qs:message()//y/@z]', "index b x by probe a .//y/@z"),
        ('qs:queue("b")[x = qs:property("p")]', "index b x by property p"),
        ('qs:queue("b")[x = "v" and y = qs:message()/y]', "index b x by literal v"),
        ('qs:queue("b")[y and x = "v"]', "index b x by literal v"),
        ('qs:queue("b")[y or x][x = "v"]', "the whole queue b"),
        ('qs:queue("b")/x[y = "v"]', "index b ./x ! (y) by literal v"),
        ('qs:queue("b")//x[@y = "v"]/z', "index b .//x ! (@y) by literal v"),
        ('qs:queue("b")[y]/x[z = "v"]', "index b .[y]/x ! (z) by literal v"),
        ('qs:queue()[x = "v"]', "index a x by literal v"),
        ('let $b := qs:queue("b") return $b[x = "v"]', "index b x by literal v"),
        ('let $b := qs:queue("b")/y return $b[x = "v"] and $b[x = "v"]', "index b ./y ! (x) by literal v"),
        ('let $k := /k return qs:queue("b")[x = $k]', "index b x by probe a /k"),
        ('let $k := qs:message()/k return qs:queue("b")[x = $k]', "index b x by probe a ./k"),
    ],
)
def test_an_equality_with_something_of_the_message_is_answered_by_an_index(condition: str, expected: str) -> None:
    assert reads(condition) == [expected]


def test_a_slice_key_is_the_property_of_the_slicing() -> None:
    assert reads('qs:queue("b")[x = qs:slicekey()]', "s") == ["index b x by property p"]


@pytest.mark.parametrize(
    "condition",
    [
        'qs:queue("b")',
        'qs:queue("b")[1]',
        'qs:queue("b")[last()]',
        'qs:queue("b")[x]',
        'qs:queue("b")[x = 5]',
        'qs:queue("b")[x eq "v"]',
        'qs:queue("b")[x != "v"]',
        'qs:queue("b")[x > "v"]',
        'qs:queue("b")[x = "v" or y = "w"]',
        'qs:queue("b")[not(x = "v")]',
        'qs:queue("b")[x = ("v", "w")]',
        'qs:queue("b")[x = "v" and position() = 2]',
        'qs:queue("b")[lower-case(x) = "v"]',
        'qs:queue("b")[x + 1 = "v"]',
        'qs:queue("b")[x = y]',
        'qs:queue("b")[x = qs:property("n")]',
        'qs:queue("b")[x = qs:property("free")]',
        'qs:queue("b")[x = /k]',
        'qs:queue("b")[x = string(qs:message()/k)]',
        'count(qs:queue("b")) and qs:queue("b")[x]',
        '(qs:queue("b"))[x = "v"]',
        'let $b := qs:queue("b") return $b[x = "v"] or count($b) = 2',
        'let $b := qs:queue("b") return $b[x = "v"] and $b[x = "w"]',
        'for $k in //k return qs:queue("b")[x = $k]',
        'let $k := . return qs:queue("b")[x = $k]',
        '//y[let $k := /k return qs:queue("b")[x = $k]]',
        'some $b in qs:queue("b") satisfies $b/x = "v"',
        'qs:queue("b") ! x[. = "v"]',
        'qs:queue("b")[x = "&unknown;"]',
    ],
)
def test_everything_else_reads_the_whole_queue(condition: str) -> None:
    assert reads(condition) == ["the whole queue b"]


def test_an_index_of_the_reader_and_one_of_its_own_messages_are_kept() -> None:
    made = plan('qs:queue("b")[x = qs:message()/y]')
    assert made.indexes == {"b x": Index("b x", "b", "x"), "a ./y": Index("a ./y", "a", "./y")}
    assert made.target("a").indexes == ("a ./y",)
    assert made.target("b").indexes == ("b x",)
    assert isinstance(made.queues["a"].reads[0], Read)


PAPER = [
    (
        'let $invoices := qs:queue("b") return $invoices[//customerID = qs:message()//customerID]',
        "index b //customerID by probe a .//customerID",
    ),
    (
        'let $request := qs:queue("b")/offerRequest '
        "let $items := $request[//requestID = qs:slicekey()]/items return $items",
        "index b ./offerRequest ! (//requestID) by property p",
    ),
    (
        'let $orders := qs:queue("b")//customerOrder let $id := /error/initialMessage//orderID '
        "return $orders[orderID = $id]/address",
        "index b .//customerOrder ! (orderID) by probe a /error/initialMessage//orderID",
    ),
    (
        'let $mRID := qs:message()//requestID return qs:queue("b")[//requestID = $mRID]',
        "index b //requestID by probe a .//requestID",
    ),
    (
        'let $mRID := qs:message()//requestID let $payments := qs:queue("b")[paymentConfirmation] '
        "return not($payments[//requestID = $mRID])",
        "index b .[paymentConfirmation] ! (//requestID) by probe a .//requestID",
    ),
]


@pytest.mark.parametrize(("condition", "expected"), PAPER)
def test_what_the_paper_writes_is_answered_by_an_index(condition: str, expected: str) -> None:
    assert reads(condition, "s") == [expected]


# --- the answers -------------------------------------------------------------------------------------------------


def ran(load: Load, condition: str, stored: list[str], message: str) -> str:
    """What a rule makes of a message when others are stored in b: the values of those that it found."""
    room = load(
        f"{QUEUES}create queue out kind basic mode persistent create rule r for a if (/m) then "
        f"do enqueue <o>{{({condition}) ! string-join((.//x)[1])}}</o> into out"
    )
    for body in stored:
        room.send("b", body, format="xml")
    room.send("a", message, format="xml")
    room.run_until_idle()
    return next(each.body for each in room.queues.info("out"))


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize(
    ("condition", "stored", "message", "expected"),
    [
        ('qs:queue("b")[m/x = qs:message()/m/y]', ["1", "2", "1", "3"], "<m><y>1</y><y>3</y></m>", "1 1 3"),
        ('qs:queue("b")[m/x = qs:message()/m/y]', ["1", "2"], "<m/>", ""),
        ('qs:queue("b")[m/x = "  1 "]', ["  1 ", "1", "1 "], "<m/>", "  1 "),
        ('qs:queue("b")[m/x = "01"]', ["1", "01"], "<m/>", "01"),
        ('qs:queue("b")[m/x = qs:property("p")]', ["é", "e"], "<m><p>é</p></m>", "é"),
        ('qs:queue("b")[m/x = qs:property("p")]', ["", "e"], "<m/>", ""),
    ],
)
def test_an_index_finds_what_the_predicate_would_leave(
    load: Load, indexed: bool, condition: str, stored: list[str], message: str, expected: str
) -> None:
    if not indexed:
        condition = condition.replace("[m/x", "[(m/x)")
    bodies = [f"<m><x>{each}</x></m>" for each in stored]
    assert ran(load, condition, bodies, message) == (f"<o>{expected}</o>" if expected else "<o/>")


def test_long_values_are_compared_whole(load: Load) -> None:
    long = "v" * 3_000
    bodies = [f"<m><x>{long}</x></m>", f"<m><x>{long}w</x></m>", f"<m><x>{long}</x><x>{long}z</x></m>"]
    said = ran(load, 'qs:queue("b")[m/x = qs:message()/m/y]', bodies, f"<m><y>{long}</y></m>")
    assert said == f"<o>{long} {long}</o>"


def test_a_new_index_knows_the_messages_that_were_there_before(load: Load) -> None:
    room = load(QUEUES)
    for value in ("1", "2", "1"):
        room.send("b", f"<m><x>{value}</x></m>", format="xml")
    room.send("b", "no XML")
    room.send("a", "<m><y>1</y></m>", format="xml")
    load(
        f"{QUEUES}create queue out kind basic mode persistent create rule r for a if (/m) then "
        'do enqueue <o>{count(qs:queue("b")[m/x = qs:message()/m/y])}</o> into out',
        room,
    )
    room.run_until_idle()
    assert [each.body for each in room.queues.info("out")] == ["<o>2</o>"]
    room.receive("out")
    load(QUEUES, room, drop=True)
    assert room.store.read(lambda tx: tx.session.rows("SELECT count(*) FROM entries")) == [(0,)]

"""What a catch is told: places of the program, in queries that have pieces of several files."""

from __future__ import annotations

from pathlib import Path

from tests.gateways.served import bodies
from tests.rules.conftest import Load

from postroom.rules.compilation.caught import caught_edits, with_caught, with_places
from postroom.rules.compilation.plan import Source
from postroom.rules.language.definitions import Expression
from postroom.rules.language.edits import edited

QUEUES = "create queue a kind basic mode persistent create queue b kind basic mode persistent\n"
ASKED = "{ $err:line-number, $err:column-number, $err:module }"


def test_only_what_is_asked_for_is_put_in() -> None:
    assert list(caught_edits("$err:code, $err:value, '$err:module'", 0, 36)) == []
    (edit,) = caught_edits("1, $err:line-number", 0, 19)
    assert (edit.start, edit.end, "$err:line-number" in edit.replacement) == (3, 19, True)
    assert with_caught("1") == ""
    assert "\n" not in with_caught("qs:caught(")


def test_a_query_knows_where_its_words_were_written() -> None:
    made = edited("ab cd", 0, 5, [])
    text = with_places(with_caught("qs:caught("), [Source(3, made, Expression("ab cd", 7, 9), "p&q.demaq")], [])
    assert '[0, 3, 1, "p&amp;q.demaq", 7, 9], [0, 3, 4, "p&amp;q.demaq", 7, 12], [0, 4, 1, (), (), ()]' in text
    assert with_places("1", [], []) == "1"


def test_a_catch_knows_the_place_in_its_file(load: Load) -> None:
    """It was told the line and the column of a query that nobody sees."""
    room = load(
        f"declare function local:f($x) {{\n xs:date($x) }};\n{QUEUES}"
        "create property p as xs:string queue b value\n"
        f" try {{ xs:date('x') }} catch * {{ string-join(({ASKED[1:-1]})) }}\n"
        f"create rule r for a if (/x) then\n  do enqueue <y>{{try {{ xs:date('x') }} catch * {ASKED}}}</y> into b\n"
        f"create rule s for a if (/x) then do enqueue <z>{{try {{ local:f('x') }} catch * {ASKED}}}</z> into b\n"
        f"create rule t for b if (/z) then do enqueue <p>{{qs:property('p')}}</p> into a"
    )
    room.send("a", "<x/>", format="xml")
    room.run_until_idle()
    assert sorted(bodies(room, "b")) == ["<y>7 32 p.demaq</y>", "<z>2 10 p.demaq</z>"]
    assert bodies(room, "a") == ["<x/>", "<p>516p.demaq</p>"]


def test_a_catch_knows_the_place_in_a_library_module(load: Load, tmp_path: Path) -> None:
    (tmp_path / "m.xqm").write_text("module namespace m = 'urn:m';\ndeclare function m:f($x) {\n xs:date($x) };")
    room = load(QUEUES)
    room.load(tmp_path / "m.xqm")
    load(
        "import module namespace m = 'urn:m';\n"
        f"{QUEUES}create rule r for a if (/x) then do enqueue <y>{{try {{ m:f('x') }} catch * {ASKED}}}</y> into b",
        room,
    )
    room.send("a", "<x/>", format="xml")
    room.run_until_idle()
    assert bodies(room, "b") == ["<y>3 10 m.xqm</y>"]

"""Declarations of programs and library modules, in a room: what they mean, who sees them, and where errors are."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
from tests.rules.conftest import Load, without_spark

from postroom.errors import ProgramInvalid
from postroom.room import Postroom
from postroom.room.loading import read

QUEUES = "create queue a kind basic mode persistent create queue b kind basic mode persistent\n"


def bodies(room: Postroom, queue: str = "b") -> list[str]:
    found = sorted(chain(room.queues.history(queue), room.queues.info(queue)), key=lambda message: message.key)
    return [message.body for message in found]


def folder(tmp_path: Path, **files: str) -> list[Path]:
    found = [tmp_path / name.replace("_", ".") for name in files]
    for path, text in zip(found, files.values(), strict=True):
        path.write_text(text)
    return found


def run(room: Postroom, *sent: str, queue: str = "a") -> list[str]:
    for body in sent:
        room.send(queue, body, format="xml")
    room.run_until_idle()
    return bodies(room)


def test_namespaces_hold_in_paths_constructors_and_names_made_of_text(load: Load) -> None:
    room = load(
        'declare namespace p = "urn:p"; declare namespace q = "urn:q";\n'
        f"{QUEUES}create rule r for a if (/p:x) then do enqueue\n"
        '  <p:y q:k="{/p:x/@q:k}">{element {"q:z"} {string(/p:x/p:v)}, local-name-from-QName(xs:QName("p:n"))}</p:y> '
        "into b"
    )
    found = run(room, '<x xmlns="urn:p" xmlns:o="urn:q" o:k="1"><v>2</v></x>', "<x><v>3</v></x>")
    assert found == ['<p:y xmlns:p="urn:p" xmlns:q="urn:q" q:k="1"><q:z>2</q:z>n</p:y>']


def test_elements_without_a_prefix_are_in_the_default_namespace_and_our_own_are_not(load: Load) -> None:
    room = load(
        f'declare default element namespace "urn:d";\n{QUEUES}'
        "create property n as xs:integer queue a, b value count(//v) create slicing s on n\n"
        'create rule r for a if (/x) then (do enqueue <y a="{qs:property("n")}">{//v}</y> into b with w value 3,'
        " do enqueue /x into b)\n"
        "create rule t for s if (/x) then do reset\n"
        'create rule u for a if (/x) then do enqueue <z>{count(qs:queue("b")[y/v = "1"])}</z> into b'
    )
    found = run(room, '<x xmlns="urn:d"><v>1</v></x>', "<x><v>1</v></x>", '<x xmlns="urn:d"><v>1</v></x>')
    assert found[0] == '<y xmlns="urn:d" a="1"><v>1</v></y>'
    assert found[2] == '<z xmlns="urn:d">0</z>'
    assert found[5] == '<z xmlns="urn:d">1</z>'
    assert len(found) == 6
    assert "index b Q{urn:d}y/Q{urn:d}v" in str(room.definitions.explain("u").reads)


def test_functions_and_variables_of_a_program(load: Load) -> None:
    room = load(
        "declare variable $rate as xs:integer := 3; declare variable $list := (1, 2, $rate);\n"
        "declare function local:fac($n as xs:integer) as xs:integer {\n"
        "  if ($n le 1) then 1 else $n * local:fac($n - 1) };\n"
        "declare %private function local:none() {};\n"
        "declare function local:some($x) { if ($x) then 'yes' };\n"
        f"{QUEUES}create property n as xs:integer queue b value local:fac(3)\n"
        "create rule r for a if (local:fac($rate) = 6) then do enqueue <y>{sum($list), //v ! local:fac(.), "
        "(1 to 2) ! local:some(. = 2), local:none(), (2, 3) => for-each(local:fac#1), 4 => local:fac()}</y> into b"
    )
    assert run(room, "<x><v>5</v></x>") == ["<y>6 120 yes 2 6 24</y>"]
    assert [message.properties["n"] for message in room.queues.info("b")] == [6]


def test_functions_look_at_the_message_and_at_queues_as_a_rule_does(load: Load) -> None:
    room = load(
        "declare function local:same() { qs:queue('b')[y/id = qs:message()/x/id] };\n"
        "declare function local:of($id) { qs:queue('b')[y/id = $id] };\n"
        "declare function local:count($f) { count($f()) };\n"
        "declare function local:mine() { qs:property('size'), qs:property('p') };\n"
        f"{QUEUES}create property p as xs:string queue a value //id\n"
        "create rule r for a if (/x) then do enqueue <y>{//id}<n>{local:count(local:same#0), count(local:of('1')), "
        "//id => local:of() => count(), local:mine()}</n></y> into b"
    )
    found = run(room, "<x><id>1</id></x>", "<x><id>1</id></x>", "<x><id>2</id></x>")
    assert [body.partition("<n>")[2] for body in found] == [
        "0 0 0 17 1</n></y>",
        "1 1 1 17 1</n></y>",
        "0 2 0 17 2</n></y>",
    ]
    reads = room.definitions.explain("r").reads
    assert reads == ("index b y/id by probe a ./x/id", "the whole queue b"), "and no more than it must"


def test_what_no_rule_of_a_queue_calls_is_not_read(load: Load) -> None:
    room = load(
        "declare function local:all() { qs:queue('b') };\n"
        f"{QUEUES}create rule r for a if (/x) then do enqueue <y/> into b\n"
        "create rule s for b if (/z) then do enqueue <y>{count(local:all())}</y> into b"
    )
    assert room.definitions.explain("r").reads == ()
    assert room.definitions.explain("s").reads == ("the whole queue b",)
    assert run(room, "<x/>") == ["<y/>"]


def test_modules_with_other_declarations_share_a_queue_in_the_order_of_their_rules(load: Load, tmp_path: Path) -> None:
    room = load(
        'declare namespace p = "urn:1"; declare function local:f() { "first" };\n'
        f"{QUEUES}create rule r for a if (/x) then do enqueue <p:y>{{local:f()}}</p:y> into b"
    )
    load(
        'declare namespace p = "urn:2"; declare function local:f() { "second" };\n'
        "create property k as xs:string queue b value local:f()\n"
        "create rule s for a if (/x) then do enqueue <p:y>{local:f()}</p:y> into b\n"
        "create rule t for a if (/fail) then do enqueue <y>{error()}</y> into b",
        room,
        module="other",
    )
    load("create property l as xs:string queue b value 'plain'", room, module="third")
    assert run(room, "<x/>") == ['<p:y xmlns:p="urn:1">first</p:y>', '<p:y xmlns:p="urn:2">second</p:y>']
    room.send("b", "<z/>", format="xml")
    kept = [(message.properties["k"], message.properties["l"]) for message in room.queues.info("b")]
    assert kept == [("second", "plain")] * 3
    room.send("a", "<fail/>", format="xml")
    room.run_until_idle()
    (error,) = bodies(room, "postroom-errors")
    assert "<rule>t</rule>" in error


def test_the_value_of_a_property_keeps_its_line_ends(load: Load) -> None:
    room = load(
        f"{QUEUES}create property k as xs:string queue b value 'one\ntwo'\n"
        "create rule r for a if (/x) then do enqueue <y/> into b"
    )
    run(room, "<x/>")
    room.send("b", "<y/>", format="xml")
    assert [message.properties["k"] for message in room.queues.info("b")] == ["one\ntwo"] * 2


# --- what is refused ---

RULE = f"{QUEUES}create rule r for a if (/x) then do enqueue <y>{{local:f()}}</y> into b"
REFUSED = [
    ('declare default function namespace "urn:x";', "1:1", "functions without a prefix are XQuery's"),
    ('declare namespace xs = "urn:x";', "1:19", "means http://www.w3.org/2001/XMLSchema in every program"),
    ('declare namespace qs = "urn:x";', "1:19", "means urn:postroom:qs"),
    ("declare option saxon:x 'y';", "1:1", "could open what is closed"),
    ('import schema "urn:x";', "1:1", "knows no schemas"),
    ("declare context item := 1;", "1:1", "the context of a rule is its message"),
    ("declare boundary-space preserve;", "1:1", "strip"),
    ("declare variable $x external;", "1:21", "nothing outside of the program gives a value"),
    ("declare variable $x := 1; declare variable $x := 2;", "1:44", "declared twice"),
    ("declare variable $qs:m := 1;", "1:18", "urn:postroom:qs is taken"),
    ('declare namespace z = " urn:postroom:qs "; declare variable $z:m := 1;', "1:61", "is taken"),
    ('declare namespace z = "urn:postroom:q&#115;"; declare function z:doc($d) { 1 };', "1:64", "a prefix of its own"),
    ("declare function Q{ urn:postroom:qs }doc($d) { 1 };", "1:18", "a prefix of its own"),
    ("declare function f() { 1 };", "1:18", "a prefix of its own, or local:"),
    ("declare function fn:doc($x) { 1 };", "1:18", "a prefix of its own"),
    ('declare namespace s = "http://saxon.sf.net/"; declare function s:f() { 1 };', "1:64", "a prefix of its own"),
    ("declare function local:f($qs:m) { 1 };", "1:26", "a parameter's name has no prefix"),
    ("declare function local:f() { do enqueue <x/> into b };", "1:30", "do enqueue cannot stand in a declaration"),
    ("declare function local:f() { doc('x') };", "1:30", "doc() reaches outside of the room"),
    ("declare function local:f() { $qs:message };", "1:30", "a variable with a prefix"),
    ("declare function local:f() { qs:slice() };", "1:30", "depends on the rule"),
    ("declare function local:f() { qs:queue(1) };", "1:30", "takes a name in quotes"),
    ("declare function local:f() { qs:queue('nowhere') };", "1:30", "no queue nowhere"),
    ("declare function local:f() { local:g(1) };", "1:30", "local:g() is not a function"),
    ("declare function local:f() { 1 }; declare variable $x := qs:queue('a');", "1:58", "evaluated once"),
    ("declare function local:f() { qs:message() }; declare variable $x := local:f();", "1:69", "evaluated once"),
    ("declare function local:f() {\n  /b };", "2:4", "context item is absent"),
    ("declare function local:f() { 1 }; declare variable $x :=\n  /b/m;", "2:5", "context item is absent"),
    ("declare function local:f($x) { 1 };", "3:49", "local:f() takes 1 arguments, not 0"),
    ("declare function local:f() { $nothing };", "1:30", "nothing"),
    ("declare function local:f() { 1 } ", "1:33", "a declaration ends with ;"),
    ("xquery version '3.1';", "1:1", "a program is no XQuery by itself"),
    ("module namespace m = 'urn:m';", "1:1", "declare namespace"),
]


@pytest.mark.parametrize(("text", "where", "what"), REFUSED, ids=lambda value: str(value)[:50])
def test_what_is_refused_says_why_and_where(text: str, where: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(ProgramInvalid) as refusal:
        read(folder(tmp_path, p_demaq=f"{text}\n{RULE}")).check(None)
    said = [f"{each.position.line}:{each.position.column} {each.what}" for each in refusal.value.facts["problems"]]
    assert any(each.startswith(f"{where} ") and what in each for each in said), said


def test_a_declaration_stands_before_the_first_create(load: Load) -> None:
    with pytest.raises(ProgramInvalid, match="before the first create"):
        load(f"{QUEUES};declare namespace p = 'urn:p';")


def test_a_constructor_writes_a_declared_namespace_as_it_likes(load: Load) -> None:
    room = load(
        f'declare namespace u = "urn:my"; declare function u:f() {{ 1 }};\n{QUEUES}'
        'create rule r for a if (/x) then do enqueue <y xmlns:z="urn:m&#121;">{z:f()}</y> into b'
    )
    assert run(room, "<x/>") == ['<y xmlns:z="urn:my">1</y>']


def test_a_function_without_end_ends_as_an_error_message(load: Load) -> None:
    room = load(
        "declare function local:f($n) { 1 + local:f($n + 1) };\n"
        f"{QUEUES}create rule r for a if (/x) then do enqueue <y>{{local:f(1)}}</y> into b"
    )
    assert run(room, "<x/>", "<z/>") == []
    (error,) = bodies(room, "postroom-errors")
    assert "<rule>r</rule>" in error


# --- errors: caught, and with their places ---


def test_a_catch_knows_the_error(load: Load) -> None:
    room = load(
        f"{QUEUES}create rule r for a if (/x) then do enqueue <y>{{try {{ xs:date(//d), 'fine' }} "
        "catch err:FORG0001 | err:XPTY0004 { local-name-from-QName($err:code), exists($err:description), "
        "$err:line-number instance of xs:integer } catch * { 'other', $err:value }}</y> into b"
    )
    found = run(room, "<x><d>no</d></x>", "<x><d>2020-02-02</d></x>", "<x><d>2020-02-02</d><d/></x>")
    assert found == ["<y>FORG0001 true true</y>", "<y>2020-02-02 fine</y>", "<y>XPTY0004 true true</y>"]


def test_an_error_code_of_a_program_and_its_value_are_caught(load: Load) -> None:
    room = load(
        'declare namespace my = "urn:my"; '
        'declare function local:fail($v) { error(xs:QName("my:late"), "too late", $v) };\n'
        f"{QUEUES}create rule r for a if (/x) then do enqueue <y>{{"
        "try { local:fail(//d) } catch my:late { $err:description, string($err:value) }}</y> into b\n"
        "create rule s for a if (/z) then do enqueue <y>{local:fail(1)}</y> into b"
    )
    assert run(room, "<x><d>7</d></x>", "<z/>") == ["<y>too late 7</y>"]
    (error,) = bodies(room, "postroom-errors")
    assert "<code>my:late</code><description>too late</description><rule>s</rule>" in error
    assert ".demaq:1:83</place>" in error


def test_string_constructors_and_functions_by_their_uri(load: Load) -> None:
    room = load(
        "declare function local:f($x) { ``[<`{$x}`>]`` };\n"
        f"{QUEUES}create rule r for a if (/x) then do enqueue <y>{{``[a `{{//v}}` b]``, "
        "Q{http://www.w3.org/2005/xquery-local-functions}f(1), "
        "Q{http://www.w3.org/2005/xpath-functions}concat('c', 'd')"
        "}</y> into b"
    )
    assert run(room, "<x><v>5</v></x>") == ["<y>a 5 b &lt;1&gt; cd</y>"]


PLACES = [
    ("create rule r for a if (/x) then\n  do enqueue <y>{\n    xs:date(string(//d))\n  }</y> into b", "4:20"),
    ("create rule r for a if (/x) then do enqueue <y>{\n    1, 2 + error()}</y> into b", "3:12"),
    ("create rule r for a\nif (xs:integer(/x/d) gt 1) then do enqueue <y/> into b", "3:18"),
    ("create property n as xs:integer queue b value\n  if (/y) then xs:date('no') else 1\n"
     "create rule r for a if (/x) then do enqueue <y/> into b", "3:24"),
    ("create rule r for a if (/x) then do enqueue <y>{qs:queue('b'),\n  let $q := qs:property('rule') return\n"
     "    string-length($q) idiv 0}</y> into b", "4:19"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "where"), PLACES)
def test_an_error_at_run_time_has_its_place_in_the_program(text: str, where: str, load: Load) -> None:
    room = load(QUEUES + text)
    assert run(room, "<x><d>no</d></x>") == []
    (error,) = bodies(room, "postroom-errors")
    assert f"p.demaq:{where}</place>" in error
    assert "<rule>r</rule>" in error


def test_an_error_in_a_function_has_the_place_of_the_function(load: Load) -> None:
    room = load(
        "(: one :)\n  declare function local:f($x) {\n    qs:queue('b') ! string(.), $x div 0 };\n"
        f"{QUEUES}create rule r for a if (/x) then do enqueue <y>{{local:f(1)}}</y> into b"
    )
    assert run(room, "<x/>") == []
    (error,) = bodies(room, "postroom-errors")
    assert "p.demaq:3:" in error


# --- library modules ---

LIBRARY = """xquery version "3.1";
module namespace m = "urn:m";
declare namespace o = "urn:o"; declare default element namespace "urn:d";
declare variable $m:rate := 2;
declare %private function m:inner($x) { $x * $m:rate };
declare function m:twice($x as xs:integer) as element() { <t>{m:inner($x)}</t> };
declare function m:fail($x) {
  xs:date($x) };
"""
IMPORTING = (
    'import module namespace n = "urn:m" at "lib/m.xqm";\n'
    f"{QUEUES}create rule r for a if (/x) then do enqueue <y>{{//v ! n:twice(xs:integer(.)), $n:rate}}</y> into b\n"
    "create rule s for a if (/z) then do enqueue <y>{n:fail(string(.))}</y> into b"
)


def test_a_program_imports_a_library_module_of_the_same_load(room: Postroom, tmp_path: Path) -> None:
    without_spark(room)
    room.load(*folder(tmp_path, m_xqm=LIBRARY, p_demaq=IMPORTING))
    assert run(room, "<x><v>4</v></x>", "<z/>") == ['<y><t xmlns="urn:d">8</t>2</y>']
    (error,) = bodies(room, "postroom-errors")
    assert "m.xqm:8:11</place>" in error
    room.load(*folder(tmp_path, m_xqm=LIBRARY.replace("$m:rate := 2", "$m:rate := 3")))
    assert run(room, "<x><v>4</v></x>")[1:] == ['<y><t xmlns="urn:d">12</t>3</y>'], "what imports it is compiled again"
    assert "urn:m" in str(room.definitions.catalog())


def test_a_program_with_its_libraries_is_printed_and_loaded_again(room: Postroom, tmp_path: Path) -> None:
    base = 'module namespace base = "urn:base"; declare function base:one() { 1 };'
    library = LIBRARY.replace("declare variable", 'import module namespace b = "urn:base";\ndeclare variable', 1)
    library = library.replace("$m:rate := 2", "$m:rate := b:one() + 1")
    room.load(*folder(tmp_path, p_demaq=f"(: c :) {IMPORTING}\ncreate module q", m_xqm=library, base_xqm=base))
    printed = room.definitions.files()
    assert set(printed) == {"q.demaq", "m.xqm", "base.xqm"}
    again = tmp_path / "again"
    again.mkdir()
    for name, text in printed.items():
        (again / name).write_bytes(text)
    room.load(*again.iterdir())
    assert room.definitions.files() == printed


BAD_LIBRARIES = [
    ("module namespace m = 'urn:m'; declare function m:f() { qs:queue('a') };", "1:56", "cannot call qs:queue()"),
    ("module namespace m = 'urn:m'; declare function m:f() { doc('x') };", "1:56", "reaches outside"),
    ("module namespace m = 'urn:m'; declare function local:f() { 1 };", "1:48", "is in its namespace"),
    ("module namespace m = 'urn:m';\ndeclare variable $m:x :=\n  /b;", "3:5", "context item is absent"),
    ("module namespace m = 'urn:postroom:qs';", "1:1", "is taken"),
    ("module namespace m = 'urn:m'; import module namespace o = 'urn:o';", "1:31", "no library module urn:o is loaded"),
    ("module namespace m = 'urn:m'; import module namespace o = 'urn:m';", "1:31", "imports itself"),
    ("declare function local:f() { 1 };", "1:1", "module namespace PREFIX = URI is expected"),
    ("module namespace m = 'urn:m';\ndeclare function m:f() { 1 + };", "2:29", "an expression is expected"),
    ("module namespace m = 'urn:m';\ndeclare function m:f() { $x };", "2:26", "$x"),
]


@pytest.mark.parametrize(("text", "where", "what"), BAD_LIBRARIES)
def test_a_library_module_that_is_refused(tmp_path: Path, text: str, where: str, what: str) -> None:
    with pytest.raises(ProgramInvalid) as refusal:
        read(folder(tmp_path, m_xqm=text)).check(None)
    said = [f"{each.position.line}:{each.position.column} {each.what}" for each in refusal.value.facts["problems"]]
    assert any(each.startswith(f"{where} ") and what in each for each in said), said


def test_an_import_finds_nothing_on_the_disk_and_no_other_name(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "m.xqm").write_text(LIBRARY)
    with pytest.raises(ProgramInvalid, match="no library module urn:m is loaded"):
        room.load(*folder(tmp_path, p_demaq=IMPORTING))
    with pytest.raises(ProgramInvalid, match=r"was loaded from other\.xqm, not from lib/m\.xqm"):
        room.load(*folder(tmp_path, p_demaq=IMPORTING, other_xqm=LIBRARY))


def test_a_new_text_of_a_library_that_breaks_a_program_is_refused_and_changes_nothing(
    room: Postroom, tmp_path: Path
) -> None:
    room.load(*folder(tmp_path, m_xqm=LIBRARY, p_demaq=IMPORTING))
    before = room.definitions.files()
    with pytest.raises(ProgramInvalid, match=r"n:twice\(\)"):
        room.load(*folder(tmp_path, m_xqm=LIBRARY.replace("m:twice", "m:thrice")))
    assert room.definitions.files() == before

"""``copy … modify … return``: what the XQuery Update Facility says of each update, of several together, and its errors.

The cases are made after the public test suite of the facility: its groups are the headings here. The suite itself is
run by test_update_suite.py, where it is there.
"""

from __future__ import annotations

import pytest
from tests.rules.conftest import Load

from postroom.engine.steps.effects import Arrival, Enqueue
from postroom.errors import ProgramInvalid
from postroom.rules.compilation.compiler import compiled
from postroom.rules.compilation.updates import PLACE, with_functions
from postroom.rules.evaluation.evaluate import evaluate_alone
from postroom.rules.language.definitions import Program
from postroom.rules.language.reader import parse

QUEUES = "create queue a kind basic mode persistent create queue b kind basic mode persistent\n"
MESSAGE = '<r k="1"><a>one</a><b x="2" y="3">two<c/></b>tail<!--note--><?go there?></r>'


def said(expression: str, message: str = MESSAGE, prolog: str = "") -> str:
    """What a rule makes of an expression; of an error its code."""
    rule = f"create rule r for a if (/*) then do enqueue <o>{{{expression}}}</o> into b"
    plan = compiled(Program(parse(f"{prolog}{QUEUES}{rule}", "f.demaq")), 1, "m")
    arrival = Arrival(0, "a", 100_000, "xml", None, message, "{}", 0, None, ())
    (made,) = evaluate_alone(plan, [arrival], {})[0]
    assert isinstance(made, Enqueue)
    if made.failed:
        return made.body.partition("<code>")[2].partition("</code>")[0]
    return made.body.removeprefix("<o>").removesuffix("</o>").replace("<o/>", "")


def modified(update: str, message: str = MESSAGE) -> str:
    return said(f"copy $c := /r modify ({update}) return $c", message)


CASES = [
    # delete
    ("delete node $c/a", '<r k="1"><b x="2" y="3">two<c/></b>tail<!--note--><?go there?></r>'),
    ("delete nodes ($c/a, $c/b)", '<r k="1">tail<!--note--><?go there?></r>'),
    ("delete nodes $c/node()", '<r k="1"/>'),
    ("delete node $c/@k", MESSAGE.replace(' k="1"', "")),
    ("delete nodes $c/b/@*", MESSAGE.replace(' x="2" y="3"', "")),
    ("delete node $c/text()", MESSAGE.replace("tail", "")),
    ("delete nodes $c/(comment() | processing-instruction())", MESSAGE.replace("<!--note--><?go there?>", "")),
    ("delete nodes $c/none", MESSAGE),
    ("delete node $c", MESSAGE),
    ("delete node $c/a, delete node $c/a", '<r k="1"><b x="2" y="3">two<c/></b>tail<!--note--><?go there?></r>'),
    ("delete node $c//c, delete node $c/b", '<r k="1"><a>one</a>tail<!--note--><?go there?></r>'),
    # insert into
    ("insert node <n/> into $c/a", MESSAGE.replace("one", "one<n/>")),
    ("insert nodes (<n/>, <m/>) as last into $c/a", MESSAGE.replace("one", "one<n/><m/>")),
    ("insert nodes (<n/>, <m/>) as first into $c/b", MESSAGE.replace("two", "<n/><m/>two")),
    ('insert node "text" into $c/a', MESSAGE.replace("one", "onetext")),
    ("insert nodes (1, 2) into $c/a", MESSAGE.replace("one", "one1 2")),
    ('insert node attribute z {"9"} into $c/a', MESSAGE.replace("<a>", '<a z="9">')),
    ('insert nodes (attribute z {"9"}, <n/>) into $c/b/c', MESSAGE.replace("<c/>", '<c z="9"><n/></c>')),
    ("insert node $c/a into $c/b", MESSAGE.replace("<c/>", "<c/><a>one</a>")),
    ("insert nodes $c/b/@* into $c/a", MESSAGE.replace("<a>", '<a x="2" y="3">')),
    ("insert node <n/> into $c//c, insert node <m/> as first into $c//c, insert node <l/> as last into $c//c",
     MESSAGE.replace("<c/>", "<c><m/><n/><l/></c>")),
    # insert before and after
    ("insert node <n/> before $c/a", MESSAGE.replace("<a>", "<n/><a>")),
    ("insert node <n/> after $c/a", MESSAGE.replace("</a>", "</a><n/>")),
    ("insert node <n/> before $c/text()", MESSAGE.replace("tail", "<n/>tail")),
    ("insert node <n/> after $c/comment()", MESSAGE.replace("--><", "--><n/><")),
    ("insert node <n/> after $c/processing-instruction()", MESSAGE.replace("?></r>", "?><n/></r>")),
    ("for $x in $c/* return insert node <n/> before $x", MESSAGE.replace("<a>", "<n/><a>").replace("<b", "<n/><b")),
    ('insert node attribute z {"9"} before $c/a', MESSAGE.replace('k="1"', 'k="1" z="9"')),
    ("insert node <n/> before $c/a, delete node $c/a", MESSAGE.replace("<a>one</a>", "<n/>")),
    # replace node
    ("replace node $c/a with <n/>", MESSAGE.replace("<a>one</a>", "<n/>")),
    ("replace node $c/a with (<n/>, 'x', <m/>)", MESSAGE.replace("<a>one</a>", "<n/>x<m/>")),
    ("replace node $c/a with ()", MESSAGE.replace("<a>one</a>", "")),
    ('replace node $c/@k with attribute q {"7"}', MESSAGE.replace('k="1"', 'q="7"')),
    ("replace node $c/text() with <n/>", MESSAGE.replace("tail", "<n/>")),
    ("replace node $c/a with $c/b/c", MESSAGE.replace("<a>one</a>", "<c/>")),
    ("replace node $c/b with <n/>, delete node $c/b/c", '<r k="1"><a>one</a><n/>tail<!--note--><?go there?></r>'),
    ("replace node $c/a with <n/>, delete node $c/a", MESSAGE.replace("<a>one</a>", "<n/>")),
    # replace value
    ('replace value of node $c/a with "two"', MESSAGE.replace("one", "two")),
    ("replace value of node $c/a with (1, 2)", MESSAGE.replace("one", "1 2")),
    ("replace value of node $c/a with ()", MESSAGE.replace("<a>one</a>", "<a/>")),
    ('replace value of node $c/@k with "&lt;"', MESSAGE.replace('k="1"', 'k="&lt;"')),
    ('replace value of node $c/text() with "head"', MESSAGE.replace("tail", "head")),
    ('replace value of node $c/text() with ""', MESSAGE.replace("tail", "")),
    ('replace value of node $c/comment() with "x"', MESSAGE.replace("note", "x")),
    ('replace value of node $c/processing-instruction() with "x"', MESSAGE.replace("there", "x")),
    ('replace value of node $c/b with "x", insert node <n/> into $c/b', MESSAGE.replace("two<c/>", "x")),
    ('replace value of node $c/b with "x", replace value of node $c/b/@x with 5',
     MESSAGE.replace("two<c/>", "x").replace('x="2"', 'x="5"')),
    # rename
    ('rename node $c/a as "n"', MESSAGE.replace("a>", "n>")),
    ('rename node $c/@k as "q"', MESSAGE.replace("k=", "q=")),
    ('rename node $c/processing-instruction() as "stop"', MESSAGE.replace("?go", "?stop")),
    ('rename node $c/a as xs:QName("n")', MESSAGE.replace("a>", "n>")),
    ('rename node $c/a as QName("urn:n", "n")', MESSAGE.replace("<a>one</a>", '<n xmlns="urn:n">one</n>')),
    ('rename node $c/a as QName("urn:n", "p:n")', MESSAGE.replace("<a>one</a>", '<p:n xmlns:p="urn:n">one</p:n>')),
    ('rename node $c as "s"', MESSAGE.replace("<r", "<s").replace("/r>", "/s>")),
    ('for $x in $c/b/@* return rename node $x as concat("n-", name($x))',
     MESSAGE.replace("x=", "n-x=").replace("y=", "n-y=")),
    ('rename node $c/a as "n", replace value of node $c/a with "v", insert node attribute z {1} into $c/a',
     MESSAGE.replace("<a>one</a>", '<n z="1">v</n>')),
    # conditions, loops, nothing
    ("", MESSAGE),
    ("delete node ()", MESSAGE),
    ("insert nodes () into $c/a", MESSAGE),
    ("if ($c/a) then delete node $c/a else delete node $c/b", MESSAGE.replace("<a>one</a>", "")),
    ("if ($c/q) then delete node $c/a", MESSAGE),
    ("let $x := $c/a return (delete node $x, ())", MESSAGE.replace("<a>one</a>", "")),
    ("typeswitch ($c) case element() return delete node $c/a default return ()", MESSAGE.replace("<a>one</a>", "")),
    ("for $x at $i in $c/* where $i = 1 return replace value of node $x with $i", MESSAGE.replace("one", "1")),
]  # fmt: skip


@pytest.mark.parametrize(("update", "wanted"), CASES, ids=lambda value: str(value)[:60])
def test_an_update(update: str, wanted: str) -> None:
    assert modified(update) == wanted


ERRORS = [
    ("rename node $c/a as 'x', rename node $c/a as 'y'", "XUDY0015"),
    ("replace node $c/a with <n/>, replace node $c/a with <m/>", "XUDY0016"),
    ("replace value of node $c/a with 1, replace value of node $c/a with 2", "XUDY0017"),
    ("insert node <n/> into $c/@k", "XUTY0005"),
    ("insert node <n/> into $c/text()", "XUTY0005"),
    ("insert node <n/> into ($c/a, $c/b)", "XUTY0005"),
    ("insert node <n/> into ()", "XUDY0027"),
    ("insert node <n/> before $c/@k", "XUTY0006"),
    ("insert node <n/> before $c", "XUDY0029"),
    ("insert node <n/> after $c/none", "XUDY0027"),
    ("insert nodes (<n/>, attribute z {1}) into $c/a", "XUTY0004"),
    ("insert node attribute k {1} into $c", "XUDY0021"),
    ("insert nodes (attribute z {1}, attribute z {2}) into $c", "XUDY0021"),
    ("rename node $c/b/@x as 'y'", "XUDY0021"),
    ("insert node attribute k {1} into $c, delete node $c", "XUDY0021"),
    ("insert node attribute x {1} into $c/b, delete node $c/b", "XUDY0021"),
    ("replace node $c/b/@x with attribute y {1}", "XUDY0021"),
    ("insert node attribute {QName('urn:p', 'p:x')} {1} into $c, "
     "insert node attribute {QName('urn:q', 'p:y')} {1} into $c", "XUDY0024"),
    ("rename node $c/a as QName('urn:p', 'p:x'), "
     "insert node attribute {QName('urn:q', 'p:y')} {1} into $c/a", "XUDY0024"),
    ("delete node 1", "XUTY0007"),
    ("replace node $c/* with <n/>", "XUTY0008"),
    ("replace node $c with <n/>", "XUDY0009"),
    ("replace node $c/a with attribute z {1}", "XUTY0010"),
    ("replace node $c/@k with <n/>", "XUTY0011"),
    ("replace value of node ($c/a, $c/b) with 1", "XUTY0008"),
    ("rename node $c/text() as 'x'", "XUTY0012"),
    ("rename node $c/a as 'x y'", "XQDY0074"),
    ("rename node $c/a as ()", "XPTY0004"),
    ("rename node $c/a as ('', 'x')", "XPTY0004"),
    ("delete node /r/a", "XUDY0014"),
    ("insert node <n/> into <m/>", "XUDY0014"),
]  # fmt: skip


@pytest.mark.parametrize(("update", "code"), ERRORS, ids=lambda value: str(value)[:60])
def test_an_update_that_cannot_be_made_is_an_error_with_the_code_of_the_facility(update: str, code: str) -> None:
    assert modified(update) == code


BOUND = '<r xmlns="urn:d" xmlns:p="urn:p" x="1" p:k="2"><a/></r>'


@pytest.mark.parametrize(("update", "wanted"), [
    ('rename node $c/@x as QName("urn:other", "p:x")', "XUDY0023"),
    ('rename node $c as QName("urn:other", "p:x")', "XUDY0023"),
    ('rename node $c as QName("urn:other", "x")', "XUDY0023"),
    ('rename node $c as QName("", "x")', "XUDY0023"),
    ('insert node attribute {QName("urn:other", "p:y")} {1} into $c', "XUDY0023"),
    ('replace node $c/@x with attribute {QName("urn:other", "p:y")} {1}', "XUDY0023"),
    ('rename node $c/@x as QName("urn:p", "p:x")', BOUND.replace(' x="1"', ' p:x="1"')),
    ('rename node $c/@x as QName("urn:q", "q:x")', BOUND.replace(' x="1"', ' q:x="1"')),
    ('rename node $c/@x as "y"', BOUND.replace(" x=", " y=")),
    ('rename node $c as QName("urn:d", "s")', BOUND.replace("<r", "<s").replace("/r>", "/s>")),
    ('rename node $c/@*:k as "k"', BOUND.replace("p:k", "k")),
])  # fmt: skip
def test_a_new_name_whose_prefix_means_something_else_there_is_refused(update: str, wanted: str) -> None:
    found = said(f"copy $c := /* modify ({update}) return $c", BOUND).replace(' xmlns:q="urn:q"', "")
    assert found == wanted


NOT_THERE = [
    ("1", "XUST0002"),
    ('"x", delete node $c/a', "XUST0001"),
    ("if ($c/a) then delete node $c/a else 3", "XUST0001"),
    ("for $x in $c/* return $x", "XUST0002"),
    ("copy $d := $c modify () return $d", "XUST0002"),
    ("copy $d := $c modify delete node $d/a return $d", "XUST0002"),
    ("string($c)", "XUST0002"),
    ("error() + 1", "XUST0002"),
    ("some $x in $c satisfies delete node $x", "XUST0001"),
    ("for $x in delete node $c return ()", "XUST0001"),
    ("let $x := delete node $c return ()", "XUST0001"),
    ("if (delete node $c) then () else ()", "XUST0001"),
    ("insert node (delete node $c) into $c", "XUST0001"),
    ("insert node <n>{delete node $c}</n> into $c", "XUST0001"),
    ("string(delete node $c)", "XUST0001"),
    ("$c/a[delete node .]", "XUST0001"),
]


@pytest.mark.parametrize(("update", "code"), NOT_THERE, ids=lambda value: str(value)[:60])
def test_what_cannot_stand_behind_modify_is_refused_at_load_with_its_place(load: Load, update: str, code: str) -> None:
    rule = f"create rule r for a if (/*) then do enqueue <o>{{copy $c := /r modify ({update}) return $c}}</o> into b"
    with pytest.raises(ProgramInvalid, match=rf"p\.demaq:2:\d+: {code}: "):
        load(f"{QUEUES}{rule}")


@pytest.mark.parametrize(
    "update", ["()", "error()", 'fn:error((), "no")', "if ($c/q) then error() else ()", "((), ())"]
)
def test_what_has_no_value_may_stand_behind_modify(update: str) -> None:
    assert modified(update) in (MESSAGE, "FOER0000")


def test_several_copies_are_modified_together_and_the_message_is_not() -> None:
    found = said(
        "copy $a := /r/a, $b := /r/b "
        "modify (insert node $a into $b, delete node $b/c, replace value of node $a with 1) "
        "return ($a, $b, /r/a, $a is /r/a)"
    )
    assert found == '<a>1</a><b x="2" y="3">two<a>one</a></b><a>one</a>false'


def test_a_copy_has_no_parent_a_new_identity_and_its_namespaces() -> None:
    found = said(
        "copy $c := /*/* modify () return ($c, empty($c/..), namespace-uri-for-prefix('p', $c))",
        '<q xmlns:p="urn:p"><e a="p:x"/></q>',
    )
    assert found == '<e xmlns:p="urn:p" a="p:x"/>true urn:p'


def test_documents_attributes_and_texts_are_copied_too() -> None:
    assert said("copy $d := . modify delete nodes $d/r/* return $d") == '<r k="1">tail<!--note--><?go there?></r>'
    assert said("copy $k := /r/@k modify replace value of node $k with 5 return string($k)") == "5"
    assert said("copy $t := /r/text() modify replace value of node $t with 'x' return $t") == "x"
    assert said("copy $x := (1, 2) modify () return $x") == "XUTY0013"


def test_copies_are_nested_and_stand_in_functions_and_other_expressions() -> None:
    inner = "copy $i := $c/a modify rename node $i as 'i' return $i"
    assert said(f"copy $c := /r modify replace node $c/a with ({inner}) return $c/*[1]") == "<i>one</i>"
    prolog = "declare function local:f($x) { copy $y := $x modify delete nodes $y/@* return $y };\n"
    assert said("local:f(/r)/@k, 1 + count((copy $c := /r modify delete node $c/a return $c)/*)", prolog=prolog) == "2"


def test_names_of_text_mean_what_they_mean_where_they_stand() -> None:
    prolog = 'declare namespace p = "urn:p"; declare default element namespace "urn:d";\n'
    update = "rename node $c as 'n', rename node $c/@b as 'p:b'"
    found = said(f"copy $c := <a b=''/> modify ({update}) return $c", "<r xmlns='urn:d'/>", prolog)
    assert 'p:b=""' in found
    assert "<n " in found


def test_the_words_are_names_elsewhere() -> None:
    assert said("string-join((copy, delete/node, insert, modify) ! name(), '-')", "<r><copy/></r>") == ""
    assert said("count(r/copy), r/delete", "<r><copy/><delete/></r>") == "1<delete/>"


def test_functions_are_there_only_where_they_are_needed() -> None:
    assert with_functions(f"a {PLACE} b") == "a  b"
    assert "qs:updates" in with_functions(f"{PLACE} qs:copied((1))")

"""Calls: every static function call and reference, and nothing that only looks like one."""

from __future__ import annotations

import pytest

from postroom.rules.language.body import Body, Call
from postroom.rules.language.expression import read
from postroom.rules.language.tokens import Unreadable


def body_of(text: str) -> Body:
    return read(text, 0, len(text))


def names(text: str) -> list[str]:
    return [call.name for call in body_of(text).calls]


def test_a_call_has_its_arguments_and_their_literals() -> None:
    text = """qs:queue( "a""b&lt;&#x41;" , 'it''s', ("x"), "x" || "y", $z, 1, (: "no" :) "c" )"""
    (call,) = body_of(text).calls
    assert (call.start, call.end) == (0, len(text))
    assert call.literals == ('a"b<A', "it's", None, None, None, None, "c")
    assert [text[slice(*span)] for span in call.arguments] == [
        '"a""b&lt;&#x41;"',
        "'it''s'",
        '("x")',
        '"x" || "y"',
        "$z",
        "1",
        '"c"',
    ]


def test_calls_come_in_the_order_of_the_text() -> None:
    assert names("a(b(c()), d())/e()[f()] ! g() => h(i())") == list("abcdefghi")


@pytest.mark.parametrize(
    "text",
    [
        "doc('x')",
        "a/doc('x')",
        "a[doc('x')]",
        "<a b=\"{doc('x')}\"/>",
        "<a>{doc('x')}</a>",
        "fn:doc (: c :) ('x')",
        "//a/fn:doc('x')/b",
        "map { doc('x') : 1 }",
        "[doc('x')]",
        "``[`{doc('x')}`]``",
        "function() { doc('x') }",
        "$f(doc('x'))",
        "for $x in a order by doc('x') return 1",
        "a?(doc('x'))",
        "(# p:x #) { doc('x') }",
        "doc('x')?a",
        "-doc('x')",
        "try { 1 } catch * { doc('x') }",
        "element { doc('x') } {}",
        "some $x in doc('x') satisfies 1",
        "1 cast as xs:integer * doc('x')",
        "if (a) then do enqueue <b/> into c with p value doc('x')",
        "if (a) then do reset s key doc('x')",
    ],
)
def test_a_call_is_found_wherever_it_stands(text: str) -> None:
    ((name, literals),) = [(call.name.removeprefix("fn:"), call.literals) for call in body_of(text).calls]
    assert (name, literals) == ("doc", ("x",))


def test_a_call_by_its_uri_is_known_by_what_that_means() -> None:
    assert names("Q{http://www.w3.org/2005/xpath-functions}doc('x'), Q{ u }f#1") == ["doc", "Q{u}f"]


def test_a_named_function_reference_is_a_call_without_arguments() -> None:
    (call,) = body_of("fn:doc#1 ! .('x')").calls
    assert call == Call("doc", 0, 8, (), (), reference=True, opening=6, arity=1)


def test_an_arrow_call_says_so() -> None:
    text = "'x' => doc() => concat('y', 'z') => $f('a') => (upper-case#1)()"
    found = [(call.name, call.arrow, call.literals, call.reference) for call in body_of(text).calls]
    assert found == [
        ("doc", True, (), False),
        ("concat", True, ("y", "z"), False),
        ("upper-case", False, (), True),
    ]


def test_a_partial_application_is_a_call() -> None:
    (call,) = body_of("concat(?, 'x', ?a)").calls
    assert call.literals == (None, "x", None)


@pytest.mark.parametrize(
    "text",
    [
        "text()",
        "a/node()/element(b)/@attribute(c)/self::processing-instruction('d')",
        "child::document-node(element(a)) | comment() | schema-element(e) | namespace-node()",
        "$x instance of item()* and $x treat as map(xs:string, function(*)) and $x instance of empty-sequence()",
        "function($x as array(xs:string)) as element(a)? { $x }",
        "if (a) then b else c",
        "switch (a) case 1 return b default return c",
        "typeswitch (a) case element() return b default return c",
        "some $x in (a) satisfies (b)",
        "for $x in (a) where (b) order by (c) group by $y := (d) return (e)",
        "$f(1)",
        "(f)(1)",
        "a and (b) or (c) div (d) to (e)",
        "'f(1)', <f>f(1)</f>, <!-- f(1) -->, ``[f(1)]``, (: f(1) :) 1",
        "a/f, (1)",
        "map { } , array { }, element f { }",
        "validate, element { 'a' } {}, transform, with, lax",
        "%p:q('x', 1) %r function() { 1 }, 1 instance of %p:q function(*)",
        "for $x allowing empty in a return 1",
    ],
)
def test_what_looks_like_a_call_is_none(text: str) -> None:
    assert names(text) == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("f(", "never closed"),
        ("f(,)", "an expression is expected"),
        ("f(1,)", "an argument is expected"),
        ("f(1 2)", ", is expected"),
        ("map { 1 : 2, }", "an entry is expected"),
        ("map { 1 }", ": is expected"),
        ("f#x", "a number of arguments"),
        ("a => 1", r"\( is expected"),
        ("a => b", r"\( is expected"),
        ("a ? ", "a key is expected"),
        ("a/", "an expression is expected"),
        ("@", "the name of a node"),
        ("child::1", "the name of a node"),
        ("1 +", "an expression is expected"),
        ("a b", "an operator or the end"),
        ("1 cast as", "a type is expected"),
        ("1 instance of text(<a/>)", "a type is expected"),
        ("try { 1 }", "catch is expected"),
        ("try { 1 } catch 1 { 2 }", "the name of an error"),
        ("switch (1) default return 2", "case is expected"),
        ("typeswitch (1) default return 2", "case is expected"),
        ("for $x in 1", "return is expected"),
        ("let $x = 1 return 2", ":= is expected"),
        ("let $x := 1, y := 2 return 2", "a variable is expected"),
        ("for $x in 1 group by x return 2", "a variable is expected"),
        ("for $x in 1 order by $x empty return 2", "greatest or least"),
        ("for $x in 1 order by $x collation x return 2", "the name of a collation"),
        ("for tumbling window $x in 1 return 2", "start is expected"),
        ("(# p #) 1", "{ is expected"),
        ("%a 1", "function is expected"),
        ("function(x) { 1 }", "a variable is expected"),
        ("element { 1 }", "{ is expected"),
        ("1 + switch (1) case 1 return 2 default return 3", "switch must stand in parentheses"),
        ("1 + some $x in 1 satisfies 2", "some must stand in parentheses"),
        ("a;", "an operator or the end"),
    ],
)
def test_what_cannot_be_read_says_what_was_expected(text: str, what: str) -> None:
    with pytest.raises(Unreadable, match=what):
        body_of(text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("validate { a }", "validate"),
        ("validate lax { a }", "validate"),
        ("validate strict { a }", "validate"),
        ("validate type c { a }", "validate"),
        ("/a transform with { delete node b }", "transform with"),
        ("(1) transform with { () }", "transform with"),
        ("%updating function() { () }", "%updating"),
    ],
)
def test_what_is_refused_in_expressions_says_why(text: str, what: str) -> None:
    with pytest.raises(Unreadable, match=f"^{what} is refused: "):
        body_of(text)

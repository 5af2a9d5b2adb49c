"""The lexer: words and signs, what ``<`` means, statements of a file, words of a definition, and what it costs."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from postroom.limits import PROGRAM_DEPTH_MAX, PROGRAM_TOKENS_MAX
from postroom.rules.language.tokens import Token, Unreadable, decoded, statements, tokens, tokens_before, word_at


def texts(text: str) -> list[str]:
    return [token.text for token in tokens(text)]


def kinds(text: str) -> list[str]:
    return [token.kind for token in tokens(text)]


# --- words and signs ---


@pytest.mark.parametrize(
    "name", ["a", "a:b", "*:b", "a:*", "Q{http://x/y}b", "Q{}b", "Q{u}*", "x-y.z", "_1", "été", "名:字"]
)
def test_a_name_is_one_token(name: str) -> None:
    assert tokens(name) == [Token("name", name, 0, len(name))]


@pytest.mark.parametrize("number", ["1", "12.", "12.5", ".5", "1e3", "1.5E-3", ".5e+1"])
def test_a_number_is_one_token(number: str) -> None:
    assert tokens(number) == [Token("number", number, 0, len(number))]


@pytest.mark.parametrize("variable", ["$x", "$ x", "$\n(: (: c :) :)  x"])
def test_a_variable_is_one_token_without_what_is_inside(variable: str) -> None:
    assert tokens(variable) == [Token("variable", "$x", 0, len(variable))]
    assert texts("$a:b $Q{u}c") == ["$a:b", "$Q{u}c"]


@pytest.mark.parametrize("string", ['"a"', "'a'", '""', '"a""b"', "'a''b'", '"\'"', '"(: <a> { do"', '"\n"'])
def test_a_string_is_one_token(string: str) -> None:
    assert tokens(string) == [Token("string", string, 0, len(string))]


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("a::b", "a :: b"),
        ("$a:=b", "$a := b"),
        ("a//b/c", "a // b / c"),
        ("a<<b>>c", "a << b >> c"),
        ("a<=b>=c!=d", "a <= b >= c != d"),
        ("a||b|c", "a || b | c"),
        ("a=>b()", "a => b ( )"),
        ("a!b=c", "a ! b = c"),
        ("../.", ".. / ."),
        ("...", ".. ."),
        ("a#1", "a # 1"),
        ("%a:b", "% a:b"),
        ("@*:a?b", "@ *:a ? b"),
        ("$x-1", "$x-1"),
        ("1-1", "1 - 1"),
        ("map{a:b,c : d}", "map { a:b , c : d }"),
        ("a(:b:)c", "a c"),
        ("a(: b (: c :) \" ' :)<b", "a < b"),
        ("1to 2", "1 to 2"),
        ("Q{1}", "Q { 1 }"),
    ],
)
def test_signs_are_as_long_as_they_can_be(text: str, signs: str) -> None:
    assert texts(text) == signs.split(" ")


def test_a_pragma_belongs_to_the_expression_and_a_comment_does_not() -> None:
    assert texts('(# p:q "x ( #) {1} (: c :)') == ['(# p:q "x ( #)', "{", "1", "}"]


def test_offsets_are_those_of_the_text_and_the_range_is_a_border() -> None:
    text = "aa bb 'c' dd"
    assert tokens(text, 3, 9) == [Token("name", "bb", 3, 5), Token("string", "'c'", 6, 9)]
    assert [token.text for token in tokens(text, 1, 4)] == ["a", "b"]
    with pytest.raises(Unreadable):
        tokens(text, 6, 8)


def test_a_byte_order_mark_is_passed_over() -> None:
    assert tokens("\ufeffa") == [Token("name", "a", 1, 2)]


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ('"a""b\'"', "a\"b'"),
        ("'it''s'", "it's"),
        ('"&lt;&gt;&amp;&quot;&apos;&#65;&#x1F600;"', "<>&\"'A😀"),
        ('"&amp;lt;"', "&lt;"),
        ('"&nbsp;"', None),
        ('"a & b"', None),
        ('"&#0;"', None),
        ('"&#xD800;"', None),
        ('"&#x110000;"', None),
    ],
)
def test_a_literal_has_a_value_unless_a_reference_means_nothing(literal: str, value: str | None) -> None:
    (token,) = tokens(literal)
    assert decoded(token) == value


# --- what < means ---


@pytest.mark.parametrize(
    "text",
    [
        "a <b",
        "$a <b",
        "1 <2",
        "1 <b",
        "'x' <b",
        "(a) <b",
        "a[1] <b",
        "map{} <b",
        ". <b",
        ".. <b",
        "* <b",
        "a:* <b",
        "a/* <b",
        "@* <b",
        "<a/> <b",
        "<a></a> <b",
        "return <b",
        "/return <b",
        "$return <b",
        "(then) <b",
        "div <b",
        "if <b",
        "a/if <b",
        "do <b",
        "$x?* <b",
        "$x?y <b",
        "$x instance of item()* <b",
        "$x cast as xs:string? <b",
        "$x treat as function(item()*) as item()+* <b",
        "$x instance of empty-sequence() <b",
        "a!b <c",
        "f(?) <b",
        "(typeswitch (a)) <b",
    ],
)
def test_after_an_operand_it_compares(text: str) -> None:
    assert texts(text)[-2] == "<"


@pytest.mark.parametrize(
    "text",
    [
        "<b/>",
        "(<b/>",
        "[<b/>",
        "{<b/>",
        "a, <b/>",
        "a = <b/>",
        "a < <b/>",
        "a and <b/>",
        "(a) div <b/>",
        "a * <b/>",
        "return return <b/>",
        "a return <b/>",
        "if (a) then <b/>",
        "if (a) then b else <b/>",
        "$x := <b/>",
        "a/<b/>",
        "for $x in <b/>",
        "a where <b/>",
        "a order by <b/>",
        "a satisfies <b/>",
        "typeswitch (a) case xs:int return <b/>",
        "typeswitch (a) case item()* return <b/>",
        "typeswitch (a) case $x as a+ | b? return <b/>",
        "a to <b/>",
        "typeswitch (a) case a return b default return <b/>",
        "switch (a) case <b/>",
        "switch (a) case b * <b/>",
        "do enqueue <b/>",
        "a into q with p value <b/>",
        "do reset s key <b/>",
        "f(<b/>",
        "a ! <b/>",
        "a => f(<b/>",
        "$x cast as xs:integer * <b/>",
        "$x instance of empty-sequence() * <b/>",
        "map { 1 : <b/>",
        "a | <b/>",
        "- <b/>",
        "let $x as item()* := 1 return <b/>",
        "function($x as item()*) as item()? { <b/>",
        "a when <b/>",
        "``[`{<b/>",
        "<a>{<b/>",
        "<a c='{<b/>",
        "<a>{1}<b/>",
        "some $x in a satisfies $x castable as xs:int and <b/>",
        "a (: c :), <b/>",
    ],
)
def test_where_an_operand_is_due_it_opens_an_element(text: str) -> None:
    (opened,) = [token for token in tokens_before(text, 0, len(text))[0] if token.text == "<b"]
    assert opened.kind == "open-constructor"


def test_a_less_that_is_neither_is_unreadable() -> None:
    for text in ("a = < b", "< b", "(<", "a + <1"):
        with pytest.raises(Unreadable, match="neither compares"):
            tokens(text)


# --- what cannot be read ---


@pytest.mark.parametrize(
    ("text", "what", "offset"),
    [
        ("a 'b", "no closing quote", 2),
        ('a "b""', "no closing quote", 2),
        ("a (: b (: c :)", "no closing :)", 2),
        ("a (# b", "no closing #)", 2),
        ("a (b", "never closed", 2),
        ("(a [b)", "] is expected here, not )", 5),
        ("a)", "closes nothing", 1),
        ("a}", "closes nothing", 1),
        ("$", "a name must follow", 0),
        ("a $ 1", "a name must follow", 2),
        ("$*:a", "a name must follow", 0),
        ("a & b", "the character '&'", 2),
        ("a ~ b", "the character '~'", 2),
        ("\\", "the character", 0),
        ("a `b", "the character '`'", 2),
        ("a\0", "the character", 1),
        ("a\u00a0b", "the character", 1),
    ],
)
def test_malformed_text_says_what_and_where(text: str, what: str, offset: int) -> None:
    with pytest.raises(Unreadable) as refusal:
        tokens(text)
    assert what in refusal.value.what
    assert refusal.value.offset == offset


# --- statements ---


PAPER = """(: section 2 :)
create queue finance kind basic mode persistent
create queue supplier kind outgoingGateway mode persistent
interface supplier.wsdl port CapacityRequestPort
using WS-ReliableMessaging policy wsrmopol.xml
using WS-Security policy wssecpol.xml
create queue echoQueue kind echo mode persistent;
create property isVIPorder as xs:boolean inherited
queue crm, finance, legal, customer value false
create property orderId as xs:string fixed
queue order value //orderId
queue confirmation value /confirmedOrder/ID
create slicing orders on orderID (: not orderId :)
create rule cleanupRequest for requestMsgs
  if (qs:slice()/offer or qs:slice()/refusal) then
    do reset
create rule confirmOrder for crm errorqueue crmErrors
if(//customerOrder) then (:send confirmation:)
let $confirmation := <confirmation>
    { //orderID } (:additional details:) create queue x
  </confirmation>
return do enqueue $confirmation into customer
"""


def test_the_statements_of_a_file() -> None:
    found = statements(PAPER)
    assert [" ".join(token.text for token in statement.tokens[:3]) for statement in found] == [
        "create queue finance",
        "create queue supplier",
        "create queue echoQueue",
        "create property isVIPorder",
        "create property orderId",
        "create slicing orders",
        "create rule cleanupRequest",
        "create rule confirmOrder",
    ]
    assert PAPER[found[2].start : found[2].end] == "create queue echoQueue kind echo mode persistent"
    assert PAPER[found[6].start : found[6].end].endswith("do reset")
    assert statements("") == statements(" (: nothing :) ") == []


@pytest.mark.parametrize(
    "text",
    [
        "create property p as xs:string queue a value //create queue b value /create",
        "create property p as xs:string queue a value create queue b value x",
        "create property p as xs:string queue a value (create, create queue) queue b value x"[:56]
        + ") queue b value x",
        "create property p as xs:string queue a value @create queue b value child::create queue c value $create",
        "create property create as xs:string queue create, create value create",
        "create rule create for create if (create) then create",
        "create rule r for q if (a) then <create>create queue x</create> else (: create queue y :) 'create queue z'",
        "create rule r for q if (a = create) then do enqueue create into create",
        "create slicing create on create",
        "create queue create kind basic",
        "create queue q schema create/queue.xsd",
    ],
)
def test_a_create_that_is_a_name_begins_no_statement(text: str) -> None:
    assert len(statements(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "create queue a create queue b",
        "create queue a;create queue b;",
        "create slicing s on key create queue b",
        "create slicing s on value create queue b",
        "create queue in create queue b",
        "create collection by create queue b",
        "create rule value for return errorqueue if if (a) then <x>it's</x> create queue b",
        "create rule r for q if (a) then do reset create queue b",
        "create rule r for q if (a) then //b create queue b",
        "create property p as xs:string queue value, of value a create queue b",
        "create system errorqueue e create queue b",
        "create rule r for q let $x := <a>don't</a> return $x create queue b",
        "create rule r for q create queue b",
        "create property p as xs:string queue a value <a>don't</a> create queue b",
    ],
)
def test_a_statement_ends_where_the_next_begins(text: str) -> None:
    found = statements(text)
    assert len(found) == 2
    assert text[found[1].start : found[1].end] == "create queue b"


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("queue a", 0),
        ("(: c :) x create queue a", 8),
        ("create queue a; x", 16),
        ("create queue a;;", 15),
        (";create queue a", 0),
        ("create table a", 0),
        ("create", 0),
        ("create queue a; if (b) then c create queue d", 16),
    ],
)
def test_what_stands_outside_of_statements_is_unreadable(text: str, offset: int) -> None:
    with pytest.raises(Unreadable, match="a statement begins with create") as refusal:
        statements(text)
    assert refusal.value.offset == offset


def test_elements_in_a_property_value_and_in_a_later_queue_of_it_are_constructors() -> None:
    text = "create property p as xs:string queue a value <x>it's</x> queue b value if (c) then <y>'</y> else <z>\"</z>"
    (statement,) = statements(text)
    assert [token.text for token in statement.tokens if token.kind == "open-constructor"] == ["<x", "<y", "<z"]


# --- words ---


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("supplier.wsdl port", "supplier.wsdl"),
        ("WS-ReliableMessaging policy", "WS-ReliableMessaging"),
        ("a/b/order.xsd\ncreate", "a/b/order.xsd"),
        ("../a/b.xsd; create", "../a/b.xsd"),
        ("a.xsd(: comment :)", "a.xsd"),
        ("a(1).xsd x", "a(1).xsd"),
        ("http://example.invalid/a.wsdl x", "http://example.invalid/a.wsdl"),
        ("2024-11/a.xsd x", "2024-11/a.xsd"),
        ('"a b/c.xsd" x', "a b/c.xsd"),
        ("'it''s.xsd' x", "it's.xsd"),
        ('"a&b.xsd" x', "a&b.xsd"),
        ("end", "end"),
    ],
)
def test_a_file_name_is_one_word(text: str, word: str) -> None:
    first = tokens(text)[0]
    found, end = word_at(text, first)
    assert found == word
    assert end == (first.end if first.kind == "string" else len(word))


# --- costs ---


@pytest.mark.parametrize(
    "junk",
    [
        "(",
        "()",
        "1,",
        "a ",
        "<a>",
        "<a/>",
        '<a b="{',
        "{",
        "(:",
        "(: :)",
        '"',
        '"a"',
        "``[`{",
        "x(",
        "$x ",
        "a<b ",
        ":",
        "<a>{",
        "typeswitch(",
        "switch(a) ",
        "create queue a ",
        "if (a) then ",
        "&",
        " ",
        "Q{",
        "<!--",
        "<a b='",
        "$ (:",
        "é",
        ".",
        "[",
        "*",
        "<![CDATA[",
        "<a ",
        "<a><!--x-->",
        "{{",
        "}}",
        "``",
        "]``",
        "`{",
        "(#",
        "a:",
        "1e",
        "case ",
        "as ",
        "'",
        "''",
        "<a b='{{",
        "</a>",
        "<?",
        "create property p queue a value ",
    ],
)
def test_junk_costs_no_more_than_its_length(junk: str) -> None:
    for prefix in ("", "<a>", "create rule r for q "):
        assert seconds(prefix + junk * (20_000 // len(junk))) < 2


@pytest.mark.parametrize("junk", ["()", "a ", "(: :)", "if (a) then ", "<a/>"])
def test_a_megabyte_of_junk_costs_about_a_second(junk: str) -> None:
    assert seconds(junk * (1_000_000 // len(junk))) < 10  # 0.8 on an idle machine; tests share theirs


def seconds(text: str) -> float:
    began = time.process_time()
    with suppress(Unreadable):
        tokens(text)
    return time.process_time() - began


def test_the_bounds_are_told() -> None:
    deep = "(" * PROGRAM_DEPTH_MAX + ")" * PROGRAM_DEPTH_MAX
    assert len(tokens(deep)) == 2 * PROGRAM_DEPTH_MAX
    with pytest.raises(Unreadable, match=f"more than {PROGRAM_DEPTH_MAX} brackets"):
        tokens("(" + deep + ")")
    assert len(tokens("a " * PROGRAM_TOKENS_MAX)) == PROGRAM_TOKENS_MAX
    for text in ("a " * (PROGRAM_TOKENS_MAX + 1), "<a>" + "<b/>" * PROGRAM_TOKENS_MAX + "</a>"):
        with pytest.raises(Unreadable, match=f"more than {PROGRAM_TOKENS_MAX} words"):
            tokens(text)

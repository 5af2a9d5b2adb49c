"""The reader against a grammar of XQuery and against Saxon: what Saxon compiles is read, with the same extents."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import pairwise
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from saxonche import PySaxonApiError, PySaxonProcessor

from postroom.rules.language.edits import Edit, edited
from postroom.rules.language.expression import read
from postroom.rules.language.tokens import Unreadable, statements, tokens

Texts: TypeAlias = st.SearchStrategy[str]

PROLOG = (
    'declare namespace p = "p"; declare namespace qs = "qs";'
    "declare variable $a external := 1; declare variable $p:b external := 2; declare variable $if external := 3;"
    "declare function qs:f($x) { $x }; declare function qs:f($x, $y) { $x, $y }; declare function qs:f() { 1 };"
)
WITHOUT_F = PROLOG.replace("qs:f(", "qs:g(")


def words(text: str) -> list[str]:
    return re.findall(r"\S+", text)


def parts_of(*parts: str | Texts) -> list[Texts]:
    return [st.just(part) if isinstance(part, str) else part for part in parts]


def joined(*parts: str | Texts) -> Texts:
    return st.tuples(*parts_of(*parts)).map(" ".join)


def glued(*parts: str | Texts) -> Texts:
    return st.tuples(*parts_of(*parts)).map("".join)


def chosen(*parts: str | Texts) -> Texts:
    return st.one_of(*parts_of(*parts))


def one_of(text: str) -> Texts:
    return st.sampled_from(words(text))


def some(part: Texts, between: str, least: int = 0, most: int = 2) -> Texts:
    return st.lists(part, min_size=least, max_size=most).map(between.join)


# Every word that is a keyword somewhere is a name somewhere else.
local = one_of(
    "a x-y.z if then else do enqueue reset return into with value key create queue rule for let in and or div mod to "
    "eq is some every satisfies where order by group case default try catch map array element attribute text as of "
    "instance cast treat at start end when only count stable ascending empty union except validate switch declare "
    "child parent namespace document comment node item function ordered typeswitch Q"
)
word = chosen(local, local, "p:b")
variable = st.sampled_from(["$a", "$p:b", "$if", "$ a", "$ (: qs:f() :) a"])
new = one_of("$v $if $a $p:w")
single: Texts = st.deferred(lambda: _single())
sequence = some(single, ", ", 1, 2)
braces = chosen("{}", joined("{", sequence, "}"))

item_type = chosen(
    one_of("item() xs:string element(a) element(*) map(*) array(xs:integer) node() text() function(*) (item())"),
    st.sampled_from(["map(xs:string, item()*)", "document-node(element(b))", "attribute(*, xs:string)"]),
    st.sampled_from(["function(item()*, xs:string?) as item()+", "function(item()) as xs:integer"]),
)
sequence_type = chosen(glued(item_type, st.sampled_from(["", "*", "+", "?"])), "empty-sequence()")

test = chosen(word, one_of("* *:b p:* node() text() element(a) Q{u}a"), "element(*, xs:integer)")
axis = st.sampled_from(["@", "child::", "self::", "descendant-or-self :: "])
step = chosen(test, test, glued(axis, test), "..", glued(test, "[", single, "]"))

literal = st.sampled_from(
    ["1", ".5", "1.", "2e3", '"x"', "'do enqueue 1 into q'", '"a""{qs:f(1)}"', "'&lt;(: '", '"if (a) then"', "'it''s'"]
)
content = chosen(
    st.sampled_from(["", "x", " do enqueue <!-- qs:f(1) --> into q ", "it's", "}}{{", "&lt;", "else", '"', "(: "]),
    joined("{", sequence, "}"),
    st.sampled_from(["{}", "{{qs:f(1)}}", "<![CDATA[ <a> { do reset qs:f() ]]>", "<!-- {qs:f(1) -->", "<?pi {qs:f ?>"]),
    st.deferred(lambda: _element()),
)
attributes = joined(
    chosen("", "", 'b="{{do}} &amp; \'qs:f(2)"'),
    chosen("", "", glued('c = "', joined("{", sequence, "}"), ' else (: "')),
    chosen("", "xmlns:n='u'"),
    chosen("", "", glued("d='", joined("{", sequence, "}"), "''then'")),
)
tag = one_of("a if then p:do create x-y.z")
element = st.tuples(tag, attributes, some(content, "", 0, 3)).map(
    lambda parts: f"<{parts[0]} {parts[1]}>{parts[2]}</{parts[0]} >"
)
constructor = chosen(
    element,
    glued("<a ", attributes, "/>"),
    "<!-- do enqueue qs:f() -->",
    "<?p do {qs:f()}?>",
    glued("``[ do {qs:f()} `{", sequence, "}` ] ` ]``"),
    joined("map {", some(joined(single, ":", single), ", "), "}"),
    joined("[", some(single, ", "), "]"),
    joined("array", braces),
    joined(one_of("element attribute"), local, braces),
    joined("element {", single, "}", braces),
    joined("processing-instruction pi", braces),
    joined(one_of("document text comment ordered unordered"), braces),
    joined("function (", new, "as", sequence_type, ") as", sequence_type, braces),
    "function() {}",
    joined("(# p:x qs:f() #) {", sequence, "}"),
)
call = glued(
    st.sampled_from(["qs:f", "concat", "qs:f (: :) ", "Q{qs}f"]),
    chosen("()", glued("(", single, ")"), glued("(", single, ", ", single, ")"), "(?)"),
)
simple = chosen(literal, variable, one_of(". () qs:f#1 ?a ?1 ?*"))
primary = chosen(simple, simple, simple, joined("(", sequence, ")"), call, constructor, constructor)
postfix = glued(primary, some(chosen(glued("[", single, "]"), one_of("?a ?2 ?* ?(1)")), ""))
path = chosen(
    postfix,
    postfix,
    step,
    "/",
    glued(one_of("/ //"), step),
    glued(chosen(step, postfix), st.sampled_from(["/", "//", " / "]), chosen(step, postfix)),
    joined(postfix, "!", chosen(step, postfix)),
)
typed = chosen(
    path,
    path,
    path,
    joined(path, st.sampled_from(["instance of", "treat as"]), sequence_type),
    joined(path, st.sampled_from(["cast as", "castable as"]), one_of("xs:string xs:integer?")),
    joined(postfix, "=>", glued(one_of("qs:f string $a (qs:f#1)"), "(", some(single, ",", 0, 1), ")")),
)
unary = chosen(typed, typed, glued(st.sampled_from(["-", "+ ", "--"]), typed))
compare = one_of("= != < <= > >= << >> is eq ne lt le gt ge")
calculate = one_of("+ - * div idiv mod and or union | intersect except ||")
operators = chosen(unary, unary, joined(unary, compare, unary), joined(unary, calculate, unary, calculate, unary))

beginning = chosen(
    joined("for", new, "in", single),
    joined("for", new, "as", sequence_type, "at $n in", single),
    joined("for $v allowing empty in", single, ", $w in", single),
    joined("let", new, ":=", single),
    joined("let", new, "as", sequence_type, ":=", single, ", $w := ", single),
    joined("for tumbling window $w in", single, "start $s at $i previous $q next $r when", single, "end when", single),
)
middle = chosen(
    joined("where", single),
    joined("order by", single, st.sampled_from(["", "descending", "empty least"]), ",", single),
    joined("stable order by", single, 'collation "http://www.w3.org/2005/xpath-functions/collation/codepoint"'),
    joined("group by $g :=", single),
    "count $c",
)
clauses = joined(beginning, some(chosen(beginning, middle), " "))
branch = joined("return", single)
keyworded: Texts = chosen(
    joined("if (", sequence, ") then", single, "else", single),
    joined("if (", sequence, ") then", single, "else", single),
    joined(clauses, branch),
    joined(clauses, branch),
    joined(one_of("some every"), new, "in", single, "satisfies", single),
    joined("switch (", sequence, ") case", single, "case", single, branch, "default", branch),
    joined("typeswitch (", sequence, ") case", sequence_type, branch, "default", branch),
    joined("typeswitch (1) case", new, "as", sequence_type, "|", sequence_type, branch, "default", new, branch),
    joined("try", braces, "catch", st.sampled_from(["*", "p:e | *", "*:e"]), braces),
)


def _single() -> Texts:
    return chosen(operators, operators, keyworded)


def _element() -> Texts:
    return element


# Codes of errors that Saxon finds when it has parsed all of the query: types, evaluation, serialisation.
_LATER = re.compile(r"\b(XPTY|XQTY|XPDY|XQDY|FO|SENR|XTDE)")


class Saxon:
    def __init__(self) -> None:
        self._processor = PySaxonProcessor(license=False)
        self._queries = self._processor.new_xquery_processor()

    def refusal(self, expression: str, prolog: str = PROLOG) -> str:
        """Why Saxon does not compile it; nothing if it does."""
        never = "if (current-date() lt xs:date('1970-01-01'))"
        try:
            self._queries.set_query_content(f"{prolog} {never} then (\n{expression}\n) else ()")
            self._queries.run_query_to_string()
        except PySaxonApiError as error:
            return "" if _LATER.search(str(error)) else str(error)
        return ""


@pytest.fixture(scope="module")
def saxon() -> Saxon:
    return Saxon()


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """The grammar under a short name: Hypothesis shows the name of what it draws from."""
    return draw(single)


few = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
many = settings(few, max_examples=3_000)


def check_extents(saxon: Saxon, text: str) -> None:
    refusal = saxon.refusal(text)
    event("refused" if refusal else "accepted")
    assume(not refusal)
    body = f"if (1) then ({text}, do enqueue {text} into q with p value {text}) else do reset s key {text}"
    found = read(body, 0, len(body))
    assert found.conditional
    assert found.missing_else == ()
    (enqueue,), (reset,) = found.enqueues, found.resets
    assert reset.key
    spans = (enqueue.value, enqueue.properties[0].value, reset.key)
    assert [body[slice(*span)] for span in spans] == [text] * 3


@few
@given(text=expressions())
def test_what_saxon_accepts_is_read_with_the_same_extents(saxon: Saxon, text: str) -> None:
    check_extents(saxon, text)


@pytest.mark.slow
@many
@given(text=expressions())
def test_what_saxon_accepts_is_read_with_the_same_extents_in_many_examples(saxon: Saxon, text: str) -> None:
    check_extents(saxon, text)


def check_calls(saxon: Saxon, text: str) -> None:
    """The calls of qs:f that we find become calls of qs:g; Saxon, which now knows qs:g alone, must miss nothing."""
    text = f"{text}, qs:f(1)"
    assume(not saxon.refusal(text))
    calls = [found for found in read(text, 0, len(text)).calls if found.name in ("qs:f", "Q{qs}f")]
    edits = [Edit(found.start, found.start + len(found.name), "qs:g") for found in calls]
    assert saxon.refusal(edited(text, 0, len(text), edits).text, WITHOUT_F) == ""


@few
@given(text=expressions())
def test_every_call_that_saxon_sees_is_found(saxon: Saxon, text: str) -> None:
    check_calls(saxon, text)


@pytest.mark.slow
@many
@given(text=expressions())
def test_every_call_that_saxon_sees_is_found_in_many_examples(saxon: Saxon, text: str) -> None:
    check_calls(saxon, text)


@few
@given(text=expressions(), data=st.data())
def test_a_mutated_body_is_read_or_unreadable_and_nothing_else(text: str, data: st.DataObject) -> None:
    body = f"if ({text}) then do enqueue {text} into q"
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(body)))
        end = data.draw(st.integers(start, min(len(body), start + 5)))
        piece = data.draw(
            chosen(one_of("( ) [ ] { } < > </a> <a ' : , ; |"), word, st.sampled_from(["", '"', "(:", "$"]))
        )
        body = body[:start] + piece + body[end:]
    assert 0 <= offset_of_problem(body) <= len(body) + 1


@few
@given(text=st.text(alphabet=st.sampled_from("ab1 .,:;$<>/!?-(){}[]'\"`#&|=*+@\n") | st.characters(), max_size=60))
def test_random_text_gives_tokens_that_are_pieces_of_it_or_is_unreadable(text: str) -> None:
    if offset_of_problem(text) > len(text):
        found = tokens(text)
        assert all(token.text == text[token.start : token.end] for token in found if token.kind != "variable")
        assert all(one.end <= other.start for one, other in pairwise(found))


@few
@given(
    text=some(one_of("create queue rule property slicing value if then for on as a / , ; ( ) { } <a> \" '"), " ", 0, 30)
)
def test_random_definitions_give_statements_or_are_unreadable(text: str) -> None:
    with suppress(Unreadable):
        found = statements(text)
        assert all(statement.tokens[0].text == "create" for statement in found)
        assert sum(len(statement.tokens) for statement in found) <= len(tokens(text))


def offset_of_problem(body: str) -> int:
    """Where it is unreadable, or a place behind its end if it is not."""
    try:
        read(body, 0, len(body))
    except Unreadable as problem:
        return problem.offset
    return len(body) + 1

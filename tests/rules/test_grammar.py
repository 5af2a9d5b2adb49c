"""The reader against a grammar and against Saxon: what Saxon accepts is read, with the same extents."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from saxonche import PySaxonApiError, PySaxonProcessor

from postroom.rules.expression import Edit, Unreadable, edited, read

PROLOG = (
    'declare namespace p = "p"; declare namespace qs = "qs";'
    "declare variable $a external := 1; declare variable $p:b external := 2; declare variable $if external := 3;"
    "declare function qs:f($x) { $x }; declare function qs:f($x, $y) { $x, $y }; declare function qs:f() { 1 };"
)

# Every word that is a keyword somewhere is a name somewhere else.
WORDS = (
    "a p:b x-y.z if then else do enqueue reset return into with value key create queue rule for let in and or div mod "
    "to eq is some every satisfies where order by group case default try catch map array element attribute text as of "
    "instance cast treat at start end when only count stable ascending empty union except validate switch declare "
    "child parent namespace document comment node item function ordered typeswitch Q"
).split()
TEXTS = ["", "x", " do enqueue <a/> into q ", "it's", "}}{{", "&lt;", "else", '"']


def joined(*parts: str | st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*(st.just(part) if isinstance(part, str) else part for part in parts)).map(" ".join)


def glued(*parts: str | st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*(st.just(part) if isinstance(part, str) else part for part in parts)).map("".join)


def chosen(*parts: str | st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(*(st.just(part) if isinstance(part, str) else part for part in parts))


def listed(part: st.SearchStrategy[str], between: str, least: int = 1, most: int = 3) -> st.SearchStrategy[str]:
    return st.lists(part, min_size=least, max_size=most).map(between.join)


word = st.sampled_from(WORDS)
variable = st.sampled_from(["$a", "$p:b", "$if", "$ a", "$ (: :) a"])
new = st.sampled_from(["$v", "$if", "$a", "$p:w"])
single: st.SearchStrategy[str] = st.deferred(lambda: chosen(operators, operators, keyworded))
sequence = listed(single, ", ", 1, 2)
braces = chosen("{}", joined("{", sequence, "}"))
item_type = st.sampled_from(
    "item() xs:string element(a) element(*) map(*) map(xs:string,item()*) array(xs:integer) node() text() function(*) "
    "(item()) document-node(element(b)) function(item()*,xs:string?)as%item()+ attribute(*,xs:string)".split()
).map(lambda text: text.replace("%", " ").replace("as", " as") if "as%" in text else text)
sequence_type = chosen(glued(item_type, st.sampled_from(["", "*", "+", "?"])), "empty-sequence()")

test = chosen(word, "*", "*:b", "p:*", "node()", "text()", "element(a)", "element(*, xs:integer)", "Q{u}a")
step = chosen(
    test,
    test,
    glued("@", test),
    glued(st.sampled_from(["child::", "self::", "descendant-or-self :: "]), test),
    "..",
    glued(test, "[", single, "]"),
)
literal = st.sampled_from(
    ["1", ".5", "1.", "2e3", '"x"', "'do enqueue 1 into q'", '"a""b"', "'&lt;('", '"if (a) then"']
)
arguments = chosen("()", glued("(", single, ")"), glued("(", single, ", ", single, ")"), "(?)")
content = chosen(
    st.sampled_from(TEXTS),
    joined("{", sequence, "}"),
    "{}",
    "<![CDATA[ <a> { do reset ]]>",
    "<!-- { do enqueue -->",
    "<?pi { ?>",
    st.deferred(lambda: element),
)
attribute = chosen(
    'b="{{ do enqueue }} &amp; \'"',
    glued('c = "', joined("{", sequence, "}"), ' else"'),
    "xmlns:n='u'",
    glued("d='", joined("{", sequence, "}"), "''then'"),
)
tag = st.sampled_from(["a", "if", "then", "p:do", "create", "x-y.z"])
element = st.tuples(
    tag, st.lists(attribute, max_size=2, unique_by=lambda text: text[0]), st.lists(content, max_size=3)
).map(lambda parts: "".join([f"<{' '.join([parts[0], *parts[1]])}>", *parts[2], f"</{parts[0]} >"]))
primary = chosen(
    literal,
    variable,
    ".",
    "()",
    joined("(", sequence, ")"),
    glued(st.sampled_from(["qs:f", "concat", "qs:f (: :) "]), arguments),
    "qs:f#1",
    element,
    glued("<a ", attribute, "/>"),
    "<!-- do enqueue -->",
    "<?p do?>",
    glued("``[ do `{", sequence, "}` ] ` ]``"),
    joined("map {", listed(joined(single, ":", single), ", ", 0, 2), "}"),
    joined("[", listed(single, ", ", 0, 2), "]"),
    joined("array", braces),
    joined(st.sampled_from(["element", "attribute"]), word.filter(lambda name: ":" not in name), braces),
    joined("element {", single, "}", braces),
    joined("processing-instruction pi", braces),
    joined(st.sampled_from(["document", "text", "comment", "ordered", "unordered"]), braces),
    joined("function (", new, "as", sequence_type, ") as", sequence_type, braces),
    "function() {}",
    glued("?", st.sampled_from(["a", "1", "*"])),
    joined("(# p:x y #) {", sequence, "}"),
)
postfix = glued(
    primary,
    st.lists(chosen(glued("[", single, "]"), glued("?", st.sampled_from(["a", "2", "*", "(1)"]))), max_size=2).map(
        "".join
    ),
)
path = chosen(
    postfix,
    postfix,
    step,
    "/",
    glued(st.sampled_from(["/", "//"]), step),
    glued(chosen(step, postfix), st.sampled_from(["/", "//", " / "]), chosen(step, postfix)),
    joined(postfix, "!", chosen(step, postfix)),
)
typed = chosen(
    path,
    path,
    joined(path, st.sampled_from(["instance of", "treat as"]), sequence_type),
    joined(path, st.sampled_from(["cast as", "castable as"]), st.sampled_from(["xs:string", "xs:integer?"])),
    joined(
        postfix, "=>", glued(st.sampled_from(["qs:f", "string", "$a", "(qs:f#1)"]), "(", listed(single, ",", 0, 1), ")")
    ),
)
unary = chosen(typed, typed, glued(st.sampled_from(["-", "+ ", "--"]), typed))
binary = st.sampled_from(
    "= != < <= > >= << >> is eq ne lt le gt ge + - * div idiv mod and or to union | intersect except ||".split()
)
operators = chosen(unary, unary, joined(unary, binary, unary), joined(unary, binary, unary, binary, unary))
keyworded: st.SearchStrategy[str] = st.deferred(
    lambda: chosen(
        joined("if (", sequence, ") then", single, "else", single),
        joined(st.lists(clause, min_size=1, max_size=3).map(" ".join), "return", single),
        joined(st.sampled_from(["some", "every"]), new, "in", single, "satisfies", single),
        joined("switch (", sequence, ") case", single, "case", single, "return", single, "default return", single),
        joined(
            "typeswitch (", sequence, ") case", sequence_type, "return", single,
            "case", new, "as", sequence_type, "|", sequence_type, "return", single, "default", chosen("", new), "return", single,
        ),
        joined("try", braces, "catch", st.sampled_from(["*", "p:e | *", "*:e"]), braces),
    )
)  # fmt: skip
beginning = chosen(
    joined("for", new, "in", single),
    joined("for", new, "as", sequence_type, "at $n in", single),
    joined("for $v allowing empty in", single, ", $w in", single),
    joined("let", new, ":=", single),
    joined("let", new, "as", sequence_type, ":=", single, ", $w := ", single),
    joined("for tumbling window $w in", single, "start $s at $i previous $q next $r when", single, "end when", single),
)
clause = chosen(
    beginning,
    beginning,
    joined(
        beginning,
        chosen(
            joined("where", single),
            joined("order by", single, st.sampled_from(["", "descending", "empty least"]), ",", single),
            joined("stable order by", single, 'collation "http://www.w3.org/2005/xpath-functions/collation/codepoint"'),
            joined("group by $g :=", single),
            "count $c",
        ),
    ),
)


# Codes of errors that are found when all of the query has been parsed: types, evaluation, serialisation.
_LATER = re.compile(r"\b(XPTY|XQTY|XPDY|XQDY|FO|SENR|XTDE)")


class Saxon:
    def __init__(self) -> None:
        self._processor = PySaxonProcessor(license=False)
        self._queries = self._processor.new_xquery_processor()

    def refusal(self, expression: str) -> str:
        """Why Saxon does not compile it; nothing if it does. What fails only when it runs has compiled."""
        try:
            self._queries.set_query_content(
                f"{PROLOG} if (current-date() lt xs:date('1970-01-01')) then (\n{expression}\n) else ()"
            )
            self._queries.run_query_to_string()
        except PySaxonApiError as error:
            return "" if _LATER.search(str(error)) else str(error)
        return ""


@pytest.fixture(scope="module")
def saxon() -> Saxon:
    return Saxon()


@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=single)
def test_what_saxon_accepts_is_read_with_the_same_extents(saxon: Saxon, text: str) -> None:
    refusal = saxon.refusal(text)
    event("refused" if refusal else "accepted")
    assume(not refusal)
    body = f"if (1) then ({text}, do enqueue {text} into q with p value {text}) else do reset s key {text}"
    found = read(body, 0, len(body))
    (enqueue,), (reset,) = found.enqueues, found.resets
    key = reset.key
    assert key
    assert [body[slice(*span)] for span in (enqueue.value, enqueue.properties[0].value, key)] == [text] * 3

"""Constructors: what is inside of them gives no tokens, but for enclosed expressions."""

from __future__ import annotations

import pytest

from postroom.rules.language.tokens import Unreadable, tokens


def shown(text: str) -> str:
    """The tokens; those of constructors in «»."""
    return " ".join(f"«{token.text}»" if "constructor" in token.kind else token.text for token in tokens(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<a/>", "«<a» «/>»"),
        ("<a></a>", "«<a» «</a>»"),
        ("<p:a-b.c\n></p:a-b.c >", "«<p:a-b.c» «</p:a-b.c >»"),
        ("<a>text 'it' \" ( : ; $ </a>", "«<a» «</a>»"),
        ("<a>{1}</a>", "«<a» { 1 } «</a>»"),
        ("<a>{}</a>", "«<a» { } «</a>»"),
        ("<a>{{1}}</a>", "«<a» «</a>»"),
        ("<a>{{{1}}}</a>", "«<a» { 1 } «</a>»"),
        ("<a><b>{1}</b>x<c/></a>", "«<a» «<b» { 1 } «</b>» «<c» «/>» «</a>»"),
        ("<a>{<b>{1}</b>}</a>", "«<a» { «<b» { 1 } «</b>» } «</a>»"),
        ("<a>{'</a>', \"}\", (: } :) 1}</a>", "«<a» { '</a>' , \"}\" , 1 } «</a>»"),
        ("<a b='c' d = \"e\"/>", "«<a» «/>»"),
        ("<a b='{1}{2}'>{3}</a>", "«<a» { 1 } { 2 } { 3 } «</a>»"),
        ("<a b='it''s {\"'\"} {{x}} \"' c=\"'\"/>", '«<a» { "\'" } «/>»'),
        ("<a b='/>' c='{\"/>\"}'>x</a>", '«<a» { "/>" } «</a>»'),
        ("<a b='{<c d=\"{1}\"/>}'/>", "«<a» { «<c» { 1 } «/>» } «/>»"),
        ("<a><![CDATA[ </a> { ]] ]]></a>", "«<a» «</a>»"),
        ("<a><!-- </a> { --></a>", "«<a» «</a>»"),
        ("<a><?p </a> { ?></a>", "«<a» «</a>»"),
        ("<a>(: {1} :)</a>", "«<a» { 1 } «</a>»"),
        ("<!-- { -->, 1", "«<!--» «-->» , 1"),
        ("<?p { ?>, 1", "«<?» «?>» , 1"),
        ("<a>{<!-- x -->, <?y?>}</a>", "«<a» { «<!--» «-->» , «<?» «?>» } «</a>»"),
        ("``[ a ' { ` ]` ]] <b> ]``", "«``[» «]``»"),
        ("``[`{1}`x`{2}`]``", "«``[» `{ 1 }` `{ 2 }` «]``»"),
        ("``[`{``[`{1}`]``}`]``", "«``[» `{ «``[» `{ 1 }` «]``» }` «]``»"),
        ("``[`{<a>{1}</a>}`]``", "«``[» `{ «<a» { 1 } «</a>» }` «]``»"),
        ("``[`{map{}}`]``", "«``[» `{ map { } }` «]``»"),
    ],
)
def test_only_what_is_enclosed_gives_tokens(text: str, expected: str) -> None:
    assert shown(text) == expected


@pytest.mark.parametrize(
    ("text", "what", "offset"),
    [
        ("1, <a>", "the element a has no end tag", 3),
        ("<a><b></a>", "the end tag a does not close the element b", 6),
        ("<a></a", "the end tag of a is expected", 3),
        ("<a></ a>", "the end tag of a is expected", 3),
        ("<a", "the start tag of a does not end", 0),
        ("<a b", "an attribute with a quoted value", 3),
        ("<a b=c/>", "an attribute with a quoted value", 3),
        ("<a / >", "an attribute with a quoted value", 3),
        ("<a b='", "has no closing quote", 0),
        ("<a b='<'/>", "< cannot stand in an attribute value", 6),
        ("<a b='}'/>", "} cannot stand in an attribute value", 6),
        ("<a b='{1'/>", "no closing quote", 8),
        ("<a b='{{ it }'/>", "must be written &#123;", 6),
        ("<a b='{{\"}}'/>", "must be written &#123;", 6),
        ("<a b='{{(: }}'/>", "must be written &#123;", 6),
        ("<a b='{{{1}}}'/>", "must be written &#123;", 6),
        ("<a>}</a>", "must be doubled", 3),
        ("<a>{1</a>", "never closed", 3),
        ("<a>< b</a>", "it is written &lt;", 3),
        ("<a><![CDATA[x</a>", "CDATA section has no closing", 3),
        ("<a><!--x</a>", "comment has no closing", 3),
        ("<a><?x</a>", "processing instruction has no closing", 3),
        ("<!--x", "comment has no closing", 0),
        ("``[x", "no closing ]``", 0),
        ("``[`{1}", "}` is expected here, not }", 6),
    ],
)
def test_a_malformed_constructor_says_what_and_where(text: str, what: str, offset: int) -> None:
    with pytest.raises(Unreadable) as refusal:
        tokens(text)
    assert what in refusal.value.what
    assert refusal.value.offset == offset

"""Rule bodies: actions, missing branches, and where an action may stand. Bodies are the files of ``fixtures``.

A legal body compiles in Saxon once every action is made a string and every missing else is put in. An illegal one
begins with what its error says, and ¶ marks where.
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from saxonche import PySaxonApiError, PySaxonProcessor

from postroom.limits import RULE_DEPTH_MAX
from postroom.rules.language.body import ELSE, Body, Span
from postroom.rules.language.edits import Edit, edited
from postroom.rules.language.expression import read
from postroom.rules.language.tokens import Unreadable

FIXTURES = Path(__file__).parent / "fixtures"
LEGAL = sorted((FIXTURES / "legal").glob("*.xq"))
ILLEGAL = sorted((FIXTURES / "illegal").glob("*.xq"))
PROLOG = (
    'declare namespace a = "a"; declare namespace qs = "qs";'
    "declare variable $a external; declare variable $v external;"
    "declare function qs:message() { parse-xml('<a/>') }; declare function qs:queue() { qs:message() };"
    "declare function qs:queue($n) { qs:message()[$n] }; declare function qs:slice() { qs:message() };"
    "declare function qs:slicekey() { 1 };"
)


def body_of(text: str) -> Body:
    return read(text, 0, len(text))


def cut(text: str, *spans: Span) -> list[str]:
    return [text[start:end] for start, end in spans]


def compiles(expression: str) -> str:
    """What Saxon says against it."""
    with PySaxonProcessor(license=False) as processor:
        query = processor.new_xquery_processor()
        query.set_query_content(
            f"{PROLOG} if (current-date() lt xs:date('1970-01-01')) then (\n{expression}\n) else ()"
        )
        query.set_context(xdm_item=processor.parse_xml(xml_text="<a/>"))
        query.set_parameter("a", processor.make_integer_value(1))
        query.set_parameter("v", processor.make_integer_value(1))
        try:
            query.run_query_to_string()
        except PySaxonApiError as error:
            return str(error)
    return ""


def inner_elses(text: str, body: Body) -> list[int]:
    """Those missing in a part of an action, which must be put in before what closes the action there."""
    parts = [enqueue.value for enqueue in body.enqueues]
    parts += [each.value for enqueue in body.enqueues for each in enqueue.properties]
    parts += [reset.key for reset in body.resets if reset.key]
    return [at for part in parts for at in read(text, *part).missing_else]


def outer_edits(text: str, body: Body) -> list[Edit]:
    """What is put in outside of the parts of actions: the other elses, and parentheses around lists."""
    done = Counter(inner_elses(text, body))
    edits = [Edit(each.start, each.start, "(") for each in body.lists]
    for at, closing in body.closings:
        if closing == ELSE and done[at]:
            done[at] -= 1
        else:
            edits.append(Edit(at, at, closing))
    return edits


# --- legal and illegal bodies ---


@pytest.mark.parametrize("file", LEGAL, ids=lambda file: file.stem)
def test_a_legal_body_compiles_once_its_actions_are_values(file: Path) -> None:
    text = file.read_text()
    body = body_of(text)
    assert body.conditional
    assert body.updating
    assert body.values == ()
    actions = [enqueue.span for enqueue in body.enqueues] + [reset.span for reset in body.resets]
    edits = [Edit(*span, '"x"') for span in actions] + outer_edits(text, body)
    assert compiles(edited(text, 0, len(text), edits).text) == ""


@pytest.mark.parametrize("file", LEGAL, ids=lambda file: file.stem)
def test_the_parts_of_actions_compile_as_parts_of_a_sequence(file: Path) -> None:
    text = file.read_text()
    body = body_of(text)
    edits = [Edit(at, at, ELSE) for at in inner_elses(text, body)]
    for enqueue in body.enqueues:
        edits += [Edit(*enqueue.keyword, "(("), Edit(*enqueue.into, ")"), Edit(enqueue.span.end, enqueue.span.end, ")")]
        for each in enqueue.properties:
            edits += [Edit(*each.keyword, ", ("), Edit(each.value.end, each.value.end, ")")]
    for reset in body.resets:
        edits += [Edit(*reset.keyword, "(("), Edit(reset.span.end, reset.span.end, "))")]
    edits += outer_edits(text, body)
    assert compiles(edited(text, 0, len(text), edits).text) == ""


@pytest.mark.parametrize("file", ILLEGAL, ids=lambda file: file.stem)
def test_an_illegal_body_says_what_and_where(file: Path) -> None:
    first, _, text = file.read_text().rstrip("\n").partition("\n")
    offset = text.index("¶")
    text = text.replace("¶", "")
    with pytest.raises(Unreadable) as refusal:
        body_of(text)
    assert first.removeprefix("(: ").removesuffix(" :)") in refusal.value.what
    assert refusal.value.offset == offset
    assert str(refusal.value) == f"{refusal.value.what} (at {offset})"


# --- actions ---


def test_an_enqueue_is_told_apart_into_its_parts() -> None:
    text = """if (a) then do  enqueue <a>{1}</a>
        into (: here :) x:q  with p value 1 + 2 with (: and :) y:r value "do reset", do reset"""
    (enqueue,) = body_of(text).enqueues
    first, second = enqueue.properties
    assert cut(text, enqueue.keyword, enqueue.value, enqueue.into) == [
        "do  enqueue",
        "<a>{1}</a>",
        "into (: here :) x:q",
    ]
    assert cut(text, enqueue.span) == [text[12 : text.rindex(",")]]
    assert (enqueue.queue, text[enqueue.offset :][:3]) == ("x:q", "x:q")
    assert cut(text, first.keyword, first.value) == ["with p value", "1 + 2"]
    assert cut(text, second.keyword, second.value) == ["with (: and :) y:r value", '"do reset"']
    assert [(each.name, text[each.offset]) for each in enqueue.properties] == [("p", "p"), ("y:r", "y")]


def test_a_reset_has_a_slicing_and_a_key_or_neither() -> None:
    text = "if (a) then (do reset, do reset orders key //id || 'x', if (b) then do reset else key)"
    plain, keyed, before_else = body_of(text).resets
    assert (plain.slicing, plain.key, plain.offset) == (None, None, plain.span.start)
    assert cut(text, plain.span, plain.keyword) == ["do reset", "do reset"]
    assert (keyed.slicing, text[keyed.offset :][:6]) == ("orders", "orders")
    assert keyed.key is not None
    assert cut(text, keyed.keyword, keyed.key) == ["do reset orders key", "//id || 'x'"]
    assert before_else.slicing is None


def test_a_slicing_may_have_the_name_of_an_operator() -> None:
    assert [each.slicing for each in body_of("if (a) then (do reset and key 1, do reset to key 2)").resets] == [
        "and",
        "to",
    ]


def test_offsets_count_from_the_beginning_of_the_file() -> None:
    file = "create rule r for q\nif (a) then do enqueue <b/> into c create queue d"
    start, end = file.index("if"), file.index(" create queue")
    (enqueue,) = read(file, start, end).enqueues
    assert cut(file, enqueue.span, enqueue.value) == ["do enqueue <b/> into c", "<b/>"]
    assert file[enqueue.offset] == "c"
    with pytest.raises(Unreadable) as refusal:
        read(file, start, end - len(" into c"))
    assert refusal.value.offset == end - len(" into c")


def test_words_of_an_action_are_names_elsewhere() -> None:
    text = "if (do/enqueue and //do) then (do enqueue do into into with with value value, do/reset, do)"
    body = body_of(text)
    (enqueue,) = body.enqueues
    assert (cut(text, enqueue.value), enqueue.queue) == (["do"], "into")
    assert [(each.name, *cut(text, each.value)) for each in enqueue.properties] == [("with", "value")]
    assert cut(text, *body.values) == ["do/reset", "do"]


def test_the_message_itself_is_enqueued_with_a_lone_slash() -> None:
    text = "if (a) then (do enqueue / into q, do enqueue /into into into with p value / with r value /with)"
    lone, named = body_of(text).enqueues
    assert cut(text, lone.value, named.value) == ["/", "/into"]
    assert (lone.queue, named.queue) == ("q", "into")
    assert [(each.name, *cut(text, each.value)) for each in named.properties] == [("p", "/"), ("r", "/with")]


# --- conditions ---


@pytest.mark.parametrize(
    "text",
    [
        "if (a) then do reset",
        "if (a) then do reset else ()",
        "(if (a) then do reset)",
        "( (: c :) ((if (a) then do reset else do reset) ) )",
    ],
)
def test_one_if_is_conditional_also_in_parentheses(text: str) -> None:
    assert body_of(text).conditional


@pytest.mark.parametrize(
    "text",
    [
        "do reset",
        "for $x in a return if ($x) then do reset",
        "(if (a) then do reset), (if (b) then do reset)",
        "((if (a) then do reset), do reset)",
        "if",
        "if/a",
        "(if (a) then b else c) + 1",
        "switch (1) case 1 return do reset default return ()",
    ],
)
def test_all_else_is_not_conditional(text: str) -> None:
    assert not body_of(text).conditional


def test_outside_of_brackets_a_branch_may_be_a_list_of_actions() -> None:
    """As the paper writes it (Fig. 5); inside of brackets a comma ends the if, as in XQuery."""
    text = "if (a) then let $x := (1, 2) return do enqueue $x into b, do enqueue $x into c, do reset"
    body = body_of(text)
    assert body.conditional
    assert body.comma is None
    assert [text[span.start : span.end] for span in body.lists] == [text[text.index("do enqueue") :]]
    assert [len(binding.uses) for binding in body.bindings] == [2]
    assert body.closings == ((len(text), ")"), (len(text), " else ()"))
    both = body_of("if (a) then do reset, do reset else do reset, if (b) then do reset")
    assert len(both.lists) == 2
    assert [closing for _, closing in both.closings] == [")", " else ()", ")"]
    assert body_of("if (a) then (do reset, do reset)").lists == ()
    assert body_of("(if (a) then do reset), do reset").comma is not None


def test_a_body_without_an_action_is_not_updating() -> None:
    assert not body_of("if (a) then 'do reset' else <do>reset</do>").updating


def test_results_that_are_no_actions_are_told() -> None:
    text = "if (a) then (1, ('x', do reset), (), for $x in 1 to 3 return f($x)[1]) else try { a } catch * { b }"
    assert cut(text, *body_of(text).values) == ["1", "'x'", "f($x)[1]", "try { a } catch * { b }"]
    text = "if (a) then (1, 2) + 3 else ((4))"
    assert cut(text, *body_of(text).values) == ["(1, 2) + 3", "4"]


def missing(text: str) -> str:
    edits = [Edit(at, at, "!") for at in body_of(text).missing_else]
    return edited(text, 0, len(text), edits).text


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("if (a) then b", "if (a) then b!"),
        ("if (a) then b (: c :) ", "if (a) then b! (: c :) "),
        ("if (a) then if (b) then c", "if (a) then if (b) then c!!"),
        ("if (a) then if (b) then c else d", "if (a) then if (b) then c else d!"),
        ("if (a) then if (b) then c else d else e", "if (a) then if (b) then c else d else e"),
        ("if (a) then (if (b) then c) else d", "if (a) then (if (b) then c!) else d"),
        ("if (a) then b else if (c) then d", "if (a) then b else if (c) then d!"),
        ("if (a) then (if (b) then c, if (d) then e)", "if (a) then (if (b) then c!, if (d) then e!)!"),
        ("if (a) then for $x in b return if (c) then d", "if (a) then for $x in b return if (c) then d!!"),
        ("if (if (a) then b) then f(if (c) then d, e)", "if (if (a) then b!) then f(if (c) then d!, e)!"),
        ("if (a) then <b>{if (c) then d}</b>", "if (a) then <b>{if (c) then d!}</b>!"),
        ("let $x := if (a) then b return c", "let $x := if (a) then b! return c"),
        ("if (a) then do enqueue b into c with p value if (d) then 1", "…if (d) then 1!!"),
        ("if (a) then do enqueue if (b) then c into d", "if (a) then do enqueue if (b) then c! into d!"),
        ("if (a) then do reset", "if (a) then do reset!"),
        ("if (a) then else", "if (a) then else!"),
        ("if (a) then else else else", "if (a) then else else else"),
    ],
)  # fmt: skip
def test_an_else_is_missing_where_the_innermost_if_has_none(text: str, marked: str) -> None:
    assert missing(text).endswith(marked.removeprefix("…"))


# --- costs ---


def test_nesting_is_read_up_to_the_limit_and_refused_beyond() -> None:
    def nested(depth: int) -> str:
        return "if (a) then " + "(" * depth + "do reset" + ")" * depth

    assert body_of(nested(RULE_DEPTH_MAX - 2)).updating
    with pytest.raises(Unreadable, match="nested deeper"):
        body_of(nested(RULE_DEPTH_MAX - 1))


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000 + ")" * 10_000,
        "if (a) then " * 10_000 + "b",
        "if (a) then b else " * 10_000 + "b",
        "a[" * 900 + "]" * 900,
        "<a>{" * 400 + "}</a>" * 400,
        "let $x := " * 10_000,
        "f(" * 900 + ")" * 900,
        "-" * 100_000 + "1",
        "1 instance of " + "function() as " * 10_000 + "item()",
        "1 instance of " + "(" * 900 + "item()" + ")" * 900,
        "do enqueue " * 10_000,
        "for $x in " * 10_000,
        "some $x in " * 10_000,
        "typeswitch (" * 900,
        "=> f()" * 10_000,
        "a" + "?b" * 50_000,
        "a" + "=> f()" * 30_000,
        "%a " * 50_000,
    ],
    ids=lambda text: f"{text[:12]}-{len(text)}",
)
def test_deep_or_long_text_is_read_or_unreadable_soon(text: str) -> None:
    began = time.process_time()
    with suppress(Unreadable):
        body_of(text)
    assert time.process_time() - began < 10

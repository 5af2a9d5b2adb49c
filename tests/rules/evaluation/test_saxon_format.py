"""Between Python and Saxon: whatever a message says comes out as it went in, and nothing it says is taken for ours."""

from __future__ import annotations

import json

import pytest
from tests.rules.conftest import Load

from postroom.engine.steps.effects import Document
from postroom.model.types import Field, Kind, MessageType
from postroom.model.xml import check_xml
from postroom.model.xmltext import attribute, escaped, without_declaration
from postroom.rules.compilation.plan import Plan, Template
from postroom.rules.compilation.translation import prolog
from postroom.rules.evaluation.saxon_format import answer, batch, by_template, element, parts
from postroom.rules.evaluation.xquery import saxon

QUEUES = "create queue a kind basic mode persistent create queue b kind basic mode persistent\n"
#: XML documents that try to be more than one message.
NASTY = [
    "<x/>",
    "<x></x>",
    "<x a='1\"2'>\"'</x>",
    '<x>&lt;m i="0"&gt;&amp;amp;</x>',
    "<x><![CDATA[</d></m>]]></x>",
    "<x>]]&gt;</x>",
    "<x a='&#10;&#9;&#13;'>&#13;\n\ttext\n</x>",
    "<!-- before --><x/><!-- behind -->",
    "<?pi before?><x><?pi inside?></x>",
    "<x xmlns='urn:d' xmlns:p='urn:p' p:a='1'><p:y/><z xmlns=''/></x>",
    "<b><m i='9'><d>no</d></m></b>",
    "<x>é\u2028\U0001f4ee\u00a0\u0085</x>",
    "<x>{$qs:m}{{}}</x>",
    "<e-check q='a' r='0' f='x'/>",
]
TEXTS = [
    "",
    " ",
    "\n",
    "plain",
    "<x>&amp;</x>",
    "]]>",
    "a\r\nb\rc\n",
    "\t tab",
    "quotes \" and '",
    "é\U0001f4ee\u2028",
    "&#10; &lt;",
    "{}{{",
]


def canonical(text: str) -> str:
    """A document as an XML parser has it, without how it was written."""
    return saxon().run(".", text)


@pytest.mark.parametrize("body", NASTY)
def test_an_xml_message_passes_through_a_rule_as_it_is(load: Load, body: str) -> None:
    check_xml(body)
    room = load(f"{QUEUES}create rule r for a if (true()) then do enqueue . into b")
    room.send("a", "<first/>", format="xml")
    room.send("a", body, format="xml")
    room.send("a", "<last/>", format="xml")
    room.run_until_idle()
    first, found, last = room.queues.info("b")
    assert (first.body, last.body) == ("<first/>", "<last/>")
    assert found.format == "xml"
    assert canonical(found.body) == canonical(body)


@pytest.mark.parametrize(
    "body", ["\ufeff<x/>", "<?xml version='1.0'?><x/>", "\ufeff<?xml version='1.0' encoding='utf-16'?>\n<x/>"]
)
def test_a_declaration_and_a_byte_order_mark_are_no_part_of_a_message(load: Load, body: str) -> None:
    room = load(f"{QUEUES}create rule r for a if (/x) then do enqueue <y>{{count(/node()), .}}</y> into b")
    room.send("a", body, format="xml")
    room.run_until_idle()
    assert [each.body for each in room.queues.info("b")] == ["<y>1<x/></y>"]
    assert without_declaration(body).strip() == "<x/>"


@pytest.mark.parametrize("body", TEXTS)
def test_a_text_message_passes_through_a_rule_as_it_is(load: Load, body: str) -> None:
    room = load(f"{QUEUES}create rule r for a if (true()) then (do enqueue string(.) into b, do enqueue . into b)")
    room.send("a", body, format="text")
    room.run_until_idle()
    assert [(each.format, each.body) for each in room.queues.info("b")] == [("text", body)] * 2


@pytest.mark.parametrize("body", ["\x01", "\x1f\x7f\ufffe\uffff", "\x0b\x0c"])
def test_what_xml_lacks_is_shown_to_rules_as_the_replacement_character(load: Load, body: str) -> None:
    room = load(f"{QUEUES}create rule r for a if (true()) then do enqueue string(.) into b")
    room.send("a", body)
    room.run_until_idle()
    (found,) = room.queues.info("b")
    assert len(found.body) == len(body)
    assert "\ufffd" in found.body


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        {"a": None, "b": [1, 2.5, True], "": ""},
        {"<x>&": "]]>", 'quote"': "back\\slash", "nl": "a\nb\r\tc"},
        {"é\U0001f4ee": "\u2028"},
        [[[]], {"a": {"a": {"a": []}}}],
        {"big": 12345678901234567890},
    ],
)
def test_a_json_message_is_a_map_or_an_array_and_comes_out_as_one(load: Load, value: object) -> None:
    room = load(f"{QUEUES}create rule r for a if (exists(.)) then do enqueue . into b")
    room.send("a", value)
    room.run_until_idle()
    (found,) = room.queues.info("b")
    assert found.format == "json"
    said = json.loads(found.body)
    if "big" in value:  # type: ignore[operator]  # numbers of JSON are doubles in XQuery
        assert said["big"] == pytest.approx(12345678901234567890)
    else:
        assert said == value


def test_a_control_character_in_json_reaches_a_rule_as_something_and_harms_nothing(load: Load) -> None:
    room = load(f"{QUEUES}create rule r for a if (?a) then do enqueue <l>{{string-length(?a)}}</l> into b")
    room.send("a", '{"a": "\\u0001\\u001fx"}', format="json")
    room.run_until_idle()
    assert [each.body for each in room.queues.info("b")] == ["<l>3</l>"]


def test_a_message_of_a_type_appears_as_xml_and_what_does_not_fit_it_as_it_came(load: Load) -> None:
    room = load(f"{QUEUES}create rule r for a if (true()) then do enqueue <y>{{/order/amount/data()}}</y> into b")
    order = MessageType("order", (Field("amount", Kind.INT), Field("note")))
    room.definitions.define_type(order)
    room.send("a", {"amount": 5, "note": "<&\r"}, type="order")
    room.send("a", "amount: 6\nnote: <&\n and more\n", type="order")
    room.send("a", "<order><amount>7</amount></order>", format="xml", type="order")
    room.send("a", "amount: 8")
    room.run_until_idle()
    assert [each.body for each in room.queues.info("b")] == ["<y>5</y>", "<y>6</y>", "<y>7</y>", "<y/>"]
    plan = Plan(1, "m", types={"order": order})
    assert element(Document(1, "json", "order", '{"amount": 5}'), plan) == "<d><order><amount>5</amount></order></d>"
    assert element(Document(1, "json", "order", '{"amount": "x"}'), plan) == '<d f="j">{"amount": "x"}</d>'
    assert element(Document(1, "json", "other", "{}"), plan) == '<d f="j">{}</d>'
    both = "<d><order><amount>5</amount><note>a &lt; b\nc</note></order></d>"
    assert element(Document(1, "text", "order", "amount: 5\nnote: a < b\n c"), plan) == both
    assert element(Document(1, "text", "order", "amount: x"), plan) == '<d f="t">amount: x</d>'
    assert element(Document(1, "text", "order", "amounts"), plan) == '<d f="t">amounts</d>'
    assert element(Document(1, "text", None, "amount: 5"), plan) == '<d f="t">amount: 5</d>'


def test_tags_like_ours_inside_of_a_message_are_only_text(load: Load) -> None:
    room = load(f"{QUEUES}create rule r for a if (/x) then (do enqueue . into b, do enqueue string(.) into b)")
    mark = room.store.read(room._parts.programs.plan).mark
    assert len(mark) == 8
    for said in ("0" * 8, "MARK", "m", "try", "check"):
        for body in (f"<x>&lt;e-{said} q='a'/&gt;</x>", f"<x a='-{said} '><r-{said} i='0'/><?t-{said} 0?></x>"):
            room.send("a", body, format="xml")
    room.run_until_idle()
    found = list(room.queues.info("b"))
    assert [each.queue for each in found] == ["b"] * 20
    assert found[0].body == "<x>&lt;e-00000000 q='a'/&gt;</x>"
    assert found[1].body == "<e-00000000 q='a'/>"


def test_properties_keep_every_character(load: Load) -> None:
    room = load(
        f"{QUEUES}create property p as xs:string queue b value //k "
        "create rule r for a if (/x) then do enqueue . into b with free value string(//k)"
    )
    value = "\"'<>&;\n\r\t {}]]> é\U0001f4ee"
    room.send("a", f"<x><k>{escaped(value)}</k></x>", format="xml")
    room.run_until_idle()
    (found,) = room.queues.info("b")
    assert (found.properties["p"], found.properties["free"]) == (value, value)


# --- the parts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [*TEXTS, *NASTY, "\x01\x02"])
def test_escaped_text_is_read_back_by_a_parser(text: str) -> None:
    shown = text.replace("\x01", "\ufffd").replace("\x02", "\ufffd")
    document = f'<d a="{attribute(text)}">{escaped(text)}</d>'
    assert saxon().run("string-to-codepoints(d) ! string(.)", document).split() == [str(ord(each)) for each in shown]
    assert saxon().run("string-to-codepoints(d/@a) ! string(.)", document).split() == [str(ord(each)) for each in shown]


def test_answers_are_taken_apart_by_their_tags() -> None:
    said = (
        '<?r-m?><e-m q="b" r="0" f="x"/><y a="1"/><p-m n="p" v="1&amp;2"/><k-m n="b x" v=""/>'
        '<e-m q="c" r="1" f="t"/>a&lt;b&#xD;<p-m n="q" v="true" k="boolean"/><z-m s="s" r="1" v="k"/>'
        '<?r-m?><?r-m?><x-m r="1" c="err:FOER0000" v="&quot;no&quot;" l="3" o="5" m="postroom:/rules/"/>'
    )
    first, second, third = [answer(part, "m") for part in parts(said, "m")]
    made, text, reset = first.made
    assert (made.queue, made.rule, made.format, made.body) == ("b", 0, "xml", '<y a="1"/>')
    assert (made.properties, made.entries) == ((("p", None, "1&2"),), (("b x", ""),))
    assert (text.queue, text.format, text.body) == ("c", "text", "a<b\r")
    assert text.properties == (("q", "boolean", "true"),)
    assert (reset.slicing, reset.value, reset.rule) == ("s", "k", 1)
    assert (second.made, second.failed) == ([], None)
    assert third.failed == (1, "FOER0000", '"no"', 3, 5, "postroom:/rules/")
    assert parts("", "m") == []


def test_what_a_template_says_is_put_around_the_body_behind_it() -> None:
    templates = [Template(0, "b"), Template(1, "c", (("p", "string", "v"),))]
    part = '<?t-m 1?><y>?&gt;</y><?t-m 0?><z/><p-m n="q" v="1"/><?t-m 1?><?pi?><w/><e-m q="d" r="1" f="t"/>?'
    first, second, third, last = answer(part, "m", templates).made
    assert (first.rule, first.queue, first.body, first.properties) == (1, "c", "<y>?&gt;</y>", (("p", "string", "v"),))
    assert (second.rule, second.queue, second.body, second.properties) == (0, "b", "<z/>", (("q", None, "1"),))
    assert (third.queue, third.body) == ("c", "<?pi?><w/>")
    assert (last.queue, last.format, last.body) == ("d", "text", "?")


def test_only_a_part_of_nothing_but_templates_takes_the_short_way() -> None:
    assert by_template("<?t-m 1?><y/><?t-m 12?><z/>", "m") == [("1", "<y/>"), ("12", "<z/>")]
    assert by_template('<?t-m 1?><y/><p-m n="q" v="1"/>', "m") is None
    assert by_template('<x-m r="0" c="a" v="b"/>', "m") is None
    assert by_template('<?t-m 1?><y/><x-m r="1" c="a" v="b"/>', "m") is None
    assert by_template('<e-m q="b" r="0" f="x"/><y/><?t-m 1?><y/>', "m") is None


def test_the_first_failure_of_a_message_is_the_one_told() -> None:
    said = '<x-m r="0" c="qs:PR0001" v="first" l="2" o="1" m=""/>'
    said += '<x-m r="1" c="err:FOER0000" v="second" l="" o="" m=""/>'
    assert answer(said, "m").failed == (0, "PR0001", "first", 2, 1, "")


def test_the_answer_of_a_door_has_properties_and_entries_of_its_own() -> None:
    told = answer('<p-m n="p" v="1"/><k-m n="b x" v="2"/>', "m")
    assert (told.properties, told.entries, told.made) == ([("p", None, "1")], [("b x", "2")], [])


def test_a_document_of_a_query_has_its_sets_before_its_messages() -> None:
    assert batch(["<m/>", "<m/>"], ["<s/>"]) == "<b><s/><m/><m/></b>"
    assert saxon().run(f"{prolog('m', ())} count(/b/*)", batch(["<m/>"], ["<s/>"])) == "2"

"""The one door for XML: what is let in, what is refused, and at what cost.

Hostile documents run in a process of their own with little memory and a record of every file and socket it touches.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.errors import BodyError, XmlForbidden, XmlMalformed
from postroom.limits import BODY_DEPTH_MAX, XML_ATTRIBUTES_MAX
from postroom.model.body import Format, check_body
from postroom.model.xml import check_xml, parse_xml

MEMORY_BYTES = 512 * 1024 * 1024
CELL = f"""
import json, resource, sys, time
from postroom.errors import PostroomError
from postroom.model.body import Format, check_body
from postroom.model.xml import parse_xml

def outcome(door):
    try:
        door()
    except PostroomError as error:
        return error.code
    return "taken"

bodies = json.load(sys.stdin)
parse_xml("<warm>up</warm>")
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY_BYTES}, {MEMORY_BYTES}))
touched = []
sys.addaudithook(lambda event, _: touched.append(event) if event.startswith(("open", "socket.", "urllib.")) else None)
answers = {{}}
for what, body in bodies.items():
    touched.clear()
    started = time.process_time()
    outcomes = [outcome(lambda: check_body(body, Format.XML)), outcome(lambda: parse_xml(body))]
    answers[what] = {{"outcomes": outcomes, "seconds": time.process_time() - started, "touched": list(touched)}}
answers["more memory"] = "given"
try:
    bytearray(2 * {MEMORY_BYTES})
except MemoryError:
    answers["more memory"] = "refused"
touched.clear()
open("/dev/null").close()
answers["a file"] = touched
print(json.dumps(answers))
"""

LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
HOSTILE = {
    "a doctype": "<!DOCTYPE a><a/>",
    "a doctype after a comment": "<?xml version='1.0'?><!-- quiet -->\n<!DOCTYPE a><a/>",
    "an external doctype": '<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
    "a public doctype": '<!DOCTYPE a PUBLIC "-//X//Y" "http://127.0.0.1:9/x.dtd"><a/>',
    "an external entity": '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
    "a parameter entity": '<!DOCTYPE a [<!ENTITY % p SYSTEM "http://127.0.0.1:9/p.dtd"> %p;]><a/>',
    "nested parameter entities": "<!DOCTYPE a [<!ENTITY % p '<!ENTITY &#37; q SYSTEM \"file:///etc/passwd\">'>%p;%q;]><a/>",
    "a billion laughs": f'<!DOCTYPE a [<!ENTITY l0 "lol">{LAUGHS}]><a>&l9;</a>',
    "a billion laughs in an attribute": f'<!DOCTYPE a [<!ENTITY l0 "lol">{LAUGHS}]><a b="&l9;"/>',
    "quadratic blow-up": f'<!DOCTYPE a [<!ENTITY b "{"x" * 100_000}">]><a>{"&b;" * 100_000}</a>',
    "quadratic blow-up of elements": f'<!DOCTYPE a [<!ENTITY b "{"<b/>" * 10_000}">]><a>{"&b;" * 100_000}</a>',
    "default attributes": '<!DOCTYPE a [<!ATTLIST a b CDATA "planted">]><a/>',
    "30,000 levels": "<a>" * 30_000 + "</a>" * 30_000,
    "a million levels never closed": "<a>" * 1_000_000,
    "100,000 attributes": "<a " + " ".join(f'a{n}="{n}"' for n in range(100_000)) + "/>",
}
QUIET = {
    "XInclude": '<a xmlns:xi="http://www.w3.org/2001/XInclude">'
    '<xi:include href="file:///etc/passwd" parse="text"/></a>',
    "a schema location": '<a xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'xsi:schemaLocation="urn:a http://127.0.0.1:9/a.xsd"/>',
    "a style sheet": '<?xml-stylesheet href="http://127.0.0.1:9/a.xsl" type="text/xsl"?><a/>',
    "four megabytes of text": f"<a>{'x' * 4_000_000}</a>",
}


@pytest.fixture(scope="module")
def cell() -> dict[str, Any]:
    documents = json.dumps(HOSTILE | QUIET).encode()
    done = subprocess.run([sys.executable, "-c", CELL], input=documents, capture_output=True, timeout=60, check=True)
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_document_is_forbidden_quickly_in_little_memory_and_fetches_nothing(
    cell: dict[str, Any], what: str
) -> None:
    answer = cell[what]
    assert answer["outcomes"] == ["xml-forbidden", "xml-forbidden"]
    assert answer["seconds"] < 1
    assert answer["touched"] == []


@pytest.mark.parametrize("what", QUIET)
def test_a_reference_that_is_mere_text_is_taken_and_not_followed(cell: dict[str, Any], what: str) -> None:
    answer = cell[what]
    assert answer["outcomes"] == ["taken", "taken"]
    assert answer["seconds"] < 1
    assert answer["touched"] == []


def test_the_cell_is_tight_and_watched(cell: dict[str, Any]) -> None:
    assert cell["more memory"] == "refused"
    assert cell["a file"] == ["open"]


def test_the_bombs_are_real() -> None:
    small = f'<!DOCTYPE a [<!ENTITY b "{"x" * 100}">]><a>{"&b;" * 100}</a>'
    assert len(ElementTree.fromstring(small).text or "") == 10_000
    with pytest.raises(XmlForbidden):
        check_xml(small)


def test_xinclude_stays_an_element() -> None:
    root = parse_xml(QUIET["XInclude"])
    assert [child.tag for child in root] == ["{http://www.w3.org/2001/XInclude}include"]
    assert "".join(root.itertext()) == ""


def test_a_refusal_says_what_where_and_what_to_do() -> None:
    with pytest.raises(XmlForbidden) as caught:
        check_xml("<?xml version='1.0'?>\n<!DOCTYPE a><a/>")
    assert (caught.value.code, caught.value.status, caught.value.happened) == ("xml-forbidden", "50", "no")
    assert "DOCTYPE" in str(caught.value)
    assert "line 2" in str(caught.value)
    assert "send the document without it" in str(caught.value)


def test_depth_is_bounded_exactly() -> None:
    check_xml("<a>" * BODY_DEPTH_MAX + "</a>" * BODY_DEPTH_MAX)
    check_xml("<r>" + "<a><b/></a>" * (2 * BODY_DEPTH_MAX) + "</r>")
    with pytest.raises(XmlForbidden, match=f"nest deeper than {BODY_DEPTH_MAX}"):
        check_xml("<a>" * (BODY_DEPTH_MAX + 1) + "</a>" * (BODY_DEPTH_MAX + 1))


def test_attributes_are_bounded_exactly_and_for_each_element() -> None:
    most = " ".join(f'a{n}=""' for n in range(XML_ATTRIBUTES_MAX))
    check_xml(f"<r><a {most}/><a {most}/></r>")
    with pytest.raises(XmlForbidden, match=f"more than {XML_ATTRIBUTES_MAX} attributes"):
        check_xml(f'<r><a {most} b=""/></r>')


SAMPLE = '<?xml version="1.0"?><order id="7"><!-- c --><item>Grüße &amp; &#233;</item><![CDATA[<x>]]><e/></order>'


@pytest.mark.parametrize("length", range(len(SAMPLE)))
def test_a_document_cut_short_anywhere_is_malformed(length: int) -> None:
    with pytest.raises(XmlMalformed):
        check_xml(SAMPLE[:length])
    check_xml(SAMPLE)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "<a>",
        "<a></b>",
        "<a/><b/>",
        "<a/>tail",
        "<a b=1/>",
        '<a b="1" b="2"/>',
        "<a>&nbsp;</a>",
        "<a>&#0;</a>",
        "<a>&#x1F;</a>",
        "<a>\x01</a>",
        "<a>\ufffe</a>",
        "<a>]]></a>",
        "<!DOCTYPE",
        " <?xml version='1.0'?><a/>",
        "<?xml version='1.0'?>",
        "\x89PNG\r\n\x1a\n",
    ],
)
def test_what_is_not_one_document_is_malformed_and_the_place_is_told(text: str) -> None:
    with pytest.raises(XmlMalformed, match=r"at line \d+, column \d+$") as caught:
        check_xml(text)
    assert (caught.value.code, caught.value.status) == ("xml-malformed", "50")


def test_the_place_counts_lines_and_columns_from_one() -> None:
    with pytest.raises(XmlMalformed, match=r"mismatched tag at line 2, column 7$"):
        check_xml("<a>\n <b></a>")


@pytest.mark.parametrize("name", ["utf-8", "iso-8859-1", "us-ascii", "utf-16", "shift_jis", "no-such-code"])
def test_a_declared_encoding_does_not_change_text_that_is_already_decoded(name: str) -> None:
    text = f'<?xml version="1.0" encoding="{name}"?><a>Grüße €</a>'
    check_body(text, Format.XML)
    assert parse_xml(text).text == "Grüße €"


def test_a_byte_order_mark_in_front_is_not_content() -> None:
    assert parse_xml("\ufeff<a>x</a>").text == "x"


@settings(deadline=None, max_examples=250)
@given(
    st.text(st.characters(exclude_characters=":"), max_size=40)
    | st.lists(st.sampled_from(SAMPLE), max_size=30).map("".join)
)
def test_any_text_is_taken_or_refused_as_a_body(text: str) -> None:
    try:
        check_body(text, Format.XML)
    except BodyError:
        return
    ElementTree.fromstring(text)


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,5}", fullmatch=True)
CONTENT = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff"), max_size=10)


@st.composite
def elements(draw: st.DrawFn, depth: int = 3) -> ElementTree.Element:
    element = ElementTree.Element(draw(NAMES), draw(st.dictionaries(NAMES, CONTENT, max_size=2)))
    element.text = draw(CONTENT)
    for _ in range(draw(st.integers(0, 2)) if depth else 0):
        child = draw(elements(depth=depth - 1))
        child.tail = draw(CONTENT)
        element.append(child)
    return element


@settings(deadline=None, max_examples=60)
@given(elements())
def test_a_harmless_tree_comes_through_unchanged(tree: ElementTree.Element) -> None:
    text = ElementTree.tostring(tree, encoding="unicode")
    assert ElementTree.tostring(parse_xml(text), encoding="unicode") == text


@pytest.mark.parametrize(
    "text", ["<x:a/>", '<a x:b="1"/>', '<a xmlns:p="u" xmlns:q="u" p:b="1" q:b="2"/>', '<a xmlns:xml="u"/>']
)
def test_a_document_with_wrong_namespaces_is_malformed(text: str) -> None:
    with pytest.raises(XmlMalformed):
        parse_xml(text)

"""Schemas of queues: what fits and what does not, and nothing outside of them is ever opened."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from postroom.errors import SchemaInvalid, SchemaMalformed, TextInvalid
from postroom.model.schema import check_schema, compile_schema


def schema(inside: str, head: str = "") -> str:
    return f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" {head}>{inside}</xs:schema>'


INVOICE = schema(
    """<xs:element name="invoice"><xs:complexType><xs:sequence>
  <xs:element name="id" type="xs:integer"/><xs:element name="total" type="xs:decimal" minOccurs="0"/>
</xs:sequence><xs:attribute name="kind" use="required"/></xs:complexType></xs:element>"""
)
NAMESPACED = schema('<xs:element name="x" type="xs:date"/>', 'targetNamespace="urn:x" elementFormDefault="qualified"')


@pytest.mark.parametrize(
    ("text", "body"),
    [
        (INVOICE, "<invoice kind='a'><id>7</id></invoice>"),
        (INVOICE, "<invoice kind=''><id> 7 </id><total>1.50</total></invoice>"),
        (INVOICE, "<?xml version='1.0' encoding='utf-16'?><!-- c --><invoice kind='é'><id>7</id></invoice>"),
        (INVOICE, "<?xml version='1.0' encoding='iso-8859-1'?><invoice kind='é'><id>7</id></invoice>"),
        (NAMESPACED, "<p:x xmlns:p='urn:x'>2026-01-31</p:x>"),
    ],
)
def test_what_fits_passes(text: str, body: str) -> None:
    check_schema(text, body)


@pytest.mark.parametrize(
    ("text", "body", "why"),
    [
        (INVOICE, "<invoice kind='a'/>", "Missing child element"),
        (INVOICE, "<invoice kind='a'>\n<id>x</id></invoice>", "line 2: Element 'id'"),
        (INVOICE, "<invoice><id>7</id></invoice>", "'kind' is required"),
        (INVOICE, "<invoice kind='a'><id>7</id><more/></invoice>", "not expected"),
        (INVOICE, "<other/>", "No matching global declaration"),
        (INVOICE, "<invoice", "line 1"),
        (INVOICE, None, "only XML messages fit a schema"),
        (NAMESPACED, "<x>2026-01-31</x>", "No matching global declaration"),
        (NAMESPACED, "<x xmlns='urn:x'>2026-02-31</x>", "not a valid value"),
    ],
)
def test_what_does_not_fit_is_told(text: str, body: str | None, why: str) -> None:
    with pytest.raises(SchemaInvalid) as caught:
        check_schema(text, body)
    assert why in str(caught.value)
    assert caught.value.code == "schema-invalid"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no element found"),
        ("<a", "line 1"),
        ("<a/>", "not a schema"),
        (schema('<xs:element name="x" type="nowhere"/>'), "nowhere"),
        (schema("<xs:elephant/>"), "The content is not valid"),
    ],
)
def test_what_is_no_schema_is_refused_with_its_file(text: str, why: str) -> None:
    with pytest.raises(SchemaMalformed) as caught:
        compile_schema(text, "invoice.xsd")
    assert str(caught.value).startswith("invoice.xsd is not a usable schema")
    if why != "not a schema":
        assert why in str(caught.value)


@pytest.mark.parametrize("word", ["include", "import", "redefine", "override"])
def test_a_schema_stands_on_its_own(word: str, tmp_path: Path) -> None:
    other = tmp_path / "other.xsd"
    other.write_text(schema('<xs:element name="x"/>'))
    text = schema(f'\n<xs:{word} schemaLocation="{other.as_uri()}"/><xs:element name="y"/>')
    with pytest.raises(SchemaMalformed, match=f"line 2: xs:{word} of another file"):
        compile_schema(text, "a.xsd")


def test_a_namespace_may_be_imported_without_a_file() -> None:
    compile_schema(schema('<xs:import namespace="urn:o"/><xs:element name="y"/>'), "a.xsd")


def test_a_hint_of_a_message_where_its_schema_lies_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "loose.xsd"
    other.write_text(schema('<xs:element name="anything"/>'))
    hint = f'xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:noNamespaceSchemaLocation="{other.as_uri()}"'
    with pytest.raises(SchemaInvalid):
        check_schema(INVOICE, f"<anything {hint}/>")


LAUGHS = "".join(f'<!ENTITY e{number} "{f"&e{number - 1};" * 10}">' for number in range(1, 10))
BOMB = f'<!DOCTYPE x [<!ENTITY e0 "ha">{LAUGHS}]>'


def test_entities_are_not_expanded_in_a_schema_and_open_no_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("canary")
    began = time.process_time()
    for head in (BOMB, f'<!DOCTYPE x [<!ENTITY e9 SYSTEM "{secret.as_uri()}">]>'):
        text = head + schema("<xs:annotation><xs:documentation>&e9;</xs:documentation></xs:annotation>")
        try:
            compile_schema(text, "a.xsd")
        except SchemaMalformed as error:
            said = str(error)
        else:
            said = ""
        assert "canary" not in said
    assert time.process_time() - began < 2


def test_entities_of_a_message_are_not_expanded(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("7")
    began = time.process_time()
    for head in (BOMB, f'<!DOCTYPE invoice [<!ENTITY e9 SYSTEM "{secret.as_uri()}">]>'):
        with pytest.raises(SchemaInvalid):
            check_schema(INVOICE, f"{head}<invoice kind='a'><id>&e9;</id></invoice>")
    assert time.process_time() - began < 2


def test_deep_and_wide_messages_are_answered_quickly() -> None:
    began = time.process_time()
    for body in ("<invoice>" * 200 + "</invoice>" * 200, f"<invoice kind='a'>{'<id>1</id>' * 20_000}</invoice>"):
        with pytest.raises(SchemaInvalid):
            check_schema(INVOICE, body)
    assert time.process_time() - began < 5


# --- hostile schemas and documents ---

OTHER = schema('<xs:element name="e" type="xs:integer"/>', 'targetNamespace="urn:o"')
LAX = schema(
    """<xs:element name="a"><xs:complexType><xs:sequence>
  <xs:any namespace="##any" processContents="lax" minOccurs="0" maxOccurs="unbounded"/>
</xs:sequence><xs:anyAttribute processContents="lax"/></xs:complexType></xs:element>"""
)
XSI = "xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance'"
#: Schemas that ask for WHERE, in every way that XML and XSD have for it.
HOSTILE = {
    "a DOCTYPE": "<!DOCTYPE s>" + LAX,
    "a DOCTYPE after a comment": "<?xml version='1.0'?><!-- c -->\n<!DOCTYPE s>" + LAX,
    "a DTD elsewhere": "<!DOCTYPE s SYSTEM 'WHERE'>" + LAX,
    "a public DTD": "<!DOCTYPE s PUBLIC '-//x' 'WHERE'>" + LAX,
    "an entity": "<!DOCTYPE s [<!ENTITY e SYSTEM 'WHERE'>]>"
    + schema("<xs:annotation><xs:appinfo>&e;</xs:appinfo></xs:annotation>"),
    "an entity in the place of a name": "<!DOCTYPE s [<!ENTITY e 'a'>]>" + schema("<xs:element name='&e;'/>"),
    "a parameter entity": "<!DOCTYPE s [<!ENTITY % p SYSTEM 'WHERE'> %p;]>" + LAX,
    "many laughs": "<!DOCTYPE s [<!ENTITY a 'ha'><!ENTITY b '&a;&a;&a;&a;'>]>" + schema("<xs:element name='&b;'/>"),
    "an attribute by default": "<!DOCTYPE s [<!ATTLIST s x CDATA 'y'>]>" + LAX,
    "include": schema("<xs:include schemaLocation='WHERE'/>"),
    "import": schema("<xs:import namespace='urn:o' schemaLocation='WHERE'/>"),
    "redefine": schema("<xs:redefine schemaLocation='WHERE'/>"),
    "override": schema("<xs:override schemaLocation='WHERE'/>"),
    "a reference to what a namespace might bring": schema(
        "<xs:import namespace='WHERE'/><xs:element name='a' type='o:t'/>", "xmlns:o='WHERE'"
    ),
    "XInclude": schema("<i:include xmlns:i='http://www.w3.org/2001/XInclude' href='WHERE'/>"),
    "half a surrogate pair": schema("<xs:element name='a\ud800'/>"),
    "deeper than a document may be": "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'>" + "<xs:a>" * 5000,
}
#: What may stand there, and brings nothing.
HARMLESS = {
    "a place for the schema of schemas": schema("<xs:element name='a'/>", f"{XSI} xsi:schemaLocation='urn:o WHERE'"),
    "a style sheet": "<?xml-stylesheet href='WHERE'?>" + LAX,
    "a base": schema("<xs:element name='a'/>", "xml:base='WHERE'"),
    "an import of no place": schema("<xs:import namespace='urn:o'/><xs:element name='a'/>"),
}
DOCUMENTS = {
    "a place": f"<a {XSI} xsi:schemaLocation='urn:o WHERE'><e xmlns='urn:o'>no integer</e></a>",
    "a place without a namespace": f"<a {XSI} xsi:noNamespaceSchemaLocation='WHERE'><e>no integer</e></a>",
    "XInclude": "<a><i:include xmlns:i='http://www.w3.org/2001/XInclude' href='WHERE'/></a>",
}


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[tuple[list[str], list[str]]]:
    """Places that must not be looked at: a file that would change the outcome, and a server that says who came."""
    file = tmp_path / "other.xsd"
    file.write_text(OTHER)
    came: list[str] = []

    class Canary(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            came.append(self.path)
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Canary) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield [str(file), file.as_uri(), f"http://127.0.0.1:{server.server_port}/other.xsd"], came
        server.shutdown()


@pytest.mark.parametrize("way", HOSTILE)
def test_a_hostile_schema_is_refused_and_brings_nothing(way: str, elsewhere: tuple[list[str], list[str]]) -> None:
    places, came = elsewhere
    for place in places:
        with pytest.raises((SchemaMalformed, TextInvalid)) as caught:
            compile_schema(HOSTILE[way].replace("WHERE", place), "s.xsd")
        assert "no integer" not in str(caught.value)
    assert came == []


@pytest.mark.parametrize("way", HARMLESS)
def test_what_only_looks_like_a_place_is_not_gone_to(way: str, elsewhere: tuple[list[str], list[str]]) -> None:
    places, came = elsewhere
    for place in places:
        text = HARMLESS[way].replace("WHERE", place)
        compile_schema(text, "s.xsd")
        check_schema(text, "<a/>")
    assert came == []


@pytest.mark.parametrize("way", DOCUMENTS)
def test_a_document_cannot_bring_a_schema_of_its_own(way: str, elsewhere: tuple[list[str], list[str]]) -> None:
    places, came = elsewhere
    for place in places:
        check_schema(LAX, DOCUMENTS[way].replace("WHERE", place))  # with that schema it would not fit
    assert came == []

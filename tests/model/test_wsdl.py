"""Interfaces: what zeep reads of them, what is refused, and that nothing but files beside is opened."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from postroom.errors import SchemaInvalid
from postroom.limits import SCHEMA_FILES_MAX
from postroom.model.schema import check_schema
from postroom.model.wsdl import Unusable, contract_of, gathered_wsdl, published

FOLDER = Path(__file__).parents[1] / "gateways" / "soap"
TEXT = (FOLDER / "supplier.wsdl").read_text()


def gathered(text: str = TEXT) -> str:
    return gathered_wsdl(text, "supplier.wsdl", lambda name: (FOLDER / name).read_text())


def test_operations_of_a_port_are_known_by_their_elements() -> None:
    contract = contract_of(gathered(), "CapacityRequestPort")
    assert (contract.version, contract.service) == ("1.1", "Supplier")
    ask = contract.operations["{urn:example:types}capacityRequest"]
    assert (ask.name, ask.action, ask.output) == ("Ask", "urn:example:ask", "{urn:example:types}offer")
    assert ask.faults == {"{urn:example:types}refusal"}
    assert contract_of(gathered(), "CapacityRequestPort12").version == "1.2"


def test_style_rpc_has_wrappers_that_are_checked() -> None:
    contract = contract_of(gathered(), "SumPort")
    check_schema(contract.schema, '<q:Sum xmlns:q="urn:example:sums"><a>1</a><b>2</b></q:Sum>')
    with pytest.raises(SchemaInvalid):
        check_schema(contract.schema, '<q:Sum xmlns:q="urn:example:sums"><a>1</a><b>x</b></q:Sum>')


@pytest.mark.parametrize(("old", "new", "why"), [
    ('schemaLocation="supplier.xsd"', 'schemaLocation="http://127.0.0.1:9/x.xsd"', "line 8: import of http"),
    ('schemaLocation="supplier.xsd"', 'schemaLocation="../supplier.xsd"', "not a file beside it"),
    ('schemaLocation="supplier.xsd"', 'schemaLocation="/etc/passwd"', "not a file beside it"),
    ("<types>", '<import namespace="u" location="file:///etc/passwd"/><types>', "not a file beside it"),
    ('<soap:body use="literal"/>', '<soap:body use="encoded"/>', "encoded messages are not implemented"),
    ("<input><soap:body", '<input><soap:header message="tns:Order" part="body" use="literal"/><soap:body',
     "headers are"),
    ('element="t:order"', 'type="xs:string"', "has a type and no element"),
    ('element="t:order"', 'element="t:capacityRequest"', "have the same message"),
    ('element="t:order"', 'element="t:none"', "cannot be read"),
    ("soap/http", "soap/smtp", "there are none"),
    ("<definitions", "<!DOCTYPE x []><definitions", "DOCTYPE"),
    ("</definitions>", "", "no element found"),
])  # fmt: skip
def test_what_cannot_be_kept_is_refused(old: str, new: str, why: str) -> None:
    assert old in TEXT
    with pytest.raises(Unusable, match=re.escape(why)):
        contract_of(gathered(TEXT.replace(old, new)), "CapacityRequestPort")


def test_an_interface_has_so_many_files() -> None:
    more = "".join(f'<import namespace="u{n}" location="{n}.wsdl"/>' for n in range(SCHEMA_FILES_MAX))
    with pytest.raises(Unusable, match="more than"):
        gathered_wsdl(TEXT.replace("<types>", f"{more}<types>"), "supplier.wsdl", lambda name: "<x/>")


def test_it_is_published_with_another_address() -> None:
    text = published(gathered(), "CapacityRequestPort", "https://here.example/c", None)
    assert text is not None
    assert 'location="https://here.example/c"' in text
    assert 'schemaLocation="https://here.example/c?wsdl=supplier.xsd"' in text
    assert "http://supplier.example/capacity12" in text, "of another port nothing is known"
    assert published(gathered(), "CapacityRequestPort", "x", "none.xsd") is None

"""What a program says of a port: which messages are its own."""

from __future__ import annotations

import json

import pytest
from tests.gateways.served import ORDER, REQUEST, SOAP

from postroom.errors import SchemaInvalid
from postroom.gateways.soap.terms import Terms, terms_of
from postroom.model.wsdl import gathered_wsdl


@pytest.fixture(scope="module")
def terms() -> Terms:
    text = gathered_wsdl((SOAP / "supplier.wsdl").read_text(), "supplier.wsdl", lambda name: (SOAP / name).read_text())
    return terms_of(json.dumps({"wsdl": text, "port": "CapacityRequestPort", "reliable": False, "security": None}))


def test_a_message_has_its_operation_and_an_answer_its_kind(terms: Terms) -> None:
    assert terms.operation(REQUEST % ("x", 1)).name == "Ask"
    assert terms.operation(ORDER % 1).output is None
    assert terms.is_fault('<refusal xmlns="urn:example:types">no</refusal>') is True
    with pytest.raises(SchemaInvalid, match="no operation"):
        terms.operation("<order/>")
    with pytest.raises(SchemaInvalid, match="is no answer"):
        terms.is_fault(ORDER % 1)
    with pytest.raises(SchemaInvalid):
        terms.operation(REQUEST % ("x", 10**12))
    flaw = terms.check_reply(terms.operation(REQUEST % ("x", 1)), ORDER % 1)
    assert flaw is not None
    assert "is no reply of Ask" in str(flaw)

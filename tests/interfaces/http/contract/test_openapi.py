"""The description says what the table says, and is served."""

from __future__ import annotations

import json
from pathlib import Path

from tests.interfaces.http.conftest import Served

from postroom.interfaces.http.contract import openapi
from postroom.interfaces.http.contract.operations import OPERATIONS
from postroom.interfaces.http.handling.streams import STREAMS

VOCABULARY = json.loads((Path(__file__).parents[4] / "docs" / "reference" / "json.schema.json").read_text())["$defs"]


def test_every_operation_is_described_and_no_other(here: Served) -> None:
    with here.client("") as client:
        document = client.get("/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    described = {
        (method.upper(), path): each for path, methods in document["paths"].items() for method, each in methods.items()
    }
    assert set(described) == {(each.method, each.path) for each in OPERATIONS} | {
        (each.method, each.path) for each in STREAMS
    }
    assert len({each["operationId"] for each in described.values()}) == len(OPERATIONS) + len(STREAMS)
    for operation in OPERATIONS:
        each = described[operation.method, operation.path]
        assert each["summary"]
        assert {"401", "403", "429"} <= set(each["responses"])
        inside = {parameter.name for parameter in operation.parameters if parameter.where == "body"}
        if inside:
            assert set(each["requestBody"]["content"]["application/json"]["schema"]["properties"]) == inside


def test_answers_are_in_the_words_of_the_command_line() -> None:
    names = {name for operation in OPERATIONS for name in operation.answer.names}
    assert names <= set(VOCABULARY["names"]), "a name means one thing in all documents"
    assert json.loads(openapi.text()) == json.loads(json.dumps(openapi.document()))


def test_every_name_of_an_answer_has_the_type_that_the_reference_says() -> None:
    schemas = openapi.document()["components"]["schemas"]
    assert set(schemas["document"]["properties"]) == set(VOCABULARY["names"])
    for name, said in VOCABULARY["names"].items():
        described = schemas[f"name.{name}"]
        assert (described.get("type"), described["description"]) == (said.get("type"), said["description"])
    assert "$defs" not in openapi.text().decode(), "every reference leads to a part of this document"

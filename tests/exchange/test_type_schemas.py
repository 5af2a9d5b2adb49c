"""Types as JSON Schema and Avro, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import fastavro
import jsonschema
import pytest

import postroom
from postroom.errors import PostroomError, TypeInvalid
from postroom.exchange.type_schemas import as_form, avro_schema, imported, json_schema
from postroom.model.types import Field, Kind, MessageType
from postroom.stations.forms.reader import parse

EVERY = MessageType(
    "All Kinds",
    (
        *(Field(f"{kind} field", kind, required=True) for kind in Kind),
        *(Field(f"{kind}_list", kind, many=True) for kind in Kind),
        *(Field(f"{kind}.free", kind) for kind in Kind),
    ),
)


@pytest.mark.parametrize("exported", [json_schema, avro_schema])
def test_what_is_exported_comes_back(exported: Any) -> None:
    schema = json.loads(json.dumps(exported(EVERY)))
    assert imported(schema) == EVERY
    assert imported(schema, "Other").name == "Other"


def test_others_take_the_schemas() -> None:
    schema = json_schema(EVERY)
    jsonschema.Draft202012Validator.check_schema(schema)
    fastavro.parse_schema(avro_schema(EVERY))
    orders = MessageType("ORDER", (Field("Id", Kind.INT, required=True), Field("Price", Kind.DECIMAL)))
    check = jsonschema.Draft202012Validator(json_schema(orders))
    assert check.is_valid({"Id": 1, "Price": "12.50"})
    assert check.is_valid({"Id": 1, "Price": None})
    assert not check.is_valid({"Price": "1"})
    assert not check.is_valid({"Id": 1, "Other": 1})


def test_an_imported_type_is_a_form_that_loads(tmp_path: Any) -> None:
    (form,) = parse(as_form(EVERY), "all.form")
    drawn = MessageType("All Kinds", tuple(replace(each, name=each.name.replace("_", " ")) for each in EVERY.fields))
    assert form.type == drawn
    file = tmp_path / "all.form"
    file.write_text(as_form(imported(json_schema(EVERY))))
    with postroom.open(tmp_path / "room.db") as room:
        room.load(file)
        assert [(each.name, each.version) for each in room.definitions.types()] == [("All Kinds", 1)]
        assert room.definitions.schema("All Kinds") == json_schema(drawn)
        assert room.definitions.schema("All Kinds", avro=True) == avro_schema(drawn)


def test_a_body_may_have_the_name_of_the_schema(tmp_path: Any) -> None:
    order = MessageType("ORDER", (Field("order_id", Kind.INT, required=True),))
    (tmp_path / "order.form").write_text(as_form(order))
    with postroom.open(tmp_path / "room.db") as room:
        room.load(tmp_path / "order.form")
        room.queues.create("q")
        key = room.send("q", {"order_id": 17}, type="ORDER").key
        assert room.journal.fields(room.show(key)) == {"order id": 17}
    for name in ("_id", "id_", "order__id"):
        with pytest.raises(TypeInvalid, match="cannot be called"):
            as_form(MessageType("ORDER", (Field(name),)))


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ([], "a schema is a JSON object"),
        ({"type": "object", "properties": {}}, "no title"),
        ({"title": "T", "type": "array"}, "not object"),
        ({"title": "T", "type": "object", "properties": {"a": {"type": "object"}}}, "'a' is not a string"),
        ({"title": "T", "type": "object", "properties": {"a": {"$ref": "#"}}}, "'a' is not a string"),
        ({"title": "T", "type": "object", "properties": {"a": {"type": ["string", "integer"]}}}, "'a' is not"),
        ({"title": "T", "type": "object", "properties": {}}, "at least one field"),
        ({"type": "record", "name": "T"}, "name and fields"),
        ({"type": "record", "name": "T", "fields": [1]}, "a name and a type"),
        ({"type": "record", "name": "T", "fields": [{"name": "a", "type": "bytes"}]}, "cannot hold"),
        ({"type": "record", "name": "T", "fields": [{"name": "a", "type": ["int", "string"]}]}, "cannot hold"),
    ],
)
def test_what_a_field_cannot_hold_is_refused(schema: Any, said: str) -> None:
    with pytest.raises(TypeInvalid, match=said):
        imported(schema)


def of_member(**schema: Any) -> dict[str, Any]:
    return {"title": "T", "type": "object", "properties": {"a": schema}}


def of_field(type: Any, **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "T", "fields": [{"name": "a", "type": type, **more}]}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (of_member(type="string", enum=["x", "y"]), "'a' has 'enum'"),
        (of_member(type="integer", minimum=1, maximum=9), "'a' has 'minimum', 'maximum'"),
        (of_member(type="string", pattern="^[A-Z]+$"), "'a' has 'pattern'"),
        (of_member(type="string", maxLength=3), "'a' has 'maxLength'"),
        (of_member(type="string", default="x"), "'a' has 'default' 'x'"),
        (of_member(type="string", format="email"), "'a' has 'format' 'email'"),
        (of_member(type="integer", format="date"), "'a' has 'format' 'date'"),
        (of_member(type="array", items={"type": "string", "enum": ["x"]}), "'a' has 'enum'"),
        (of_member(type="array", items={"type": "string"}, minItems=1), "'a' has 'minItems'"),
        (of_member(type="array", items={"type": ["string", "null"]}), "items of 'a' may be null"),
        (of_member(type="string") | {"minProperties": 1}, "the schema has 'minProperties'"),
        (of_member(type="string") | {"additionalProperties": True}, "'additionalProperties' is not false"),
        (of_member(type="string") | {"required": ["a", "b"]}, "'b' is required"),
        (of_field("string", default="x"), "'a' has 'default' 'x'"),
        (of_field("string", aliases=["b"]), "'a' has 'aliases'"),
        (of_field({"type": "string", "logicalType": "uuid"}), "'a' is of a type that a field cannot hold"),
        (of_field({"type": "array", "items": "string", "default": []}), "'a' has 'default'"),
        (of_field("string") | {"aliases": ["S"]}, "the record has 'aliases'"),
    ],
)
def test_what_a_type_cannot_keep_is_refused_with_its_place(schema: Any, said: str) -> None:
    with pytest.raises(TypeInvalid, match=said):
        imported(schema)


def test_words_for_people_are_no_constraints() -> None:
    words = {"title": "An id", "description": "d", "$comment": "c", "examples": [1]}
    whole = of_member(type=["integer", "null"], default=None, **words) | {"$id": "urn:t", "description": "d"}
    assert imported(whole) == MessageType("T", (Field("a", Kind.INT),))
    price = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    assert imported(of_field(["null", price], default=None, doc="d")) == MessageType("T", (Field("a", Kind.DECIMAL),))


ODD: tuple[Any, ...] = (
    None,
    1,
    True,
    "",
    "x",
    [],
    {},
    [[]],
    [{}],
    ["null"],
    {"type": {}},
    {"type": "array"},
    ["string", "int"],
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each place inside of a value, as what holds it and the key there."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places(value[key])


@pytest.mark.parametrize("exported", [json_schema, avro_schema])
@pytest.mark.parametrize("odd", ODD, ids=json.dumps)
def test_whatever_stands_in_a_schema_is_taken_or_refused(exported: Any, odd: Any) -> None:
    """Each part of it replaced, and each part of it left out."""
    some = (Field("a", Kind.DATE, required=True), Field("b c", Kind.KEY, many=True), Field("d", Kind.STRING))
    whole = json.dumps(exported(MessageType("Some", some)))
    count = sum(1 for _ in places(json.loads(whole)))
    refused = 0
    for number in range(count):
        for leaves_out in (False, True):
            schema = json.loads(whole)
            there, key = next(islice(places(schema), number, None))
            there[key] = odd
            if leaves_out:
                del there[key]
            try:
                parse(as_form(imported(schema)), "t.form")
            except PostroomError:
                refused += 1
    assert refused > 5

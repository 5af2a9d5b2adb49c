"""Message types as JSON Schema and Avro, and back. An imported schema becomes a form that can be loaded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from postroom.errors import TypeInvalid
from postroom.model.types import Field, Kind, MessageType

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_KEY = "^[0-9]{5,}\\.[0-9]{5}$"
_IN_JSON: Mapping[Kind, dict[str, Any]] = {
    Kind.STRING: {"type": "string"},
    Kind.INT: {"type": "integer"},
    Kind.DECIMAL: {"type": "string", "format": "decimal"},  # as messages have it: no digit is lost
    Kind.FLOAT: {"type": "number"},
    Kind.BOOLEAN: {"type": "boolean"},
    Kind.DATE: {"type": "string", "format": "date"},
    Kind.TIME: {"type": "string", "format": "time"},
    Kind.TIMESTAMP: {"type": "string", "format": "date-time"},
    Kind.KEY: {"type": "string", "pattern": _KEY},
}
_IN_AVRO: Mapping[Kind, Any] = {
    Kind.STRING: "string",
    Kind.INT: "long",
    Kind.DECIMAL: {"type": "string", "kind": "decimal"},  # Avro's own has a fixed number of digits
    Kind.FLOAT: "double",
    Kind.BOOLEAN: "boolean",
    Kind.DATE: {"type": "int", "logicalType": "date"},
    Kind.TIME: {"type": "long", "logicalType": "time-micros"},
    Kind.TIMESTAMP: {"type": "long", "logicalType": "timestamp-micros"},
    Kind.KEY: {"type": "string", "kind": "key"},
}
#: What a kind is called elsewhere: by JSON's type and format, or by Avro's name, logical type or kind.
_FROM_JSON = {(schema["type"], schema.get("format")): kind for kind, schema in _IN_JSON.items() if kind is not Kind.KEY}
_FROM_AVRO = {
    "string": Kind.STRING,
    "int": Kind.INT,
    "long": Kind.INT,
    "float": Kind.FLOAT,
    "double": Kind.FLOAT,
    "boolean": Kind.BOOLEAN,
    "date": Kind.DATE,
    "time-millis": Kind.TIME,
    "time-micros": Kind.TIME,
    "timestamp-millis": Kind.TIMESTAMP,
    "timestamp-micros": Kind.TIMESTAMP,
    "decimal": Kind.DECIMAL,
    "key": Kind.KEY,
}
#: What a schema may say besides: words for people, and what the fields of a type say themselves.
_WORDS = frozenset({"title", "description", "$comment", "examples"})
_OF_SCHEMA = _WORDS | {"$schema", "$id", "type", "properties", "required", "additionalProperties"}
_OF_MEMBER = _WORDS | {"type", "format", "pattern", "items", "default"}
_OF_RECORD = frozenset({"type", "name", "namespace", "doc", "fields", "called"})
_OF_FIELD = frozenset({"name", "type", "doc", "called", "default"})
_OF_AVRO = frozenset({"type", "logicalType", "kind", "items", "precision", "scale"})  # digits are how Avro stores it


def json_schema(type: MessageType) -> dict[str, Any]:
    """The JSON Schema of the JSON bodies of a type."""
    return {
        "$schema": DIALECT,
        "title": type.name,
        "type": "object",
        "properties": {field.name: _member(field) for field in type.fields},
        "required": [field.name for field in type.fields if field.required],
        "additionalProperties": False,
    }


def _member(field: Field) -> dict[str, Any]:
    schema = dict(_IN_JSON[field.kind])
    if field.many:
        schema = {"type": "array", "items": schema}
    return schema if field.required else {**schema, "type": [schema["type"], "null"]}


def avro_schema(type: MessageType) -> dict[str, Any]:
    """The Avro record of a type.

    Avro names have only letters, digits and ``_``; our name is kept as an extra attribute.
    """
    fields = []
    for field in type.fields:
        kind = {"type": "array", "items": _IN_AVRO[field.kind]} if field.many else _IN_AVRO[field.kind]
        shape: dict[str, Any] = {"name": _avro_name(field.name), "type": kind if field.required else ["null", kind]}
        fields.append(shape | ({} if field.required else {"default": None}) | _called(field.name))
    return {"type": "record", "name": _avro_name(type.name), "fields": fields} | _called(type.name)


def _avro_name(name: str) -> str:
    return re.sub("[^A-Za-z0-9_]", "_", name)


def _called(name: str) -> dict[str, str]:
    return {} if _avro_name(name) == name else {"called": name}


def imported(schema: Any, name: str | None = None) -> MessageType:
    """The type that a JSON Schema or Avro record describes; raises for constructs that message types do not have."""
    if not isinstance(schema, dict):
        raise TypeInvalid(type=name or "schema", why="a schema is a JSON object")
    if schema.get("type") == "record":
        return _from_avro(schema, name)
    return _from_json_schema(schema, name)


def _from_json_schema(schema: Mapping[str, Any], name: str | None) -> MessageType:
    called = name or schema.get("title")
    members, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(called, str):
        raise TypeInvalid(type="schema", why="it has no title; give the type a name")
    if schema.get("type") != "object" or not isinstance(members, dict) or not isinstance(required, list):
        raise TypeInvalid(type=called, why="its type is not object, with properties")
    _refuse_others(called, "the schema", schema, _OF_SCHEMA)
    if schema.get("additionalProperties", False) is not False:
        raise TypeInvalid(type=called, why="'additionalProperties' is not false; a type has its fields and no other")
    strange = [member for member in required if not isinstance(member, str) or member not in members]
    if strange:
        raise TypeInvalid(type=called, why=f"{strange[0]!r} is required, but is not in properties")
    fields = []
    for member, part in members.items():
        kind, many, empty = _json_kind(called, member, part)
        fields.append(Field(member, kind, many, member in required and not empty))
    return MessageType(called, tuple(fields))


def _json_kind(type: str, member: str, schema: Any) -> tuple[Kind, bool, bool]:
    """The kind of a member, whether it is a list, and whether it may be null."""
    types = schema.get("type") if isinstance(schema, dict) else None
    several = types if isinstance(types, list) else [types]
    plain = [name for name in several if name != "null"]
    if len(plain) != 1 or not isinstance(plain[0], str):
        raise _not_a_field(type, member)
    lists = plain == ["array"]
    own = {"format", "pattern"} if lists else {"items"}
    _refuse_others(type, repr(member), schema, _OF_MEMBER - own)
    _refuse_default(type, member, schema)
    if not lists:
        return _json_scalar(type, member, plain[0], schema), False, "null" in several
    kind, many, empty = _json_kind(type, member, schema.get("items"))
    if many:
        raise _not_a_field(type, member)
    if empty:
        raise TypeInvalid(type=type, why=f"the items of {member!r} may be null; an item of a list may not")
    return kind, True, "null" in several


def _json_scalar(type: str, member: str, name: str, schema: Mapping[str, Any]) -> Kind:
    pattern, format = schema.get("pattern"), schema.get("format")
    if pattern == _KEY and name == "string" and format is None:
        return Kind.KEY
    if pattern is not None:
        raise _cannot_say(type, repr(member), f"'pattern' {pattern!r}")
    if (name, None) not in _FROM_JSON:
        raise _not_a_field(type, member)
    known = _FROM_JSON.get((name, format)) if format is None or isinstance(format, str) else None
    if known is None:
        raise _cannot_say(type, repr(member), f"'format' {format!r}")
    return known


def _not_a_field(type: str, member: str) -> TypeInvalid:
    why = f"{member!r} is not a string, number, boolean, date or time, nor a list of them; a field holds nothing else"
    return TypeInvalid(type=type, why=why)


def _cannot_say(type: str, place: str, what: str) -> TypeInvalid:
    """A type that would take what its schema refuses, or the other way round, is not made."""
    why = f"{place} has {what}, which a type cannot keep; take it out of the schema, and check it in a rule"
    return TypeInvalid(type=type, why=why)


def _refuse_others(type: str, place: str, schema: Mapping[str, Any], known: frozenset[str]) -> None:
    others = [word for word in schema if word not in known]
    if others:
        raise _cannot_say(type, place, ", ".join(map(repr, others)))


def _refuse_default(type: str, member: str, schema: Mapping[str, Any]) -> None:
    if schema.get("default") is not None:
        raise _cannot_say(type, repr(member), f"'default' {schema['default']!r}")


def _from_avro(schema: Mapping[str, Any], name: str | None) -> MessageType:
    called = name or schema.get("called") or schema.get("name")
    if not isinstance(called, str) or not isinstance(schema.get("fields"), list):
        raise TypeInvalid(type=str(called), why="a record of Avro has a name and fields")
    _refuse_others(called, "the record", schema, _OF_RECORD)
    fields = []
    for field in schema["fields"]:
        own = (field.get("called") or field.get("name")) if isinstance(field, dict) else None
        if not isinstance(own, str) or "type" not in field:
            raise TypeInvalid(type=called, why="a field of Avro has a name and a type")
        _refuse_others(called, repr(own), field, _OF_FIELD)
        _refuse_default(called, own, field)
        several = field["type"] if isinstance(field["type"], list) else [field["type"]]
        plain = [one for one in several if one != "null"]
        many = len(plain) == 1 and isinstance(plain[0], dict) and plain[0].get("type") == "array"
        kind = _avro_kind(plain[0].get("items") if many else plain[0]) if len(plain) == 1 else None
        if kind is None:
            raise TypeInvalid(type=called, why=f"{own!r} is of a type that a field cannot hold: {field['type']}")
        for part in (plain[0], plain[0].get("items")) if many else plain:
            if isinstance(part, dict):
                _refuse_others(called, repr(own), part, _OF_AVRO)
        fields.append(Field(own, kind, many, "null" not in several))
    return MessageType(called, tuple(fields))


def _avro_kind(schema: Any) -> Kind | None:
    if isinstance(schema, dict):
        special = schema.get("logicalType") or schema.get("kind")
        return _avro_kind(schema.get("type")) if special is None else _FROM_AVRO.get(str(special))
    return _FROM_AVRO.get(schema) if isinstance(schema, str) else None


def as_form(type: MessageType) -> str:
    """A form for a type, as a file that can be loaded: one line for each field.

    In a form's text ``_`` means a blank, so a field ``order_id`` is named ``order id``; bodies may use either name.
    """
    if not type.fields:
        raise TypeInvalid(type=type.name, why="it has no fields; a form has at least one")
    names = {field.name: " ".join(field.name.split("_")) for field in type.fields}
    for name, drawn in names.items():
        if drawn != drawn.strip() or "  " in drawn:
            why = f"a field of a form cannot be called {name!r}: no '_' around it, and not two together"
            raise TypeInvalid(type=type.name, why=why)
    width = max(map(len, names.values()))
    drawing = [f"| {name}: {'_' * (width - len(name) + 20)} |" for name in names.values()]
    fields = []
    for field in type.fields:
        kind = f"list of {field.kind}" if field.many else field.kind
        fields.append(f"field {names[field.name]} {kind} {'required' if field.required else 'free'}")
    return "\n".join([f"type {type.name}", *drawing, *fields]) + "\n"

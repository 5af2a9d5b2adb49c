"""OpenAPI 3.1 of the table of operations. The schemas of documents come from the vocabulary of the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from postroom import __version__
from postroom.interfaces.http.contract.operation import Need, Operation, Parameter
from postroom.interfaces.http.contract.operations import OPERATIONS, TAKING
from postroom.interfaces.http.contract.problems import MEDIA_TYPE
from postroom.interfaces.http.handling.streams import STREAMS, Stream

_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "happened", "advice"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "happened": {"enum": ["no", "yes", "unknown"]},
        "advice": {"type": "string"},
        "facts": {"type": "object"},
        "places": {"type": "array", "items": {"type": "string"}},
    },
}
#: Every write may be repeated.
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 200},
}
#: What every operation may refuse with.
_REFUSALS = ("400", "401", "403", "404", "405", "409", "410", "413", "422", "429", "500", "503", "507")

_ROOTS = 8  # a room is mounted below one or two


@cache
def document() -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    for stream in STREAMS:
        paths.setdefault(stream.path, {})[stream.method.lower()] = _streamed(stream)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Postroom", "version": __version__, "license": {"name": "Apache-2.0"}},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": {"problem": _PROBLEM, **vocabulary()},
            "responses": {
                "problem": {
                    "description": "A refusal, and what to do about it.",
                    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/problem"}}},
                }
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


@lru_cache(_ROOTS)
def text(root: str = "") -> bytes:
    """The document as it is served; ``root`` is the path that the room is mounted below, in percents."""
    servers = {"servers": [{"url": root}]} if root else {}
    return json.dumps(document() | servers).encode()


def identifier(operation: Operation) -> str:
    """An operation's id; one method may have several paths, with and without a queue."""
    inside = [parameter.name for parameter in operation.parameters if parameter.where == "path"]
    same = [other for other in OPERATIONS if other.name == operation.name]
    return f"{operation.name}.{'.'.join(inside) or 'all'}" if len(same) > 1 else operation.name


def _described(operation: Operation) -> dict[str, Any]:
    made = "201" if operation.name == "queues.send" else "200"
    described: dict[str, Any] = {
        "operationId": identifier(operation),
        "tags": [operation.path.split("/")[1]],
        "summary": operation.summary,
        "description": _needed(operation.needs),
        "parameters": [
            _parameter(parameter, operation) for parameter in operation.parameters if parameter.where != "body"
        ],
        "responses": {
            made: {"description": "Done.", "content": {"application/json": {"schema": _answer(operation)}}},
            **{status: {"$ref": "#/components/responses/problem"} for status in _REFUSALS},
        },
    }
    if (
        operation.method != "GET"
        and operation.name not in TAKING
        and not any(parameter.where == "header" for parameter in operation.parameters)
    ):
        described["parameters"].append(_KEY)
    inside = [parameter for parameter in operation.parameters if parameter.where == "body"]
    if operation.method == "POST" and inside:
        described["requestBody"] = {
            "required": any(parameter.required for parameter in inside),
            "content": {"application/json": {"schema": _body(inside), "example": _example(inside, operation)}},
        }
    return described


def _needed(needs: Sequence[Need]) -> str:
    """The rights that it needs, in words."""
    objects = {None: "", "?": " anything"}
    needed = [f"{need.verb}{objects.get(need.of, f' {need.of}')}" for need in needs]
    return f"Needs the right to {', and to '.join(needed)}."


def _streamed(stream: Stream) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": f"streams.{stream.name}",
        "tags": [stream.path.split("/")[1]],
        "summary": stream.summary,
        "description": _needed([stream.need]),
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}, "example": value}
            for name, value in stream.example.items()
        ],
        "responses": {
            "200": {"description": "Piece by piece.", "content": {stream.media: {"schema": {"type": "string"}}}},
            **{status: {"$ref": "#/components/responses/problem"} for status in _REFUSALS},
        },
    }
    if stream.method == "POST":
        described["requestBody"] = {"required": True, "content": {stream.media: {"schema": {"type": "string"}}}}
    return described


def _parameter(parameter: Parameter, operation: Operation) -> dict[str, Any]:
    name = "Idempotency-Key" if parameter.where == "header" else parameter.name
    described = {"name": name, "in": parameter.where, "required": parameter.required, "schema": parameter.kind.schema}
    if parameter.name in operation.example:
        described["example"] = operation.example[parameter.name]
    return described


def _body(inside: list[Parameter]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": [parameter.name for parameter in inside if parameter.required],
        "properties": {parameter.name: _schema(parameter) for parameter in inside},
        "additionalProperties": False,
    }


def _schema(parameter: Parameter) -> dict[str, Any]:
    """The schema of a parameter. None means the default, unless it has a meaning of its own."""
    schema = parameter.kind.schema
    if not schema or (parameter.required and not parameter.nullable):
        return schema
    return {"anyOf": [schema, {"type": "null"}]}


def _example(inside: list[Parameter], operation: Operation) -> dict[str, Any]:
    return {
        parameter.name: operation.example[parameter.name] for parameter in inside if parameter.name in operation.example
    }


def _answer(operation: Operation) -> dict[str, Any]:
    """The schema of a response: the vocabulary, with the members that it always has."""
    names = ["status", *operation.answer.every]
    return {"allOf": [{"$ref": _DOCUMENT}], "required": names}


_DOCUMENT = "#/components/schemas/document"


@cache
def vocabulary() -> dict[str, Any]:
    """The schemas of every member that a document may have: each has one meaning and one type everywhere."""
    names = json.loads(files("postroom.interfaces.http.contract").joinpath("vocabulary.json").read_text("utf-8"))
    schemas: dict[str, Any] = {f"name.{name}": _referring(schema) for name, schema in names.items()}
    properties = {name: {"$ref": f"#/components/schemas/name.{name}"} for name in names}
    schemas["document"] = {"type": "object", "properties": properties, "additionalProperties": False}
    return schemas


def _referring(schema: Any) -> Any:
    """The schema with references into this document."""
    if isinstance(schema, list):
        return [_referring(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _DOCUMENT if name == "$ref" and part == "#/$defs/object" else _referring(part)
        for name, part in schema.items()
    }

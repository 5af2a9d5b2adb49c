"""Documents of commands, compared with the schema that the reference has."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SCHEMA: dict[str, Any] = json.loads((Path(__file__).parents[2] / "docs" / "reference" / "json.schema.json").read_text())
COMMANDS: dict[str, Any] = SCHEMA["$defs"]["commands"]
_MEANT = {"cobol": "cobol translate"}  # a group that is a command, too
_TYPES: dict[str, Any] = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None), "array": list,
    "object": dict,
}  # fmt: skip


def check(words: Sequence[str], document: Any) -> None:
    """Raise if what a command has printed is not what the reference says."""
    assert next(iter(document)) == "status", f"{words}: every document begins with its status, not {document}"
    wrong = list(problems(document, _shape(words, document), "document"))
    assert not wrong, f"{words}: {wrong[0]}"


def several(shape: Mapping[str, Any]) -> list[Any]:
    """The documents that a command may print."""
    return list(shape.get("anyOf", [shape]))


def _shape(words: Sequence[str], document: Mapping[str, Any]) -> Any:
    if "error" in document:
        return SCHEMA["$defs"]["error"]
    name = next((name for name in _commands(words) if name in COMMANDS), None)
    assert name is not None, f"{words}: the reference has no shape for what this command prints"
    return COMMANDS[name]


def _commands(words: Sequence[str]) -> list[str]:
    """What may be the command of a line: its first two words, or its first, behind options of the program."""
    at = 0
    while words[at].startswith("-"):
        at += 2 if words[at] == "--room" else 1
    return [" ".join(words[at : at + 2]), _MEANT.get(words[at], words[at])]


def problems(value: Any, schema: Mapping[str, Any], where: str) -> list[str]:
    """What breaks a schema; those parts of JSON Schema that ours uses."""
    if "$ref" in schema:
        found: Any = SCHEMA
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        return problems(value, found, where)
    wrong = []
    if "anyOf" in schema and all(problems(value, one, where) for one in schema["anyOf"]):
        wrong.append(f"{where} is none of what it may be: {value!r}")
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_is(value, each) for each in types):
        return [*wrong, f"{where} is no {' or '.join(types)}: {value!r}"]
    if isinstance(value, dict):
        known = schema.get("properties", {})
        wrong += [f"{where} lacks {name}" for name in schema.get("required", ()) if name not in value]
        for name, each in value.items():
            if name in known:
                wrong += problems(each, known[name], f"{where}.{name}")
            elif schema.get("additionalProperties", True) is False:
                wrong.append(f"{where} has {name}, which the vocabulary has not")
    if isinstance(value, list) and "items" in schema:
        wrong += [
            one for place, each in enumerate(value) for one in problems(each, schema["items"], f"{where}[{place}]")
        ]
    return wrong


def _is(value: Any, type: str) -> bool:
    return isinstance(value, _TYPES[type]) and not (type in ("integer", "number") and isinstance(value, bool))

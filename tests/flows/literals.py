"""Values as Gryphon writes them: what is read again is the same value."""

from __future__ import annotations

import json
from typing import Any

from postroom.flows.language.types import Bag, List, Scalar, Type, Union
from postroom.flows.language.values import as_json
from postroom.flows.language.words import WORD


def literal(value: Any, type: Type) -> str:
    if isinstance(type, Scalar):
        if type.name == "atom" and WORD.match(value) and value not in ("true", "false"):
            return str(value)
        if type.name in ("int", "float", "boolean"):
            return json.dumps(value)
        said = as_json(value, type)
        return said if type.name == "decimal" else json.dumps(said, ensure_ascii=False)
    if isinstance(type, Bag | List):
        inside = ", ".join(literal(each, type.of) for each in value)
        return f"{{{inside}}}" if isinstance(type, Bag) else f"({inside})"
    if isinstance(type, Union):
        found = type.of(value.tag)
        assert found is not None
        return f"{value.tag}: {literal(value.value, found)}"
    inside = ", ".join(
        f"{field.name}: {literal(each, field.type)}" if field.name else literal(each, field.type)
        for each, field in zip(value, type.fields, strict=True)
    )
    return f"[{inside}]"

"""Message types in the catalog, by name and version."""

from __future__ import annotations

from typing import Any, NamedTuple

from postroom.errors import TypeUnknown
from postroom.model.body import Format
from postroom.model.definitions import Definition, nearest
from postroom.model.message import Draft
from postroom.model.types import Field, Kind, MessageType
from postroom.model.views import record
from postroom.store.kernel.transaction import Transaction

TYPE = "type"


def define_type(tx: Transaction, type: MessageType) -> int:
    """Add a type, or a new version of one; returns the version of the definitions."""
    return tx.definitions.define(Definition(TYPE, type.name, _body(type)), {"type": type.name})


def find_type(tx: Transaction, name: str) -> MessageType:
    known = tx.definitions.of_kind(TYPE)
    for definition in known:
        if definition.name == name:
            return _type(definition)
    raise TypeUnknown(type=name, nearest=nearest(name, [definition.name for definition in known]))


def all_types(tx: Transaction) -> dict[str, MessageType]:
    return {definition.name: _type(definition) for definition in tx.definitions.of_kind(TYPE)}


class TypeVersion(NamedTuple):
    """A message type from one version of the definitions on."""

    type: MessageType
    version: int

    @property
    def name(self) -> str:
        """The name of the type."""
        return self.type.name

    def as_dict(self) -> dict[str, Any]:
        fields = [{"name": field.name, "kind": field.kind.value, "many": field.many} for field in self.type.fields]
        return {"type": self.name, "version": self.version, "form_fields": fields}


def every_type(tx: Transaction, older: bool) -> list[TypeVersion]:
    """The types of a room by name; with ``older`` all versions, oldest first."""
    versions = [version for version, _, _ in tx.definitions.versions()] if older else [tx.definitions.version()]
    types = {
        (definition.name, definition.since): _type(definition)
        for v in versions
        for definition in tx.definitions.of_kind(TYPE, v)
    }
    return [TypeVersion(type, since) for (_, since), type in sorted(types.items(), key=lambda item: item[0])]


def check_typed(tx: Transaction, draft: Draft) -> None:
    """Raise for a body that does not fit its type."""
    assert draft.type is not None
    record(draft.body, Format(draft.format), find_type(tx, draft.type))


def _body(type: MessageType) -> dict[str, Any]:
    return {
        "fields": [
            {"name": field.name, "kind": field.kind.value, "many": field.many, "required": field.required}
            for field in type.fields
        ]
    }


def _type(definition: Definition) -> MessageType:
    fields = definition.body["fields"]
    return MessageType(
        definition.name,
        tuple(Field(field["name"], Kind(field["kind"]), field["many"], field["required"]) for field in fields),
    )

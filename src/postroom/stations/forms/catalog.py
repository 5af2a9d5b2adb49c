"""Forms in the catalog, by version, so that a message stays readable with the form it was made with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from postroom.errors import FunctionUnknown, TypeUnknown
from postroom.model.definitions import Definition, Loaded, nearest
from postroom.stations.forms import functions
from postroom.stations.forms.form import Form
from postroom.stations.forms.reader import parse
from postroom.stations.versions import ByVersion, load
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.types import define_type

KIND = "form"


@dataclass(frozen=True, slots=True)
class Edition:
    """A form from one version of the definitions on."""

    form: Form
    version: int

    def as_dict(self) -> dict[str, Any]:
        fields = [
            {
                "name": field.name,
                "kind": field.kind,
                "filled": field.rule,
                "function": field.function,
                "many": field.many,
            }
            for field in self.form.fields
        ]
        named = {"type": self.form.name, "version": self.version, "form_fields": fields}
        return {**named, "indexes": list(self.form.indexes), "description": str(self.form)}


class Forms:
    """The forms of a room, read once per version of its definitions."""

    def __init__(self) -> None:
        self._known = ByVersion(editions)
        self._old: dict[tuple[str, int], Edition] = {}

    def now(self, tx: Transaction) -> dict[str, Edition]:
        """The current forms, by name."""
        return self._known.now(tx)

    def named(self, tx: Transaction, name: str) -> Edition:
        """The current form of a type."""
        known = self.now(tx)
        if name not in known:
            raise TypeUnknown(type=name, nearest=nearest(name, known))
        return known[name]

    def at(self, tx: Transaction, name: str, version: int) -> Edition:
        """The form with which a message was created; the current one if that version is unknown here."""
        present = self.now(tx).get(name)
        if present is not None and present.version == version:
            return present
        edition = self._old.get((name, version))
        if edition is None:
            for definition in tx.definitions.of_kind(KIND, version):
                if definition.name == name:
                    edition = self._old[name, version] = _edition(definition)
        return edition or self.named(tx, name)


def check(forms: Sequence[Form]) -> None:
    """Raise unless all functions are registered; checked where the forms are used."""
    for form in forms:
        for field in form.fields:
            if field.registered and functions.find(field.registered) is None:
                raise FunctionUnknown(where=str(field.position), function=field.registered)


def load_within(tx: Transaction, forms: Sequence[Form], files: Sequence[str]) -> Loaded:
    """Add types, and new versions of types; others stay."""
    types = {form.name: form.type for form in forms}
    wanted = [Definition(KIND, form.name, {"text": str(form)}, form.position) for form in forms]
    return load(tx, KIND, wanted, files, begin=lambda definition: define_type(tx, types[definition.name]))


def editions(tx: Transaction, version: int | None = None) -> dict[str, Edition]:
    """The forms in force, or at a version, by name."""
    return {definition.name: _edition(definition) for definition in tx.definitions.of_kind(KIND, version)}


def _edition(definition: Definition) -> Edition:
    place = definition.position
    (form,) = parse(definition.body["text"], definition.name if place is None else place.file)
    return Edition(form, definition.since)

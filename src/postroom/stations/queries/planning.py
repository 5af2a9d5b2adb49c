"""From a sketch to the request to a store: fields, kinds, and tests that a database can do."""

from __future__ import annotations

from functools import lru_cache

from postroom.stations.forms.catalog import KIND, Edition
from postroom.stations.forms.reader import parse
from postroom.stations.queries.conditions import Sketch
from postroom.stations.queries.reading import Asked, Plan
from postroom.store.kernel.transaction import Transaction


def planned(tx: Transaction, edition: Edition, sketch: Sketch) -> Plan:
    """The plan of a query, read from the control node's store."""
    form = edition.form
    fields = {field.name: field for field in form.fields}
    same = _steady(tx, form.name)
    return Plan(
        form.name,
        tuple(
            Asked(name, fields[name].kind, same.get(name) == {str(fields[name].kind)}, tuple(conditions))
            for name, conditions in sketch.items()
        ),
    )


def _steady(tx: Transaction, type: str) -> dict[str, set[str]]:
    """The kinds that each field of a type has ever had; a list counts as a further kind."""
    kinds_of: dict[str, set[str]] = {}
    for definition in tx.definitions.history(KIND, type):
        for name, kinds in _kinds(definition.body["text"], type):
            kinds_of.setdefault(name, set()).update(kinds)
    return kinds_of


@lru_cache(maxsize=1_000)
def _kinds(text: str, type: str) -> list[tuple[str, list[str]]]:
    (form,) = parse(text, type)
    return [(field.name, [str(field.kind), *(["list"] if field.many else [])]) for field in form.fields]

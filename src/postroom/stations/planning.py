"""From a sketch to what a store is asked: which fields, by which kinds, and what a database can test by itself."""

from __future__ import annotations

from postroom.stations.catalog import KIND, Edition
from postroom.stations.conditions import Sketch
from postroom.stations.language import parse
from postroom.stations.reading import Asked, Plan
from postroom.store.transaction import Transaction


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
    """The kinds that each field of a type has ever had; one with lists has more than one."""
    found: dict[str, set[str]] = {}
    for definition in tx.definitions.history(KIND, type):
        (form,) = parse(definition.body["text"], type)
        for field in form.fields:
            found.setdefault(field.name, set()).update([str(field.kind), *(["list"] if field.many else [])])
    return found

"""The order of actions: a value is computed after the new values that it uses."""

from __future__ import annotations

from collections.abc import Mapping

from postroom.model.definitions import Position
from postroom.stations.forms.form import Form
from postroom.stations.procedures.definitions import Procedure, Reference, Written, references

Place = tuple[str, str]  # a sketch and a field of its message


def ordered(procedure: Procedure, forms: Mapping[str, Form]) -> list[tuple[str, Written]]:
    """The written values in dependency order; otherwise in source order."""
    needs = _needs(procedure, forms)
    order: list[tuple[str, Written]] = []
    done: set[Place] = set()
    left = [(action.sketch, line) for action in procedure.actions for line in action.lines]
    while left:
        first = next(writing for writing in left if needs[writing[0], writing[1].field] <= done)
        left.remove(first)
        order.append(first)
        done.add((first[0], first[1].field))
    return order


def cycle(procedure: Procedure, forms: Mapping[str, Form]) -> tuple[Position, str] | None:
    """A cycle of values, if there is one."""
    needs = _needs(procedure, forms)
    places = {(action.sketch, line.field): line.position for action in procedure.actions for line in action.lines}
    left = dict(needs)
    while left:
        ready = [place for place, wanted in left.items() if not wanted & left.keys()]
        if not ready:
            break
        for place in ready:
            del left[place]
    if not left:
        return None
    way = [min(left, key=lambda place: places[place])]
    while way.count(way[-1]) == 1:
        way.append(min(left[way[-1]] & left.keys()))
    way = way[way.index(way[-1]) :]
    return places[way[0]], " is made of ".join(str(Reference(*place, updated=True)) for place in way)


def _needs(procedure: Procedure, forms: Mapping[str, Form]) -> dict[Place, set[Place]]:
    """By written value: the others that must come before it."""
    written = [(action.sketch, line) for action in procedure.actions for line in action.lines]
    known = {(sketch, line.field) for sketch, line in written}
    needed: dict[Place, set[Place]] = {}
    for sketch, line in written:
        updated = [reference for reference in references(line.value) if reference.updated]
        needs = {place for reference in updated for place in _behind(reference, procedure, forms)}
        needed[sketch, line.field] = needs & known
    return needed


def _behind(reference: Reference, procedure: Procedure, forms: Mapping[str, Form]) -> list[Place]:
    """The dependencies of a new value: itself, and if a function computes it, every field of its message."""
    form = forms.get(procedure.type_of(reference.sketch) or "")
    field = None if form is None else form.field(reference.field)
    if form is not None and field is not None and field.registered is not None:
        return [(reference.sketch, other.name) for other in form.fields]
    return [(reference.sketch, reference.field)]

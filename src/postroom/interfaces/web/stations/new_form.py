"""A new form: choose its type, fill it in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from postroom.errors import FieldRefused
from postroom.interfaces.web.page import Again, Goto, Page
from postroom.interfaces.web.stations.form_grid import Mode, edition_forms, given, grid, sent_texts, wrong
from postroom.interfaces.web.visit import Visit
from postroom.stations.forms.form import Rule
from postroom.stations.procedures.errors import ERROR


def choose(visit: Visit) -> Mapping[str, Any]:
    station = visit.station.name
    forms = [
        (form, visit.address("/desk/{station}/new/{type}", {"station": station, "type": name}))
        for name, form in sorted(edition_forms(visit).items())
        if name != ERROR.name  # procedures fill it in
    ]
    blank = [(grid(form, Mode.SHOW, {}, prefix=f"t{number}"), there) for number, (form, there) in enumerate(forms)]
    return {"station": station, "forms": blank}


def show(visit: Visit) -> Mapping[str, Any]:
    return _context(visit, sent_texts(list(visit.query.items())), {})


def _context(visit: Visit, texts: Mapping[str, str], errors: Mapping[str, str]) -> dict[str, Any]:
    edition = visit.room.stations.form(visit.names["type"])
    begun = sent_texts(list(visit.query.items()))
    drawn = grid(edition.form, Mode.CREATE, texts, version=edition.version, errors=errors, stored=begun)
    return {
        "station": visit.names["station"],
        "type": edition.form.name,
        "grid": drawn,
        "errors": drawn.errors,
        "draft": "sent" if visit.form else "new",
    }


def create(visit: Visit) -> Goto | Again:
    form = visit.room.stations.form(visit.names["type"]).form
    texts = sent_texts(visit.said)
    automatic = {field.name for field in form.fields if field.rule is Rule.AUTOMATIC}
    values = {name: value for name, value in given(form, texts).items() if name not in automatic}
    errors = wrong(form, values, is_new=True)
    if not errors:
        try:
            filled = {name: value for name, value in values.items() if value is not None}
            key = visit.station.create(form.name, filled)
            return Goto(
                visit.address("/desk/{station}/forms/{key}", {**visit.names, "key": key}, saved="new"),
                f"Created {key}.",
            )
        except FieldRefused as refusal:
            errors = {str(refusal.facts["field"]): str(refusal)}
    return Again(_context(visit, texts, errors))


CHOOSE = Page("/desk/{station}/new", "new-form.html", choose, "work", "station", label="New form")
PAGE = Page("/desk/{station}/new/{type}", "fill-in.html", show, "work", "station", {"create": create})

"""Types and procedures of an office, checked and loaded together: a procedure may need a type of the same load."""

from __future__ import annotations

from collections.abc import Sequence

from postroom.errors import FormInvalid
from postroom.model.catalog import Loaded, Problem, refuse
from postroom.stations import catalog
from postroom.stations.catalog import Edition, Forms
from postroom.stations.forms import Form
from postroom.stations.language import Office
from postroom.stations.procedures import catalog as procedures
from postroom.stations.procedures.errors import ERROR
from postroom.store.transaction import Transaction


def check(tx: Transaction | None, office: Office) -> None:
    """What can only be checked where it is to be used: functions, and types that are there already."""
    catalog.check(office.forms)
    for form in office.forms:
        if form.name == ERROR.name and str(form) != str(ERROR):  # errors could not be written any more
            refuse(FormInvalid, [Problem(form.position, f"type {form.name} is the system's own", "type-reserved")])
    known: dict[str, Form] = {}
    if tx is not None:
        known = {name: edition.form for name, edition in Forms().now(tx).items()}
    forms = {**known, ERROR.name: ERROR, **{form.name: form for form in office.forms}}
    procedures.check(tx, office.procedures, forms)


def proposed_forms(tx: Transaction, office: Office) -> dict[str, Edition]:
    """The types as they would be."""
    version = tx.definitions.version() + 1
    return {**Forms().now(tx), **{form.name: Edition(form, version) for form in (ERROR, *office.forms)}}


def load_within(tx: Transaction, office: Office, files: Sequence[str]) -> Loaded:
    """Add types and procedures, and new versions of them; what is not named stays."""
    check(tx, office)
    forms = list(office.forms)
    if office.procedures and ERROR.name not in [form.name for form in forms]:
        present = Forms().now(tx).get(ERROR.name)
        forms += [] if present is not None and str(present.form) == str(ERROR) else [ERROR]
    loaded = catalog.load_within(tx, forms, files)
    if not office.procedures:
        return loaded
    return loaded.then(procedures.load_within(tx, office.procedures, files))

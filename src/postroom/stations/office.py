"""Types, procedures and counters of a load, checked and loaded together; counters last, as they may need its queues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from postroom.errors import FormInvalid
from postroom.model.definitions import Loaded, Problem, refuse
from postroom.stations.counters import definitions as counters
from postroom.stations.counters.definitions import Counter
from postroom.stations.forms import catalog
from postroom.stations.forms.catalog import Edition, Forms
from postroom.stations.forms.form import Form
from postroom.stations.forms.reader import Office
from postroom.stations.procedures import catalog as procedures
from postroom.stations.procedures.definitions import Procedure
from postroom.stations.procedures.errors import ERROR
from postroom.store.kernel.transaction import Transaction


def check(tx: Transaction | None, office: Office) -> None:
    """What can only be checked where it is to be used: functions, and types that are there already."""
    catalog.check(office.forms)
    for form in office.forms:
        if form.name == ERROR.name and str(form) != str(ERROR):  # errors could not be written any more
            refuse(FormInvalid, [Problem(form.position, f"type {form.name} is the system's own", "type-reserved")])
    procedures.check(tx, office.procedures, _forms(tx, office))


def check_counters(tx: Transaction | None, office: Office, *, alone: bool) -> None:
    """Refuse counters that break a rule. Unless they are alone, a queue that is not there may come with them."""
    subject = _with_counters(tx, office)
    if not alone:
        subject = replace(subject, queues={name: queue for name, queue in subject.queues.items() if queue is not None})
    counters.check(subject)


def proposed_counters(tx: Transaction, office: Office) -> counters.Subject:
    """The counters as they would be, checked."""
    check(tx, office)
    subject = _with_counters(tx, office)
    counters.check(subject)
    return subject


def _forms(tx: Transaction | None, office: Office) -> dict[str, Form]:
    """The types as they would be."""
    known = {} if tx is None else {name: edition.form for name, edition in Forms().now(tx).items()}
    return {**known, ERROR.name: ERROR, **{form.name: form for form in office.forms}}


def _with_counters(tx: Transaction | None, office: Office) -> counters.Subject:
    present = [] if tx is None else [kept.procedure for kept in procedures.kept(tx)]
    busy = {procedure.station: procedure.name for procedure in (*present, *office.procedures)}
    return counters.proposed(tx, office.counters, _forms(tx, office).keys() - {ERROR.name}, busy)


def proposed_forms(tx: Transaction, office: Office) -> dict[str, Edition]:
    """The types as they would be."""
    version = tx.definitions.version() + 1
    return {**Forms().now(tx), **{form.name: Edition(form, version) for form in (ERROR, *office.forms)}}


def definitions(tx: Transaction, version: int | None = None) -> list[Form | Procedure | Counter]:
    """Everything in force, or at a version, but the system's own type."""
    forms = [edition.form for name, edition in catalog.editions(tx, version).items() if name != ERROR.name]
    present = [kept.procedure for kept in procedures.kept(tx, version)]
    return [*forms, *present, *(kept.counter for kept in counters.kept(tx, version))]


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


def load_counters(tx: Transaction, office: Office, files: Sequence[str]) -> Loaded:
    """Add counters; those that are there are checked with all that the load has changed."""
    return counters.load_within(tx, office.counters, _with_counters(tx, office), files)

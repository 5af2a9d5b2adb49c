"""Files of the form language (.form): types, procedures and counters, parsed, checked and loaded together.

Types are parsed by ``postroom.stations.forms.reader``, ``procedure`` blocks by
``postroom.stations.procedures.language``, ``counter`` lines by ``postroom.stations.counters.definitions``. Counters are
loaded last, because they may refer to queues of the load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from postroom.errors import FormInvalid
from postroom.model.definitions import Loaded, Position, Problem, refuse
from postroom.stations.counters import definitions as counters
from postroom.stations.counters.definitions import Counter, Kept
from postroom.stations.forms import catalog
from postroom.stations.forms.catalog import Edition, Forms
from postroom.stations.forms.form import Form
from postroom.stations.forms.reader import parse, refuse_if, twice, without_comment
from postroom.stations.procedures import catalog as procedures
from postroom.stations.procedures.definitions import Procedure
from postroom.stations.procedures.errors import ERROR
from postroom.stations.procedures.language import procedures as read_procedures
from postroom.store.kernel.transaction import Transaction


@dataclass(frozen=True)
class Office:
    """The content of files: message types, procedures and counters."""

    forms: tuple[Form, ...] = ()
    procedures: tuple[Procedure, ...] = ()
    counters: tuple[Counter, ...] = ()

    @property
    def count(self) -> int:
        return len(self.forms) + len(self.procedures) + len(self.counters)

    def joined(self, more: Office) -> Office:
        """Combined with another file; a name may be in only one."""
        both = Office(self.forms + more.forms, self.procedures + more.procedures, self.counters + more.counters)
        refuse_if(twice("type", both.forms) + twice("procedure", both.procedures) + twice("counter", both.counters))
        return both


def read(text: str, file: str) -> Office:
    """Parse a file. Types are checked; procedures and counters later, when their types are known."""
    of_types: list[str] = []
    of_procedures: list[tuple[Position, str]] = []
    counters_read: list[Counter] = []
    inside = False
    for number, row in enumerate(text.splitlines(), 1):
        line = row if row.strip().startswith("|") else without_comment(row)
        word = line.split()[0] if line.strip() else ""
        position = Position(file, number, len(row) - len(row.lstrip()) + 1)
        inside = word == "procedure" or (inside and word not in ("type", "counter"))
        of_types.append("" if inside or word == "counter" else line)
        if word == "counter":
            counters_read.append(counters.parse(line, position))
        elif inside and word:
            of_procedures.append((position, line.strip()))
    forms = parse("\n".join(of_types), file)
    return Office().joined(Office(forms, tuple(read_procedures(of_procedures)), tuple(counters_read)))


def check(tx: Transaction | None, office: Office) -> None:
    """The checks that need the room: functions, and existing types."""
    catalog.check(office.forms)
    for form in office.forms:
        if form.name == ERROR.name and str(form) != str(ERROR):  # errors could not be written any more
            refuse(FormInvalid, [Problem(form.position, f"type {form.name} is the system's own", "type-reserved")])
    procedures.check(tx, office.procedures, _forms(tx, office))


def check_counters(tx: Transaction | None, office: Office, *, alone: bool) -> None:
    """Raise for invalid counters. Unless ``alone``, a missing queue may be in the same load."""
    subject = _with_counters(tx, office)
    if not alone:
        subject = replace(subject, queues={name: queue for name, queue in subject.queues.items() if queue is not None})
    counters.check(subject)


def proposed_counters(tx: Transaction, office: Office) -> tuple[list[Kept], dict[str, Edition]]:
    """The counters after a load, checked, and their types."""
    forms = proposed_forms(tx, office)
    subject = _with_counters(tx, office)
    counters.check(subject)
    return [Kept(counter, subject.place(counter), 0) for counter in office.counters], forms


def _forms(tx: Transaction | None, office: Office) -> dict[str, Form]:
    """The types after a load."""
    known = {} if tx is None else {name: edition.form for name, edition in Forms().now(tx).items()}
    return {**known, ERROR.name: ERROR, **{form.name: form for form in office.forms}}


def _with_counters(tx: Transaction | None, office: Office) -> counters.Subject:
    present = [] if tx is None else [kept.procedure for kept in procedures.kept(tx)]
    busy = {procedure.station: procedure.name for procedure in (*present, *office.procedures)}
    return counters.proposed(tx, office.counters, _forms(tx, office).keys() - {ERROR.name}, busy)


def proposed_forms(tx: Transaction, office: Office) -> dict[str, Edition]:
    """The types after a load, checked with the whole content."""
    check(tx, office)
    version = tx.definitions.version() + 1
    return {**Forms().now(tx), **{form.name: Edition(form, version) for form in (ERROR, *office.forms)}}


def definitions(tx: Transaction, version: int | None = None) -> list[Form | Procedure | Counter]:
    """Everything in force, or at a version, except the system's own type."""
    forms = [edition.form for name, edition in catalog.editions(tx, version).items() if name != ERROR.name]
    present = [kept.procedure for kept in procedures.kept(tx, version)]
    return [*forms, *present, *(kept.counter for kept in counters.kept(tx, version))]


def load_within(tx: Transaction, office: Office, files: Sequence[str]) -> Loaded:
    """Add types and procedures, and new versions of them; others stay."""
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
    """Add counters; existing ones are checked against the whole load."""
    return counters.load_within(tx, office.counters, _with_counters(tx, office), files)

"""Procedures in the catalog: checked against their types, kept by version, grouped by station."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from postroom.errors import DefinitionUnknown, FormInvalid, FunctionUnknown
from postroom.model.definitions import Definition, Loaded, Position, Problem, nearest, refuse
from postroom.stations.forms import functions
from postroom.stations.forms.catalog import Edition, Forms
from postroom.stations.forms.form import Form
from postroom.stations.procedures import checks
from postroom.stations.procedures.definitions import ME, Procedure, calls
from postroom.stations.procedures.language import procedures as read_procedures
from postroom.stations.procedures.plan import Desk, Plan, planned
from postroom.stations.versions import ByVersion, load
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.definitions import PROCEDURE


@dataclass(frozen=True, slots=True)
class KeptProcedure:
    """A stored procedure."""

    procedure: Procedure
    enabled: bool
    where: Position | None
    since: int

    def as_dict(self) -> dict[str, object]:
        return {
            "name": self.procedure.name,
            "station": self.procedure.station,
            "state": "enabled" if self.enabled else "disabled",
            "where": str(self.where) if self.where else "",
            "version": self.since,
        }


class Procedures:
    """The compiled procedures of a room, cached by version of its definitions."""

    def __init__(self, forms: Forms) -> None:
        self.forms = forms
        self._known = ByVersion(lambda tx: desks(kept(tx), forms.now(tx)))
        self._any = ByVersion(lambda tx: bool(tx.definitions.of_kind(PROCEDURE)))

    def any(self, tx: Transaction) -> bool:
        """Whether there are any procedures, enabled or not."""
        return self._any.now(tx)

    def now(self, tx: Transaction) -> dict[str, Desk]:
        """The enabled procedures by station."""
        return self._known.now(tx)


def kept(tx: Transaction, version: int | None = None) -> list[KeptProcedure]:
    """Every procedure, in the order of first definition; a new version keeps the place."""
    procedures = [
        (_first(tx, definition.name), _kept(definition)) for definition in tx.definitions.of_kind(PROCEDURE, version)
    ]
    return [procedure for _, procedure in sorted(procedures, key=lambda pair: pair[0])]


def _first(tx: Transaction, name: str) -> tuple[int, str, int]:
    """When and where a procedure was first defined."""
    first = tx.definitions.history(PROCEDURE, name)[0]
    place = first.position
    return first.since, "" if place is None else place.file, 0 if place is None else place.line


def named(tx: Transaction, name: str) -> KeptProcedure:
    known = {present.procedure.name: present for present in kept(tx)}
    if name not in known:
        raise DefinitionUnknown(name=f"procedure {name}", nearest=nearest(name, known))
    return known[name]


def _kept(definition: Definition) -> KeptProcedure:
    (procedure,) = parsed(definition.body["text"], definition.name)
    return KeptProcedure(procedure, not definition.body["disabled"], definition.position, definition.since)


def parsed(text: str, file: str) -> list[Procedure]:
    """Procedures parsed from their printed text."""
    return read_procedures((Position(file, number), row.strip()) for number, row in enumerate(text.splitlines(), 1))


def desks(known: Iterable[KeptProcedure], forms: Mapping[str, Edition]) -> dict[str, Desk]:
    plain = {name: edition.form for name, edition in forms.items()}
    by_station: dict[str, list[tuple[int, Plan]]] = {}
    for present in known:
        if present.enabled:
            plan = planned(present.procedure, plain)
            by_station.setdefault(present.procedure.station, []).append((present.since, plan))
    return {
        station: Desk(station, tuple(plan for _, plan in plans), _edition(plans, forms))
        for station, plans in by_station.items()
    }


def _edition(plans: Sequence[tuple[int, Plan]], forms: Mapping[str, Edition]) -> str:
    """A fingerprint of what the candidates of a station depend on: versions of its procedures and types."""
    parts = [f"{since} {plan.procedure}" for since, plan in plans]
    if any(ME in origin.stations for _, plan in plans for origin in plan.procedure.origins):
        parts.append("me is the database")  # it was who created a message: candidates of then are others
    parts += sorted({str(forms[sketch.type].form) for _, plan in plans for sketch in plan.sketches})
    return blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


# --- changing ---


def check(tx: Transaction | None, procedures: Sequence[Procedure], forms: Mapping[str, Form]) -> None:
    """Raise for procedures that break a rule, and for changes of types that would break existing procedures."""
    new = {procedure.name for procedure in procedures}
    present = [] if tx is None else kept(tx)
    # A station may go later; whoever writes its name now means one that is there, or comes with procedures of its own.
    stations = None if tx is None else {*tx.nodes.stations(), *(procedure.station for procedure in procedures)}
    problems = [problem for procedure in procedures for problem in checks.problems(procedure, forms, stations)]
    problems += [
        Problem(kept.where or problem.position, problem.what, problem.rule)
        for kept in present
        if kept.procedure.name not in new
        for problem in checks.problems(kept.procedure, forms)
    ]
    elsewhere = {kept.procedure.name: kept.procedure.station for kept in present}
    for procedure in procedures:
        if elsewhere.get(procedure.name, procedure.station) != procedure.station:
            name = procedure.name
            what = f"procedure {name} is at {elsewhere[name]}: give this one another name, or remove that one"
            problems.append(Problem(procedure.position, what, "procedure-station"))
    if problems:
        refuse(FormInvalid, problems)
    for procedure in procedures:
        for position, value in procedure.expressions():
            for function in calls(value):
                if functions.find(function) is None:
                    raise FunctionUnknown(where=str(position), function=function)


def load_within(tx: Transaction, procedures: Sequence[Procedure], files: Sequence[str]) -> Loaded:
    """Add procedures, and new versions of them; others stay, and disabled ones stay disabled."""
    disabled = {present.procedure.name for present in kept(tx) if not present.enabled}
    bodies = {new.name: {"text": str(new), "disabled": new.name in disabled} for new in procedures}
    wanted = [Definition(PROCEDURE, new.name, bodies[new.name], new.position) for new in procedures]
    return load(tx, PROCEDURE, wanted, files)


def set_enabled(tx: Transaction, name: str, enabled: bool) -> bool:
    """Enable or disable a procedure; False if it was so already."""
    present = named(tx, name)
    if present.enabled == enabled:
        return False
    body = {"text": str(present.procedure), "disabled": not enabled}
    tx.definitions.change(PROCEDURE, [], [Definition(PROCEDURE, name, body, present.where)], {"enabled": enabled})
    tx.wake()
    return True


def remove(tx: Transaction, name: str) -> None:
    named(tx, name)
    tx.definitions.change(PROCEDURE, [name], [], {"removed": name})
    tx.wake()

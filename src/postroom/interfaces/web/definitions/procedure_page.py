"""Procedures: sketches filled in on templates, with a dry run beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from postroom.errors import DefinitionError, DefinitionUnknown, EntryInvalid
from postroom.interfaces.web.definitions.procedure_sketches import (
    KINDS,
    ON_TEMPLATES,
    OPERATIONS,
    Sketch,
    Sketches,
    of_fields,
    of_procedure,
)
from postroom.interfaces.web.definitions.program_page import Draft, Tried, problems_of, trial, written
from postroom.interfaces.web.definitions.source_view import pieces
from postroom.interfaces.web.page import Again, Goto, Page, Undo
from postroom.interfaces.web.stations.form_grid import Grid, Mode, edition_forms, grid
from postroom.interfaces.web.visit import Visit
from postroom.model.definitions import Problem
from postroom.stations.forms.form import Form
from postroom.stations.office import read

PATH = "/procedures"
FILE = "procedure.form"
_MODES = {"precondition": Mode.SKETCH, "action": Mode.ACTION, "create": Mode.ACTION}


class ProcedureDraft(Draft):
    """A procedure as it is proposed."""


def show(visit: Visit) -> Mapping[str, Any]:
    asking = visit.askings.known(visit.user, visit.query.get("asked", ""))
    if visit.form or asking is None or not isinstance(asking.about, ProcedureDraft):
        return _context(visit, of_fields(visit.said) if visit.form else _named(visit))
    sketches = of_procedure(read(asking.about.text, FILE).procedures[0])
    if not asking.wait():
        return _context(visit, sketches) | {"asking": asking}
    try:
        return _context(visit, sketches, tried=asking.result())
    except DefinitionError as error:
        return _context(visit, sketches, problems_of(error))


def _named(visit: Visit) -> Sketches | None:
    name = visit.query.get("name")
    if name is None:
        return Sketches("", "", []) if "new" in visit.query else None
    for kept in visit.room.stations.procedures():
        if kept.procedure.name == name:
            return of_procedure(kept.procedure)
    raise DefinitionUnknown(name=f"procedure {name[:100]}", nearest="")


def _context(
    visit: Visit, sketches: Sketches | None, problems: Sequence[Problem] = (), tried: Tried | None = None
) -> dict[str, Any]:
    """``problems`` are shown at the fields of their lines, others at the top."""
    lines = [] if sketches is None else list(sketches.lines())
    at: dict[tuple[int, str], str] = {}
    above = []
    for problem in problems:
        number = problem.position.line - 1
        _, sketch, name = lines[number] if number < len(lines) else ("", None, None)
        if sketch is not None and name is not None:
            at[sketch, name] = problem.what
        above.append((problem.position.line, problem.what))
    return {
        "procedures": visit.room.stations.procedures(),
        "sketches": sketches,
        "drawn": [] if sketches is None else _drawn(visit, sketches, at),
        "lines": [pieces(line) for line, _, _ in lines],
        "problems": above,
        "kinds": KINDS,
        "operations": OPERATIONS,
        "types": sorted(edition_forms(visit)),
        "stations": sorted(visit.room.stations.all()),
        "asking": None,
        "tried": tried,
    }


def _drawn(
    visit: Visit, sketches: Sketches, errors: Mapping[tuple[int, str], str]
) -> list[tuple[Sketch, Grid | None, str | None]]:
    """Each sketch, its template filled in, and fields that the template does not have."""
    forms = edition_forms(visit)
    drawings = []
    for number, sketch in enumerate(sketches.several):
        form = forms.get(sketches.type_at(number) or "") if sketch.kind in ON_TEMPLATES else None
        wrong = {name: what for (place, name), what in errors.items() if place == number}
        lost = [name for name in sketch.said if form is None or form.field(name) is None]
        drawn = None if form is None else _grid(form, sketch, number, wrong)
        drawings.append((sketch, drawn, ", ".join(lost) or None))
    return drawings


def _grid(form: Form, sketch: Sketch, number: int, errors: Mapping[str, str]) -> Grid:
    group = f"s{number}."
    return grid(form, _MODES[sketch.kind], sketch.said, errors=errors, prefix=f"s{number}-", group=group)


# --- what its buttons do ---


def draw(visit: Visit) -> Again:
    """Show the sketches without those marked for removal; changes nothing."""
    return Again(_context(visit, of_fields(visit.said)), 200)


def add(visit: Visit) -> Again:
    """Add a sketch; changes nothing else."""
    sketches = of_fields(visit.said)
    kind, of = visit.needed("add.kind"), visit.needed("add.of")
    if kind not in KINDS:
        raise EntryInvalid(where="add.kind", why=f"one of {', '.join(KINDS)}")
    name = visit.form.get("add.name", "").strip() or f"{kind}_{len(sketches.several) + 1}"
    sketches.several.append(Sketch(kind, name, of))
    return Again(_context(visit, sketches), 200)


def _proposed(visit: Visit) -> tuple[Sketches, ProcedureDraft]:
    sketches = of_fields(visit.said)
    return sketches, ProcedureDraft(FILE, sketches.text())


def check(visit: Visit) -> Again:
    """Check whether it could be loaded; changes nothing."""
    sketches, draft = _proposed(visit)
    wrong = _wrong(visit, sketches, draft)
    return wrong or Again(_context(visit, sketches) | {"checked": True}, 200)


def _wrong(visit: Visit, sketches: Sketches, draft: Draft) -> Again | None:
    try:
        problems = read(draft.text, FILE)
        if len(problems.procedures) != 1 or problems.count != 1:
            raise EntryInvalid(where="procedure", why="it is the name of one procedure, and no more")
        with written(visit.room, draft) as file:
            visit.room.definitions.check(file)
    except DefinitionError as error:
        return Again(_context(visit, sketches, problems_of(error)))
    return None


def try_out(visit: Visit) -> Goto | Again:
    """A dry run with the forms at its station; changes nothing."""
    visit.require("look", None, {})
    sketches, draft = _proposed(visit)
    wrong = _wrong(visit, sketches, draft)
    if wrong is not None:
        return wrong
    room = visit.room
    asking = visit.begun(draft, lambda progress: trial(room, draft, progress))
    return Goto(visit.here(name=visit.query.get("name"), asked=asking.id))


def stop(visit: Visit) -> Again:
    """Stop the dry run; the sketches stay."""
    asking = visit.askings.known(visit.user, visit.query.get("asked", ""))
    if asking is None or not isinstance(asking.about, ProcedureDraft):
        raise EntryInvalid(where="asked", why="nothing is tried under this number any more")
    visit.askings.stop(visit.user, asking.id)
    return Again(_context(visit, of_procedure(read(asking.about.text, FILE).procedures[0])) | {"stopped": True}, 200)


def load(visit: Visit) -> Goto | Again:
    sketches, draft = _proposed(visit)
    wrong = _wrong(visit, sketches, draft)
    if wrong is not None:
        return wrong
    with written(visit.room, draft) as file:
        loaded = visit.room.definitions.load(file)
    name = sketches.name.strip()
    return Goto(visit.here(name=name), f"Version {loaded.version}: the procedure {name} was loaded.")


def switch(visit: Visit) -> Goto:
    """Enable or disable a procedure."""
    name, stations = visit.needed("procedure"), visit.room.stations
    done = (stations.enable_procedure if visit.form["do"] == "enable" else stations.disable_procedure)(name)
    other = "disable" if visit.form["do"] == "enable" else "enable"
    undo = Undo(f"{other.capitalize()} it again", visit.here(name=name), (("do", other), ("procedure", name)))
    how = f"{name} was {visit.form['do']}d." if done else f"{name} was so already."
    return Goto(visit.here(name=name), how, undo if done else None)


PAGE = Page(
    PATH,
    "procedures.html",
    show,
    "load",
    None,
    {
        "draw": draw,
        "add": add,
        "check": check,
        "try": try_out,
        "stop": stop,
        "load": load,
        "enable": switch,
        "disable": switch,
    },
)

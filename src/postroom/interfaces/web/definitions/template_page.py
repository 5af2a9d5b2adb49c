"""Templates of forms: the text, with a live preview beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from postroom.errors import DefinitionError, FormInvalid
from postroom.interfaces.web.definitions.program_page import Draft, problems_of, written
from postroom.interfaces.web.page import Again, Goto, Page
from postroom.interfaces.web.stations.form_grid import Mode, edition_forms, grid
from postroom.interfaces.web.visit import Visit
from postroom.model.definitions import Problem
from postroom.stations.forms.reader import unfinished
from postroom.stations.office import read

PATH = "/templates"
FILE = "template.form"
NEW = """type MEMO
| To: ______________  KEY: ___________ |
| Text: ______________________________ |
field To   string required
field KEY  key    automatic
field Text string free
"""


def show(visit: Visit) -> Mapping[str, Any]:
    if visit.form:
        return _context(visit, _sent(visit))
    if "new" in visit.query:
        return _context(visit, NEW)
    type = visit.query.get("type")
    return _context(visit, None if type is None else str(visit.room.stations.form(type).form))


def _sent(visit: Visit) -> str:
    return visit.form.get("text", "").replace("\r\n", "\n")


def _context(visit: Visit, text: str | None, problems: Sequence[Problem] | None = None) -> dict[str, Any]:
    drawn = None if text is None else unfinished(text, FILE)
    wrong = _problems(text) if problems is None and text is not None else problems or ()
    return {
        "types": sorted(edition_forms(visit)),
        "type": visit.query.get("type"),
        "text": text,
        "grid": None if drawn is None else grid(drawn, Mode.CREATE, {}, prefix="drawn"),
        "problems": [(problem.position.line, problem.what) for problem in wrong],
    }


def _problems(text: str) -> Sequence[Problem]:
    try:
        read(text, FILE)
    except FormInvalid as invalid:
        return problems_of(invalid)
    return ()


def draw(visit: Visit) -> Again:
    """Preview the form; changes nothing."""
    return Again(_context(visit, _sent(visit)), 200)


def check(visit: Visit) -> Again:
    """Check whether it could be loaded; changes nothing."""
    try:
        with written(visit.room, Draft(FILE, _sent(visit))) as file:
            visit.room.definitions.check(file)
    except DefinitionError as error:
        return Again(_context(visit, _sent(visit), problems_of(error)))
    return Again(_context(visit, _sent(visit)) | {"checked": True}, 200)


def load(visit: Visit) -> Goto | Again:
    text = _sent(visit)
    try:
        with written(visit.room, Draft(FILE, text)) as file:
            loaded = visit.room.definitions.load(file)
    except DefinitionError as error:
        return Again(_context(visit, text, problems_of(error)))
    names = [form.name for form in read(text, FILE).forms]
    where = visit.here(type=names[0]) if names else visit.here()
    return Goto(
        where, f"Version {loaded.version}: {', '.join(loaded.added + loaded.changed) or 'nothing new'} was loaded."
    )


PAGE = Page(PATH, "templates.html", show, "load", None, {"draw": draw, "check": check, "load": load}, label="Templates")

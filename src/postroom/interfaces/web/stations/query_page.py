"""Query by example: conditions in a form, scope, and results.

A query of other stations is recorded in the journal: it is started by a button, never by an address alone.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import Any

from postroom.errors import ArgumentInvalid, EntryInvalid, FormInvalid, StationUnknown
from postroom.interfaces.http.contract.problems import status_of
from postroom.interfaces.web.asking import Asking
from postroom.interfaces.web.page import Again, File, Goto, Page
from postroom.interfaces.web.rendering import counted
from postroom.interfaces.web.stations.desk import no_station
from postroom.interfaces.web.stations.form_grid import PREFIX, Mode, edition_forms, grid, sent_texts, shown_texts
from postroom.interfaces.web.visit import Visit
from postroom.limits import QUERY_ROWS
from postroom.model.types import FieldValue, Kind, text
from postroom.stations.forms.form import Form
from postroom.stations.queries.conditions import EMPTY, FILLED, Condition, sketch
from postroom.stations.queries.images import Answer, Image

PATH = "/desk/{station}/query/{type}"
SCOPES = {
    "local": "Here",
    "group": "This node",
    "global": "Everywhere",
    "stations": "Some stations",
    "as-of": "As of a number",
}
READING = ("local", "as-of")  # nothing is noted by these
FORMATS = {"csv": "text/csv; charset=utf-8", "json": "application/json", "parquet": "application/vnd.apache.parquet"}
FINDING = {"find": "1", "count": "count"}  # buttons, and what the address says of them
_BOXES = {  # of a scope: its box, and what is to stand there
    "stations": ("Stations, with commas between", "which stations, with commas between"),
    "as-of": ("Number of the query", "the number of a query, or the table it was saved as"),
}
_WORDS = {"=": "is", "<>": "other than", "<": "below", "<=": "at most", ">": "above", ">=": "at least", "~": "like"}


def choose(visit: Visit) -> Mapping[str, Any]:
    station = visit.station.name
    forms = [(name, visit.address(PATH, {"station": station, "type": name})) for name in sorted(edition_forms(visit))]
    tables = [
        (table, visit.address(PATH, {"station": station, "type": table.type}, find=1, scope="as-of", number=table.name))
        for table in visit.station.tables()
    ]
    return {"station": station, "forms": forms, "tables": visit.part("table", tables)}


def show(visit: Visit) -> Mapping[str, Any] | Again | Goto:
    try:
        return _context(visit, _find(visit) is not None)
    except (StationUnknown, ArgumentInvalid, EntryInvalid) as error:  # what was written stays, and it stands there
        why = no_station(error) if isinstance(error, StationUnknown) else str(error.facts["why"])
        box = error.facts.get("box") or _given(visit).get("scope", "local")
        return Again({**_unasked(visit), "wrong_where": why, "wrong_box": box}, status_of(type(error)))


def _given(visit: Visit) -> Mapping[str, str]:
    """The submitted fields, or those of the address."""
    return visit.form if visit.form.get("do") in FINDING else visit.query


def _find(visit: Visit) -> str | None:
    """What is requested: 1 for the messages, count for their number."""
    return FINDING.get(visit.form.get("do", "")) or visit.query.get("find")


def find(visit: Visit) -> Goto | Again:
    """Start a query; its result has an address."""
    shown = show(visit)
    return shown if isinstance(shown, (Goto, Again)) else Again(shown)


def _unasked(visit: Visit) -> Mapping[str, Any]:
    context = _context(visit, False)
    assert not isinstance(context, Goto)
    return context


def _context(visit: Visit, is_asked: bool) -> dict[str, Any] | Goto:
    edition = visit.room.stations.form(visit.names["type"])
    form, texts = edition.form, _texts(visit)
    errors: dict[str, str] = {}
    asking: Asking | None = None
    reads: list[tuple[str, list[tuple[str, str]]]] = []
    for name, said in texts.items():  # each alone, so that all that cannot be read is told at once
        try:
            reads += _reads(form, {name: said})
        except FormInvalid as invalid:
            for problem in invalid.facts["problems"]:
                errors[problem.position.file] = f"Character {problem.position.column}: {problem.what}"
    if is_asked and not errors:
        asking = _asked(visit)
    is_sent = bool(visit.form.get("do") in FINDING)
    if asking is not None and asking.id != visit.query.get("asked") and (not asking.wait() or is_sent):
        return Goto(_again(visit, find=_find(visit), asked=asking.id))
    drawn = grid(form, Mode.SKETCH, texts, version=edition.version, errors=errors)
    came = asking.result() if asking is not None and asking.is_over else None
    return {
        "station": visit.station.name,
        "type": form.name,
        "grid": drawn,
        "errors": drawn.errors,
        "reads": reads,
        "was_asked": asking is not None,
        "scopes": SCOPES,
        "scope": _given(visit).get("scope", "local"),
        "wrong_where": None,
        "wrong_box": None,
        "is_unasked": is_asked and asking is None and not errors,
        "stations": sorted(visit.station.others()),
        "some": _given(visit).get("some", ""),
        "number": _given(visit).get("number", ""),
        "numbers": [
            (table.query or table.name, table.name) for table in visit.station.tables() if table.type == form.name
        ],
        "asking": asking if asking is not None and not asking.is_over else None,
        "counted": came if isinstance(came, int) else None,
        "found": _found(visit, form, texts, came, asking) if isinstance(came, Answer) and asking is not None else None,
    }


def _asked(visit: Visit) -> Asking | None:
    """The query of the address: a running or finished one, or a new one if it was submitted or is not recorded."""
    station, type, texts, scope = visit.station, visit.names["type"], _texts(visit), _scope(visit)
    if not visit.form and scope.partition("=")[0] not in READING:
        return visit.known(_about(visit))
    if _find(visit) == "count":
        return visit.asked(_about(visit), lambda progress: station.count(type, texts, scope=scope, progress=progress))
    return visit.asked(_about(visit), lambda progress: station.query(type, texts, scope=scope, progress=progress))


def _about(visit: Visit) -> tuple[Any, ...]:
    """What identifies a query, whichever page of the result is shown."""
    what = "count" if _find(visit) == "count" else "query"
    return what, visit.names["station"], visit.names["type"], _scope(visit), _texts(visit)


def stop(visit: Visit) -> Goto:
    """Stop the query."""
    was_asked = visit.askings.stop(visit.user, visit.query.get("asked", ""))
    return Goto(_again(visit, find=None), "Stopped." if was_asked else "It was over already.")


def _texts(visit: Visit) -> dict[str, str]:
    texts = sent_texts(list(_given(visit).items()))
    return {name: text for name, text in texts.items() if text.strip()}


def _scope(visit: Visit) -> str:
    fields = _given(visit)
    scope = fields.get("scope", "local")
    if scope not in SCOPES:
        raise EntryInvalid(where="scope", why=f"one of {', '.join(SCOPES)}")
    named = {"stations": fields.get("some", "").strip(" ,"), "as-of": fields.get("number", "").strip()}
    for each, (box, what) in _BOXES.items():
        if scope == each and not named[each]:
            raise EntryInvalid(where=SCOPES[each], why=f"Say {what}.")
        if scope != each and named[each]:
            why = f"“{box}” is filled in: choose “{SCOPES[each]}”, or empty it."
            raise EntryInvalid(where=SCOPES[each], why=why, box=each)
    return f"{scope}={named[scope]}" if scope in named else scope


def _found(visit: Visit, form: Form, texts: Mapping[str, str], answer: Answer, asking: Asking) -> dict[str, Any]:
    every = "all" in visit.query
    images: list[Image] = list(answer[: len(answer) if every else QUERY_ROWS])
    opened = next((image for image in images if image.key == visit.query.get("open")), None)
    columns = [
        (field.name, texts.get(field.name, "")) for field in form.fields if field.function or field.kind is not Kind.KEY
    ]
    same = {"asked": asking.id}  # so that no other answer is shown
    rows = [
        (image.place, image.key, shown_texts(image.fields), _again(visit, **same, open=image.key)) for image in images
    ]
    exports = {kind: visit.address(f"{PATH}/export.{kind}", visit.names, **_queried(visit), **same) for kind in FORMATS}
    return {
        "number": answer.seq,
        "count": len(answer),
        "damaged": answer.damaged,
        "columns": columns,
        "rows": rows,
        "exports": exports,
        "all": None if every or len(answer) <= QUERY_ROWS else _again(visit, **same, all=1),
        "opened": None if opened is None else _opened(opened),
        "here": _again(visit, **same),
    }


def _opened(image: Image) -> dict[str, Any]:
    drawn = grid(image.form, Mode.SHOW, shown_texts(image.fields), prefix="image")
    return {"key": image.key, "place": image.place, "grid": drawn}


def _queried(visit: Visit) -> dict[str, str]:
    fields = _given(visit)
    kept = {name: value for name, value in fields.items() if name.startswith(PREFIX) and value.strip()}
    return kept | {name: fields[name] for name in ("scope", "some", "number") if fields.get(name)} | {"find": "1"}


def _again(visit: Visit, **more: Any) -> str:
    return visit.here(**{**_queried(visit), **more})


def _reads(form: Form, texts: Mapping[str, str]) -> list[tuple[str, list[tuple[str, str]]]]:
    """By field, its conditions as operator and value."""
    return [(name, [_read(condition) for condition in several]) for name, several in sketch(form, texts).items()]


def _read(condition: Condition) -> tuple[str, str]:
    if condition.sign in (EMPTY, FILLED):
        return ("is", "empty") if condition.sign == EMPTY else ("is", "not empty")
    if condition.sign == "..":
        return "from", f"{text(condition.value)} to {text(condition.until)}"
    return _WORDS[condition.sign], text(condition.value)


def _answered(visit: Visit) -> Answer:
    """The result that the user has seen; an address without a number starts a query now."""
    if "asked" in visit.query and visit.known(_about(visit)) is None:
        raise EntryInvalid(where="asked", why="what was found is no longer kept: find it again")
    asking = _asked(visit)
    answer = asking.whole() if asking is not None else None
    if not isinstance(answer, Answer):
        raise EntryInvalid(where="find", why="this was only counted, or was stopped: find it")
    return answer


def keep(visit: Visit) -> Goto:
    """Save the result as a temporary table of the station."""
    name, answer = visit.needed("into"), _answered(visit)
    if not name.isidentifier():
        raise EntryInvalid(where="Save as table", why="a name has letters, digits and _, and no blanks", name="into")
    visit.station.save_table(name, visit.names["type"], answer)
    return Goto(
        _again(visit, asked=visit.query.get("asked")), f"Saved {counted(len(answer), 'form')} as the table {name}."
    )


# --- files ---


def export(visit: Visit) -> File:
    """The whole result of a query, as a file."""
    kind = visit.names["format"]
    if kind not in FORMATS:
        raise EntryInvalid(where="format", why=f"one of {', '.join(FORMATS)}")
    content = {"csv": _csv, "json": _json, "parquet": _parquet}[kind](_answered(visit))
    name = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in visit.names["type"])
    return File(f"{name}.{kind}", FORMATS[kind], content)


def _csv(answer: Answer) -> bytes:
    names = list(dict.fromkeys(name for image in answer for name in image.fields))
    output = io.StringIO()
    writer = csv.writer(output)
    writer.writerow([inert(name) for name in ("key", "place", *names)])
    for image in answer:
        fields = image.fields
        writer.writerow([inert(value) for value in (image.key, image.place, *(fields.get(name) for name in names))])
    return output.getvalue().encode(errors="backslashreplace")


def inert(value: FieldValue) -> str:
    """A cell that no spreadsheet takes for a formula; numbers stay numbers.

    >>> inert("=1+1"), inert("plain"), inert(-5), inert(None), inert(("a", "-b"))
    ("'=1+1", 'plain', '-5', '', 'a; -b')
    """
    shown = "; ".join(text(item) for item in value) if isinstance(value, tuple) else text(value)
    is_text = isinstance(value, (str, tuple))
    return f"'{shown}" if is_text and shown.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else shown


def _json(answer: Answer) -> bytes:
    return json.dumps(answer.as_dict(), ensure_ascii=False).encode(errors="backslashreplace")


def _parquet(answer: Answer) -> bytes:
    import pyarrow.parquet

    output = io.BytesIO()
    pyarrow.parquet.write_table(answer.arrow(), output)
    return output.getvalue()


CHOOSE = Page("/desk/{station}/query", "query-type.html", choose, "work", "station", label="Query")
PAGE = Page(PATH, "query.html", show, "work", "station", {"find": find, "count": find, "keep": keep, "stop": stop})
EXPORT = Page(f"{PATH}/export.{{format}}", "query.html", export, "work", "station")

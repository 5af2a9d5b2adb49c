"""A form in the layout of its template: labels and cells to fill in, to show, or to query with."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from postroom.interfaces.web.rendering import shortened
from postroom.interfaces.web.visit import Visit
from postroom.limits import FORM_COLUMNS_MAX
from postroom.model.types import FieldValue, Kind, text
from postroom.stations.forms.filling import fitting
from postroom.stations.forms.form import Form, FormField, Rule

#: Before the name of a field in what a browser sends.
PREFIX = "field:"
_MOMENT = re.compile(r"(?<=^\d{4}-\d\d-\d\d) +(?=\d)", re.ASCII)
_KINDS = {
    Kind.STRING: "text",
    Kind.INT: "a whole number, such as 42",
    Kind.DECIMAL: "a number, such as 1150.50",
    Kind.FLOAT: "a number",
    Kind.BOOLEAN: "true or false",
    Kind.DATE: "a date, such as 2026-11-06 or Nov. 6, 2026",
    Kind.TIME: "a time, such as 14:30",
    Kind.TIMESTAMP: "a date and a time, such as 2026-11-06T14:30:00Z",
    Kind.KEY: "a key, such as 00001.00042",
}
#: What may be asked of a field; a pattern is for texts alone.
_ASKED = {
    Kind.STRING: 'a text, <>"a text", "a".."m", a pattern such as "off*"',
    Kind.INT: "42, >100, <>7, 1..9",
    Kind.DECIMAL: "1150.50, >100, <>7, 1..9.50",
    Kind.FLOAT: "1.5, >100, <>7, 1..9.5",
    Kind.BOOLEAN: "true or false",
    Kind.DATE: "2026-11-06, >=2026-11-01, 2026-11-01..2026-11-30",
    Kind.TIME: "14:30, >=09:00, 09:00..17:00",
    Kind.TIMESTAMP: "2026-11-06T14:30:00Z, >=2026-11-01T00:00:00Z",
    Kind.KEY: "00001.00042",
}
_RULES = {
    Rule.REQUIRED: "required; fixed when the form is created",
    Rule.ONCE: "fixed once entered",
    Rule.FREE: "free: whoever has the form may write on it",
    Rule.AUTOMATIC: "written by the system",
}


class Mode(StrEnum):
    """The purpose for which a form is shown."""

    CREATE = "create"
    MODIFY = "modify"
    SHOW = "show"
    SKETCH = "sketch"  # conditions are written into it
    ASKED = "asked"  # conditions are shown in it
    ACTION = "action"  # what is to be written on it is written into it


_SKETCHES = (Mode.SKETCH, Mode.ACTION)


@dataclass(frozen=True)
class Cell:
    """A blank with its label. ``way`` is write, fixed, stamp, later, shown or asked."""

    before: str
    label: str
    name: str
    id: str
    width: int
    way: str
    value: str
    kind: str
    rule: str
    takes: str
    is_long: bool
    is_required: bool = False
    error: str | None = None
    is_changed: bool = False
    sent: str = ""  # the name under which a browser sends it
    stored: str | None = None  # what is saved, if the blank has another text
    now: str | None = None  # what someone else has written there meanwhile
    lost: str | None = None  # what the user wrote, if the blank is fixed now
    is_many: bool = False  # each line that is written is an item


@dataclass(frozen=True)
class Row:
    cells: tuple[Cell, ...]
    tail: str

    @property
    def errors(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.error]

    @property
    def overtaken(self) -> list[Cell]:
        """Cells that two have written in."""
        return [cell for cell in self.cells if cell.now is not None or cell.lost is not None]


@dataclass(frozen=True)
class Grid:
    title: str
    version: int | None
    mode: str
    columns: int  # of the widest line
    rows: tuple[Row, ...]
    changed_by: Mapping[str, str]  # person or machine, by field

    @property
    def errors(self) -> list[Cell]:
        return [cell for row in self.rows for cell in row.errors]

    @property
    def is_written(self) -> bool:
        """Whether there is a blank to write into; if not, Tab focuses the sheet, to scroll it."""
        return any(cell.way == "write" for row in self.rows for cell in row.cells)


def grid(
    form: Form,
    mode: Mode,
    texts: Mapping[str, str],
    *,
    version: int | None = None,
    errors: Mapping[str, str] | None = None,
    changed_by: Mapping[str, str] | None = None,
    fixed: Collection[str] = (),
    prefix: str = "f",
    group: str = "",
    stored: Mapping[str, str] | None = None,
    now: Mapping[str, str] | None = None,
    lost: Mapping[str, str] | None = None,
) -> Grid:
    """``texts`` are the contents of the blanks; ``fixed`` are fields that can no longer be changed.

    ``stored`` is what is saved, ``now`` what others have written, ``lost`` what was written into fields that are fixed.
    ``group`` is a prefix of field names, for several grids in one form.
    """
    changed = changed_by or {}
    rows = []
    for number, line in enumerate(form.lines):
        cells, at = [], 0
        for blank in line.blanks:
            field = form.field(blank.name)
            assert field is not None
            head = line.drawn[at : blank.start]
            split = max(head.rfind(blank.name), 0)
            way = _way(field, mode, field.name in fixed)
            cells.append(
                Cell(
                    head[:split],
                    head[split:],
                    blank.name,
                    f"{prefix}{number}-{blank.start}",
                    blank.width,
                    way,
                    texts.get(blank.name, ""),
                    str(field.kind),
                    "" if mode in _SKETCHES else str(field.rule),
                    _takes(field, mode),
                    _is_long(field, blank.width, texts.get(blank.name, "")) or mode in _SKETCHES,
                    mode is Mode.CREATE and field.rule is Rule.REQUIRED,
                    (errors or {}).get(blank.name),
                    blank.name in changed,
                    f"{group}{PREFIX}{blank.name}",
                    None if stored is None else _other(stored.get(blank.name, ""), texts.get(blank.name, "")),
                    (now or {}).get(blank.name) if way == "write" else None,
                    _other((lost or {}).get(blank.name), texts.get(blank.name, "")) if way == "fixed" else None,
                    field.many and way == "write" and mode not in _SKETCHES,
                )
            )
            at = blank.start + blank.width
        rows.append(Row(tuple(cells), line.drawn[at:].rstrip()))
    columns = max((len(line.drawn) for line in form.lines), default=1)
    return Grid(form.name, version, str(mode), min(columns + 2, FORM_COLUMNS_MAX), tuple(rows), changed)


def _is_long(field: FormField, width: int, text: str) -> bool:
    """Whether a blank grows downwards, so that nothing in it is hidden. A date has its calendar beside it."""
    return field.many or field.kind in (Kind.STRING, Kind.TIMESTAMP) or (len(text) > width and field.kind != Kind.DATE)


def _other(text: str | None, shown: str) -> str | None:
    return None if text == shown else text


def _way(field: FormField, mode: Mode, is_fixed: bool) -> str:
    if mode in (Mode.SKETCH, Mode.ASKED):
        return "write" if mode is Mode.SKETCH else "asked"
    if mode is Mode.ACTION:
        return "shown" if field.rule is Rule.AUTOMATIC else "write"
    if field.rule is Rule.AUTOMATIC:
        return "later" if mode is Mode.CREATE else "stamp"
    if mode is Mode.SHOW:
        return "shown"
    return "fixed" if is_fixed else "write"


def _takes(field: FormField, mode: Mode) -> str:
    what = f"several, one on each line: {_KINDS[field.kind]}" if field.many else _KINDS[field.kind]
    if mode is Mode.SKETCH:
        return f'{_ASKED[field.kind]}; = "" for empty, <> "" for filled in; several mean any of them'
    if mode is Mode.ACTION:
        return f"{field.kind}: a value, ?claim.No, or a function such as total(?claim.Amount)"
    return f"{what}; {_RULES[field.rule]}"


# --- what stands in the blanks ---


def shown_texts(values: Mapping[str, FieldValue]) -> dict[str, str]:
    """Values as texts; lists have one value per line."""
    return {
        name: "\n".join(text(item) for item in value) if isinstance(value, tuple) else text(value)
        for name, value in values.items()
    }


def fixed_fields(form: Form, values: Mapping[str, FieldValue]) -> set[str]:
    """The fields that can be entered only once and have a value."""
    return {
        field.name
        for field in form.fields
        if field.rule is Rule.REQUIRED or (field.rule is Rule.ONCE and values.get(field.name) not in (None, "", ()))
    }


def sent_texts(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The texts of a submitted form, by field."""
    return {name.removeprefix(PREFIX): value.replace("\r\n", "\n") for name, value in pairs if name.startswith(PREFIX)}


def given(form: Form, texts: Mapping[str, str]) -> dict[str, Any]:
    """The values for a station; an empty blank is None."""
    values: dict[str, Any] = {}
    for name, written in texts.items():
        field = form.field(name)
        if not written.strip():
            values[name] = None
        elif field is not None and field.many:
            values[name] = [_entered(field, line.strip()) for line in written.split("\n") if line.strip()]
        else:
            values[name] = written if field is None or field.kind is Kind.STRING else _entered(field, written.strip())
    return values


def _entered(field: FormField, text: str) -> str:
    """A moment may have a blank between its day and its time, as people write it."""
    return _MOMENT.sub("T", text) if field.kind is Kind.TIMESTAMP else text


def wrong(form: Form, values: Mapping[str, Any], *, is_new: bool) -> dict[str, str]:
    """By field, why its value is invalid; all errors, not only the first."""
    problems = {}
    for field in form.fields:
        value = values.get(field.name)
        if value is None:
            if is_new and field.rule is Rule.REQUIRED:
                problems[field.name] = f"{field.name} is required."
        elif field.rule is not Rule.AUTOMATIC and (why := fitting(form, field, value)) is not None:
            problems[field.name] = why.removeprefix(f"{form.name}, field {field.name}: ")  # it stands beside the field
    return problems


def first_fields(form: Form, values: Mapping[str, FieldValue], most: int = 5) -> list[tuple[str, str]]:
    """The first non-empty fields that users wrote, shortened."""
    texts = shown_texts(values)
    shown = [
        (field.name, shortened(texts[field.name].replace("\n", " "), 60))
        for field in form.fields
        if field.rule is not Rule.AUTOMATIC and texts.get(field.name)
    ]
    return shown[:most]


def edition_forms(visit: Visit) -> dict[str, Form]:
    """The forms of the room, by type."""
    forms = visit.room._parts.network.forms
    return {name: edition.form for name, edition in visit.room._parts.store.read(forms.now).items()}

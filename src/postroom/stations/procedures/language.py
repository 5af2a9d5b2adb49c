"""The procedures of a .form file, from text to frozen sketches.

    procedure holiday at John
      precondition pre_holiday : MEETING ANNOUNCEMENT
        To: John
      action act_holiday on pre_holiday
        Response: "Sorry, on holiday till Aug. 30, see Oscar"
      destination cp0_holiday on pre_holiday copy 0 ship ?pre_holiday.From

One statement or field per line; indentation does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any, NoReturn

from postroom.errors import FormInvalid
from postroom.limits import EXPRESSION_DEPTH_MAX
from postroom.model.definitions import Position, Problem, refuse
from postroom.stations.forms.quoting import INSIDE, unquoted
from postroom.stations.procedures.definitions import (
    Action,
    Call,
    Constant,
    Creation,
    Destination,
    Expression,
    Operation,
    Origin,
    Precondition,
    Procedure,
    Reference,
    Sketch,
    Wanted,
    Written,
)

Row = tuple[Position, str]

_ID = r"[A-Za-z_]\w*"
_PROCEDURE = re.compile(rf"procedure\s+(?P<name>{_ID})\s+at\s+(?P<station>\S.*)")
_SKETCH = re.compile(rf"(?P<word>precondition|create)\s+(?P<name>{_ID})\s*:\s*(?P<type>\S.*)")
_ACTION = re.compile(rf"action\s+(?P<name>{_ID})\s+on\s+(?P<sketch>{_ID})")
_ORIGIN = re.compile(rf"origin\s+(?P<name>{_ID})\s+on\s+(?P<sketch>{_ID})\s+(?P<not>not\s+)?from\s+(?P<stations>\S.*)")
_DESTINATION = re.compile(
    rf"destination\s+(?P<name>{_ID})\s+on\s+(?P<sketch>{_ID})\s+copy\s+(?P<copy>\d{{1,4}})\s+"
    r"(?P<operation>leave|ship|dossier|abort)(?P<where>\s+.*)?"
)
_LIKE_AFTER = re.compile(r"^[^\"]*\safter(\s[^\"]*)?$")
_AFTER = re.compile(r"(?P<where>.*\S)\s+after\s+(?P<count>\d{1,6})\s+(?P<unit>second|minute|hour|day)s?")
_FIELD = re.compile(rf'(?:"(?P<quoted>{INSIDE})"|(?P<bare>[^:"]+?))\s*:\s*(?P<said>.*)')
_OTHER = re.compile(rf"(?P<sign><>|<=|>=|<|>|=)?\s*(?=\?{_ID}\.)(?P<reference>.+)")
_REFERENCE = re.compile(
    rf"\?(?P<sketch>{_ID})\.(?P<field>[A-Za-z_][A-Za-z0-9._-]*(?: +[A-Za-z0-9._-]+)*)\s*(?P<updated>'\s*)?(?=$|[,)])"
)
_QUOTED = re.compile(rf'"(?P<text>{INSIDE})"\s*')
_CALL = re.compile(rf"(?P<name>{_ID})\s*\(\s*")
_BARE = re.compile(r'[^,()"]+')
_NUMBER = re.compile(r"[+-]?(\d{1,30}|\d{1,30}\.\d{1,30})")
_SHAPES = {
    "procedure": "procedure NAME at STATION",
    "precondition": "precondition NAME : TYPE",
    "create": "create NAME : TYPE",
    "action": "action NAME on SKETCH",
    "origin": "origin NAME on SKETCH [not] from STATION, …",
    "destination": "destination NAME on SKETCH copy N leave | ship WHERE [after N days] | dossier WHERE",
}


def procedures(rows: Iterable[Row]) -> list[Procedure]:
    """The procedures in a file's lines, without those about types and without comments."""
    readers: list[_Reader] = []
    for position, row in rows:
        if row.split()[0] == "procedure":
            match = _matched(_PROCEDURE, row, "procedure", position)
            readers.append(_Reader(Procedure(match["name"], match["station"].strip(), position=position)))
            continue
        assert readers, "whoever gives lines of procedures begins with one"
        readers[-1].read(position, row)
    return [reader.procedure for reader in readers]


def _matched(pattern: re.Pattern[str], row: str, word: str, position: Position) -> re.Match[str]:
    match = pattern.fullmatch(row)
    if match is None:
        _fail(position, f"expected: {_SHAPES[word]}", "syntax")
    return match


class _Reader:
    """Parses one procedure, line by line."""

    def __init__(self, procedure: Procedure) -> None:
        self.procedure = procedure
        self._in = ""  # the list whose last sketch takes the next field

    def read(self, position: Position, row: str) -> None:
        word = row.split()[0]
        if word not in _SHAPES:
            self._field(position, row)
        elif word in ("precondition", "create"):
            match = _matched(_SKETCH, row, word, position)
            made = (match["name"], " ".join(match["type"].split()), (), position)
            if word == "create":
                self._add("creations", Creation(*made))
            else:
                self._add("preconditions", Precondition(*made))
        elif word == "action":
            match = _matched(_ACTION, row, word, position)
            self._add("actions", Action(match["name"], match["sketch"], (), position))
        elif word == "origin":
            self._origin(position, row)
        else:
            self._destination(position, row)

    def _add(self, to: str, sketch: Sketch, *, takes_fields: bool = True) -> None:
        self._set(to, (*getattr(self.procedure, to), sketch))
        self._in = to if takes_fields else ""

    def _field(self, position: Position, row: str) -> None:
        match = _FIELD.fullmatch(row)
        if match is None or not self._in:
            shapes = ", ".join(_SHAPES)
            _fail(position, f"{shapes}, or FIELD: VALUE below a precondition, action or create", "syntax")
        name = unquoted(match["quoted"]) if match["bare"] is None else " ".join(match["bare"].split())
        if not match["said"]:
            _fail(position, f"field {name} is empty; leave the line out", "syntax")
        *before, last = getattr(self.procedure, self._in)
        make = _wanted if self._in == "preconditions" else _written
        longer = replace(last, lines=(*last.lines, make(name, match["said"], position)))
        self._set(self._in, (*before, longer))

    def _set(self, name: str, sketches: tuple[Any, ...]) -> None:
        changed: dict[str, Any] = {name: sketches}
        self.procedure = replace(self.procedure, **changed)

    def _origin(self, position: Position, row: str) -> None:
        match = _matched(_ORIGIN, row, "origin", position)
        stations = tuple(part.strip() for part in match["stations"].split(","))
        if not all(stations):
            _fail(position, "a station is missing between commas", "syntax")
        made = Origin(match["name"], match["sketch"], stations, match["not"] is not None, position)
        self._add("origins", made, takes_fields=False)

    def _destination(self, position: Position, row: str) -> None:
        match = _matched(_DESTINATION, row, "destination", position)
        operation, where = Operation(match["operation"]), (match["where"] or "").strip()
        later = _AFTER.fullmatch(where) if operation is Operation.SHIP else None
        after = None if later is None else (int(later["count"]), later["unit"])
        if later is None and operation is Operation.SHIP and _LIKE_AFTER.fullmatch(where):
            what = "after NUMBER seconds, minutes, hours or days is expected here; put a name with after in quotes"
            _fail(replace(position, column=position.column + row.rindex("after")), what, "syntax")
        where = where if later is None else later["where"]
        if bool(where) != (operation is not Operation.LEAVE):
            needs = "why" if operation is Operation.ABORT else "where"
            what = "leave has no argument" if where else f"{operation} needs to know {needs}"
            _fail(position, what, "syntax")
        value = expression(where, position) if where else None
        name, sketch = match["name"], match["sketch"]
        made = Destination(name, sketch, int(match["copy"]), operation, value, after, position)
        self._add("destinations", made, takes_fields=False)


def _wanted(name: str, text: str, position: Position) -> Wanted:
    match = _OTHER.fullmatch(text)
    if match is None:
        return Wanted(name, text, position=position)
    reference = expression(match["reference"], position)
    if not isinstance(reference, Reference) or reference.updated:
        _fail(position, f"a message is compared with ?SKETCH.FIELD as it is, not with {reference}", "syntax")
    return Wanted(name, "", match["sign"] or "=", reference, position)


def _written(name: str, text: str, position: Position) -> Written:
    return Written(name, expression(text, position), position)


# --- values ---


def expression(written: str, position: Position) -> Expression:
    """A value: quoted, a reference, or a call; anything else is the text itself."""
    text = written.strip()
    if not (text.startswith('"') or _REFERENCE.match(text) or _CALL.match(text)):
        if text.startswith("?"):
            _fail(position, f"a reference is ?SKETCH.FIELD, not {text!r}; put a text in quotes", "syntax")
        return Constant(text)
    value, end = _value(text, 0, position, 0)
    if text[end:].strip():
        _fail(position, f"nothing is expected behind {text[:end].strip()}, not {text[end:].strip()[:20]!r}", "syntax")
    return value


def _value(text: str, at: int, position: Position, depth: int) -> tuple[Expression, int]:
    if depth > EXPRESSION_DEPTH_MAX:
        _fail(position, f"more than {EXPRESSION_DEPTH_MAX} calls inside one another", "procedure-size")
    match = _QUOTED.match(text, at)
    if match is not None:
        return Constant(unquoted(match["text"])), match.end()
    match = _REFERENCE.match(text, at)
    if match is not None:
        name = " ".join(match["field"].split())
        return Reference(match["sketch"], name, match["updated"] is not None), match.end()
    match = _CALL.match(text, at)
    if match is not None:
        arguments, end = _arguments(text, match.end(), position, depth)
        return Call(match["name"], arguments), end
    match = _BARE.match(text, at)
    if match is None or not match[0].strip():
        _fail(position, f"a value is expected at {text[at:][:20]!r}", "syntax")
    bare = match[0].strip()
    if bare.startswith("?"):
        _fail(position, f"a reference is ?SKETCH.FIELD, not {bare!r}", "syntax")
    return Constant(_number(bare)), match.end()


def _arguments(text: str, at: int, position: Position, depth: int) -> tuple[tuple[Expression, ...], int]:
    arguments: list[Expression] = []
    closing = re.compile(r"\)\s*")
    match = closing.match(text, at)
    while match is None:
        value, at = _value(text, at, position, depth + 1)
        arguments.append(value)
        match = closing.match(text, at)
        if match is None:
            if at >= len(text) or text[at] != ",":
                _fail(position, f"a comma or a closing bracket is expected at {text[at:][:20]!r}", "syntax")
            at += 1 + len(text[at + 1 :]) - len(text[at + 1 :].lstrip())
    return tuple(arguments), match.end()


def _number(bare: str) -> str | int | Decimal:
    if not _NUMBER.fullmatch(bare):
        return bare
    return Decimal(bare) if "." in bare else int(bare)


def _fail(position: Position, what: str, rule: str) -> NoReturn:
    refuse(FormInvalid, [Problem(position, what, rule)])

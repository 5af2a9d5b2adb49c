"""A procedure as filled-in sketches: from its text to fields of a page, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from postroom.interfaces.web.stations.form_grid import PREFIX
from postroom.limits import PROCEDURE_SKETCHES_SHOWN
from postroom.stations.procedures.definitions import (
    Action,
    Creation,
    Destination,
    Origin,
    Precondition,
    Procedure,
    Wanted,
    Written,
)

#: Sketches that are drawn on the template of a type, and those that are lines.
ON_TEMPLATES = ("precondition", "action", "create")
KINDS = (*ON_TEMPLATES, "origin", "destination")
OPERATIONS = ("leave", "ship", "dossier", "abort")


@dataclass
class Sketch:
    """A sketch on the page. ``of`` is a type, or the sketch of the message that it refers to."""

    kind: str
    name: str
    of: str
    said: dict[str, str] = field(default_factory=dict)  # by field; each line of a text is one condition or value
    rest: dict[str, str] = field(default_factory=dict)  # what a line says: stations, copy, operation, where

    def lines(self) -> Iterator[tuple[str, str | None]]:
        """Its text, line by line, with the field of each line."""
        colon = ":" if self.kind in ("precondition", "create") else "on"
        yield " ".join(f"  {self.kind} {self.name} {colon} {self.of}{self._behind()}".split("\n")), None
        for name, text in self.said.items():
            for line in filter(None, map(str.strip, text.splitlines())):
                yield f"    {Wanted(name, line)}", name

    def _behind(self) -> str:
        told = {name: " ".join(text.split()) for name, text in self.rest.items()}
        if self.kind == "origin":
            return f" {'not ' if told.get('refused') else ''}from {told.get('stations', '')}"
        if self.kind == "destination":
            where = f" {told['where']}" if told.get("where") else ""
            return f" copy {told.get('copy') or '0'} {told.get('operation', '')}{where}"
        return ""


@dataclass
class Sketches:
    """A procedure on the page."""

    name: str
    station: str
    several: list[Sketch]

    def text(self) -> str:
        return "\n".join(line for line, _, _ in self.lines()) + "\n"

    def lines(self) -> Iterator[tuple[str, int | None, str | None]]:
        """Its text, line by line, with the sketch and field of each line."""
        yield f"procedure {' '.join(self.name.split())} at {' '.join(self.station.split())}", None, None
        for number, sketch in enumerate(self.several):
            for line, name in sketch.lines():
                yield line, number, name

    def type_of(self, name: str) -> str | None:
        """The type of the message in a sketch."""
        of = {sketch.name: sketch.of for sketch in self.several if sketch.kind in ("precondition", "create")}
        return of.get(name)

    def type_at(self, number: int) -> str | None:
        sketch = self.several[number]
        return self.type_of(sketch.of) if sketch.kind == "action" else sketch.of


def of_procedure(procedure: Procedure) -> Sketches:
    return Sketches(procedure.name, procedure.station, [_sketch(sketch) for sketch in procedure.sketches])


def _sketch(sketch: Precondition | Origin | Action | Creation | Destination) -> Sketch:
    if isinstance(sketch, Precondition | Creation):
        kind = "precondition" if isinstance(sketch, Precondition) else "create"
        return Sketch(kind, sketch.name, sketch.type, _said(sketch.lines))
    if isinstance(sketch, Action):
        return Sketch("action", sketch.name, sketch.sketch, _said(sketch.lines))
    if isinstance(sketch, Origin):
        rest = {"refused": "yes" if sketch.refused else "", "stations": ", ".join(sketch.stations)}
        return Sketch("origin", sketch.name, sketch.sketch, rest=rest)
    line = str(sketch).partition(f" copy {sketch.copy} {sketch.operation}")[2]
    rest = {"copy": str(sketch.copy), "operation": str(sketch.operation), "where": line.strip()}
    return Sketch("destination", sketch.name, sketch.sketch, rest=rest)


def _said(lines: Sequence[Wanted | Written]) -> dict[str, str]:
    by_field: dict[str, list[str]] = {}
    for line in lines:
        by_field.setdefault(line.field, []).append(str(line).removeprefix(str(Wanted(line.field, ""))))
    return {name: "\n".join(texts) for name, texts in by_field.items()}


def of_fields(pairs: Sequence[tuple[str, str]]) -> Sketches:
    """The sketches of a submitted form: ``s0.kind``, ``s0.name``, ``s0.field:No``; those marked for removal are left
    out."""
    parts: dict[int, dict[str, str]] = {}
    plain: dict[str, str] = {}
    for name, value in pairs:
        number, dot, rest = name.partition(".")
        index = number.removeprefix("s")
        if dot and number.startswith("s") and index.isascii() and index.isdigit() and len(index) < 5:
            parts.setdefault(int(index), {})[rest] = value.replace("\r\n", "\n")
        else:
            plain[name] = value
    several = [_sent(part) for _, part in sorted(parts.items()) if part.get("kind") in KINDS and not part.get("gone")]
    return Sketches(plain.get("procedure", ""), plain.get("station", ""), several[:PROCEDURE_SKETCHES_SHOWN])


def _sent(part: Mapping[str, Any]) -> Sketch:
    fields = {name.removeprefix(PREFIX): value for name, value in part.items() if name.startswith(PREFIX)}
    rest = {name: part[name] for name in ("refused", "stations", "copy", "operation", "where") if name in part}
    name, of = (" ".join(part.get(key, "").split()) for key in ("name", "of"))
    return Sketch(part["kind"], name, of, {name: value for name, value in fields.items() if value.strip()}, rest)

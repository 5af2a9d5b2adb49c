"""Errors of procedures are messages of this type, in the dossier ``errors`` of the station."""

from __future__ import annotations

from postroom.model.definitions import Position
from postroom.model.types import Kind
from postroom.stations.forms.drawing import Line
from postroom.stations.forms.form import Form, FormField, Rule

DOSSIER = "errors"
_HERE = Position("postroom", 1)
_DRAWN = (
    " Procedure: ____________________________  KEY: ___________ ",
    " Code: _________________________________  DATE: __________ ",
    " Description: ____________________________________________ ",
    " Messages: _______________________________________________ ",
)
ERROR = Form(
    "PROCEDURE ERROR",
    tuple(map(Line.of, _DRAWN)),
    (
        FormField("Procedure", Kind.STRING, Rule.REQUIRED, position=_HERE),
        FormField("KEY", Kind.KEY, Rule.AUTOMATIC, position=_HERE),
        FormField("Code", Kind.STRING, Rule.REQUIRED, position=_HERE),
        FormField("DATE", Kind.DATE, Rule.AUTOMATIC, position=_HERE),
        FormField("Description", Kind.STRING, Rule.REQUIRED, position=_HERE),
        FormField("Messages", Kind.KEY, Rule.ONCE, many=True, position=_HERE),
    ),
    position=_HERE,
)

"""Fills in forms in a child process with time and memory limits, if they call functions of users.

``python -m postroom.stations.forms.filling_process`` is that process. It imports the modules that register the
functions. Only names and text go there and come back.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from typing import Any

from postroom import errors
from postroom.engine.bounded_process import BoundedProcesses, Ended, attend
from postroom.errors import BodyError, FunctionFailed
from postroom.model.types import plain
from postroom.stations.forms import functions
from postroom.stations.forms.catalog import Edition
from postroom.stations.forms.filling import created, is_ours
from postroom.stations.forms.form import Form, Rule
from postroom.stations.forms.reader import parse

_attendants = BoundedProcesses("postroom.stations.forms.filling_process")


def created_apart(edition: Edition, given: Mapping[str, Any], key: int, station: str, now: int) -> str:
    """As ``created``. Functions that no module can be asked for, those of the main program, are asked here."""
    form = edition.form
    known = {name: found for name in _functions(form) if (found := functions.find(name)) is not None}
    modules = {_module(found) for found in known.values()}
    if not modules or None in modules:
        return created(edition, given, key, station, now)
    said = {name: _as_json(value) for name, value in given.items()}
    seconds = functions.seconds()
    request = [seconds, sorted(filter(None, modules)), str(form), edition.version, said, key, station, now]
    try:
        answer = json.loads(_attendants.ask(json.dumps(request).encode()))
    except Ended as end:
        late = f"it exceeded the limit of {seconds:g} seconds"
        why = "it ended its process, or exceeded the memory limit" if end.in_time else late
        raise FunctionFailed(type=form.name, field=_fields(form), function=", ".join(known), why=why) from None
    if isinstance(answer, list):
        name, facts = answer
        raise _refusal(name)(**facts)
    return str(answer)


def _functions(form: Form) -> list[str]:
    return [
        each.function
        for each in form.fields
        if each.rule is Rule.AUTOMATIC and each.function and is_ours(each.function)
    ]


def _fields(form: Form) -> str:
    return ", ".join(each.name for each in form.fields if each.rule is Rule.AUTOMATIC and is_ours(each.function))


def _module(found: functions.Function) -> str | None:
    """The module that registers a function when it is imported."""
    module = getattr(found, "__module__", None)
    return None if module in (None, "__main__") or "<locals>" in getattr(found, "__qualname__", "") else str(module)


def _as_json(value: Any) -> Any:
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else plain(value)


def _refusal(name: str) -> type[BodyError]:
    found = getattr(errors, name, None)
    return found if isinstance(found, type) and issubclass(found, BodyError) else BodyError


# --- in the process apart ----------------------------------------------------------------------------------------


def _seconds(request: bytes) -> float:
    """How long the answer may take, once the modules are there."""
    seconds, modules, *_ = json.loads(request)
    for module in modules:
        importlib.import_module(module)
    return float(seconds)


def _answer(request: bytes, tell: object) -> bytes:
    _, _, text, version, given, *about = json.loads(request)
    (form,) = parse(text, "form")
    said: object
    try:
        said = created(Edition(form, version), given, *about)
    except BodyError as refusal:
        said = [type(refusal).__name__, {name: str(fact) for name, fact in refusal.facts.items()}]
    return json.dumps(said).encode()


if __name__ == "__main__":
    functions.answer_for_themselves()
    attend(_answer, _seconds)

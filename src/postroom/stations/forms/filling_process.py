"""Fills in forms in a child process with time and memory limits, if they call functions of users.

``python -m postroom.stations.forms.filling_process`` is that process. It imports the modules with the functions; those
of the main program are sent along. Only names and text come back.
"""

from __future__ import annotations

import importlib
import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from postroom import errors
from postroom.engine.bounded_process import BoundedProcesses, Ended, attend
from postroom.engine.packing import packed, unpacked
from postroom.errors import BodyError, FunctionFailed
from postroom.model.types import plain
from postroom.stations.forms import functions
from postroom.stations.forms.catalog import Edition
from postroom.stations.forms.filling import created
from postroom.stations.forms.form import Form
from postroom.stations.forms.reader import parse

_attendants = BoundedProcesses("postroom.stations.forms.filling_process")


def created_apart(edition: Edition, given: Mapping[str, Any], key: int, station: str, now: int) -> str:
    """Like ``created``, in a separate process if users' functions have to be called."""
    form = edition.form
    names = [field.registered for field in form.fields if field.registered]
    known = {name: function for name in names if (function := functions.find(name)) is not None}
    if not known:
        return created(edition, given, key, station, now)
    modules = {module for function in known.values() if (module := _module(function)) is not None}
    along = {name: _sent_along(form, name, function) for name, function in known.items() if _module(function) is None}
    values = {name: _as_json(value) for name, value in given.items()}
    seconds = functions.seconds()
    request = [seconds, sorted(modules), along, str(form), edition.version, values, key, station, now]
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


def _fields(form: Form) -> str:
    return ", ".join(field.name for field in form.fields if field.registered)


def _module(function: functions.Function) -> str | None:
    """The module that registers a function when it is imported."""
    module = getattr(function, "__module__", None)
    return None if module in (None, "__main__") or "<locals>" in getattr(function, "__qualname__", "") else str(module)


def _sent_along(form: Form, name: str, function: functions.Function) -> str:
    try:
        return b64encode(packed(function)).decode()
    except Exception as error:  # whatever it holds decides what is raised
        why = f"it cannot be sent to its own process ({error}); define it in a module and name it in POSTROOM_FUNCTIONS"
        raise FunctionFailed(type=form.name, field=_fields(form), function=name, why=why) from error


def _as_json(value: Any) -> Any:
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else plain(value)


def _refusal(name: str) -> type[BodyError]:
    kind = getattr(errors, name, None)
    return kind if isinstance(kind, type) and issubclass(kind, BodyError) else BodyError


# --- in the process apart ----------------------------------------------------------------------------------------


def _seconds(request: bytes) -> float:
    """How long the answer may take, after the functions are loaded."""
    seconds, modules, along, *_ = json.loads(request)
    for module in modules:
        importlib.import_module(module)
    functions.provide({name: unpacked(b64decode(text)) for name, text in along.items()})
    return float(seconds)


def _answer(request: bytes, tell: object) -> bytes:
    _, _, _, text, version, given, *about = json.loads(request)
    (form,) = parse(text, "form")
    answer: object
    try:
        answer = created(Edition(form, version), given, *about)
    except BodyError as refusal:
        answer = [type(refusal).__name__, {name: str(fact) for name, fact in refusal.facts.items()}]
    return json.dumps(answer).encode()


if __name__ == "__main__":
    functions.answer_for_themselves()
    attend(_answer, _seconds)

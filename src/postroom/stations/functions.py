"""Functions for automatic fields, written in Python by whoever runs the room.

A function is given what the other fields say, by name, and answers with the value of its own. It is found by name; the
modules that define such functions are named in ``POSTROOM_FUNCTIONS``, never in a message or a form.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from postroom.errors import ArgumentInvalid
from postroom.model.types import FieldValue

Function = Callable[[Mapping[str, FieldValue]], Any]
F = TypeVar("F", bound=Callable[..., Any])

_registered: dict[str, Function] = {}
_imported: set[str] = set()


def function(defined: F) -> F:
    """Register a function under its name: ``@postroom.function`` above its definition."""
    _registered[defined.__name__] = defined
    return defined


def find(name: str) -> Function | None:
    """The function of a name. The modules of ``POSTROOM_FUNCTIONS`` are imported when one is first looked for."""
    for module in filter(None, os.environ.get("POSTROOM_FUNCTIONS", "").split(",")):
        if module not in _imported:
            try:
                importlib.import_module(module.strip())
            except ImportError as error:
                raise ArgumentInvalid(argument="POSTROOM_FUNCTIONS", why=f"cannot import {module}: {error}") from None
            _imported.add(module)
    return _registered.get(name)


def provide(some: Mapping[str, Function]) -> None:
    """Functions that came along with the work, for a process that imports no modules of its own."""
    _registered.update(some)

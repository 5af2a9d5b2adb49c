"""Functions for automatic fields, written in Python by whoever runs the room.

A function gets the other fields by name and returns the value of its own. It is looked up by name in the modules of
``POSTROOM_FUNCTIONS``; messages and forms cannot name modules.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from postroom.errors import ArgumentInvalid
from postroom.limits import EVALUATION_SECONDS
from postroom.model.types import FieldValue

Function = Callable[[Mapping[str, FieldValue]], Any]
F = TypeVar("F", bound=Callable[..., Any])

_registered: dict[str, Function] = {}
_imported: set[str] = set()
_alone = False


def function(defined: F) -> F:
    """Register a function under its name: a decorator, ``@postroom.function``."""
    _registered[defined.__name__] = defined
    return defined


def find(name: str) -> Function | None:
    """A function by name. Imports the modules of ``POSTROOM_FUNCTIONS`` at the first lookup."""
    for module in filter(None, os.environ.get("POSTROOM_FUNCTIONS", "").split(",")):
        if module not in _imported:
            try:
                importlib.import_module(module.strip())
            except ImportError as error:
                raise ArgumentInvalid(argument="POSTROOM_FUNCTIONS", why=f"cannot import {module}: {error}") from None
            _imported.add(module)
    return _registered.get(name)


def called(name: str, known: Function, others: Mapping[str, FieldValue]) -> Any:
    """Call a function; raises its errors, or TimeoutError if it takes too long."""
    if _alone:
        return known(others)
    answer: list[Any] = []
    failure: list[BaseException] = []

    def call() -> None:
        try:
            answer.append(known(others))
        except BaseException as error:
            failure.append(error)

    # A thread cannot be ended. What a function does that never answers is left to itself, and nobody waits for it.
    thread = threading.Thread(target=call, daemon=True, name=f"function {name}")
    thread.start()
    thread.join(EVALUATION_SECONDS)
    if thread.is_alive():
        raise TimeoutError(f"it exceeded the limit of {EVALUATION_SECONDS:g} seconds")
    if failure:
        raise failure[0]
    return answer[0]


def seconds() -> float:
    """The time limit of a function."""
    return EVALUATION_SECONDS


def answer_for_themselves() -> None:
    """Kill this process if a function takes too long, instead of waiting in a thread."""
    global _alone
    _alone = True


def provide(some: Mapping[str, Function]) -> None:
    """Register functions that were sent with the work, in a process that imports no modules."""
    _registered.update(some)

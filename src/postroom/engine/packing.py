"""Tasks and functions on their way to a worker process: packed by value, so that the process needs no module of ours.

Only what this program itself has packed is unpacked, by a process that it started.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import cloudpickle


def packed(thing: object) -> bytes:
    """Raises what cloudpickle does (TypeError, PicklingError, …) if a thing cannot travel."""
    return bytes(cloudpickle.dumps(thing))


def unpacked(text: bytes) -> Any:
    return cloudpickle.loads(text)


def take_along(module: ModuleType) -> None:
    """Have what a module defines travel by value: the other process cannot import it."""
    cloudpickle.register_pickle_by_value(module)

"""Packs tasks and functions by value for worker processes, which then need no module of the program.

Worker processes unpack only what the program that started them has packed.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import cloudpickle


def packed(thing: object) -> bytes:
    """Pack an object; raises what cloudpickle does (TypeError, PicklingError, …) if it cannot be packed."""
    return bytes(cloudpickle.dumps(thing))


def unpacked(text: bytes) -> Any:
    return cloudpickle.loads(text)


def take_along(module: ModuleType) -> None:
    """Pack a module's definitions by value from now on: the other process cannot import it."""
    cloudpickle.register_pickle_by_value(module)

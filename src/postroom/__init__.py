"""Postroom: structured messages in transactional queues.

The public list. Everything else may change freely.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from postroom.version import __version__

if TYPE_CHECKING:
    from postroom import errors
    from postroom.errors import PostroomError
    from postroom.model.body import Format
    from postroom.model.message import Message
    from postroom.model.types import Field, Kind, MessageType
    from postroom.room import Postroom, QueueHandle, open
    from postroom.spheres.sending import Compensation
    from postroom.spheres.sphere import Sphere
    from postroom.stations.forms.functions import function
    from postroom.stations.queries.images import Answer, Image
    from postroom.stations.station import Station

__all__ = [
    "Answer",
    "Compensation",
    "Field",
    "Format",
    "Image",
    "Kind",
    "Message",
    "MessageType",
    "Postroom",
    "PostroomError",
    "QueueHandle",
    "Sphere",
    "Station",
    "__version__",
    "errors",
    "function",
    "open",
]

#: Where each name is. It is imported when it is first asked for: ``postroom --help`` needs none of them.
_HOME = {
    "Answer": "stations.queries.images",
    "Compensation": "spheres.sending",
    "Field": "model.types",
    "Format": "model.body",
    "Image": "stations.queries.images",
    "Kind": "model.types",
    "Message": "model.message",
    "MessageType": "model.types",
    "Postroom": "room",
    "PostroomError": "errors",
    "QueueHandle": "room",
    "Sphere": "spheres.sphere",
    "Station": "stations.station",
    "function": "stations.forms.functions",
    "open": "room",
}


if not TYPE_CHECKING:  # else a type checker would take every name for one of ours

    def __getattr__(name: str) -> Any:
        if name == "errors":
            return import_module("postroom.errors")
        if name not in _HOME:
            raise AttributeError(f"module 'postroom' has no attribute {name!r}")
        found = getattr(import_module(f"postroom.{_HOME[name]}"), name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})

"""Postroom: structured messages in transactional queues.

The public list. Everything else may change freely.
"""

from __future__ import annotations

from postroom import errors
from postroom.errors import PostroomError
from postroom.model.body import Format
from postroom.model.message import Message
from postroom.model.types import Field, Kind, MessageType
from postroom.room import Postroom, QueueHandle, open
from postroom.spheres.sending import Compensation
from postroom.spheres.sphere import Sphere
from postroom.stations.functions import function
from postroom.stations.images import Answer, Image
from postroom.stations.station import Station
from postroom.version import __version__

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

"""The names of stations' queues and dossiers."""

from __future__ import annotations

from postroom.limits import DOSSIER_CHARS_MAX
from postroom.model.place import DATABASE
from postroom.store.kernel.queues import MAILBOX

_MAILBOX = f"{MAILBOX}:"


def database(station: str) -> str:
    """The queue that holds a station's messages, at its node."""
    return DATABASE + station


def mailbox(station: str) -> str:
    """The queue that holds a station's mail, at the control node."""
    return _MAILBOX + station


def is_mailbox(queue: str) -> bool:
    return queue.startswith(_MAILBOX)


def station_of(queue: str) -> str:
    """The station of a database or mailbox."""
    return queue.partition(":")[2]


def is_dossier(name: str) -> bool:
    """Whether the name is valid for a dossier."""
    return 0 < len(name) <= DOSSIER_CHARS_MAX and name.isprintable()

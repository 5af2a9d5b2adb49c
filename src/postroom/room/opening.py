"""Opens a room, and composes its faces: what a user can ask of it, one file for each capability."""

from __future__ import annotations

import getpass
import os
from types import TracebackType

from postroom.flows.graph.meta import broker_name
from postroom.model.moment import Clock, system_clock
from postroom.room.definitions import DefinitionsFace
from postroom.room.engine import EngineFace
from postroom.room.flows import FlowsFace
from postroom.room.journal import JournalFace
from postroom.room.operating import OperatingFace
from postroom.room.queues import QueuesFace
from postroom.room.spheres import SpheresFace
from postroom.room.stations import StationsFace
from postroom.store import open_store
from postroom.store.tables.registry import check_actor

DEFAULT_URL = "./postroom.db"


def resolved(url: str | os.PathLike[str] | None = None) -> str:
    """Where a room is, if nobody says so: ``POSTROOM_URL``, else ``./postroom.db``."""
    return os.fspath(url) if url is not None else os.environ.get("POSTROOM_URL") or DEFAULT_URL


def open(
    url: str | os.PathLike[str] | None = None,
    *,
    actor: str | None = None,
    owner: str | None = None,
    create: bool = True,
    clock: Clock = system_clock,
    broker: str | None = None,
) -> Postroom:
    """Open a room: a SQLite path or a PostgreSQL URL; by default ``POSTROOM_URL``, else ``./postroom.db``.

    ``actor`` is the name that the journal shows (by default the login name). ``owner`` names the process that locks
    belong to, by default this one; such locks end with the room. ``create=False`` refuses to create a new room.
    ``broker`` is the name for where a client is connected, in meta-spaces (by default the machine's).
    """
    where = resolved(url)
    name = actor or _login_name()
    at = broker or broker_name()
    check_actor("actor", name)
    check_actor("broker", at)
    store = open_store(where, actor=name, create=create, clock=clock)
    room = Postroom(store, where, name, owner, at)
    room._verbs.settle()
    return room


class Postroom(
    DefinitionsFace, QueuesFace, JournalFace, FlowsFace, StationsFace, SpheresFace, EngineFace, OperatingFace
):
    """An open room. Use it as a context manager; threads may share it."""

    def __enter__(self) -> Postroom:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the locks of this room and close its store; closing again does nothing."""
        self._verbs.close()
        if not self.store.stopped:
            if self._own_locks:
                self._verbs.release_locks()
            self._monitor.close()
            self.store.close()
        self._network.close()


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container may have a user number without a name
        return f"uid {os.getuid()}"

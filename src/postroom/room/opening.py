"""Opens a room, and composes it of its parts: one file for each capability."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

from postroom.engine.dispatch import Report
from postroom.flows.graph.meta import broker_name
from postroom.model.moment import Clock, system_clock
from postroom.room.definitions import RoomDefinitions
from postroom.room.engine import RoomEngine
from postroom.room.flows import RoomFlows
from postroom.room.journal import RoomJournal
from postroom.room.operating import RoomOperations
from postroom.room.parts import Parts
from postroom.room.queues import RoomQueues
from postroom.room.spheres import RoomSpheres
from postroom.room.stations import RoomStations
from postroom.stations.mail.story import Story
from postroom.store import open_store
from postroom.store.kernel.base import Store
from postroom.store.kernel.journal import Event
from postroom.store.tables.registry import check_actor

DEFAULT_URL = "./postroom.db"
S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")


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
    room._parts.verbs.settle()
    return room


def _short(
    part: Callable[[Postroom], S], method: Callable[Concatenate[S, P], R]
) -> Callable[Concatenate[Postroom, P], R]:
    """A method of a part that can be called on the room."""

    @wraps(method)
    def verb(room: Postroom, /, *args: P.args, **options: P.kwargs) -> R:
        return method(part(room), *args, **options)

    return verb


class Postroom:
    """An open room. Use it as a context manager; threads may share it.

    Each capability has its part: ``room.queues``, ``room.definitions``, ``room.flows``, ``room.stations``,
    ``room.spheres``, ``room.journal``, ``room.engine``, ``room.operations``. The common verbs can be called on the
    room itself.
    """

    def __init__(self, store: Store, url: str, actor: str, owner: str | None = None, broker: str | None = None) -> None:
        parts = Parts(store, url, actor, owner, broker)
        self._parts = parts
        self.store = store
        self.url = url
        self.definitions = RoomDefinitions(parts)
        self.queues = RoomQueues(parts)
        self.flows = RoomFlows(parts)
        self.stations = RoomStations(parts)
        self.spheres = RoomSpheres(parts)
        self.journal = RoomJournal(parts)
        self.engine = RoomEngine(parts)
        self.operations = RoomOperations(parts)

    load = _short(lambda room: room.definitions, RoomDefinitions.load)
    queue = _short(lambda room: room.queues, RoomQueues.handle)
    send = _short(lambda room: room.queues, RoomQueues.send)
    send_many = _short(lambda room: room.queues, RoomQueues.send_many)
    receive = _short(lambda room: room.queues, RoomQueues.receive)
    count = _short(lambda room: room.queues, RoomQueues.count)
    peek = _short(lambda room: room.queues, RoomQueues.peek)
    client = _short(lambda room: room.flows, RoomFlows.client)
    publish = _short(lambda room: room.flows, RoomFlows.publish)
    station = _short(lambda room: room.stations, RoomStations.at)
    sphere = _short(lambda room: room.spheres, RoomSpheres.open)
    acknowledge = _short(lambda room: room.spheres, RoomSpheres.acknowledge)
    show = _short(lambda room: room.journal, RoomJournal.show)
    run = _short(lambda room: room.engine, RoomEngine.run)
    stop = _short(lambda room: room.engine, RoomEngine.stop)
    backup = _short(lambda room: room.operations, RoomOperations.backup)

    def run_until_idle(self, report: Report | None = None, **options: Any) -> int:
        """Work on everything that waits, then return; ``options`` are those of ``run``."""
        return self.engine.run_until_idle(report, **options)

    @overload
    def trace(self, key: str, *, causes: Literal[False] = False) -> list[Event]: ...
    @overload
    def trace(self, key: str, *, causes: Literal[True]) -> Story: ...
    def trace(self, key: str, *, causes: bool = False) -> list[Event] | Story:
        """What happened to a message, oldest first; with ``causes`` also to what it came from and led to."""
        return self.journal.trace(key, causes=True) if causes else self.journal.trace(key)

    def __enter__(self) -> Postroom:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the locks of this room and close its store; closing again does nothing."""
        parts = self._parts
        parts.verbs.close()
        if not self.store.stopped:
            if parts.own_locks:
                parts.verbs.release_locks()
            parts.monitor.close()
            self.store.close()
        parts.network.close()


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container may have a user number without a name
        return f"uid {os.getuid()}"

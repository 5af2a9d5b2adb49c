"""Opens a room and composes it from its parts: one file for each capability."""

from __future__ import annotations

import getpass
import os
import platform
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeVar, overload

from postroom.errors import ArgumentInvalid
from postroom.model.moment import Clock, system_clock
from postroom.room.parts import Once, Parts
from postroom.store import open_store
from postroom.store.kernel.base import Store
from postroom.store.tables.registry import check_actor
from postroom.store.urls import public_url

if TYPE_CHECKING:
    from postroom.queues.leases.leased import Leased
    from postroom.queues.results import Received
    from postroom.room.access import RoomAccess
    from postroom.room.consumers import RoomConsumers
    from postroom.room.definitions import RoomDefinitions
    from postroom.room.engine import RoomEngine
    from postroom.room.flows import RoomFlows
    from postroom.room.gateways import RoomGateways
    from postroom.room.journal import RoomJournal
    from postroom.room.operations import RoomOperations
    from postroom.room.queues import RoomQueues
    from postroom.room.spheres import RoomSpheres
    from postroom.room.stations import RoomStations
    from postroom.stations.mail.story import Story
    from postroom.store.kernel.journal import Event

DEFAULT_URL = "./postroom.db"
P = ParamSpec("P")
R = TypeVar("R")


def resolved(url: str | os.PathLike[str] | None = None) -> str:
    """The URL of a room; by default ``POSTROOM_URL``, else ``./postroom.db``."""
    if url is None:
        return os.environ.get("POSTROOM_URL") or DEFAULT_URL
    where = os.fspath(url) if isinstance(url, os.PathLike) else url
    if not isinstance(where, str):
        raise ArgumentInvalid(argument="url", why=f"a path or a URL as text is expected, not {type(where).__name__}")
    return where


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
    if not callable(clock):
        raise ArgumentInvalid(argument="clock", why=f"a function is expected, not {type(clock).__name__}")
    where = resolved(url)
    name = _login_name() if actor is None else actor
    at = broker_name() if broker is None else broker
    check_actor("actor", name)
    check_actor("broker", at)
    store = open_store(where, actor=name, create=create, clock=clock)
    room = Postroom(store, where, name, owner, at)
    room._parts.settle()
    return room


def broker_name() -> str:
    """The default broker of clients of this process: the machine's name."""
    return os.environ.get("POSTROOM_BROKER") or platform.node() or "localhost"


class Short(Generic[P, R]):
    """A method of a part that can be called on the room."""

    def __init__(self, method: Callable[[Postroom], Callable[P, R]]) -> None:
        self._method = method

    @overload
    def __get__(self, room: None, owner: type) -> Short[P, R]: ...
    @overload
    def __get__(self, room: Postroom, owner: type) -> Callable[P, R]: ...
    def __get__(self, room: Postroom | None, owner: type) -> Short[P, R] | Callable[P, R]:
        return self if room is None else self._method(room)


class Postroom:
    """An open room. Use it as a context manager; threads may share it.

    Each capability has its part: ``room.queues``, ``room.consumers``, ``room.definitions``, ``room.flows``,
    ``room.stations``, ``room.spheres``, ``room.gateways``, ``room.journal``, ``room.engine``, ``room.operations``,
    ``room.access``. The common verbs can be called on the room itself.
    """

    url: str  # as it was opened: a path, or a URL

    def __init__(self, store: Store, url: str, actor: str, owner: str | None, broker: str) -> None:
        self._parts = Parts(store, url, actor, owner, broker)
        self.lock = self._parts.lock
        self.store = store
        self.url = url

    def __repr__(self) -> str:
        return f"<room {public_url(self.url) if '://' in self.url else self.url}>"

    @Once
    def definitions(self) -> RoomDefinitions:
        from postroom.room.definitions import RoomDefinitions

        return RoomDefinitions(self._parts)

    @Once
    def queues(self) -> RoomQueues:
        from postroom.room.queues import RoomQueues

        return RoomQueues(self._parts)

    @Once
    def consumers(self) -> RoomConsumers:
        from postroom.room.consumers import RoomConsumers

        return RoomConsumers(self._parts, self)

    @Once
    def flows(self) -> RoomFlows:
        from postroom.room.flows import RoomFlows

        return RoomFlows(self._parts)

    @Once
    def gateways(self) -> RoomGateways:
        from postroom.room.gateways import RoomGateways

        return RoomGateways(self._parts)

    @Once
    def stations(self) -> RoomStations:
        from postroom.room.stations import RoomStations

        return RoomStations(self._parts)

    @Once
    def spheres(self) -> RoomSpheres:
        from postroom.room.spheres import RoomSpheres

        return RoomSpheres(self._parts)

    @Once
    def journal(self) -> RoomJournal:
        from postroom.room.journal import RoomJournal

        return RoomJournal(self._parts)

    @Once
    def engine(self) -> RoomEngine:
        from postroom.room.engine import RoomEngine

        return RoomEngine(self._parts)

    @Once
    def access(self) -> RoomAccess:
        from postroom.room.access import RoomAccess

        return RoomAccess(self._parts)

    @Once
    def operations(self) -> RoomOperations:
        from postroom.room.operations import RoomOperations

        return RoomOperations(self._parts)

    load = Short(lambda room: room.definitions.load)
    queue = Short(lambda room: room.queues.handle)
    send = Short(lambda room: room.queues.send)
    send_many = Short(lambda room: room.queues.send_many)
    receive_many = Short(lambda room: room.consumers.receive_many)
    work = Short(lambda room: room.consumers.work)
    each = Short(lambda room: room.consumers.each)
    worker = Short(lambda room: room.consumers.worker)
    drain = Short(lambda room: room.consumers.drain)
    count = Short(lambda room: room.queues.count)
    frame = Short(lambda room: room.queues.frame)
    peek = Short(lambda room: room.queues.peek)
    client = Short(lambda room: room.flows.client)
    publish = Short(lambda room: room.flows.publish)
    station = Short(lambda room: room.stations.at)
    sphere = Short(lambda room: room.spheres.open)
    acknowledge = Short(lambda room: room.spheres.acknowledge)
    show = Short(lambda room: room.journal.show)
    run = Short(lambda room: room.engine.run)
    run_until_idle = Short(lambda room: room.engine.run_until_idle)
    stream = Short(lambda room: room.engine.stream)
    stop = Short(lambda room: room.engine.stop)
    backup = Short(lambda room: room.operations.backup)

    @overload
    def receive(
        self,
        *queue: str,
        segment: bool = False,
        wait: float | None = None,
        deliver: Callable[[Received], None] | None = None,
        area: int | None = None,
        lease: None = None,
        where: str | None = None,
    ) -> Received: ...
    @overload
    def receive(
        self, *queue: str, lease: float | Literal[True], wait: float | None = None, where: str | None = None
    ) -> Leased: ...
    def receive(self, *queue: str, **options: Any) -> Received | Leased:
        """Receive the next message of a queue, or of the first non-empty queue below a level.

        With ``lease``, in seconds, it stays in its queue until ``message.done()`` or a timeout. ``where`` selects by
        properties. More options: ``room.queues.receive``.
        """
        received: Received | Leased = self.queues.receive(*queue, **options)
        return received

    @overload
    def trace(self, key: str, *, causes: Literal[False] = False) -> list[Event]: ...
    @overload
    def trace(self, key: str, *, causes: Literal[True]) -> Story: ...
    def trace(self, key: str, *, causes: bool = False) -> list[Event] | Story:
        """The history of a message, oldest first; with ``causes`` also of its causes and effects."""
        return self.journal.trace(key, causes=True) if causes else self.journal.trace(key)

    def seen_by(self, principal: str, owner: str) -> Postroom:
        """This room for an authenticated user; it shares the store and must not be closed.

        Use it inside of ``room.store.acting(principal)``.
        """
        seen = Postroom(self.store, self.url, principal, owner, self._parts.broker)
        seen._parts.share(self._parts)
        return seen

    def __enter__(self) -> Postroom:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the locks of this room and close its store; closing again does nothing."""
        self._parts.close()


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container may have a user number without a name
        return f"uid {os.getuid()}"

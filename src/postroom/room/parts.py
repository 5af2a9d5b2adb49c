"""The parts of a room: its store, and one object for each capability."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from threading import Event, RLock
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, overload

from postroom.errors import StoreError
from postroom.model.arguments import check_methods
from postroom.model.message import IN_SPHERE, Draft, Message
from postroom.store import absolute, open_store
from postroom.store.kernel.base import Store
from postroom.store.kernel.owner import process_token

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from postroom.engine.dispatch import Gateway
    from postroom.engine.runner import Runner
    from postroom.engine.senders import Senders
    from postroom.engine.steps.stage import Stage
    from postroom.flows.graph.by import By
    from postroom.flows.graph.versions import RoomGraphs
    from postroom.gateways.incoming import Incoming
    from postroom.gateways.transport import Transport
    from postroom.queues.leases.keeping import Keeper
    from postroom.queues.leases.leasing import Leasing
    from postroom.queues.leases.working import Workers
    from postroom.queues.relocating import Relocating
    from postroom.queues.scheduling import Scheduling
    from postroom.queues.sessions import QueueSession
    from postroom.queues.sources import SourceVerbs
    from postroom.queues.together import Together
    from postroom.queues.tree.administration import Administration
    from postroom.queues.tree.policy import PolicySetting
    from postroom.queues.verbs import Verbs
    from postroom.room.admission import RoomAdmission
    from postroom.rules.outside import Outside
    from postroom.rules.programs import Programs
    from postroom.spheres.monitor import Monitor
    from postroom.stations.counters.stage import CounterStage
    from postroom.stations.places.network import Network
    from postroom.stations.procedures.catalog import Procedures
    from postroom.stations.procedures.interpreter import Interpreter
    from postroom.stations.retention import Cleaning
    from postroom.store.kernel.batch import Put
    from postroom.store.kernel.queues import Queue
    from postroom.store.kernel.transaction import Transaction
    from postroom.store.tables.registry import Registry

T = TypeVar("T")
_serial = itertools.count(1)


class _Locked(Protocol):
    lock: RLock


class Once(Generic[T]):
    """An attribute that is made at its first use, once for all threads."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, it: None, owner: type) -> Once[T]: ...
    @overload
    def __get__(self, it: _Locked, owner: type) -> T: ...
    def __get__(self, it: Any, owner: type) -> Once[T] | T:
        if it is None:
            return self
        with it.lock:
            if self._name not in vars(it):
                vars(it)[self._name] = self._make(it)
        made: T = vars(it)[self._name]
        return made


class Parts:
    """The objects of an open room that its capabilities share.

    Most programs need few of them, and each takes time to import, so they are made on demand.
    """

    def __init__(self, store: Store, url: str, actor: str, owner: str | None, broker: str) -> None:
        self.lock = RLock()
        self.store = store
        self.url = url
        self.actor = actor
        self.broker = broker
        self.holder = f"{process_token()}/{next(_serial)}"
        self.own_locks = owner is None
        self.streaming = Event()  # set when streams are to stop
        self.owner = owner or self.holder
        self.reopen = partial(open_store, absolute(url), actor=actor, create=False, clock=store.session.clock)

    @Once
    def verbs(self) -> Verbs:
        return self._verbs_of(self.owner)

    def _verbs_of(self, owner: str) -> Verbs:
        from postroom.queues.locks import User
        from postroom.queues.verbs import Verbs

        return Verbs(self.store, User(owner, self.actor), self._admit, self.reopen)

    def settle(self) -> None:
        """Put back unconfirmed messages of processes that have ended."""
        with suppress(StoreError):  # a room must open on a full disk, and a damaged one for those who examine it
            left = self.store.read(lambda tx: tx.handouts.over())
            if left:
                from postroom.queues.leases.returning import ENDED, give_back

                give_back(self.store, left, ENDED)

    def _admit(self, tx: Transaction, queue: Queue, drafts: Sequence[Draft]) -> list[Put]:
        return self.admission(tx, queue, drafts)

    @Once
    def by(self) -> By:
        from postroom.flows.graph.by import By

        return By(self.actor, self.broker)

    @Once
    def programs(self) -> Programs:
        from postroom.rules.programs import Programs

        return Programs()

    @Once
    def room_graphs(self) -> RoomGraphs:
        from postroom.flows.graph.versions import RoomGraphs

        return RoomGraphs()

    @Once
    def admission(self) -> RoomAdmission:
        from postroom.room.admission import RoomAdmission

        return RoomAdmission(lambda: self.programs, lambda: self.room_graphs, lambda: self.by)

    @Once
    def registry(self) -> Registry:
        from postroom.store.tables.registry import Registry

        return Registry(self.store)

    @Once
    def administration(self) -> Administration:
        from postroom.queues.tree.administration import Administration

        return Administration(self.store)

    @Once
    def sources(self) -> SourceVerbs:
        from postroom.queues.sources import SourceVerbs

        return SourceVerbs(self.store)

    def session(self, source: str | None) -> QueueSession:
        """A session for one program, with its own locks."""
        from postroom.queues.sessions import QueueSession

        return QueueSession(self.store, self._verbs_of(f"{self.holder}/s{next(_serial)}"), source)

    @Once
    def leasing(self) -> Leasing:
        from postroom.queues.leases.leasing import Leasing

        return Leasing(self.store, self.bind)

    @Once
    def together(self) -> Together:
        from postroom.queues.together import Together

        return Together(self.store, self.verbs, self.leasing)

    @Once
    def policies(self) -> PolicySetting:
        from postroom.queues.tree.policy import PolicySetting

        return PolicySetting(self.store)

    @Once
    def relocating(self) -> Relocating:
        from postroom.queues.relocating import Relocating

        return Relocating(self.store, self.verbs.put, self._admit, self.admission.again)

    @Once
    def scheduling(self) -> Scheduling:
        from postroom.queues.scheduling import Scheduling

        return Scheduling(self.store, self.verbs)

    @Once
    def workers(self) -> Workers:
        from postroom.queues.leases.working import Workers

        return Workers()

    @Once
    def keeper(self) -> Keeper:
        from postroom.queues.leases.keeping import Keeper

        return Keeper(self.leasing)

    def bind(self, message: Message) -> None:
        """Bind a message to its sphere, if it has one."""
        if IN_SPHERE in message._stored.properties:
            self.monitor.bind(message)

    @Once
    def network(self) -> Network:
        from postroom.stations.forms.catalog import Forms
        from postroom.stations.places.network import Network

        return Network(self.store, self.url, Forms())

    @Once
    def monitor(self) -> Monitor:
        from postroom.room.sphere_access import SphereAccess
        from postroom.spheres.monitor import Monitor

        return Monitor(self.store, self.reopen, SphereAccess(self.verbs, lambda: self.network))

    @Once
    def procedures(self) -> Procedures:
        from postroom.stations.procedures.catalog import Procedures

        return Procedures(self.network.forms)

    @Once
    def interpreter(self) -> Interpreter:
        from postroom.stations.procedures.interpreter import Interpreter

        return Interpreter(self.network, self.procedures)

    @Once
    def counter_stage(self) -> CounterStage:
        from postroom.stations.counters.definitions import Counters
        from postroom.stations.counters.stage import CounterStage

        return CounterStage(self.network, Counters())

    @Once
    def cleaning(self) -> Cleaning:
        from postroom.stations.retention import Cleaning

        return Cleaning(self.network)

    @Once
    def outside(self) -> Outside:
        from postroom.rules.outside import Outside

        return Outside(self.programs)

    @Once
    def transports(self) -> Mapping[str, Transport]:
        """Every transport by its name."""
        from postroom.gateways.command import CommandTransport
        from postroom.gateways.fetched import FetchedTransport
        from postroom.gateways.http import HttpTransport
        from postroom.gateways.smtp import SmtpTransport
        from postroom.gateways.soap.transport import SoapTransport
        from postroom.gateways.streaming import FilesTransport, KafkaTransport, RateTransport, SocketTransport

        commands = CommandTransport(absolute(self.url))
        http = HttpTransport()
        every: tuple[Transport, ...] = (http, SmtpTransport(), SoapTransport(http), commands, FetchedTransport())
        streams: tuple[Transport, ...] = (FilesTransport(), KafkaTransport(), SocketTransport(), RateTransport())
        return {transport.name: transport for transport in (*every, *streams)}

    @Once
    def incoming(self) -> Incoming:
        from postroom.gateways.incoming import Incoming

        return Incoming(self.store, self.outside)

    @Once
    def runner(self) -> Runner:
        from postroom.engine.runner import Runner
        from postroom.flows.stage import FlowStage
        from postroom.queues.scheduling import ScheduleStage
        from postroom.rules.stage import RulesStage
        from postroom.spheres.watching import Watching

        stages: list[Stage] = [
            RulesStage(self.programs),
            FlowStage(self.room_graphs),
            self.interpreter,
            self.counter_stage,
        ]
        stages += [Watching(), ScheduleStage(self.scheduling)]
        return Runner(self.store, self.gateways(), self.holder, stages, self.sweep, self.admission, self.cleaning.sweep)

    @Once
    def senders(self) -> Senders:
        from postroom.engine.senders import Senders

        return Senders(self.store, self.gateways, self.holder)

    def gateways(self) -> list[Gateway]:
        """Every outgoing gateway of the room."""
        from postroom.gateways.command import CommandGateway
        from postroom.gateways.outgoing import OutgoingGateway

        outgoing = OutgoingGateway(self.store, self.transports, lambda: self.outside)
        return [CommandGateway(absolute(self.url)), outgoing]

    def sweep(self) -> int:
        from postroom.rules import retention

        if "interpreter" in vars(self):  # else nothing of it was seen here that could have moved on
            self.interpreter.tidy()
        return retention.sweep(self.store, self.programs)

    def share(self, others: Parts) -> None:
        """Share another user's objects on the same store, as an authenticated user."""
        from postroom.flows.graph.by import By

        for name in ("programs", "room_graphs", "network", "monitor", "procedures", "interpreter", "counter_stage"):
            vars(self)[name] = getattr(others, name)
        self.verbs.share(others.verbs)
        vars(self)["by"] = By(self.actor, self.broker, proven=True)

    def close(self) -> None:
        """Release the locks of this room and close its store; closing again does nothing."""
        made = vars(self)
        with ExitStack() as last:  # whatever a step raises, the others are done
            for transport in self.transports.values() if "transports" in made else ():
                last.callback(transport.close)
            if "network" in made:
                last.callback(self.network.close)
            last.callback(self._close_store)
            if "verbs" in made:
                self.verbs.close()

    def _close_store(self) -> None:
        made = vars(self)
        if self.store.stopped:
            return
        with ExitStack() as last:
            last.callback(self.store.close)
            if "monitor" in made:
                last.callback(self.monitor.close)
            if "leasing" in made:
                self.leasing.close()
            if self.own_locks and "verbs" in made:
                self.verbs.release_locks()


class RoomPart:
    """The methods of one capability; all share the parts of the room."""

    def __init_subclass__(cls) -> None:
        """Check the arguments of all public methods."""
        check_methods(cls)

    def __init__(self, parts: Parts) -> None:
        self._parts = parts


class Announcement:
    """A callback for the start of Spark, which takes some seconds; by default none."""

    tell: Callable[[str], None] | None = None


def spark_session(
    master: str, conf: Mapping[str, str] | None, *, other: bool = False, lasting: bool = False
) -> SparkSession:
    """The Spark session of this process. ``other``: accept any running one; ``lasting``: tune it for hours of work."""
    from postroom.engine.spark.internals import has_session
    from postroom.engine.spark.session import session  # seconds of start-up, only where something is to be evaluated

    if Announcement.tell is not None and not has_session():
        Announcement.tell("starting Spark, which takes some seconds")
    return session(master, conf or {}, other=other, lasting=lasting)

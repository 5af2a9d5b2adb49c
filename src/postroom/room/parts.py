"""What a room is made of: its store, and every capability's part on it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, overload

from postroom.model.message import Draft
from postroom.queues.locks import User
from postroom.queues.verbs import Verbs
from postroom.store import absolute, open_store
from postroom.store.kernel.base import Store
from postroom.store.kernel.batch import Put
from postroom.store.kernel.owner import process_token
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from postroom.engine.runner import Runner
    from postroom.engine.steps.stage import Stage
    from postroom.flows.graph.meta import By
    from postroom.flows.graph.versions import RoomGraphs
    from postroom.queues.administration import Administration
    from postroom.room.admission import RoomAdmission
    from postroom.rules.catalog import Programs
    from postroom.spheres.monitor import Monitor
    from postroom.stations.counters.stage import CounterStage
    from postroom.stations.places.network import Network
    from postroom.stations.procedures.catalog import Procedures
    from postroom.stations.procedures.interpreter import Interpreter
    from postroom.stations.retention import Cleaning
    from postroom.store.tables.registry import Registry

T = TypeVar("T")
_serial = itertools.count(1)


class _Locked(Protocol):
    lock: RLock


class Once(Generic[T]):
    """An attribute that is made when it is first asked for, once for all threads."""

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
    """What the capabilities of an open room are made of, each thing once.

    Most programs need few of them, and each takes time to import: so they are made when they are first asked for.
    """

    def __init__(self, store: Store, url: str, actor: str, owner: str | None, broker: str) -> None:
        self.lock = RLock()
        self.store = store
        self.url = url
        self.actor = actor
        self.broker = broker
        self.holder = f"{process_token()}/{next(_serial)}"
        self.own_locks = owner is None
        self.owner = owner or self.holder
        self.reopen = partial(open_store, absolute(url), actor=actor, create=False, clock=store.session.clock)
        self.verbs = Verbs(store, User(self.owner, actor), self._admit, self.reopen)

    def _admit(self, tx: Transaction, queue: Queue, drafts: Sequence[Draft]) -> list[Put]:
        return self.admission(tx, queue, drafts)

    @Once
    def by(self) -> By:
        from postroom.flows.graph.meta import By

        return By(self.actor, self.broker)

    @Once
    def programs(self) -> Programs:
        from postroom.rules.catalog import Programs

        return Programs()

    @Once
    def room_graphs(self) -> RoomGraphs:
        from postroom.flows.graph.versions import RoomGraphs

        return RoomGraphs()

    @Once
    def admission(self) -> RoomAdmission:
        from postroom.room.admission import RoomAdmission

        return RoomAdmission(self.programs, self.room_graphs, self.by)

    @Once
    def registry(self) -> Registry:
        from postroom.store.tables.registry import Registry

        return Registry(self.store)

    @Once
    def administration(self) -> Administration:
        from postroom.queues.administration import Administration

        return Administration(self.store)

    @Once
    def network(self) -> Network:
        from postroom.stations.forms.catalog import Forms
        from postroom.stations.places.network import Network

        return Network(self.store, self.url, Forms())

    @Once
    def monitor(self) -> Monitor:
        from postroom.room.sphere_access import SphereAccess
        from postroom.spheres.monitor import Monitor

        return Monitor(self.store, self.reopen, SphereAccess(self.verbs, self.network))

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
    def runner(self) -> Runner:
        from postroom.engine.runner import Runner
        from postroom.flows.stage import FlowStage
        from postroom.gateways.command import CommandGateway
        from postroom.rules.stage import RulesStage
        from postroom.spheres.watching import Watching

        gateways = [CommandGateway(absolute(self.url))]
        stages: list[Stage] = [
            RulesStage(self.programs),
            FlowStage(self.room_graphs),
            self.interpreter,
            self.counter_stage,
        ]
        stages.append(Watching())
        return Runner(self.store, gateways, self.holder, stages, self.sweep, self.admission, self.cleaning.sweep)

    def sweep(self) -> int:
        from postroom.rules import retention

        self.interpreter.tidy()
        return retention.sweep(self.store, self.programs)

    def close(self) -> None:
        """Release the locks of this room and close its store; closing again does nothing."""
        made = vars(self)
        self.verbs.close()
        if not self.store.stopped:
            if self.own_locks:
                self.verbs.release_locks()
            if "monitor" in made:
                self.monitor.close()
            self.store.close()
        if "network" in made:
            self.network.close()


class RoomPart:
    """The methods of one capability; all of them share the parts of the room."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts


def spark_session(master: str, conf: Mapping[str, str] | None) -> SparkSession:
    """The one Spark session of this process."""
    from postroom.engine.spark.session import session  # seconds of start-up, only where something is to be evaluated

    return session(master, conf or {})

"""What a room is made of: its store, and every capability's part on it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from postroom.engine.runner import Runner
from postroom.engine.steps.stage import Stage
from postroom.flows.graph.meta import By, broker_name
from postroom.flows.graph.versions import Charts
from postroom.flows.stage import FlowStage
from postroom.gateways.command import CommandGateway
from postroom.queues.administration import Administration
from postroom.queues.locks import User
from postroom.queues.verbs import Verbs
from postroom.room.admission import RoomAdmission
from postroom.room.sphere_access import SphereAccess
from postroom.rules import retention
from postroom.rules.catalog import Programs
from postroom.rules.stage import RulesStage
from postroom.spheres.monitor import Monitor
from postroom.spheres.watching import Watching
from postroom.stations.counters.definitions import Counters
from postroom.stations.counters.exchange import CounterStage
from postroom.stations.forms.catalog import Forms
from postroom.stations.places.network import Network
from postroom.stations.procedures.catalog import Procedures
from postroom.stations.procedures.interpreter import Interpreter
from postroom.stations.retention import Cleaning
from postroom.store import absolute, open_store
from postroom.store.kernel.base import Store
from postroom.store.kernel.owner import process_token
from postroom.store.tables.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_serial = itertools.count(1)


class Parts:
    """The ground of the faces of a room: they share these parts, and nothing else."""

    def __init__(self, store: Store, url: str, actor: str, owner: str | None = None, broker: str | None = None) -> None:
        self.store = store
        self.url = url
        here = f"{process_token()}/{next(_serial)}"
        self._own_locks = owner is None
        self._owner = owner or here
        self._programs = Programs()
        self._charts = Charts()
        self._by = By(actor, broker or broker_name())
        self._admission = RoomAdmission(self._programs, self._charts, self._by)
        again = partial(open_store, absolute(url), actor=actor, create=False, clock=store.session.clock)
        self._verbs = Verbs(store, User(self._owner, actor), self._admission, again)
        self._registry = Registry(store)
        self._network = Network(store, url, Forms())
        self._monitor = Monitor(store, again, SphereAccess(self._verbs, self._network))
        self._administration = Administration(store)
        gateways = [CommandGateway(absolute(url))]
        self._procedures = Procedures(self._network.forms)
        self._interpreter = Interpreter(self._network, self._procedures)
        self._counter_stage = CounterStage(self._network, Counters())
        stages: list[Stage] = [RulesStage(self._programs), FlowStage(self._charts)]
        stages += [self._interpreter, self._counter_stage, Watching()]
        self._cleaning = Cleaning(self._network)
        self._runner = Runner(store, gateways, here, stages, self._sweep, self._admission, self._cleaning.sweep)

    def _sweep(self) -> int:
        self._interpreter.tidy()
        return retention.sweep(self.store, self._programs)


def spark_session(master: str, conf: Mapping[str, str] | None) -> SparkSession:
    """The one Spark session of this process."""
    from postroom.engine.spark.session import session  # seconds of start-up, only where something is to be evaluated

    return session(master, conf or {})

"""What a room is made of: its store, and every capability's part on it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from postroom.engine.runner import Runner
from postroom.engine.steps.stage import Stage
from postroom.flows.graph.meta import By, broker_name
from postroom.flows.graph.versions import RoomGraphs
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
    """What the capabilities of an open room are made of, each thing once."""

    def __init__(self, store: Store, url: str, actor: str, owner: str | None = None, broker: str | None = None) -> None:
        self.store = store
        self.url = url
        here = f"{process_token()}/{next(_serial)}"
        self.own_locks = owner is None
        self.owner = owner or here
        self.programs = Programs()
        self.room_graphs = RoomGraphs()
        self.by = By(actor, broker or broker_name())
        self.admission = RoomAdmission(self.programs, self.room_graphs, self.by)
        again = partial(open_store, absolute(url), actor=actor, create=False, clock=store.session.clock)
        self.verbs = Verbs(store, User(self.owner, actor), self.admission, again)
        self.registry = Registry(store)
        self.network = Network(store, url, Forms())
        self.monitor = Monitor(store, again, SphereAccess(self.verbs, self.network))
        self.administration = Administration(store)
        gateways = [CommandGateway(absolute(url))]
        self.procedures = Procedures(self.network.forms)
        self.interpreter = Interpreter(self.network, self.procedures)
        self.counter_stage = CounterStage(self.network, Counters())
        stages: list[Stage] = [RulesStage(self.programs), FlowStage(self.room_graphs)]
        stages += [self.interpreter, self.counter_stage, Watching()]
        self.cleaning = Cleaning(self.network)
        self.runner = Runner(store, gateways, here, stages, self.sweep, self.admission, self.cleaning.sweep)

    def sweep(self) -> int:
        self.interpreter.tidy()
        return retention.sweep(self.store, self.programs)


class RoomPart:
    """The methods of one capability; all of them share the parts of the room."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts


def spark_session(master: str, conf: Mapping[str, str] | None) -> SparkSession:
    """The one Spark session of this process."""
    from postroom.engine.spark.session import session  # seconds of start-up, only where something is to be evaluated

    return session(master, conf or {})

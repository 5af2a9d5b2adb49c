"""Postroom for programs that use Spark: a session, and rooms as a data source of any session.

from postroom import spark

session = spark.session("local[*]")                  # or: spark.register(a_session_of_your_own)
session.read.format("postroom").option("queue", "orders").load("room.db").show()
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from postroom.engine.datasource.delivery import Put
from postroom.engine.datasource.source import Source
from postroom.engine.spark import session as engine
from postroom.flows.graph.by import By
from postroom.flows.graph.versions import RoomGraphs
from postroom.model.message import Draft
from postroom.queues.locks import User
from postroom.queues.verbs import Verbs
from postroom.room.admission import RoomAdmission
from postroom.room.opening import broker_name
from postroom.rules.programs import Programs
from postroom.store.kernel.base import Store
from postroom.store.kernel.owner import process_token
from postroom.store.kernel.transaction import Transaction

__all__ = ["register", "session", "stop", "write_package"]

stop = engine.stop

_HOME = Path(__file__).parent
_NOT_FOR_TASKS = frozenset({"aio", "diagnosis", "gateways", "http", "interfaces", "testing"})
_ANY_TIME = (1980, 1, 1, 0, 0, 0)  # so that the same modules make the same file


def session(master: str = "local[*]", conf: Mapping[str, str] | None = None) -> SparkSession:
    """The Spark session of this process, started if there is none, with the data source registered."""
    running = engine.session(master, conf)
    register(running)
    return running


def register(session: SparkSession) -> None:
    """Add the format ``postroom`` to a Spark session."""
    session.dataSource.register(RoomSource)


def write_package(file: str | Path) -> Path:
    """Write the data source as a zip file for ``spark-submit --py-files`` or ``addPyFile``; returns its path.

    Workers of a cluster need nothing else of Postroom, and of other packages ``pyarrow``, ``psycopg`` and ``psutil``.
    """
    path = Path(file)
    modules = [module.relative_to(_HOME) for module in sorted(_HOME.rglob("*.py"))]
    with zipfile.ZipFile(path, "w") as package:
        for module in modules:
            if Path(module.parts[0]).stem not in _NOT_FOR_TASKS:
                entry = zipfile.ZipInfo(f"postroom/{module.as_posix()}", _ANY_TIME)
                package.writestr(entry, (_HOME / module).read_bytes(), zipfile.ZIP_DEFLATED)
    return path


class RoomSource(Source):
    """The data source with the room's admission: messages from Spark enter a queue like all others."""

    @staticmethod
    def admission(store: Store) -> Put:
        verbs = Verbs(
            store,
            User(f"{process_token()}/spark", "spark"),
            RoomAdmission(Programs, RoomGraphs, lambda: By("spark", broker_name())),
        )

        def put(tx: Transaction, queue: str, drafts: Sequence[Draft]) -> Sequence[int]:
            return verbs.enter(tx, (queue,), drafts)

        return put

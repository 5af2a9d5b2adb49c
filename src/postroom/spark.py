"""Postroom for programs that use Spark: a session, and rooms as a data source of any session.

from postroom import spark

session = spark.session("local[*]")                  # or: spark.register(a_session_of_your_own)
session.read.format("postroom").option("queue", "orders").load("room.db").show()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from postroom.engine.datasource.delivery import Put
from postroom.engine.datasource.source import Source
from postroom.engine.spark import session as engine
from postroom.flows.graph.meta import By
from postroom.flows.graph.versions import RoomGraphs
from postroom.model.message import Draft
from postroom.queues.locks import User
from postroom.queues.verbs import Verbs
from postroom.room.admission import RoomAdmission
from postroom.room.opening import broker_name
from postroom.rules.catalog import Programs
from postroom.store.kernel.base import Store
from postroom.store.kernel.owner import process_token
from postroom.store.kernel.transaction import Transaction

__all__ = ["register", "session", "stop"]

stop = engine.stop


def session(master: str = "local[*]", conf: Mapping[str, str] | None = None) -> SparkSession:
    """The Spark session of this process, started if there is none, with the data source in it."""
    found = engine.session(master, conf)
    register(found)
    return found


def register(session: SparkSession) -> None:
    """Add the format ``postroom`` to a Spark session."""
    session.dataSource.register(RoomSource)


class RoomSource(Source):
    """The data source with the room's own way in: what comes from Spark enters a queue as everything else does."""

    @staticmethod
    def admission(store: Store) -> Put:
        verbs = Verbs(
            store,
            User(f"{process_token()}/spark", "spark"),
            RoomAdmission(Programs(), RoomGraphs(), By("spark", broker_name())),
        )

        def put(tx: Transaction, queue: str, drafts: Sequence[Draft]) -> Sequence[int]:
            return verbs.enter(tx, (queue,), drafts)

        return put

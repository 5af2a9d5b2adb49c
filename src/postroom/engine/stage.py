"""The contract between the engine and a capability: what it watches, what it reads, how it evaluates."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from postroom.engine.effects import Arrival, Document, Effects, Granule
from postroom.engine.serial import Timeline
from postroom.model.message import Stored
from postroom.store.queues import Door
from postroom.store.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Share(Protocol):
    """One capability's share of a step, pinned to one version of the definitions."""

    @property
    def version(self) -> int: ...

    @property
    def watched(self) -> Mapping[str, int]:
        """The queues whose messages it takes, with their priorities: higher goes first."""

    @property
    def windows(self) -> Mapping[str, tuple[int, int]]:
        """Of some watched queues it takes only the messages behind one position and before another."""

    @property
    def agent(self) -> str:
        """What the journal calls whoever acts: a rule, an arc."""

    @property
    def doors(self) -> Door:
        """The doors that its new messages have passed already."""

    @property
    def echoes(self) -> Sequence[str]:
        """The queues whose messages it takes when their time has come."""

    @property
    def sliced(self) -> frozenset[str]:
        """The queues whose messages slices may hold."""

    @property
    def reading(self) -> frozenset[str]:
        """The watched queues whose messages look at others."""

    def arrivals(self, tx: Transaction, claimed: Sequence[Stored]) -> list[Arrival]:
        """The claimed messages with the sets that their rules will look at."""

    def evaluate(
        self,
        spark: SparkSession,
        arrivals: Sequence[Arrival],
        base: Mapping[Granule, Sequence[Document]],
        known: Timeline,
    ) -> Iterator[Mapping[int, Effects]]:
        """The effects of arrivals, in groups whose members have seen each other; evaluated on Spark."""

    def keep_warm(self, spark: SparkSession) -> None:
        """Give Spark's workers something to do."""


class Stage(Protocol):
    """A capability that takes part in steps."""

    def share(self, tx: Transaction, waiting: Collection[str] = ()) -> Share | None:
        """Its share under the definitions in force; None if it watches nothing.

        Queues that are ``waiting`` for another one are left alone.
        """

"""The interface between the engine and a capability: what it watches, reads and evaluates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, Protocol

from postroom.engine.blocked import Blocked
from postroom.engine.evaluators import Evaluators
from postroom.engine.holding import Holding
from postroom.engine.spark.executor_store import AnswerStore, Bay
from postroom.engine.steps.effects import Arrival, Document, Effects, Granule
from postroom.engine.steps.serial import Timeline
from postroom.model.message import Stored
from postroom.store.kernel.base import Store
from postroom.store.kernel.batch import Admit, Stale, admit_nothing
from postroom.store.kernel.queues import Admission
from postroom.store.kernel.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from postroom.engine.way import Way


@dataclass(frozen=True)
class Watched:
    """The queues that a share takes messages from, with their special cases."""

    queues: Mapping[str, int]  # with their priorities: higher goes first
    windows: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # only messages between these positions
    echoes: Sequence[str] = ()  # whose messages it takes when their time has come
    reading: frozenset[str] = frozenset()  # whose messages look at others
    sliced: frozenset[str] = frozenset()  # whose messages slices may hold
    once: frozenset[str] = frozenset()  # whose messages are taken in their order, and never tried again
    free: frozenset[str] = frozenset()  # whose messages look at nothing and reset nothing: any engine may take them
    staying: frozenset[str] = frozenset()  # whose messages flow on, but not those that it puts there itself
    past: frozenset[str] = frozenset()  # that are out of use by now, and still get what was meant for them


class Folding(Protocol):
    """State that is updated in the commit of a step, message by message."""

    @property
    def targets(self) -> frozenset[str]:
        """The queues that it may put messages into."""

    def effects(self, arrival: Arrival) -> Effects:
        """The further effects of the next message, besides those evaluated; errors come first."""

    def write(self, messages: int) -> None:
        """Write the state after so many messages."""


class Share(Protocol):
    """One capability's part of a step, for one version of the definitions."""

    @property
    def version(self) -> int: ...

    @property
    def watched(self) -> Watched: ...

    @property
    def agent(self) -> str:
        """The actor in the journal: a rule, an arc."""

    @property
    def admission(self) -> Admission:
        """The capabilities that have already admitted its new messages."""

    def arrivals(self, tx: Transaction, claimed: Sequence[Stored]) -> list[Arrival]:
        """The claimed messages with the sets that their rules read."""

    def weight(self, arrivals: Sequence[Arrival]) -> int:
        """The cost of evaluating arrivals, in messages."""

    def evaluate(
        self,
        way: Way,
        arrivals: Sequence[Arrival],
        base: Mapping[Granule, Sequence[Document]],
        known: Timeline,
        bay: Bay | None,
    ) -> Iterator[Mapping[int, Effects]]:
        """The effects of arrivals, in groups whose members have read each other's changes.

        With a bay, executors read messages and write answers in the store.
        """

    def folding(self, tx: Transaction, queues: Collection[str]) -> Folding | None:
        """The state that messages of some queues update; None if there is none."""

    def barring(self, barred: Mapping[str, str]) -> Share:
        """The share with some definitions barred: these only report why they may not act."""

    def keep_warm(self, spark: SparkSession) -> None:
        """Keep Spark's workers running."""


@dataclass
class Result:
    """The result of a step, for reports and for the size of the next one."""

    messages: int = 0
    created: int = 0
    failures: int = 0
    blocked: Blocked | None = None  # a queue that waits for another, which is held
    claimed: int = 0
    more: bool = False
    seconds: Mapping[str, float] = field(default_factory=dict)  # by stage
    busy: frozenset[str] = frozenset()  # it is still evaluated, and these are the queues that it has taken from
    reads: bool = False  # whether the messages of a busy one look at others
    evaluated: str = ""  # by which way; empty if there was nothing to evaluate


class Entangled(Stale):
    """The step must be repeated alone: it resets a slice that others may have read meanwhile."""


class Beside(NamedTuple):
    """The steps under way when a chain of steps begins."""

    queues: frozenset[str] = frozenset()  # whose messages others have taken
    reads: bool = False  # whether those look at messages that are not their own
    seconds: float | None = None  # after which a step that is still evaluated is left apart; None: never


ALONE = Beside()


@contextmanager
def timed(seconds: dict[str, float], stage: str, began: float | None = None) -> Iterator[None]:
    """Record how long a stage took, if it began earlier also what it took before."""
    began = perf_counter() if began is None else began
    yield
    seconds[stage] = perf_counter() - began


@dataclass(frozen=True)
class Turn:
    """What the engine gives to a stage: the store, the lease number, and the step size."""

    store: Store
    fence: int
    evaluators: Evaluators
    size: Callable[[], int]  # messages of a step
    admit: Admit = admit_nothing
    answer_store: AnswerStore | None = None  # where executors read and write, if they do it themselves
    waiting: Mapping[str, str] = field(default_factory=dict)  # queues, and the queue on hold that each waits for
    beside: Beside = ALONE
    holding: Holding | None = None  # the queues that this engine has, where others share the room


class Stage(Protocol):
    """A capability that takes part in steps."""

    def steps(self, turn: Turn) -> Generator[Result] | None:
        """The results of its steps; None if there is nothing to do.

        ``Stale`` means that the room changed meanwhile: nothing has happened, and the engine looks again.
        """

    def worker_module(self, store: Store) -> str:
        """The module that evaluates this stage's work in workers; empty if there is nothing to evaluate."""
        return ""

    def keep_warm(self, store: Store, spark: Callable[[], SparkSession]) -> None:
        """Keep Spark's workers running if they would be needed."""
        return

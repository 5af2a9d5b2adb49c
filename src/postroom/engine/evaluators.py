"""Where an engine evaluates: few messages in a worker process, many on Spark, which is started when it is worth it.

The results are the same either way.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from time import monotonic
from typing import TYPE_CHECKING

from postroom.errors import ArgumentInvalid
from postroom.limits import SPARK_PATIENCE_SECONDS, WORKER_MESSAGES_MAX

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from postroom.engine.way import Way

#: The master of an engine that was told none.
LOCAL = "local[*]"
#: The variable of the environment that chooses where nobody else does.
VARIABLE = "POSTROOM_SPARK"


class Choice(StrEnum):
    """Whether Spark evaluates everything, or many messages only."""

    AUTO = "auto"
    ALWAYS = "always"


def choice(wish: str | None, master: str, conf: Mapping[str, str]) -> Choice:
    """The choice from ``wish``. Without one, a master or settings for Spark mean that Spark evaluates."""
    if wish is None and (master != LOCAL or conf):
        return Choice.ALWAYS
    wish = wish or os.environ.get(VARIABLE) or Choice.AUTO
    if wish not in list(Choice):
        raise ArgumentInvalid(argument="spark", why=f"{wish!r} is not one of: {', '.join(Choice)}")
    if wish == Choice.AUTO and not master.startswith("local"):
        raise ArgumentInvalid(argument="spark", why=f"auto is for a local master; {master} evaluates everything")
    return Choice(wish)


class Evaluators:
    """The ways of an engine to evaluate. ``spark`` returns the session, and starts it if there is none."""

    def __init__(self, spark: Callable[[], SparkSession], *, always: bool = False) -> None:
        self._spark = spark
        self.always = always
        self._starting: threading.Thread | None = None
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._backlog: float | None = None  # since when steps leave messages behind

    @property
    def has_spark(self) -> bool:
        """Whether Spark is ready, so that a step need not wait for it."""
        return self.always or self._started.is_set()

    @property
    def has_begun(self) -> bool:
        """Whether Spark is ready or starting."""
        return self.has_spark or self._starting is not None

    def way(self, weight: int) -> Way:
        """The way for a step of this weight (in messages); waits for Spark if it is too much for a worker."""
        from postroom.engine.worker_process import InWorker

        if not self.always and weight <= WORKER_MESSAGES_MAX:
            return InWorker()
        return self.on_spark()

    def on_spark(self) -> Way:
        from postroom.engine.spark.jobs import OnSpark

        session = self._spark()
        self._started.set()
        return OnSpark(session)

    def step_size(self, size: int) -> int:
        """The largest step: until Spark is ready, what a worker may evaluate."""
        return size if self.has_spark else min(size, WORKER_MESSAGES_MAX)

    def note(self, more: bool) -> None:
        """Note after a step whether messages were left. A long backlog starts Spark."""
        if not more:
            self._backlog = None
        elif self._backlog is None:
            self._backlog = monotonic()
        elif monotonic() - self._backlog > SPARK_PATIENCE_SECONDS:
            self.begin()

    def prepare(self, modules: Iterable[str]) -> None:
        """Have a worker process load modules in the background."""
        from postroom.engine.worker_process import InWorker

        some = list(modules)
        if some and not self.always:
            InWorker().start(some)

    def begin(self) -> None:
        """Start Spark in the background."""
        if not self.has_begun:
            self._starting = threading.Thread(target=self._start, name="postroom-spark", daemon=True)
            self._starting.start()

    def check(self) -> None:
        """Raise the error if Spark did not start."""
        if self._failure is not None:
            raise self._failure

    def _start(self) -> None:
        try:
            self._spark()
            self._started.set()
        except BaseException as error:
            self._failure = error

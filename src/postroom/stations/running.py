"""Work on Spark that someone waits for: within a time, with its progress, and ended when nobody waits any more."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Generic, TypeVar

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

T = TypeVar("T")
Progress = Callable[[int, int], None]
_LOOK_SECONDS = 0.1
_END_SECONDS = 2.0  # that ended work has to end
_serial = itertools.count(1)


class Run(Generic[T]):
    """Something that is done in a thread of its own, whose jobs can be told from others."""

    def __init__(self, spark: SparkSession, work: Callable[[Run[T]], T]) -> None:
        self._spark = spark
        self._work = work
        self._group = f"postroom run {next(_serial)}"
        self._ended = threading.Event()
        self._answer: list[T] = []
        self._failure: list[BaseException] = []

    def go_on(self) -> None:
        """Asked on the way: raises if nobody waits any more."""
        if self._ended.is_set():
            raise TimeoutError

    def result(self, seconds: float, progress: Progress | None) -> T:
        """The answer; TimeoutError if it takes too long. Whatever ends the wait ends the jobs, too."""
        thread = threading.Thread(target=self._call, daemon=True, name=self._group)
        until = monotonic() + seconds
        thread.start()
        try:
            while thread.is_alive():
                thread.join(_LOOK_SECONDS)
                if thread.is_alive() and monotonic() > until:
                    raise TimeoutError
                if progress is not None:
                    progress(*self._tasks())
        except BaseException:
            self._end(thread)
            raise
        if self._failure:
            raise self._failure[0]
        return self._answer[0]

    def _call(self) -> None:
        try:
            self._spark.sparkContext.setJobGroup(self._group, self._group, interruptOnCancel=True)
            self._answer.append(self._work(self))
        except BaseException as error:
            self._failure.append(error)

    def _end(self, thread: threading.Thread) -> None:
        self._ended.set()
        until = monotonic() + _END_SECONDS
        while thread.is_alive() and monotonic() < until:  # one job may follow another until it is seen
            with suppress(Py4JError, OSError):
                self._spark.sparkContext.cancelJobGroup(self._group)
            thread.join(_LOOK_SECONDS)

    def _tasks(self) -> tuple[int, int]:
        """How many parts of the work are done, and how many are known of."""
        tracker = self._spark.sparkContext.statusTracker()
        done = total = 0
        for job in tracker.getJobIdsForGroup(self._group):
            info = tracker.getJobInfo(job)
            for stage in info.stageIds if info else ():
                status = tracker.getStageInfo(stage)
                if status is not None:
                    done, total = done + status.numCompletedTasks, total + status.numTasks
        return done, max(total, 1)

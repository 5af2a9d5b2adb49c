"""If a Spark job dies, it is split until the message that kills it is found.

That message gets an error message. All others are evaluated as if it were not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from postroom.errors import SparkUnavailable
from postroom.limits import EVALUATION_SECONDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Piece(Protocol):
    """A message, or a set of them, that is evaluated as one."""

    @property
    def failure(self) -> str | None:
        """Why it cannot be evaluated: then its error message comes of it, whatever it says."""

    def failing(self, why: str) -> Self: ...


P = TypeVar("P", bound=Piece)
R = TypeVar("R")
#: Evaluates pieces in one job.
Evaluate = Callable[[Sequence[P]], Iterator[Mapping[int, R]]]
_PARTS = 8  # into how many pieces a job that fails is taken apart


def isolated(
    spark: SparkSession, arrivals: Sequence[P], evaluate: Evaluate[P, R], again: bool = True
) -> Iterator[Mapping[int, R]]:
    """What comes of arrivals; of one that cannot be evaluated it is an error message."""
    if not arrivals:
        return
    try:
        yield from evaluate(arrivals)
    except Exception as error:
        why = reason(spark, error)
        if len(arrivals) > 1:
            size = -(-len(arrivals) // _PARTS)
            for start in range(0, len(arrivals), size):
                yield from isolated(spark, arrivals[start : start + size], evaluate)
        elif again:  # machines and workers die by themselves, too: guilty is who does it alone, twice
            yield from isolated(spark, arrivals, evaluate, again=False)
        elif arrivals[0].failure is None:
            yield from isolated(spark, [arrivals[0].failing(why)], evaluate)
        else:  # even its error message ends the job: then it is not the message
            raise _broken(spark, error) from error


def reason(spark: SparkSession, error: Exception) -> str:
    """Why a job failed, if that can be a message's fault."""
    from pyspark.errors import PySparkException

    from postroom.engine.spark.internals import Py4JError, has_ended

    if has_ended(spark):  # a dying Java shows in many ways: refused connections, empty answers, ends of files
        raise SparkUnavailable(
            master="the engine", why="the session has ended", advice="start the engine again"
        ) from error
    if not isinstance(error, (Py4JError, PySparkException)):
        raise error
    return f"evaluation killed its worker, or exceeded the limit of {EVALUATION_SECONDS:.0f} seconds"


def _broken(spark: SparkSession, error: Exception) -> SparkUnavailable:
    from postroom.engine.spark.launch import one_line

    return SparkUnavailable(
        master=spark.sparkContext.master, why=one_line(error), advice="check the settings for Spark"
    )

"""If a job dies, on Spark or in a worker, it is split until the message that kills it is found.

That message gets an error message. All others are evaluated without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from postroom.limits import EVALUATION_SECONDS

if TYPE_CHECKING:
    from postroom.engine.way import Way

#: What is told of a message that did it.
GUILT = f"evaluation killed its worker, or exceeded the limit of {EVALUATION_SECONDS:.0f} seconds"


class Piece(Protocol):
    """A message, or a set of messages, that is evaluated as one."""

    @property
    def failure(self) -> str | None:
        """Why it cannot be evaluated, if so: it gets an error message without being evaluated."""

    def failing(self, why: str) -> Self: ...


P = TypeVar("P", bound=Piece)
R = TypeVar("R")
#: Evaluates pieces in one job.
Evaluate = Callable[[Sequence[P]], Iterator[Mapping[int, R]]]
_PARTS = 8  # into how many pieces a job that fails is taken apart


def isolated(
    way: Way, arrivals: Sequence[P], evaluate: Evaluate[P, R], again: bool = True
) -> Iterator[Mapping[int, R]]:
    """The outcomes of arrivals; for one that cannot be evaluated, an error message."""
    if not arrivals:
        return
    try:
        yield from evaluate(arrivals)
    except Exception as error:
        why = way.reason(error)
        if len(arrivals) > 1:
            size = -(-len(arrivals) // _PARTS)
            for start in range(0, len(arrivals), size):
                yield from isolated(way, arrivals[start : start + size], evaluate)
        elif again:  # machines and workers die by themselves, too: guilty is who does it alone, twice
            yield from isolated(way, arrivals, evaluate, again=False)
        elif arrivals[0].failure is None:
            yield from isolated(way, [arrivals[0].failing(why)], evaluate)
        else:  # even its error message ends the job: then it is not the message
            raise way.broken(error) from error

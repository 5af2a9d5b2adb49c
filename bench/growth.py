"""Growth: what an operation costs in a full room, against a nearly empty one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import postroom
from contenders import QUEUE
from lines import Line
from rounds import Action, Arguments, Round, cost, cost_ratio, run_round

CHUNK = 100_000
COST_RATIO_MAX = 1.5


class FilledRoom:
    """A room with so many unprocessed messages, and their keys."""

    def __init__(self, file: Path, size: int, body: str) -> None:
        self.size = size
        self.name = f"{size:,} stored"
        self._body = body
        self._choose = random.Random(size)
        self._keys: list[Sequence[str]] = []
        with postroom.open(file) as room:
            room.create_queue(QUEUE)
            for start in range(0, size, CHUNK):
                self._keys.append(room.send_many(QUEUE, [body] * min(CHUNK, size - start)).keys)
        # Closed and opened again: the log of so many inserts is no part of what comes next.
        self.room = postroom.open(file, create=False)

    def some_keys(self, count: int) -> Arguments:
        """From anywhere in the room, so that no cache knows them all."""
        picked = (self._choose.randrange(self.size) for _ in range(count))
        return [(self._keys[at // CHUNK][at % CHUNK],) for at in picked]

    def operation(self, verb: str, times: int) -> tuple[Action, Arguments]:
        if verb == "trace":
            return self.room.trace, self.some_keys(times)
        return (self.room.accept if verb == "accept" else self.room.receive), [(QUEUE,)] * times

    def refill(self) -> None:
        """Back to the size in the name, after receives."""
        missing = self.size - self.room.accept(QUEUE).queues[0].unprocessed
        self.room.send_many(QUEUE, [self._body] * missing)


def measure_growth(directory: Path, sizes: tuple[int, int], rounds: int, times: int, body: str) -> list[Line]:
    directory.mkdir()
    small, large = (FilledRoom(directory / f"{size}.db", size, body) for size in sizes)
    try:
        # Receive comes last: it is the one that changes what the others would look at.
        return [_line(verb, small, large, rounds, times) for verb in ("accept", "trace", "receive")]
    finally:
        small.room.close()
        large.room.close()


def _line(verb: str, small: FilledRoom, large: FilledRoom, rounds: int, times: int) -> Line:
    done: list[Round] = []
    for number in range(rounds + 1):
        actions = {filled.name: filled.operation(verb, times) for filled in (small, large)}
        done.append(run_round(actions, first=number))
        for filled in (small, large):
            filled.refill()
    done = done[1:]  # the first was the warm-up
    ratio = cost_ratio(done, large.name, small.name)
    return Line(
        measure=f"{verb}, {large.name}",
        measured=cost(done, large.name) * 1e6,
        unit="µs",
        result=ratio.median,
        lowest=ratio.lowest,
        highest=ratio.highest,
        relation="<=",
        bound=COST_RATIO_MAX,
        against=small.name,
        other=cost(done, small.name) * 1e6,
    )

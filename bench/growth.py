"""Growth: what an operation costs in a full room, against a nearly empty one."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import postroom
from contenders import QUEUE
from curves import Curve, curve
from lines import Line
from rounds import Action, Arguments, Round, cost, cost_ratio, run_round

CHUNK = 100_000


class FilledRoom:
    """A room with so many unprocessed messages, and their keys."""

    def __init__(self, file: Path, size: int, body: str) -> None:
        self.size = size
        self.name = f"{size:,} stored"
        self._body = body
        self._choose = random.Random(size)
        self._keys: list[Sequence[str]] = []
        with postroom.open(file) as room:
            room.queues.create(QUEUE)
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
        actions: dict[str, Action] = {
            "accept": self.room.queues.accept,
            "receive": self.room.receive,
            "lease and done": self._lease,
        }
        return actions[verb], [(QUEUE,)] * times

    def _lease(self, queue: str) -> None:
        message = self.room.receive(queue, lease=30).message
        assert message is not None
        message.done()

    def refill(self) -> None:
        """Back to the size in the name, after receives."""
        missing = self.size - self.room.queues.accept(QUEUE).queues[0].unprocessed
        self.room.send_many(QUEUE, [self._body] * missing)


class Grown(NamedTuple):
    line: Line  # the largest room against the smallest
    curve: Curve


#: Receive comes last: it is the one that changes what the others would look at.
VERBS = ("accept", "trace", "receive")


def measure_growth(
    directory: Path, sizes: Sequence[int], rounds: int, times: int, body: str, verbs: Sequence[str] = VERBS
) -> Iterator[Grown]:
    directory.mkdir()
    rooms = [FilledRoom(directory / f"{size}.db", size, body) for size in sizes]
    try:
        for verb in verbs:
            yield _grown(verb, rooms, rounds, times)
    finally:
        for filled in rooms:
            filled.room.close()


def _grown(verb: str, rooms: Sequence[FilledRoom], rounds: int, times: int) -> Grown:
    done: list[Round] = []
    for number in range(rounds + 1):
        actions = {filled.name: filled.operation(verb, times) for filled in rooms}
        done.append(run_round(actions, first=number))
        for filled in rooms:
            filled.refill()
    done = done[1:]  # the first was the warm-up
    few, many = rooms[0].name, rooms[-1].name
    costs = {filled.size: [one[filled.name] * 1e6 for one in done] for filled in rooms}
    ratio = cost_ratio(done, many, few)
    others = cost(done, few) * 1e6
    line = Line(f"{verb} with {many}", cost(done, many) * 1e6, "µs", *ratio, f"{verb.split()[0]}-growth", few, others)
    return Grown(line, curve(verb, "messages stored", "µs", costs))

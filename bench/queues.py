"""Measure Postroom beside the same work by hand on ``sqlite3``, beside two queue libraries, and as a room grows.

Everyone works in one run, on one disk, in turns. What counts are the ratios: the absolute figures are the machine's.
A missed bound is said in the table and is no failure of the program.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from commands import measure_commands
from contenders import PEERS, PLAIN, Contender, Durability, open_all, open_batching
from growth import measure_growth
from lines import Line
from program import Bench, run, tell
from rounds import Round, cost, cost_ratio, run_round

BODY_BYTES = 100


@dataclass(frozen=True, slots=True)
class Sizes:
    rounds: int
    warm_up: int  # in full: enough for the log to be written over; while it still grows, commits cost more
    singles: int
    batch: int
    rooms: tuple[int, ...]
    operations: int  # of each verb, in each room, in each round
    commands: int


FULL = Sizes(
    rounds=7,
    warm_up=600,
    singles=3_000,
    batch=100_000,
    rooms=(1_000, 30_000, 1_000_000),
    operations=200,
    commands=7,
)
QUICK = Sizes(rounds=3, warm_up=50, singles=300, batch=10_000, rooms=(1_000, 5_000, 20_000), operations=100, commands=3)


class QueueBench(Bench):
    def __init__(self, folder: Path, sizes: Sizes, master: str) -> None:
        super().__init__(folder, master)
        self._sizes = sizes

    def lines(self) -> Iterator[Line]:
        sizes, folder = self._sizes, self._folder
        tell("single sends and receives")
        sends, receives, durability = measure_singles(folder, sizes, self._rounds(sizes.rounds, share=0.5))
        self.notes += [f"{who}: {kept.told()}" for who, kept in durability.items()]
        self.notes.append(f"{len(sends)} rounds of {sizes.singles:,} sends and receives, {BODY_BYTES} bytes each")
        yield from single_lines("send", sends)
        yield from single_lines("receive", receives)
        tell("sends of many")
        yield _rate_line(f"send of {sizes.batch:,} in one commit", PLAIN, "batch", measure_batches(folder, sizes))
        tell(f"rooms with {', '.join(f'{size:,}' for size in sizes.rooms)} messages")
        for grown in measure_growth(folder / "growth", sizes.rooms, sizes.rounds, sizes.operations, body_number(0)):
            self.curves.append(grown.curve)
            yield grown.line
        tell("the command line")
        yield from measure_commands(folder / "commands", sizes.commands)


def measure_singles(
    directory: Path, sizes: Sizes, numbers: Iterable[int]
) -> tuple[list[Round], list[Round], dict[str, Durability]]:
    """Sends, then receives of the same messages; in new files each round, so that no round inherits from another."""
    sends: list[Round] = []
    receives: list[Round] = []
    durability: dict[str, Durability] = {}
    bodies = [(body_number(number),) for number in range(sizes.singles)]
    for number in numbers:
        place = directory / f"singles-{number}"
        contenders = open_all(place)
        durability = {one.name: one.durability for one in contenders}
        for one in contenders:
            _warm_up(one, sizes.warm_up)
        sends.append(run_round({one.name: (one.send, bodies) for one in contenders}, first=number))
        # The last message stays for the check below.
        calls: list[tuple[()]] = [()] * (sizes.singles - 1)
        receives.append(run_round({one.name: (one.receive, calls) for one in contenders}, first=number))
        for one in contenders:
            last = one.body_of(one.receive())
            assert last == bodies[-1][0], f"{one.name} gave out {last!r} as its last message"
            one.close()
        shutil.rmtree(place)
    return sends, receives, durability


def measure_batches(directory: Path, sizes: Sizes) -> list[Round]:
    """Seconds per message, of one commit with very many."""
    rounds: list[Round] = []
    bodies = [body_number(number) for number in range(sizes.batch)]
    for number in range(sizes.rounds):
        place = directory / f"batch-{number}"
        contenders = open_batching(place)
        for one in contenders:
            _warm_up(one, sizes.warm_up)
        actions = {one.name: (one.send_many, [(bodies,)]) for one in contenders if one.send_many is not None}
        taken = run_round(actions, first=number, slices=1)
        rounds.append({name: seconds / sizes.batch for name, seconds in taken.items()})
        for one in contenders:
            assert one.body_of(one.receive()) == bodies[0]
            one.close()
        shutil.rmtree(place)
    return rounds


def single_lines(verb: str, rounds: Sequence[Round]) -> Iterator[Line]:
    measure = f"{verb}, one durable commit each"
    yield _rate_line(measure, PLAIN, f"{verb}-plain", rounds)
    for peer in PEERS:
        yield _rate_line(measure, peer, f"{verb}-peers", rounds)


def body_number(number: int) -> str:
    """Each its own, so that a message lost or given out twice would be seen."""
    return f"message {number} ".ljust(BODY_BYTES, ".")


def _warm_up(contender: Contender, times: int) -> None:
    """Statements get compiled and files made; and the contender is seen to give back what it was given."""
    for number in range(times):
        contender.send(body_number(-number))
    for number in range(times):
        assert contender.body_of(contender.receive()) == body_number(-number), contender.name


def _rate_line(measure: str, other: str, bound: str, rounds: Sequence[Round]) -> Line:
    ratio = cost_ratio(rounds, other, "postroom")  # a ratio of rates is that of the costs the other way round
    ours, others = 1 / cost(rounds, "postroom"), 1 / cost(rounds, other)
    return Line(measure, ours, "/s", *ratio, bound, other, others)


if __name__ == "__main__":
    sys.exit(run(__doc__, lambda folder, quick, master: QueueBench(folder, QUICK if quick else FULL, master)))

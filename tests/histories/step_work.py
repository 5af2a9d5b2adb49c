"""Processes that send and receive beside two engines, all of them killed now and then, and what it comes to."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.engine import test_holding
from tests.faults.here import evaluate_here
from tests.histories import queues
from tests.histories.record import OK, Operation, Recorder, recorded
from tests.histories.workload import _SERVER, _all

import postroom
from postroom.engine import beating, effects_lease, holding, runner
from postroom.room import Postroom

#: What engines read, and where they put it: each message into both queues.
SOURCES, TARGETS = ("s0", "s1"), ("out", "mirror")
PROGRAM = "".join(
    f"create rule copy-{name} for {name} if (/m) then (\n"
    "do enqueue <m>{concat('r:', string(/m))}</m> into out, do enqueue <m>{concat('r:', string(/m))}</m> into mirror)\n"
    for name in SOURCES
)
PAUSE_SECONDS = 0.01
RUN_SECONDS_MAX = 600  # after which a run has failed


@dataclass(frozen=True)
class Run:
    wrong: list[str]
    processed: int  # messages that engines have taken
    received: int  # that receivers have taken from the same queues
    kills: int


def run(url: str, folder: Path, seed: int, *, calls: int, clients: int, kills: int) -> Run:
    chance = random.Random(seed)
    with postroom.open(url) as room:
        for name in (*SOURCES, *TARGETS):
            room.queues.create(name)
        (folder / "p.demaq").write_text(PROGRAM)
        room.load(folder / "p.demaq")
    numbers = iter(range(100_000))
    engines = [_engine(url, folder, next(numbers)) for _ in range(2)]
    working = [_client(url, folder, next(numbers), seed, calls) for _ in range(clients)]
    killed, end = 0, time.monotonic() + RUN_SECONDS_MAX
    while working and time.monotonic() < end:
        time.sleep(chance.uniform(0.02, 0.2))
        for process, file in [each for each in working if each[0].exitcode is not None]:
            assert process.exitcode == 0, f"{file}: exit {process.exitcode}"
        working = [each for each in working if each[0].exitcode is None]
        if killed < kills and working:
            some: list[tuple[Any, Path]] = chance.choice((engines, working))
            victims = [each for each in some if each[1].exists() and each[1].stat().st_size]
            if victims:
                killed += 1
                process, file = victim = chance.choice(victims)
                process.kill()
                process.join()
                some.remove(victim)
                again = next(numbers)
                engines += [_engine(url, folder, again)] if some is engines else []
                working += [_client(url, folder, again, seed, calls // 2)] if some is working else []
    for process, _ in (*engines, *working):
        process.kill()
        process.join()
    with postroom.open(url) as room:
        evaluate_here(room).run_until_idle()
        wrong = [f"{len(working)} processes were not done"] * bool(working) + [
            str(difference) for difference in room.journal.verify().differences
        ]
        history = recorded(sorted(folder.glob("c*")))
        final = room.store.read(lambda tx: _all(tx, (*SOURCES, *TARGETS)))
        processed = _by_engines(room)
    received = sum(each.verb == "take" and each.asked in SOURCES and each.answer is not None for each in history)
    return Run(wrong + check(history, final, processed), sum(map(len, processed.values())), received, killed)


def _engine(url: str, folder: Path, number: int) -> tuple[Any, Path]:
    file = folder / f"e{number:04d}"
    process = _SERVER.Process(target=lead, args=(url, file), daemon=True)
    process.start()
    return process, file


def _client(url: str, folder: Path, number: int, seed: int, calls: int) -> tuple[Any, Path]:
    file = folder / f"c{number:04d}"
    process = _SERVER.Process(target=work, args=(url, file, seed * 1_000 + number, calls), daemon=True)
    process.start()
    return process, file


def lead(url: str, file: Path) -> None:
    """One engine, until it is killed."""
    for module in (beating, effects_lease, holding, runner):
        module.ENGINE_LEASE_SECONDS = 3.0  # type: ignore[attr-defined]  # each has its own
    with test_holding.engine(url):
        file.write_text("it has begun")
        time.sleep(RUN_SECONDS_MAX)


def work(url: str, file: Path, seed: int, calls: int) -> None:
    """One client: so many calls, each written down before and after."""
    chance = random.Random(seed)
    with postroom.open(url) as room:
        record = Recorder(file)
        for number in range(calls):
            time.sleep(chance.uniform(0, PAUSE_SECONDS))
            _call(room, record, chance, f"{file.name}.{number}")


def _call(room: Postroom, record: Recorder, chance: random.Random, value: str) -> None:
    queue, kind = chance.choice((*SOURCES, *SOURCES, "out")), chance.randrange(8)
    if kind < 4:
        record.call("send", [(queue, value)], lambda: room.send(queue, _body(value), format="xml").key)
    elif kind < 6:
        pair = [f"{value}{letter}" for letter in "ab"]
        bodies = [_body(each) for each in pair]
        record.call(
            "send", [(queue, each) for each in pair], lambda: len(room.send_many(queue, bodies, format="xml").keys)
        )
    else:
        record.call("take", queue, lambda: _value(room.receive(queue)))


def _body(value: str) -> str:
    return f"<m>{value}</m>"


def _value(received: Any) -> str | None:
    return None if received.message is None else _inside(received.message.body)


def _inside(body: str) -> str:
    return body.removeprefix("<m>").removesuffix("</m>")


def _by_engines(room: Postroom) -> dict[str, list[str]]:
    """What engines took from each source, in the order of the journal."""
    found: dict[str, list[str]] = {name: [] for name in SOURCES}
    last = 0
    while page := room.journal.after(last):
        for event in page:
            if event.verb == "take" and event.by == "engine" and event.source in found and event.key is not None:
                found[event.source].append(_inside(room.journal.show(event.key).body))
        last = page[-1].seq
    return found


def _overtaken(queue: str, value: str) -> bool:
    """Whether a step may have had it in hand that came to nothing, or has put it there and had not committed yet."""
    return queue in SOURCES or value.startswith("r:")


def check(
    history: Sequence[Operation],
    final: Mapping[str, Sequence[tuple[str, bool]]],
    processed: Mapping[str, Sequence[str]],
) -> list[str]:
    """What is wrong: the histories of all queues with what engines did, and the order of what engines did."""
    stored = {name: [(_inside(body), waits) for body, waits in rows] for name, rows in final.items()}
    sends = {value: each for each in history for _, value in each.sent}
    whole = list(history)
    for name, values in processed.items():
        for value in values:
            # When an engine took it nobody has noted: at some time after it was sent.
            whole.append(Operation("engine", "take", name, -math.inf, math.inf, OK, value))
            sent, begun = [(target, f"r:{value}") for target in TARGETS], sends[value].begun
            whole.append(Operation("engine", "send", sent, begun, math.inf, OK))
    wrong = queues.check(whole, stored, _overtaken)
    order = [[value for value, _ in stored[target] if value.startswith("r:")] for target in TARGETS]
    if order[0] != order[1]:
        wrong.append(f"{TARGETS[0]} and {TARGETS[1]} have what engines put there in different orders")
    for name, values in processed.items():
        places = {value: place for place, value in enumerate(order[0])}
        found = [(places[f"r:{value}"], sends[value], value) for value in values if f"r:{value}" in places]
        wrong += queues.disordered(f"{name}: processed", found)
    return wrong

"""The engine and the oracle side by side: the same program, the same inputs, and what each of them ended with."""

from __future__ import annotations

import json
import signal
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

import postroom
from postroom.engine.evaluators import Evaluators
from postroom.engine.holding import LEASE
from postroom.engine.spark.executor_store import AnswerStore, Bay, leave_all
from postroom.engine.spark.jobs import receipt
from postroom.engine.steps import step
from postroom.engine.steps.effects import Arrival, Document, Effects, Granule
from postroom.engine.steps.serial import Timeline
from postroom.engine.steps.stage import Turn, Watched
from postroom.engine.steps.watching import steps
from postroom.engine.way import Way, answered
from postroom.errors import EntryRefused
from postroom.limits import STEP_ROUNDS_MAX
from postroom.model.message import Stored
from postroom.room import Postroom
from postroom.rules.evaluation import evaluate
from postroom.rules.evaluation.chunks import packed, settled, together
from postroom.rules.evaluation.share import RulesShare
from postroom.rules.evaluation.worker import RulesTask
from postroom.rules.language.definitions import Program
from postroom.rules.language.reader import parse
from postroom.store.kernel.queues import SYSTEM_ERRORS, Admission
from postroom.store.kernel.transaction import Transaction

from .programs import Case, Input
from .serial import Message, Oracle, Refused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SENDER = "sender"
PROCESSED_MAX = 120  # a program that does not come to rest is compared where it stands
_SYSTEM = {"sender", "errors", "connection"}

Base = Mapping[Granule, Sequence[Document]]


# --- the engine, without Spark -----------------------------------------------------------------------------------


@dataclass
class HereShare:
    """The rules' share of a step, evaluated in this process: what a worker does, with the same rows in and out."""

    share: RulesShare
    random: Random

    @property
    def version(self) -> int:
        return self.share.version

    @property
    def watched(self) -> Watched:
        return self.share.watched

    @property
    def admission(self) -> Admission:
        return self.share.admission

    @property
    def agent(self) -> str:
        return self.share.agent

    def arrivals(self, tx: Transaction, claimed: Sequence[Stored]) -> list[Arrival]:
        return self.share.arrivals(tx, claimed)

    def barring(self, barred: Mapping[str, str]) -> HereShare:
        raise AssertionError("everyone may act here")

    def weight(self, arrivals: Sequence[Arrival]) -> int:
        return self.share.weight(arrivals)

    def evaluate(
        self, way: Way, arrivals: Sequence[Arrival], base: Base, known: Timeline, bay: Bay | None = None
    ) -> Iterator[Mapping[int, Effects]]:
        chunks = [packed(chunk, base, known) for chunk in self._chunks(arrivals)]
        with _alarm_kept():
            answers = self._answers(chunks, bay)
        yield from map(settled, answers)

    def _answers(self, chunks: Sequence[bytes], bay: Bay | None) -> list[bytes]:
        """Handed over, or left in the store by executors that were given keys."""
        task = RulesTask(self.share.plan)
        if bay is None:
            return [answered(task, chunk) for chunk in chunks]
        ticket = bay.ticket()
        return bay.answers(ticket, [receipt(task, ticket, *chunk) for chunk in enumerate(chunks)])

    def folding(self, tx: Transaction, queues: Collection[str]) -> None:
        self.share.folding(tx, queues)

    def keep_warm(self, spark: SparkSession) -> None:
        raise AssertionError("nobody is idle here")

    def _chunks(self, arrivals: Sequence[Arrival]) -> list[list[Arrival]]:
        """As the engine would cut them, or at random: messages in conflict are then in different chunks."""
        count = self.random.randint(1, 4)
        if self.random.random() < 0.5:
            return together(arrivals, min(count, len(arrivals)))
        chunks: list[list[Arrival]] = [[] for _ in range(count)]
        for arrival in arrivals:
            self.random.choice(chunks).append(arrival)
        return [chunk for chunk in chunks if chunk]


@contextmanager
def _alarm_kept() -> Iterator[None]:
    """A worker sets a deadline by a signal; here it must leave none behind."""
    before = signal.getsignal(signal.SIGALRM)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def no_spark() -> SparkSession:
    return None  # type: ignore[return-value]  # nothing here looks at it


# --- both of them ------------------------------------------------------------------------------------------------


class Pair:
    """A room and an oracle with one program, fed and driven alike."""

    def __init__(self, folder: Path, program: str, *, evaluators: Evaluators | None = None) -> None:
        file = folder / "made.demaq"
        file.write_text(program)
        self.clock = 1_000_000_000_000_000
        self.room: Postroom = postroom.open(folder / "room.db", actor=SENDER, clock=lambda: self.clock)
        self.room.load(file)
        self.program = Program(parse(program, "made.demaq"))
        self.oracle = Oracle(self.program, SENDER, self.clock)
        self.partial = 0  # steps that settled less than they claimed
        self._evaluators = evaluators
        self._fence = self.room.store.transact("lease", lambda tx: tx.leases.acquire(LEASE, "pair", 600))
        self._depot = AnswerStore(self.room.url, self._fence)

    def send(self, sent: Input) -> None:
        refused = [False, False]
        try:
            self.room.send(sent.queue, sent.body, format=sent.format, properties=dict(sent.properties))
        except EntryRefused:
            refused[0] = True
        try:
            self.oracle.send(sent.queue, sent.body, sent.format, dict(sent.properties))
        except Refused:
            refused[1] = True
        assert refused[0] == refused[1], f"{sent}: the engine {_said(refused[0])} it, the oracle {_said(refused[1])}"

    def step(self, size: int, random: Random) -> int:
        """One step of the engine, and the same of the oracle."""
        share = RulesShare(self.room.store.read(self.room._parts.programs.plan))
        chosen = HereShare(share, random) if self._evaluators is None else share
        answer_store = self._depot if self._evaluators is None and random.random() < 0.5 else None
        evaluators = self._evaluators or Evaluators(no_spark)
        turn = Turn(self.room.store, self._fence, evaluators, lambda: size, answer_store=answer_store)
        result = next(steps(chosen, turn, ahead=0), None)
        claimed = len(self.oracle.claim(size))
        if claimed != (0 if result is None else result.claimed):
            self.compare()  # tells where they parted
            raise AssertionError(f"the oracle claims {claimed} messages, the engine {result}")
        if result is None:
            return 0
        assert result.messages > 0, "the first message of a step always settles"
        self.partial += result.messages < claimed
        self.oracle.step(size, result.messages)
        return result.messages

    def run(self, size: int, random: Random, most: int = PROCESSED_MAX) -> None:
        """Steps until nothing is left to do, timers included."""
        done = 0
        while done < most:
            made = self.step(size, random)
            done += made
            if not made:
                due = self.oracle.next_due()
                if due is None:
                    return
                self.clock = self.oracle.now = due

    def compare(self) -> None:
        engine, oracle = self._engine_messages(), [oracle_state(each) for each in self.oracle.messages]
        for number, (ours, theirs) in enumerate(zip(engine, oracle, strict=False)):
            said, possible = ours.pop("codes"), theirs.pop("codes")
            assert ours == theirs, f"message {number}:\n  the engine {ours}\n  the oracle {theirs}"
            for code, codes in zip(said, possible, strict=True):
                assert code in codes.split(), f"message {number}: the engine tells {code}, the oracle {codes}\n{ours}"
        assert len(engine) == len(oracle), (
            f"only one has {max(engine, oracle, key=len)[min(len(engine), len(oracle)) :]}"
        )
        slices = self._engine_slices()
        expected = {key: [each.number for each in members] for key, members in self.oracle.slices.items() if members}
        assert slices == expected, f"slices:\n  the engine {slices}\n  the oracle {expected}"

    def _engine_messages(self) -> list[dict[str, Any]]:
        stored = self._stored()
        numbers = {each.key: number for number, each in enumerate(stored)}
        for name, found in self._by_queue().items():
            assert [each.key for each in found] == [each.key for each in stored if each.queue == name]
        return [engine_state(each, numbers) for each in stored]

    def _by_queue(self) -> dict[str, list[Stored]]:
        names = [*self.program.queues, SYSTEM_ERRORS]
        return self.room.store.read(lambda tx: {name: tx.slices.queue(name) for name in names})

    def _stored(self) -> list[Stored]:
        found = [each for some in self._by_queue().values() for each in some]
        return sorted(found, key=lambda each: each.key)  # one process makes all keys: they grow as messages arrive

    def _engine_slices(self) -> dict[tuple[str, str], list[int]]:
        numbers = {each.key: number for number, each in enumerate(self._stored())}

        def work(tx: Transaction) -> dict[tuple[str, str], list[int]]:
            held = {(slicing, value) for key in numbers for slicing, value in tx.slices.holds(key)}
            return {
                (slicing, value): [numbers[each.key] for each in tx.slices.slice(tx.slices.slicing(slicing), value)]
                for slicing, value in held
            }

        return self.room.store.read(work)

    def give_back(self) -> None:
        """Let the room's own engine run."""
        self.room.store.transact("release-lease", lambda tx: tx.leases.release(LEASE, self._fence))

    def close(self) -> None:
        leave_all()
        self._depot.close()
        self.room.close()


def _said(refused: bool) -> str:
    return "refused" if refused else "took"


def engine_state(stored: Stored, numbers: Mapping[int, int]) -> dict[str, Any]:
    properties = json.loads(stored.properties)
    return {
        "queue": stored.queue,
        "format": stored.format,
        **plain_body(stored.body, stored.format),
        "properties": {name: value for name, value in properties.items() if name not in _SYSTEM},
        "processed": stored.processed is not None,
        "cause": None if stored.cause is None else numbers[stored.cause],
    }


def oracle_state(message: Message) -> dict[str, Any]:
    made_by = {} if message.rule is None else {"rule": message.rule}
    return {
        "queue": message.queue,
        "format": message.letter.format,
        **plain_body(message.letter.body, message.letter.format),
        "properties": {**message.properties, **made_by},
        "processed": message.processed,
        "cause": message.cause,
    }


def plain_body(body: str, format: str) -> dict[str, Any]:
    """A body without what may differ: how it is written down, and in errors keys, wording, codes and places."""
    if format != "xml":
        return {"body": json.loads(body) if format == "json" else body, "codes": []}
    root = ElementTree.fromstring(body)
    codes = []
    for error in root.iter("error"):
        for code in error.iterfind("code"):
            codes.append((code.text or "").rpartition(":")[2])
            code.text = None
        for description in error.iterfind("description"):
            description.text = None
        for place in error.findall("place"):
            error.remove(place)
        for initial in error.iterfind("initialMessage"):
            initial.attrib.pop("key", None)
    return {"body": ElementTree.canonicalize(ElementTree.tostring(root, encoding="unicode")), "codes": codes}


def differ(case: Case, folder: Path, *, evaluators: Evaluators | None = None) -> Pair:
    """Run a case on both sides and compare."""
    pair = Pair(folder, case.program, evaluators=evaluators)
    random = Random(case.split)
    limits = pytest.MonkeyPatch()
    limits.setattr(evaluate, "TASK_ROUNDS_MAX", case.rounds)
    limits.setattr(step, "STEP_ROUNDS_MAX", min(case.rounds + 1, STEP_ROUNDS_MAX))
    try:
        for sent in case.inputs[: case.before]:
            pair.send(sent)
        if case.before < len(case.inputs):
            pair.step(case.size, random)
        for sent in case.inputs[case.before :]:
            pair.send(sent)
        pair.run(case.size, random)
        pair.compare()
    finally:
        limits.undo()
        pair.close()
    return pair

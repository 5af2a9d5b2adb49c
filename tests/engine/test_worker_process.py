"""The engine's own worker: the same task as on Spark, within the same bounds, and replaced when it dies."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import pytest

from postroom.engine import worker_process
from postroom.engine.spark.jobs import Job
from postroom.engine.spark.worker import Bounds
from postroom.engine.worker_process import InWorker
from postroom.errors import WorkerUnavailable
from postroom.model.message import Stored


class Word(NamedTuple):
    number: int
    text: str
    failure: str | None = None

    def failing(self, why: str) -> Self:
        return self._replace(failure=why)


def deed(text: str) -> object:
    """What a word does to the worker that reads it."""
    if text == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if text == "loop":
        while True:
            pass
    if text == "eat":
        return [bytearray(1 << 20) for _ in range(8_192)]
    return os.environ.get(text, text.upper())


@dataclass(frozen=True)
class Deeds:
    """Does what words say, within a time."""

    seconds: float = 1.0
    of: object = None
    origins: list[object] = field(default_factory=list)

    @property
    def origin(self) -> object:
        return self.of

    def begin(self) -> None:
        pass

    def read(self, chunk: bytes) -> list[Word]:
        return [Word(*each) for each in json.loads(chunk)]

    def keys(self, work: Sequence[Word]) -> Any:
        raise AssertionError("nothing is read in a store")

    def complete(self, work: Sequence[Word], messages: Mapping[int, Stored]) -> Any:
        raise AssertionError("nothing is read in a store")

    def answer(self, work: Sequence[Word], bounds: Bounds | None, size: int) -> bytes:
        assert bounds is not None
        with bounds._replace(seconds=self.seconds).deadline(size):
            said = [(word.number, word.failure or deed(word.text)) for word in work]
            return json.dumps([os.getpid(), said]).encode()


def words(*texts: str) -> list[Word]:
    return [Word(number, text) for number, text in enumerate(texts)]


def outcomes(task: Deeds, pieces: Sequence[Word]) -> dict[int, str]:
    def pack(some: Sequence[Word]) -> bytes:
        return json.dumps(some).encode()

    def unpack(answer: bytes) -> dict[int, str]:
        return dict(json.loads(answer)[1])

    groups = Job(task, pack, unpack).run(InWorker(), pieces)
    return {number: said for group in groups for number, said in group.items()}


def worker(task: Deeds) -> int:
    """The process that answers next."""
    (answer,) = InWorker().answers(task, [b"[]"])
    return int(json.loads(answer)[0])


def test_chunks_are_answered_by_one_process_that_is_kept() -> None:
    assert outcomes(Deeds(), words("a", "b")) == {0: "A", 1: "B"}
    assert outcomes(Deeds(), []) == {}
    assert worker(Deeds()) == worker(Deeds(2.0)) != os.getpid()


@pytest.mark.parametrize("bad", ["die", "loop", "eat"])
def test_a_piece_that_ends_its_worker_is_named_and_costs_no_other(bad: str) -> None:
    found = outcomes(Deeds(seconds=0.5 if bad == "loop" else 30), words("a", bad, "c"))
    assert (found[0], found[2]) == ("A", "C")
    assert found[1] == "evaluation killed its worker, or exceeded the limit of 10 seconds"


def test_a_worker_that_is_killed_is_replaced_and_nothing_is_lost() -> None:
    before = worker(Deeds())
    os.kill(before, signal.SIGKILL)
    time.sleep(0.05)
    assert outcomes(Deeds(), words("a")) == {0: "A"}
    assert worker(Deeds()) != before


def test_a_worker_sees_no_secrets_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    os.kill(worker(Deeds()), signal.SIGKILL)  # the next one is made with what there is now
    time.sleep(0.05)
    monkeypatch.setenv("POSTROOM_PASSWORD", "hidden")
    monkeypatch.setenv("PYTHON_OF_A_TEST", "shown")
    assert outcomes(Deeds(), words("POSTROOM_PASSWORD", "PYTHON_OF_A_TEST")) == {0: "POSTROOM_PASSWORD", 1: "shown"}


def test_a_task_travels_once_and_one_whose_origin_stays_is_packed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    packed: list[object] = []
    real = worker_process._lesson

    def noted(task: Any) -> Any:
        packed.append(task)
        return real(task)

    monkeypatch.setattr(worker_process, "_lesson", noted)
    origin = object()
    lessons = [worker_process._lessons.of(Deeds(of=None)) for _ in range(2)]
    assert lessons[0] == lessons[1], "known by what they are"
    assert len(packed) == 2
    monkeypatch.setattr("cloudpickle.dumps", lambda task: b"packed")
    for _ in range(3):
        worker_process._lessons.of(Deeds(of=origin))
    assert len(packed) == 3


def test_functions_of_others_travel_by_value() -> None:
    import sys
    from types import ModuleType

    module = ModuleType("only_here")
    exec("def loud(text): return text.upper() + '!'", module.__dict__)
    sys.modules["only_here"] = module
    try:
        InWorker().carry([module.loud])

        @dataclass(frozen=True)
        class Loud(Deeds):
            def answer(self, work: Sequence[Word], bounds: Bounds | None, size: int) -> bytes:
                return json.dumps([0, [(word.number, loud(word.text)) for word in work]]).encode()

        loud = module.loud
        assert outcomes(Loud(), words("a")) == {0: "A!"}
    finally:
        del sys.modules["only_here"]


def test_a_machine_without_room_for_processes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    os.kill(worker(Deeds()), signal.SIGKILL)
    time.sleep(0.05)
    monkeypatch.setattr(worker_process._processes, "_idle", [])

    def refuse(*_: Any, **__: Any) -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "posix_spawn", refuse)
    with pytest.raises(WorkerUnavailable, match=r"no worker process.*temporarily unavailable"):
        list(InWorker().answers(Deeds(), [b"[]"]))
    with pytest.raises(WorkerUnavailable):
        InWorker().start(["json"])

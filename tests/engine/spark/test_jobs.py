"""Work for Spark: what crosses, by both ways, in how many parts, and what comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import pyarrow
import pytest
from pyspark.sql import SparkSession
from tests.conftest import Urls

import postroom
from postroom.engine.spark import jobs
from postroom.engine.spark.arrow import packed_rows, packed_values
from postroom.engine.spark.executor_store import AnswerStore, Receipt, Ticket
from postroom.engine.spark.jobs import Job, OnSpark, evenly, receipt
from postroom.engine.spark.worker import Bounds
from postroom.engine.way import answered
from postroom.errors import StoreUnavailable
from postroom.model.key import key_number
from postroom.model.message import Stored
from postroom.store.kernel.batch import Stale


class Word(NamedTuple):
    number: int
    text: str
    key: int = 0
    failure: str | None = None

    def failing(self, why: str) -> Self:
        return self._replace(failure=why)


@dataclass(frozen=True)
class Shouting:
    """Makes words loud; one of them ends its worker."""

    ends: str = ""

    @property
    def origin(self) -> object:
        return None

    def begin(self) -> None:
        pass

    def read(self, chunk: bytes) -> list[Word]:
        return [Word(*each) for each in json.loads(chunk)]

    def keys(self, work: Sequence[Word]) -> tuple[list[int], list[int]]:
        keys = [word.key for word in work]
        return keys, keys

    def complete(self, work: Sequence[Word], messages: Mapping[int, Stored]) -> list[Word]:
        return [word._replace(text=messages[word.key].body) for word in work]

    def answer(self, work: Sequence[Word], bounds: Bounds | None, size: int) -> bytes:
        if any(word.text == self.ends and word.failure is None for word in work):
            import os

            os._exit(1)
        return json.dumps([(word.number, word.failure or word.text.upper()) for word in work]).encode()


def pack(words: Sequence[Word]) -> bytes:
    return json.dumps(words).encode()


def unpack(answer: bytes) -> dict[int, str]:
    return dict(json.loads(answer))


def outcomes(groups: Iterator[Mapping[int, str]]) -> dict[int, str]:
    return {number: said for group in groups for number, said in group.items()}


@pytest.mark.parametrize(("length", "count"), [(0, 1), (1, 1), (7, 3), (200, 2), (5, 9)])
def test_pieces_are_split_evenly_and_none_is_lost(length: int, count: int) -> None:
    words = [Word(number, "w") for number in range(length)]
    chunks = evenly(words, count)
    assert [word for chunk in chunks for word in chunk] == words
    assert len(chunks) <= count


def test_a_chunk_is_answered_as_it_is() -> None:
    assert unpack(answered(Shouting(), pack([Word(3, "a"), Word(4, "b")]))) == {3: "A", 4: "B"}


def test_chunks_go_out_and_answers_come_back(spark: SparkSession) -> None:
    job = Job(Shouting(), pack, unpack)
    words = [Word(number, f"w{number}") for number in range(200)]
    assert outcomes(job.run(OnSpark(spark), words)) == {number: f"W{number}" for number in range(200)}
    assert outcomes(job.run(OnSpark(spark), [])) == {}
    job.keep_warm(OnSpark(spark))


def test_a_piece_that_ends_its_worker_costs_no_other(spark: SparkSession) -> None:
    found = outcomes(
        Job(Shouting("bad"), pack, unpack).run(OnSpark(spark), [Word(0, "a"), Word(1, "bad"), Word(2, "c")])
    )
    assert (found[0], found[2]) == ("A", "C")
    assert "killed its worker" in found[1]


def test_by_the_store_keys_go_out_and_receipts_come_back(urls: Urls, spark: SparkSession) -> None:
    with postroom.open(urls()) as room:
        room.queues.create("q", keep_processed=False)
        keys = [key_number(key) for key in room.send_many("q", [f"w{number}" for number in range(150)]).keys]
        words = [Word(number, "", key) for number, key in enumerate(keys)]
        with closing(AnswerStore(room.url, 1)) as answer_store:
            bay = answer_store.bay()
            job = Job(Shouting(), pack, unpack, bay)
            assert outcomes(job.run(OnSpark(spark), words)) == {number: f"W{number}" for number in range(150)}
            room.receive("q")
            with pytest.raises(Stale):
                list(job.run(OnSpark(spark), words[:1]))
            away = jobs.receipt(Shouting(), Ticket("postgresql://x@127.0.0.1:1/x", 1, 1, 1), 3, pack(words))
            assert (away.chunk, bool(away.trouble)) == (3, True)
            with pytest.raises(StoreUnavailable, match="could not use the room"):
                jobs.answers_left(bay, lambda ticket: packed_rows([away.packed()]))


def test_the_way_by_the_store_takes_messages_as_they_are_there(sqlite_url: str) -> None:
    with postroom.open(sqlite_url) as room:
        room.queues.create("q")
        word = Word(7, "", key_number(room.send("q", "there").key))
        with closing(AnswerStore(room.url, 1)) as answer_store:
            bay = answer_store.bay()
            ticket = bay.ticket()
            assert receipt(Shouting(), ticket, 0, pack([word])) == Receipt(0)
            assert [unpack(each) for each in bay.answers(ticket, [Receipt(0)])] == [{7: "THERE"}]
            assert Ticket.of(room.url, str(ticket)) == ticket


# --- planned jobs ---


def _echo(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            parts = [row for rows in jobs.part(number) for row in rows.column(0).to_pylist()]
            yield packed_rows([json.dumps([jobs.task_number(), number, jobs.told(), parts]).encode()])


def test_a_planned_job_is_told_and_given_what_is_its_own(spark: SparkSession) -> None:
    frame = jobs.tasks(spark, 3).mapInArrow(_echo, jobs.PACKED)

    def run(told: str, *parts: list[int]) -> list[Any]:
        rows = [pyarrow.RecordBatch.from_pydict({"n": part}) for part in parts]
        found = jobs.run_planned(spark, frame, told, rows)
        return sorted(json.loads(value) for value in packed_values(found))

    assert run("first", [1, 2], [3]) == [[0, 0, "first", [1, 2]], [1, 1, "first", [3]], [2, 2, "first", []]]
    assert run("second") == [[number, number, "second", []] for number in range(3)], "nothing is left of the first"
    assert spark.sparkContext.getLocalProperty("postroom.job") is None


def test_progress_is_known_by_group(spark: SparkSession) -> None:
    spark.sparkContext.setJobGroup("counted", "counted")
    try:
        jobs.run_planned(spark, jobs.tasks(spark, 3).mapInArrow(_echo, jobs.PACKED), "")
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # takes it away
    done, total = jobs.progress(spark, "counted")
    assert 0 <= done <= total <= 3
    assert jobs.progress(spark, "nobody") == (0, 0)

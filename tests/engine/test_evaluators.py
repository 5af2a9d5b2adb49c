"""Which way a step goes, and when Spark is started for it."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from postroom.engine import evaluators as module
from postroom.engine.evaluators import LOCAL, Choice, Evaluators, choice
from postroom.errors import ArgumentInvalid, SparkUnavailable
from postroom.limits import WORKER_MESSAGES_MAX


class Session:
    """Counts how often Spark is asked for."""

    def __init__(self) -> None:
        self.asked = 0
        self.may_start = threading.Event()
        self.may_start.set()

    def __call__(self) -> Any:
        assert self.may_start.wait(10)
        self.asked += 1
        return cast(Any, self)


def test_few_messages_go_to_a_worker_and_many_to_spark() -> None:
    spark = Session()
    evaluators = Evaluators(spark)
    assert evaluators.way(WORKER_MESSAGES_MAX).name == "worker"
    assert (spark.asked, evaluators.has_spark) == (0, False)
    assert evaluators.way(WORKER_MESSAGES_MAX + 1).name == "spark"
    assert (spark.asked, evaluators.has_spark) == (1, True)
    assert evaluators.way(1).name == "worker", "also beside a Spark that runs"
    assert Evaluators(spark, always=True).way(1).name == "spark"


def test_while_there_is_no_spark_steps_take_what_needs_none() -> None:
    spark = Session()
    spark.may_start.clear()
    evaluators = Evaluators(spark)
    assert evaluators.step_size(1_000) == WORKER_MESSAGES_MAX
    evaluators.begin()
    evaluators.begin()
    assert evaluators.has_begun
    assert evaluators.step_size(1_000) == WORKER_MESSAGES_MAX, "it is on its way"
    spark.may_start.set()
    assert evaluators._started.wait(10)
    assert (evaluators.step_size(1_000), spark.asked) == (1_000, 1)
    assert Evaluators(spark, always=True).step_size(1_000) == 1_000


def test_a_backlog_that_lasts_is_worth_starting_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    evaluators = Evaluators(Session())
    for seconds, more in ((0.0, True), (0.9, True), (0.05, False), (5.0, True), (0.9, True)):
        now[0] += seconds
        evaluators.note(more)
        assert not evaluators.has_begun
    now[0] += 0.2
    evaluators.note(True)
    assert evaluators.has_begun


def test_a_spark_that_does_not_start_is_told() -> None:
    def broken() -> Any:
        raise SparkUnavailable(master="a test", why="there is none", advice="")

    evaluators = Evaluators(broken)
    evaluators.check()
    evaluators.begin()
    assert evaluators._starting is not None
    evaluators._starting.join(10)
    with pytest.raises(SparkUnavailable):
        evaluators.check()


@pytest.mark.parametrize(
    ("said", "master", "conf", "found"),
    [
        (None, LOCAL, {}, Choice.AUTO),
        (None, "local[2]", {}, Choice.ALWAYS),
        (None, LOCAL, {"spark.sql.shuffle.partitions": "4"}, Choice.ALWAYS),
        (None, "spark://host:7077", {}, Choice.ALWAYS),
        ("auto", "local[2]", {"a": "b"}, Choice.AUTO),
        ("always", LOCAL, {}, Choice.ALWAYS),
    ],
)
def test_whoever_gives_a_master_or_settings_has_spark_evaluate(
    said: str | None, master: str, conf: dict[str, str], found: Choice
) -> None:
    assert choice(said, master, conf) is found


def test_the_environment_chooses_where_nobody_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTROOM_SPARK", "always")
    assert choice(None, LOCAL, {}) is Choice.ALWAYS
    assert choice("auto", LOCAL, {}) is Choice.AUTO
    monkeypatch.setenv("POSTROOM_SPARK", "never")
    with pytest.raises(ArgumentInvalid, match="'never' is not one of: auto, always"):
        choice(None, LOCAL, {})
    with pytest.raises(ArgumentInvalid, match="auto is for a local master"):
        choice("auto", "spark://host:7077", {})

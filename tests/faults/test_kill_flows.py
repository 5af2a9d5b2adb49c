"""A graph that changes under load on real Spark, killed: nothing that was acknowledged is lost, none comes twice."""

from __future__ import annotations

import json
import random
import re
import signal
from pathlib import Path
from time import sleep

import pytest
from pyspark.sql import SparkSession

import postroom

from .test_kill_engine import Workload, started

MASTER = "local[2]"
LABELS = ("claim", "step", "publish", "subscribe", "unsubscribe", "connect", "disconnect", "load")
POINTS = [f"{label}.{moment}" for label in LABELS for moment in ("begun", "committing", "committed")]


class FlowLoad(Workload):
    module = "tests.faults.flow_workload"


def check(url: str, said: str) -> None:
    """Every acknowledged event is at both consumers, once and in order; no other is there that was not begun."""
    begun = {int(number) for number in re.findall(r"^begin event (\d+)$", said, re.M)}
    done = {int(number) for number in re.findall(r"^ok event (\d+)$", said, re.M)}
    with postroom.open(url) as room:
        if not room.flows.graph().domains:
            assert not begun
            return
        keeper = room.client("keeper")
        if any(not each.connected for each in keeper.subscriptions()):
            keeper.connect()
        room.run_until_idle(master=MASTER)
        subscribed = {space.name for space in room.flows.graph().spaces}
        for space in ("All", "keeper"):
            numbers = (
                [json.loads(message.body)["n"] for message in room.queues.info(space)] if space in subscribed else []
            )
            assert numbers == sorted(set(numbers)), f"{space}: twice, or out of order"
            assert done <= set(numbers) <= begun, f"{space}: lost or invented"
        passed = [json.loads(message.body)["n"] for message in room.queues.history("Middle")]
        assert passed == [json.loads(message.body)["n"] for message in room.queues.info("All")]
        assert not room.queues.info("Middle").messages
        assert not room.queues.info("In").messages
        assert not room.queues.info("postroom-errors").messages


def killed_at(point: str, url: str, folder: Path) -> None:
    nth = 3 if point.partition(".")[0] in ("claim", "step", "publish", "connect", "disconnect") else 1
    with started(url, folder, "1", 60, fault=f"{point}:kill:{nth}", kind=FlowLoad) as workload:
        assert workload.end() == -signal.SIGKILL, workload.complaints[-2000:]
        said = workload.said
    check(url, said)


@pytest.mark.parametrize("point", [pytest.param(point, marks=pytest.mark.slow) for point in POINTS])
def test_killed_at_a_commit_every_event_flows_once(url: str, tmp_path: Path, spark: SparkSession, point: str) -> None:
    killed_at(point, url, tmp_path)


@pytest.mark.slow  # rules and client: test_kill_engine.py, and below
def test_killed_before_a_step_commits(sqlite_url: str, tmp_path: Path, spark: SparkSession) -> None:
    killed_at("step.committing", sqlite_url, tmp_path)


def test_killed_when_a_client_has_come_back(postgres_url: str, tmp_path: Path, spark: SparkSession) -> None:
    killed_at("connect.committed", postgres_url, tmp_path)


@pytest.mark.slow
def test_killed_at_random_moments_again_and_again(url: str, tmp_path: Path, spark: SparkSession) -> None:
    chance = random.Random(11)
    said = ""
    for number in range(1, 6):
        with started(url, tmp_path, str(number), 300, kind=FlowLoad) as workload:
            workload.wait_for("step 1\n")
            sleep(chance.uniform(0, 4))
            workload.kill()
            said += workload.said
    assert said.count("ok event") > 50
    check(url, said)


@pytest.mark.slow
def test_on_a_cluster_whose_executor_dies(url: str, tmp_path: Path, spark: SparkSession) -> None:
    from .test_kill_engine import kill_one

    with started(url, tmp_path, "1", 120, master="local-cluster[2,1,1024]", kind=FlowLoad) as workload:
        workload.wait_for("step 3\n")
        kill_one(workload, "CoarseGrainedExecutorBackend")
        assert workload.end() == 0, workload.complaints[-2000:]
        said = workload.said
    assert said.count("ok event") == 120
    check(url, said)

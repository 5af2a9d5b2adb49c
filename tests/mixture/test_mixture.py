"""Whatever is mixed, on both stores: one place, once, in order, compensated and retained as promised, as journalled."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from tests.mixture import run
from tests.mixture.world import LABELS, STEPS, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NewRoom = Callable[[Path], str]
SMALL = st.integers(0, 59)
_schemas = count(1)


@pytest.fixture(params=["sqlite", "postgres"])
def new_room(request: pytest.FixtureRequest) -> NewRoom:
    """One room after another."""
    if request.param == "sqlite":
        return lambda folder: str(folder / "room.db")
    server: str = request.getfixturevalue("postgres_server")

    def made(folder: Path) -> str:
        schema = f"mixture_{next(_schemas)}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(psycopg.sql.SQL("CREATE SCHEMA {}").format(psycopg.sql.Identifier(schema)))
        return f"{server}&options=-csearch_path%3D{schema}"

    return made


def machine(new_room: NewRoom) -> type[RuleBasedStateMachine]:
    """A state machine over fresh rooms; the journal is replayed after every step."""

    class Mixture(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.folder = Path(tempfile.mkdtemp(prefix="mix", dir="/tmp"))
            self.world = World(new_room(self.folder), self.folder)
            self.sound = True

        @rule(name=st.sampled_from(STEPS), a=SMALL, b=SMALL, c=SMALL)
        def step(self, name: str, a: int, b: int, c: int) -> None:
            self.sound = False
            self.world.step(name, a, b, c)
            self.world.verify()
            self.sound = True

        def teardown(self) -> None:
            try:
                if self.sound:
                    self.world.finish()
            finally:
                self.world.room.close()
                shutil.rmtree(self.folder)

    return Mixture


def mixed(new_room: NewRoom, examples: int, steps: int) -> None:
    calm = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine(new_room), settings=calm)


def test_every_step_may_follow_every_other(new_room: NewRoom) -> None:
    mixed(new_room, examples=2, steps=16)


@pytest.mark.slow
def test_every_step_may_follow_every_other_at_length(new_room: NewRoom) -> None:
    mixed(new_room, examples=40, steps=60)


def test_a_seeded_run(new_room: NewRoom, tmp_path: Path) -> None:
    """Long enough for all kinds of steps."""
    world = World(new_room(tmp_path), tmp_path)
    played = run.play(world, run.random_steps(335, 60), tell=False)
    world.room.close()
    assert len({name for name, *_ in played}) > len(STEPS) * 0.7
    assert world.model.answers
    assert world.model.passed
    assert world.killed.total() > 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 12])
def test_a_long_run_on_spark(new_room: NewRoom, tmp_path: Path, spark: SparkSession, seed: int) -> None:
    world = World(new_room(tmp_path), tmp_path, here=False)
    run.play(world, run.random_steps(seed, 500), tell=False)
    world.room.close()
    labels = {point.partition(".")[0] for point in world.killed}
    assert labels > {"send", "sphere-send"}, "by chance; the next test has all of them"


@pytest.mark.slow
def test_killed_at_every_moment_of_every_commit(new_room: NewRoom, tmp_path: Path) -> None:
    """One after another, in a room where something of everything is under way."""
    world = World(new_room(tmp_path), tmp_path)
    names = sorted(LABELS)
    steps = [
        ("kill", len(names) * 7 + names.index(name), label, moment)
        for name, labels in LABELS.items()
        for label in range(len(labels))
        for moment in range(3)
    ]
    between = run.random_steps(5, 10 * len(steps))
    run.play(world, (next(between) if place % 3 else steps[place // 3] for place in range(3 * len(steps))), tell=False)
    world.room.close()
    labels = {point.partition(".")[0] for point, times in world.killed.items() if times}
    assert labels >= {"send", "receive", "publish", "create", "ship", "step", "desks", "sphere-send", "compensate"}


def test_a_run_that_fails_says_which_steps_led_to_it(new_room: NewRoom, tmp_path: Path) -> None:
    world = World(new_room(tmp_path), tmp_path)
    world.model.queues["keeping"].waiting.append("what was never sent")
    with pytest.raises(AssertionError) as failure:
        run.play(world, iter([("send", 1, 0, 0)]), tell=False)
    assert failure.value.__notes__ == ["after these steps: [('send', 1, 0, 0)]"]
    world.room.close()

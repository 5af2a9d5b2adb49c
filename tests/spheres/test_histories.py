"""Random histories leave each booking where the end of its sphere puts it, and nothing else."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.faults.here import evaluate_here

import postroom
from postroom.room import Postroom

from .histories import QUEUES, History, remains
from .invariants import check

SOME, ALL = 6, 400


def lived(room: Postroom, seed: int, steps: int = 40) -> list[str]:
    for queue in QUEUES:
        room.queues.create(queue, keep_processed=seed % 2 == 0)
    history = History(room, random.Random(seed))
    history.run(steps)
    room.spheres.compensate()
    return remains(history)


@pytest.mark.parametrize(
    "seeds", [pytest.param(range(SOME), id="some"), pytest.param(range(SOME, ALL), id="all", marks=pytest.mark.slow)]
)
def test_random_histories_leave_no_phantom(tmp_path: Path, seeds: range) -> None:
    for seed in seeds:
        with postroom.open(str(tmp_path / f"{seed}.db")) as room:
            assert lived(room, seed) == [], f"seed {seed}"
            check(room, over=True)
            assert room.journal.verify().differences == (), f"seed {seed}"


@pytest.mark.parametrize("seed", [2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 40))])
def test_random_histories_leave_no_phantom_in_postgres(postgres_url: str, seed: int) -> None:
    with postroom.open(postgres_url) as room:
        assert lived(room, seed) == []
        check(room, over=True)
        assert room.journal.verify().differences == ()


PROGRAM = """
create queue flight kind basic mode persistent
create queue hotel kind basic mode persistent
create queue car kind basic mode persistent
create queue seen kind basic mode persistent
create rule pass for flight
if (starts-with(string(qs:message()), "do ")) then do enqueue <seen>{string(qs:message())}</seen> into seen
"""


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 100), marks=pytest.mark.slow)])
def test_what_rules_made_in_random_histories_has_their_end(tmp_path: Path, seeds: range) -> None:
    (tmp_path / "p.demaq").write_text(PROGRAM)
    for seed in seeds:
        with postroom.open(str(tmp_path / f"rules {seed}.db")) as room:
            room.load(tmp_path / "p.demaq")
            evaluate_here(room)
            history = History(room, random.Random(seed), room.run_until_idle)
            history.run(40)
            room.spheres.compensate()
            gone = {name for name, (id, _) in history.sends.items() if room.spheres.show(id).sphere.state == "ABORTED"}
            seen = {message.body for message in room.queues.info("seen")}
            assert not {f"<seen>do {name}</seen>" for name in gone} & seen, f"seed {seed}"
            check(room, over=True)
            assert room.journal.verify().differences == (), f"seed {seed}"

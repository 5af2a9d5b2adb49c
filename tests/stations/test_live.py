"""The real thing: processes ship messages around four nodes while queries run; each message is found once by each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.stations.world import desk, network

ROOT = Path(__file__).parents[2]
NODES = ("north", "east", "south", "west")


def moved(folder: Path) -> int:
    """How many moves were made so far; a file that is being written counts as nothing."""
    return sum(int(file.read_text() or 0) for file in folder.glob("moved-*"))


def live(url: str, folder: Path, nodes: dict[str, str], messages: int, queries: int) -> None:
    """Ask so many queries, and more until more messages have moved in the midst of them than there are."""
    homes = {f"s{n}": ("control", *NODES)[n % 5] for n in range(10)}
    stop = folder / "stop"
    with network(url, folder, nodes, homes) as room:
        keys: set[str] = set()
        for number, name in enumerate(homes):
            batch = [{"To": name, "Count": n, "Text": f"text {n % 10}"} for n in range(messages // len(homes))]
            keys |= set(desk(room, name).create_many("NOTE", batch))
            assert number < len(homes)
        movers = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.stations.mover", url, str(seed), f"s{seed},s{seed + 5}", str(stop)],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                text=True,
            )
            for seed in range(5)
        ]
        asked = meanwhile = 0
        try:
            for mover in movers:
                assert mover.stdout is not None
                assert mover.stdout.readline() == "begun\n"
            while asked < queries or meanwhile <= messages:
                assert asked < 20 * queries, f"{meanwhile} moves during {asked} queries"
                before = moved(folder)
                everything = desk(room, "s0").query("NOTE", scope="global", timeout=300)
                found = [image.key for image in everything]
                assert len(found) == len(set(found)), "counted twice"
                assert set(found) == keys, f"missed {len(keys - set(found))}"
                some = desk(room, "s1").query("NOTE", Text="text 3", scope="global", timeout=300)
                assert len(some) == len(keys) // 10
                asked, meanwhile = asked + 1, meanwhile + max(0, moved(folder) - before)
        finally:
            stop.touch()
            for mover in movers:
                mover.communicate(timeout=120)
        assert [mover.returncode for mover in movers] == [0] * len(movers)
        for node in ("control", *NODES):
            room._parts.network.store(node)
        assert {image.key for image in desk(room, "s2").query("NOTE", scope="global")} == keys


@pytest.mark.parametrize(
    ("messages", "queries"), [(500, 3), pytest.param(10_000, 20, marks=pytest.mark.slow)], ids=["some", "10,000"]
)
def test_queries_while_mail_moves(messages: int, queries: int, tmp_path: Path, spark: SparkSession) -> None:
    nodes = {name: str(tmp_path / f"{name}.db") for name in NODES}
    live(str(tmp_path / "room.db"), tmp_path, nodes, messages, queries)


@pytest.mark.slow
def test_queries_while_mail_moves_through_postgres(tmp_path: Path, postgres_url: str, spark: SparkSession) -> None:
    """The control node on PostgreSQL, whose transactions do not wait for one another."""
    nodes = {name: str(tmp_path / f"{name}.db") for name in NODES}
    live(postgres_url, tmp_path, nodes, 2_000, 10)

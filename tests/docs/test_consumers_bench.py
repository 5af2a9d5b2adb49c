"""The benchmark of consumers runs, and its contenders do what is measured; figures are for a machine at rest."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import clients
import consumers
import leases
import pressure
import results
import server
from bounds import BOUNDS
from chaos import CHAOS
from clients import Setting
from contenders import PLAIN
from load import Load
from pressure import PRESSURE

ROOT = Path(__file__).parents[2]

#: Counts what was sent and is not done, in the tables of each.
LEFT = {
    clients.OURS: "SELECT count(*) FROM messages WHERE state <> 0",
    clients.PROCRASTINATE: "SELECT count(*) FROM procrastinate_jobs WHERE status <> 'succeeded'",
    clients.PGQUEUER: "SELECT count(*) FROM pgqueuer",
}


@pytest.mark.slow
def test_a_quick_run_has_every_figure_that_was_asked_and_every_scenario(tmp_path: Path) -> None:
    kept = tmp_path / "consumers.json"
    command = [sys.executable, str(ROOT / "bench" / "consumers.py"), "--quick", "--json", str(kept)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    found = results.read(kept)["consumers"]
    assert {line.bound for line in found.lines} == set(BOUNDS["consumers"])
    told = [note.partition(":")[0].strip("`") for note in found.notes if note.startswith("`")]
    assert told == [*PRESSURE, *CHAOS]
    assert any("fsync on, synchronous_commit on" in note for note in found.notes)


def test_everyone_on_postgres_does_each_call_once_and_all_is_durable() -> None:
    setting = Setting(clients=2, queues=1, calls=3, warm_up=2)
    with server.server() as found:
        assert "fsync on, synchronous_commit on, full_page_writes on" in server.durability(found)
        for name, left in LEFT.items():
            with server.database(found, name) as made:
                clients.PREPARE[name](made.url, setting.queues)
                sent = clients.turns(clients.SEND, {name: made.url}, setting, 0)[name]
                assert sent.rate > 0
                with psycopg.connect(made.url) as connection:
                    assert connection.execute(left.encode()).fetchone() == (setting.messages,)
                clients.turns(clients.WORK, {name: made.url}, setting, 1)
                with psycopg.connect(made.url) as connection:
                    assert connection.execute(left.encode()).fetchone() == (0,)
        refused, scratch = pytest.raises(AssertionError, match="scratch"), server.database(found, "forgetful")
        with refused, scratch as made, psycopg.connect(made.url, autocommit=True) as connection:
            connection.execute("CREATE UNLOGGED TABLE scratch (x int)")
        with psycopg.connect(found.get_uri()) as connection:
            names = {name for (name,) in connection.execute("SELECT datname FROM pg_database")}
        assert names.isdisjoint({*LEFT, "forgetful"})


def name_of(database: server.Database) -> str:
    return str(conninfo_to_dict(database.url)["dbname"])


class Told(consumers.ConsumerBench):
    """A part that consists of its scenarios."""

    def happen(self, scenarios: Mapping[str, server.Scenario]) -> None:
        with server.server() as found:
            self._survive(found, scenarios)


def test_a_scenario_that_fails_is_told_and_the_others_happen(tmp_path: Path) -> None:
    def lost(database: server.Database, seconds: float) -> str:
        raise AssertionError("2 of 7 lost")

    bench = Told(tmp_path, consumers.QUICK, "")
    with pytest.raises(AssertionError, match="lost: see the notes"):
        bench.happen({"lost": lost, "kill": lambda database, seconds: f"{seconds:g} s in {name_of(database)}"})
    assert bench.notes == ["`lost`: FAILED: 2 of 7 lost", "`kill`: 1 s in kill"]


def test_less_than_half_of_the_rate_of_before_is_said(tmp_path: Path) -> None:
    """Two calls a second at first; then one in two seconds or, at the end of the pressure, two again."""
    told = []
    for under, last in ((2, 1), (6, 2)):
        load = Load("", tmp_path / str(under))
        load.folder.mkdir()
        times = [0.0, 0.5, 1.0, 1.5, 2.1, *([7.0] if last == 1 else [6.1, 6.6, 7.1, 7.6]), 9.0]
        (load.folder / "c0.log").write_text("".join(f"{at} take v{at} 0.01\n" for at in times))
        told.append(pressure._told(load, [0.0, 2.0, 8.0, 10.0]))
    assert told == [
        "2 /s (10 ms) before, 0 /s (10 ms) under it (0 /s at its end, NOT HELD: less than half of before), "
        "0 /s (10 ms) after",
        "2 /s (10 ms) before, 1 /s (10 ms) under it (2 /s at its end), 0 /s (10 ms) after",
    ]


def test_leases_and_sends_on_sqlite_are_measured_in_turns(tmp_path: Path) -> None:
    notes: list[str] = []
    (taken,) = leases.beside_peers(tmp_path, [0], 20, notes)
    assert set(taken) == {leases.CALLS, leases.LOOP, "persist-queue", "litequeue"}
    assert min(taken.values()) > 0
    assert [note.rpartition(": ")[2] for note in notes] == ["synchronous 2 (FULL), journal_mode wal"] * 2
    (taken,) = leases.together(tmp_path, [0], tasks=4, messages=200)
    assert set(taken) == {leases.TASKS, PLAIN}
    shared = leases.side_by_side(tmp_path / "shared.db", clients=2, calls=5)
    assert shared.longest > 0
    assert shared.rate > 0
    assert [file.name for file in tmp_path.iterdir() if file.is_dir()] == []

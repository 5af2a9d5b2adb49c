"""What a queue on a server must survive: nothing sent is lost, nothing is taken twice, and it goes on by itself."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep, time
from typing import Any

import psycopg

from load import Load, complete, consume, load, produce
from server import Database, Scenario

_OTHERS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = %s"
_RECOVERED_SECONDS_MAX = 30.0
KILLS, ENDS = 4, 2


@contextmanager
def _busy(database: Database, seconds: float, clients: int = 3) -> Iterator[Load]:
    with tempfile.TemporaryDirectory() as name, load(database.url, Path(name) / "load") as made:
        made.start(produce, clients, pause=0.002)
        made.start(consume, 1)
        made.start(complete, clients - 1)
        sleep(seconds)
        yield made


def _recovered(made: Load, since: float) -> str:
    """After how long someone sent, and someone took, who began after an event."""
    while True:
        calls = [call for call in made.calls() if call.at - call.seconds > since]
        found = {call.verb: call.at - since for call in reversed(calls)}
        if {"send", "take"} <= found.keys():
            return f"going on after {max(found['send'], found['take']):.1f} s"
        assert time() - since < _RECOVERED_SECONDS_MAX, f"only {found} after {_RECOVERED_SECONDS_MAX} s"
        sleep(0.1)


def kill(database: Database, seconds: float) -> str:
    """A consumer that waits is killed, and has a successor."""
    with tempfile.TemporaryDirectory() as name, load(database.url, Path(name) / "load") as made:
        made.start(complete, 2)
        sleep(3)
        made.kill("c")
        since = time()
        made.start(consume, 1)
        made.start(produce, 1)
        return f"{_recovered(made, since)}; {made.judged()}"


def kill_under_load(database: Database, seconds: float) -> str:
    with _busy(database, seconds) as made:
        made.kill("c")
        made.kill("p")
        since = time()
        made.start(produce, 1)
        made.start(consume, 1)
        return f"{_recovered(made, since)}; {made.judged()}"


def repeated_kills(database: Database, seconds: float) -> str:
    with _busy(database, seconds) as made:
        for number in range(KILLS):
            kind, what = (("c", complete), ("p", produce))[number % 2]
            made.kill(kind)
            made.start(what, 1)
            sleep(0.5)
        since = time()
        return f"{_recovered(made, since)}; {made.judged()}"


def backends_terminated(database: Database, seconds: float) -> str:
    """The connections of all are ended."""
    with _busy(database, seconds) as made:
        for _ in range(ENDS):
            with psycopg.connect(database.url, autocommit=True) as connection:
                connection.execute(_OTHERS, ("client backend",))
            since = time()
            sleep(0.5)
        return f"{_recovered(made, since)}; {made.judged()}"


def database_restarted(database: Database, seconds: float) -> str:
    """As if the machine had failed: the server ends at once, and is started again."""
    with _busy(database, seconds) as made:
        process = database.server.get_pid()
        os.kill(process, signal.SIGQUIT)
        while _runs(process):
            sleep(0.05)
        database.server.ensure_postgres_running()
        since = time()
        return f"{_recovered(made, since)}; {made.judged()}"


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def pool_exhausted(database: Database, seconds: float) -> str:
    """No connection is left for those who come; when some are, they go on."""
    taken: list[Any] = []
    with _busy(database, seconds) as made:
        try:
            while True:
                taken.append(psycopg.connect(database.url, autocommit=True))
        except psycopg.OperationalError:
            pass
        made.start(consume, 2)
        sleep(2)
        refused = any(call.verb == "error" for call in made.calls())
        for connection in taken:
            connection.close()
        since = time()
        told = _recovered(made, since)
        assert refused, "newcomers were refused by a typed error"
        return f"{len(taken)} connections taken by others; {told}; {made.judged()}"


CHAOS: dict[str, Scenario] = {
    scenario.__name__: scenario
    for scenario in (kill, kill_under_load, repeated_kills, backends_terminated, database_restarted, pool_exhausted)
}

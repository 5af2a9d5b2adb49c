"""Workers of Postroom and of other libraries: jobs that do nothing, from the first enqueued to the last done.

Everyone has eight workers and its own way to enqueue many at once, if it has one. They take turns; on PostgreSQL each
has a database of its own on one server, on SQLite a file of its own, and every commit is on disk.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import psycopg

import postroom
from contenders import durability_of
from rounds import Round
from server import database

OURS = "postroom"
CONCURRENCY = 8
_POLL_SECONDS = 0.002

#: Does so many jobs in a database or a file; answers with the seconds that they took.
Contender = Callable[[str, int], float]


class Count:
    """How many jobs have run."""

    def __init__(self) -> None:
        self.done = 0

    async def reached(self, jobs: int) -> None:
        while self.done < jobs:
            await asyncio.sleep(_POLL_SECONDS)


def run_postroom(url: str, jobs: int) -> float:
    count = Count()
    with postroom.open(url) as room:
        room.queues.create("q")

        @room.consumers.worker("q", concurrency=CONCURRENCY)
        def work(message: postroom.Message) -> None:
            count.done += 1

        start = perf_counter()
        room.send_many("q", ["{}"] * jobs)
        room.consumers.drain()
        took = perf_counter() - start
        assert count.done == jobs
    return took


def run_huey(file: str, jobs: int) -> float:
    from huey import SqliteHuey

    huey = SqliteHuey(filename=file, fsync=True, results=False)
    kept = durability_of(huey.storage.conn)
    assert (kept.synchronous, kept.journal_mode) == (2, "wal"), kept
    count = Count()

    @huey.task()  # type: ignore[untyped-decorator]  # it has no types
    def work() -> None:
        count.done += 1

    start = perf_counter()
    for _ in range(jobs):
        work()
    consumer = huey.create_consumer(workers=CONCURRENCY, periodic=False, initial_delay=0.001, check_worker_health=False)
    consumer.start()
    while count.done < jobs:
        sleep(_POLL_SECONDS)
    took = perf_counter() - start
    consumer.stop(graceful=True)
    return took


def run_procrastinate(url: str, jobs: int) -> float:
    from procrastinate import App, PsycopgConnector

    app = App(connector=PsycopgConnector(conninfo=url))
    count = Count()

    @app.task(queue="q", name="work")
    async def work() -> None:
        count.done += 1

    async def main() -> float:
        opened: AbstractAsyncContextManager[App] = app.open_async()
        async with opened:
            await app.schema_manager.apply_schema_async()
            start = perf_counter()
            await work.batch_defer_async(*[{}] * jobs)
            await app.run_worker_async(
                queues=["q"], concurrency=CONCURRENCY, wait=False, install_signal_handlers=False, listen_notify=False
            )
            return perf_counter() - start

    took = asyncio.run(main())
    assert count.done == jobs
    return took


def run_pgqueuer(url: str, jobs: int) -> float:
    from pgqueuer.db import PsycopgDriver
    from pgqueuer.qm import QueueManager
    from pgqueuer.queries import Queries
    from pgqueuer.types import QueueExecutionMode

    count = Count()

    async def main() -> float:
        connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
        async with connection:
            driver = PsycopgDriver(connection)
            queries = Queries(driver)
            await queries.install()
            manager = QueueManager(queries)

            @manager.entrypoint("work")
            async def work(job: object) -> None:
                count.done += 1

            start = perf_counter()
            await queries.enqueue(["work"] * jobs, [None] * jobs, [0] * jobs)
            await manager.run(mode=QueueExecutionMode.drain, batch_size=CONCURRENCY)
            return perf_counter() - start

    took = asyncio.run(main())
    assert count.done == jobs
    return took


@dataclass
class Nothing:
    """What a job of ``awa`` is about."""

    number: int


def run_awa(url: str, jobs: int) -> float:
    from awa import AsyncClient

    count = Count()

    async def main() -> float:
        client = AsyncClient(url.replace("@/", "@localhost/"))  # it wants a host, and then takes the socket
        await client.migrate()
        await client.install_queue_storage()

        @client.task(Nothing, queue="q")
        async def work(job: object) -> None:
            count.done += 1

        start = perf_counter()
        await client.enqueue_many_copy([Nothing(number) for number in range(jobs)], queue="q")
        await client.start([("q", CONCURRENCY)])
        await count.reached(jobs)
        took = perf_counter() - start
        await client.shutdown()
        await client.close()
        return took

    return asyncio.run(main())


SQLITE: dict[str, Contender] = {OURS: run_postroom, "huey": run_huey}
POSTGRES: dict[str, Contender] = {
    OURS: run_postroom,
    "procrastinate": run_procrastinate,
    "pgqueuer": run_pgqueuer,
    "awa-pg": run_awa,
}


def on_sqlite(folder: Path, jobs: int, number: int) -> Round:
    place = folder / f"workers-{number}"
    place.mkdir()
    taken = {name: run(str(place / f"{name}.db"), jobs) / jobs for name, run in _turned(SQLITE, number)}
    shutil.rmtree(place)
    return taken


def on_postgres(server: Any, jobs: int, number: int) -> Round:
    taken = {}
    for name, run in _turned(POSTGRES, number):
        with database(server, f"workers-{name}-{number}") as made:
            taken[name] = run(made.url, jobs) / jobs
    return taken


def _turned(contenders: dict[str, Contender], number: int) -> list[tuple[str, Contender]]:
    """Another one begins each time."""
    items = list(contenders.items())
    first = number % len(items)
    return items[first:] + items[:first]

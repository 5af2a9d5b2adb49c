"""Clients of one database, each a process, that all call at once: Postroom, plain ``psycopg``, and two queue libraries.

A call of each library is its own: one to enqueue a job, and two to fetch and to finish one, as a lease and its end are.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg

import postroom

if TYPE_CHECKING:
    from pgqueuer.queries import Queries
    from procrastinate import App

OURS, PLAIN, PROCRASTINATE, PGQUEUER = "postroom", "plain psycopg", "procrastinate", "pgqueuer"
BODY = "x" * 100
READY_SECONDS, DONE_SECONDS = 60, 200

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
    warm_up: int  # a client that sends on takes keys in larger and larger blocks

    @property
    def messages(self) -> int:
        return self.clients * (self.calls + self.warm_up)

    def __str__(self) -> str:
        """For a reader."""
        clients = f"{self.clients} clients" if self.clients > 1 else "1 client"
        return f"{clients}, {self.queues} queues" if self.queues > 1 else f"{clients}, one queue"


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


class Place(NamedTuple):
    """Where one client works, and how much; it begins when all are ready."""

    url: str
    queue: str
    calls: int
    warm_up: int
    ready: Barrier


Client = Callable[[Place], Work]


class Watch:
    """Begins when all clients are ready."""

    def __init__(self, place: Place, backend: int) -> None:
        place.ready.wait(READY_SECONDS)
        self._backend, self.took = backend, list[float]()
        self._client, self._server = process_time(), _spent(backend)

    def work(self) -> Work:
        return Work(self.took, process_time() - self._client, _spent(self._backend) - self._server)


def _spent(pid: int) -> float:
    """The processor time of a process, in seconds."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def timed(call: Callable[[], object], place: Place, backend: int) -> Work:
    for _ in range(place.warm_up):
        assert call() is not None
    watch = Watch(place, backend)
    for _ in range(place.calls):
        start = perf_counter()
        assert call() is not None
        watch.took.append(perf_counter() - start)
    return watch.work()


async def timed_async(call: Callable[[], Awaitable[object]], place: Place, backend: int) -> Work:
    for _ in range(place.warm_up):
        assert await call() is not None
    watch = Watch(place, backend)
    for _ in range(place.calls):
        start = perf_counter()
        assert await call() is not None
        watch.took.append(perf_counter() - start)
    return watch.work()


# --- Postroom ---


def prepare_postroom(url: str, queues: int) -> None:
    with postroom.open(url) as room:
        for number in range(queues):
            room.queues.create(f"q{number}")


def postroom_send(place: Place) -> Work:
    with postroom.open(place.url) as room:
        return timed(lambda: room.send(place.queue, BODY), place, _backend(room))


def postroom_receive(place: Place) -> Work:
    with postroom.open(place.url) as room:
        return timed(lambda: room.receive(place.queue).message, place, _backend(room))


def postroom_work(place: Place) -> Work:
    with postroom.open(place.url) as room:

        def call() -> object:
            message = room.receive(place.queue, lease=30).message
            assert message is not None
            message.done()
            return message

        return timed(call, place, _backend(room))


def _backend(room: postroom.Postroom) -> int:
    store: Any = room.store
    pid: int = store.session.connection.info.backend_pid
    return pid


# --- plain psycopg ---


def prepare_plain(url: str, queues: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_TABLE)
        connection.execute(_INDEX)


def plain_send(place: Place) -> Work:
    with psycopg.connect(place.url, autocommit=True) as connection:
        pid = connection.info.backend_pid
        return timed(lambda: connection.execute(_INSERT, (place.queue, BODY)), place, pid)


def plain_receive(place: Place) -> Work:
    with psycopg.connect(place.url, autocommit=True) as connection:
        pid = connection.info.backend_pid
        return timed(lambda: connection.execute(_TAKE, (place.queue,)).fetchone(), place, pid)


# --- procrastinate ---


def prepare_procrastinate(url: str, queues: int) -> None:
    async def prepare() -> None:
        async with _procrastinate(url) as (app, _):
            await app.schema_manager.apply_schema_async()

    asyncio.run(prepare())


def procrastinate_send(place: Place) -> Work:
    async def send() -> Work:
        async with _procrastinate(place.url) as (app, pid):
            task = app.configure_task("work", queue=place.queue)
            return await timed_async(lambda: task.defer_async(body=BODY), place, pid)

    return asyncio.run(send())


def procrastinate_work(place: Place) -> Work:
    from procrastinate.jobs import Status

    async def work() -> Work:
        async with _procrastinate(place.url) as (app, pid):
            jobs = app.job_manager
            worker = await jobs.register_worker()

            async def call() -> object:
                job = await jobs.fetch_job([place.queue], worker)
                assert job is not None
                await jobs.finish_job(job, Status.SUCCEEDED, delete_job=False)
                return job

            return await timed_async(call, place, pid)

    return asyncio.run(work())


@asynccontextmanager
async def _procrastinate(url: str) -> AsyncIterator[tuple[App, int]]:
    """One that has one connection, and the process that serves it."""
    from procrastinate import App, PsycopgConnector

    connector = PsycopgConnector(conninfo=url, min_size=1, max_size=1)
    app = App(connector=connector)
    async with app.open_async():
        async with connector.pool.connection() as connection:
            pid = connection.info.backend_pid
        yield app, pid


# --- pgqueuer ---


def prepare_pgqueuer(url: str, queues: int) -> None:
    async def prepare() -> None:
        async with _pgqueuer(url) as (queries, _):
            await queries.install()

    asyncio.run(prepare())


def pgqueuer_send(place: Place) -> Work:
    async def send() -> Work:
        async with _pgqueuer(place.url) as (queries, pid):
            return await timed_async(lambda: queries.enqueue(place.queue, BODY.encode()), place, pid)

    return asyncio.run(send())


def pgqueuer_work(place: Place) -> Work:
    from pgqueuer.queries import EntrypointExecutionParameter
    from pgqueuer.types import QueueEntrypoint, QueueManagerId

    async def work() -> Work:
        async with _pgqueuer(place.url) as (queries, pid):
            wanted = {QueueEntrypoint(place.queue): EntrypointExecutionParameter(concurrency_limit=0)}
            me, timeout = QueueManagerId(uuid.uuid4()), timedelta(seconds=30)

            async def call() -> object:
                (job,) = await queries.dequeue(1, wanted, me, None, timeout)
                await queries.log_jobs([(job, "successful", None)])
                return job

            return await timed_async(call, place, pid)

    return asyncio.run(work())


@asynccontextmanager
async def _pgqueuer(url: str) -> AsyncIterator[tuple[Queries, int]]:
    from pgqueuer.db import PsycopgDriver
    from pgqueuer.queries import Queries

    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        yield Queries(PsycopgDriver(connection)), connection.info.backend_pid


# --- all of them ---

#: Makes what a contender needs in its database, for so many queues.
PREPARE: dict[str, Callable[[str, int], None]] = {
    OURS: prepare_postroom,
    PLAIN: prepare_plain,
    PROCRASTINATE: prepare_procrastinate,
    PGQUEUER: prepare_pgqueuer,
}
SEND: dict[str, Client] = {
    OURS: postroom_send,
    PLAIN: plain_send,
    PROCRASTINATE: procrastinate_send,
    PGQUEUER: pgqueuer_send,
}
RECEIVE: dict[str, Client] = {OURS: postroom_receive, PLAIN: plain_receive}
#: A lease and its end.
WORK: dict[str, Client] = {OURS: postroom_work, PROCRASTINATE: procrastinate_work, PGQUEUER: pgqueuer_work}


def turns(clients: Mapping[str, Client], urls: Mapping[str, str], setting: Setting, number: int) -> dict[str, Rate]:
    """What each of them does, one after the other; another one begins each time."""
    names = [name for name in clients if name in urls]
    first = number % len(names)
    return {name: at_once(clients[name], urls[name], setting) for name in names[first:] + names[:first]}


def at_once(client: Client, url: str, setting: Setting) -> Rate:
    """What clients do that all work at once."""
    ready = multiprocessing.Barrier(setting.clients)
    told: Any = multiprocessing.Queue()
    places = [
        Place(url, f"q{number % setting.queues}", setting.calls, setting.warm_up, ready)
        for number in range(setting.clients)
    ]
    clients = [multiprocessing.Process(target=_work, args=(client, place, told)) for place in places]
    for process in clients:
        process.start()
    works: list[Work] = [told.get(timeout=DONE_SECONDS) for _ in clients]
    for process in clients:
        process.join()
    calls = sorted(seconds for work in works for seconds in work.took)
    return Rate(
        len(calls) / max(sum(work.took) for work in works),
        calls[int(len(calls) * 0.99)],
        sum(work.client for work in works) / len(calls),
        sum(work.server for work in works) / len(calls),
    )


def _work(client: Client, place: Place, told: Any) -> None:
    told.put(client(place))


def spent(rounds: Iterable[Rate]) -> str:
    """Processor time and the slowest of a hundred calls, each the middle one of the rounds."""
    every = list(rounds)
    client, server, slow = (
        median(times) for times in zip(*((each.client, each.server, each.slow) for each in every), strict=True)
    )
    return f"{1e6 * client:.0f} + {1e6 * server:.0f} µs, 99th percentile {1000 * slow:.1f} ms"

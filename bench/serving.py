"""Measure sends over HTTP: ``postroom serve`` beside a bare application on the same server, which has no store.

The server and the clients share the machine: on two processors each has one. Where ``rabbitmq-server`` is installed, a
RabbitMQ takes sends of as many clients in the same rounds, each with a receipt that is written when it is on disk.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import median
from time import perf_counter, time
from typing import Any, NamedTuple

import httpx
import uvloop

import postroom
import stomping
from lines import Line
from program import Bench, run, tell
from rabbit import Rabbit, rabbit
from rounds import Round, cost, cost_ratio

OURS, BARE, RABBIT = "postroom", "a bare application", "RabbitMQ over STOMP"
CLIENTS = 32
#: Of many lengths: a server that has seen a request before has not seen the next one.
BODIES = [b'{"body": "%b"}' % (b"x" * length) for length in range(80, 121)]
PROGRAM = """
import json, sys
import uvicorn
from postroom.interfaces.http.server import Listening, _config, bound

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"].endswith("shutdown"):
                return
    json.loads((await receive())["body"])
    body = b'{"status": "00", "key": "00001.00001"}'
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 201, "headers": headers})
    await send({"type": "http.response.body", "body": body})

where = Listening(port=0)
with bound(where) as found:
    print(f"listening on http://127.0.0.1:{found.getsockname()[1]}", flush=True)
    uvicorn.Server(_config(app, where)).run(sockets=[found])
"""


@dataclass(frozen=True, slots=True)
class Sizes:
    rounds: int
    requests: int
    events: int


FULL = Sizes(rounds=5, requests=10_000, events=200)
QUICK = Sizes(rounds=1, requests=200, events=10)


@dataclass
class Load:
    """Requests that clients share: how many are left, and how long each took."""

    requests: Sequence[bytes]  # taken in turns
    left: int
    gap: float  # seconds between the beginnings of two requests of one client
    took: list[float] = field(default_factory=list)


class Sender(asyncio.Protocol):
    """One client: a request, its answer, the next request. It ends after an answer, so none is left under way."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._answer = b""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def close(self) -> None:
        """Without an error, whatever is under way: nobody waits for it any more."""
        self.ended.cancel()
        self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_exception(error or ConnectionError("the server has closed the connection"))

    def _send(self) -> None:
        if self.ended.done():
            return
        if self._load.left <= 0:
            self.ended.set_result(None)
            return
        self._load.left -= 1
        self._began = perf_counter()
        self._transport.write(self._load.requests[self._load.left % len(self._load.requests)])

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, found, body = self._answer.partition(b"\r\n\r\n")
        if not found or not body.endswith(b"}"):
            return
        if not head.startswith(b"HTTP/1.1 201"):
            if not self.ended.done():
                self.ended.set_exception(AssertionError(self._answer))
            return
        self._answer = b""
        self._load.took.append(perf_counter() - self._began)
        wait = self._began + self._load.gap - perf_counter()
        if wait > 0:
            asyncio.get_running_loop().call_later(wait, self._send)
        else:
            self._send()


class Answered(NamedTuple):
    """What clients got: requests a second, and the seconds of each, from the fastest to the slowest."""

    rate: float
    took: list[float]

    @property
    def slow(self) -> float:
        """The 99th percentile, in milliseconds."""
        return self.took[int(len(self.took) * 0.99)] * 1000


async def answered(port: int, token: str, count: int, rate: float | None = None) -> Answered:
    """By all clients; at most at a rate, if there is one."""
    head = f"POST /queues/orders/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    head += "Content-Type: application/json\r\nContent-Length: "
    requests = [b"%b%d\r\n\r\n%b" % (head.encode(), len(body), body) for body in BODIES]
    load = Load(requests, count, 0.0 if rate is None else CLIENTS / rate)
    loop = asyncio.get_running_loop()
    began, senders = perf_counter(), list[Sender]()
    try:
        for _ in range(min(CLIENTS, count)):
            senders.append((await loop.create_connection(lambda: Sender(load), "127.0.0.1", port))[1])
        await asyncio.gather(*(sender.ended for sender in senders))
    finally:
        for sender in senders:
            sender.close()
    assert len(load.took) == count, (len(load.took), count)
    return Answered(count / (perf_counter() - began), sorted(load.took))


class Followed(NamedTuple):
    """Milliseconds of each event to its follower."""

    created: list[float]  # since the time of its message, which is taken before the commit
    answered: list[float]  # since its sender had the answer


async def followed(port: int, token: str, count: int) -> Followed:
    headers = {"authorization": f"Bearer {token}"}
    found = Followed([], [])
    async with (
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as client,
        client.stream("GET", "/queues/orders/follow", headers=headers) as stream,
    ):
        lines = stream.aiter_lines()
        await asyncio.sleep(0.5)  # the server has begun to follow
        for number in range(count):
            answer = await client.post("/queues/orders/messages", json={"body": f"event {number}"}, headers=headers)
            had = time()
            event = await _event(lines, answer.json()["key"])
            came = time()
            created = datetime.fromisoformat(event["created"]).timestamp()
            found.created.append((came - created) * 1000)
            found.answered.append((came - had) * 1000)
    return found


async def _event(lines: AsyncIterator[str], key: str) -> dict[str, Any]:
    """The next one, which must be of this message."""
    async for line in lines:
        if line.startswith("data: "):
            event: dict[str, Any] = json.loads(line.removeprefix("data: "))
            assert event["key"] == key, (event, key)
            return event
    raise AssertionError(f"the stream has ended before {key} came")


@contextmanager
def listening(*words: str) -> Iterator[int]:
    """A server in a process of its own, and its port."""
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            yield int(child.stdout.readline().rsplit(":", 1)[1])
        finally:
            child.terminate()


class ServingBench(Bench):
    def __init__(self, folder: Path, sizes: Sizes, master: str) -> None:
        super().__init__(folder, master)
        self._sizes = sizes
        self._slow: list[float] = []  # 99th percentiles at full load, in milliseconds

    def lines(self) -> Iterator[Line]:
        tell("the servers start")
        url = str(self._folder / "room.db")
        token = _room(url)
        serve = ("-m", "postroom", "serve", "--room", url, "--port", "0")
        with listening(*serve) as port, listening("-c", PROGRAM) as bare, rabbit(self._folder / "rabbit") as broker:
            rounds = self._taken(port, bare, broker, token)
            yield from self._lines(rounds, broker)
            tell("half of that load")
            yield self._half(port, token, 1 / cost(rounds, OURS) / 2)
            tell("an event and its follower")
            yield self._follow(port, token)

    def _taken(self, port: int, bare: int, broker: Rabbit, token: str) -> list[Round]:
        """Seconds of a request, in turns; the first round only warms up."""
        count, rounds = self._sizes.requests, list[Round]()
        for number in self._rounds(self._sizes.rounds + 1, share=0.5):
            tell(f"{count:,} sends of each, round {number}" if number else f"{count:,} sends of each, to warm up")
            found: Round = {}
            for who in (OURS, BARE, RABBIT)[:: 1 if number % 2 else -1]:
                if who == OURS:
                    found[who] = 1 / self._ours(port, token, count, number)
                elif who == BARE:
                    found[who] = 1 / uvloop.run(answered(bare, token, count)).rate
                elif broker:
                    sent = stomping.load(broker.port, "guest", "guest", "/queue/orders", count, CLIENTS)
                    found[who] = 1 / uvloop.run(sent)[0]
            rounds.append(found)
        if len(rounds) == 1:
            self.notes.append("there was no time to warm up")
        return rounds[1:] or rounds

    def _ours(self, port: int, token: str, count: int, number: int) -> float:
        found = uvloop.run(answered(port, token, count))
        if number:
            self._slow.append(found.slow)
        return found.rate

    def _lines(self, rounds: Sequence[Round], broker: Rabbit) -> Iterator[Line]:
        measure = f"sends over HTTP by {CLIENTS} clients"
        rates = [1 / each[OURS] for each in rounds]
        slow = f"99th percentile {median(self._slow):.1f} ms" if self._slow else ""
        among = (median(rates), min(rates), max(rates))
        yield Line(measure, median(rates), "/s", *among, "rate", remark=slow)
        yield _line(measure, rounds, BARE, "bare")
        if broker:
            yield _line(measure, rounds, RABBIT, None)
        else:
            self.notes.append(f"RabbitMQ is left out: it {broker.why}")

    def _half(self, port: int, token: str, rate: float) -> Line:
        found = uvloop.run(answered(port, token, self._sizes.requests, rate))
        slow = found.slow
        remark = f"at {found.rate:,.0f} /s; median {median(found.took) * 1000:.1f} ms"
        return Line("99th percentile of a send at half that load", slow, "ms", slow, slow, slow, "half", remark=remark)

    def _follow(self, port: int, token: str) -> Line:
        found = uvloop.run(followed(port, token, self._sizes.events))
        middle = median(found.created)
        return Line(
            "from the time of a message to its event at a follower, the median",
            *(middle, "ms", middle, min(found.created), max(found.created), "follow"),
            remark=f"{median(found.answered):.1f} ms after its sender had the answer",
        )


def _line(measure: str, rounds: Sequence[Round], other: str, bound: str | None) -> Line:
    rates = 1 / cost(rounds, OURS), 1 / cost(rounds, other)
    return Line(measure, rates[0], "/s", *cost_ratio(rounds, other, OURS), bound, other, rates[1])


def _room(url: str) -> str:
    """A room with a queue, and a token that may send to it and follow it."""
    with postroom.open(url) as room:
        room.queues.create("orders")
        room.flows.add_principal("bench", "secret")
        room.access.grant("bench", "send", "orders")
        room.access.grant("bench", "look", "orders")
        return room.access.create_token("bench", "bench")


def make(folder: Path, quick: bool, master: str) -> ServingBench:
    return ServingBench(folder, QUICK if quick else FULL, master)


if __name__ == "__main__":
    sys.exit(run(__doc__, make))

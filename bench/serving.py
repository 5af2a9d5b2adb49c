"""Sends over HTTP: ``postroom serve`` beside a bare application on the same server that answers without a store.

python bench/serving.py            32 clients, 10,000 requests each round
python bench/serving.py --quick    a few, to see that it runs

The server and the clients share the machine: on two processors each has one.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import apsw
import httpx
import uvloop

import postroom

CLIENTS = 32
BODY = b'{"body": "' + b"x" * 100 + b'"}'
BARE = """
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


class Sender(asyncio.Protocol):
    """One client: a request, its answer, the next request."""

    def __init__(
        self, request: bytes, left: list[int], times: list[float], done: asyncio.Future[None], gap: float = 0.0
    ) -> None:
        self._request, self._left, self._times, self._done, self._gap = request, left, times, done, gap
        self._answer = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        self._began = perf_counter()
        self._transport.write(self._request)

    def _send_later(self) -> None:
        wait = self._began + self._gap - perf_counter()
        if wait <= 0:
            self._send()
        else:
            asyncio.get_running_loop().call_later(wait, self._send)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, found, body = self._answer.partition(b"\r\n\r\n")
        if not found or not body.endswith(b"}"):
            return
        assert head.startswith(b"HTTP/1.1 201"), self._answer
        self._answer = b""
        self._times.append(perf_counter() - self._began)
        self._left[0] -= 1
        if self._left[0] <= 0:
            if not self._done.done():
                self._done.set_result(None)
        else:
            self._send_later()


async def load(port: int, token: str, count: int, rate: float | None = None) -> tuple[float, list[float]]:
    """Requests a second, at most at a rate, and how long each took."""
    gap = 0.0 if rate is None else CLIENTS / rate
    head = f"POST /queues/orders/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    request = f"{head}Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n".encode() + BODY
    loop = asyncio.get_running_loop()
    left, times, done = [count], list[float](), loop.create_future()
    began = perf_counter()
    transports = [
        (await loop.create_connection(lambda: Sender(request, left, times, done, gap), "127.0.0.1", port))[0]
        for _ in range(CLIENTS)
    ]
    await done
    took = perf_counter() - began
    for transport in transports:
        transport.close()
    return count / took, times


async def followed(port: int, token: str, count: int) -> list[float]:
    """From the answer of a send to its event at a follower."""
    headers = {"authorization": f"Bearer {token}"}
    times = list[float]()
    async with (
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as client,
        client.stream("GET", "/queues/orders/follow", headers=headers) as stream,
    ):
        lines = stream.aiter_lines()
        await asyncio.sleep(0.5)
        for number in range(count):
            body = {"body": f"event {number}."}
            await client.post("/queues/orders/messages", json=body, headers=headers)
            began = perf_counter()
            while f"event {number}." not in await anext(lines):
                pass
            times.append(perf_counter() - began)
    return sorted(times)


@contextmanager
def server(*words: str) -> Iterator[int]:
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            yield int(child.stdout.readline().rsplit(":", 1)[1])
        finally:
            child.terminate()


def plain_inserts(folder: Path, count: int) -> float:
    """One durable insert after another, a second."""
    connection = apsw.Connection(str(folder / "plain.db"))
    for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "CREATE TABLE t (x)"):
        connection.execute(statement).fetchall()
    began = perf_counter()
    for _ in range(count):
        connection.execute("INSERT INTO t (x) VALUES (?)", ("x" * 100,))
    return count / (perf_counter() - began)


def threads(folder: Path, count: int) -> float:
    """Sends of 32 threads that share commits, a second."""
    with postroom.open(folder / "threads.db") as room, ThreadPoolExecutor(CLIENTS) as pool:
        room.queues.create("orders")
        list(pool.map(lambda _: room.send("orders", "x" * 100), range(200)))
        began = perf_counter()
        list(pool.map(lambda _: room.send("orders", "x" * 100), range(count)))
        return count / (perf_counter() - began)


def measure(folder: Path, count: int, rounds: int) -> None:
    url = str(folder / "room.db")
    with postroom.open(url) as room:
        room.queues.create("orders")
        room.flows.add_principal("bench", "secret")
        room.access.grant("bench", "send", "orders")
        room.access.grant("bench", "look", "orders")
        token = room.access.create_token("bench", "bench")
    ours, bare, slowest = [], [], []
    with server("-m", "postroom", "serve", "--room", url, "--port", "0") as port, server("-c", BARE) as other:
        for number in range(rounds + 1):
            served, times = uvloop.run(load(port, token, count))
            without, _ = uvloop.run(load(other, token, count))
            if number:  # the first one warms up
                ours.append(served)
                bare.append(without)
                slowest.append(sorted(times)[int(len(times) * 0.99)] * 1000)
        half = sorted(uvloop.run(load(port, token, count, statistics.median(ours) / 2))[1])
        events = uvloop.run(followed(port, token, min(count, 100)))
    plain, shared = plain_inserts(folder, min(count, 2_000)), threads(folder, min(count, 4_000))
    served, without = statistics.median(ours), statistics.median(bare)
    print(f"sends over HTTP, {CLIENTS} clients: {served:,.0f}/s ({min(ours):,.0f}–{max(ours):,.0f})")
    print(f"bare application, no store: {without:,.0f}/s; ratio {served / without:.2f}")
    print(f"99th percentile at full load: {statistics.median(slowest):.1f} ms")
    print(f"99th percentile at half that load: {half[int(len(half) * 0.99)] * 1000:.1f} ms")
    print(f"from the answer of a send to its event: median {statistics.median(events) * 1000:.1f} ms")
    print(f"plain durable inserts: {plain:,.0f}/s; HTTP has {served / plain:.2f} of it")
    print(f"sends of {CLIENTS} threads: {shared:,.0f}/s; {shared / plain:.2f} of plain inserts")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few requests")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), 200 if quick else 10_000, 1 if quick else 3)


if __name__ == "__main__":
    main()

"""Sends over STOMP, each with a receipt that is written after the commit, by 16 clients at once.

python bench/stomping.py [FOLDER]            16 clients, 10,000 sends each round
python bench/stomping.py --quick [FOLDER]    a few, to see that it runs

Beside it, in the same rounds and by the same clients: a bare server that reads frames and writes receipts without a
store, and, where ``rabbitmq-server`` is installed, a RabbitMQ that is started for it, with a durable queue and
persistent messages. Its receipt, too, is written when the message is on disk; both have their files in one folder.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import uvloop

import postroom
from machine import processor_seconds
from rabbit import rabbit

CLIENTS = 16
GOAL = 3_000
BODY = b"x" * 100
BARE = """
import asyncio, contextlib, uvloop
from postroom.interfaces.stomp.frames import Parser, written

async def met(reader, writer):
    parser = Parser()
    with contextlib.suppress(OSError):
      while data := await reader.read(65536):
        for frame in parser.feed(data):
            if frame.command == "CONNECT":
                writer.write(written("CONNECTED", [("version", "1.2")]))
            else:
                writer.write(written("RECEIPT", [("receipt-id", frame.headers["receipt"])]))

async def main():
    server = await asyncio.start_server(met, "127.0.0.1", 0)
    print(f"listening on stomp://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()

uvloop.run(main())
"""


class Sender(asyncio.Protocol):
    """One client: a send, its receipt, the next send."""

    def __init__(
        self, login: str, passcode: str, queue: str, left: list[int], times: list[float], done: asyncio.Future[None]
    ) -> None:
        self._connect = f"CONNECT\naccept-version:1.2\nhost:/\nlogin:{login}\npasscode:{passcode}\n\n\0".encode()
        head = f"SEND\ndestination:{queue}\nreceipt:1\npersistent:true\ncontent-type:text/plain\n"
        self._send = f"{head}content-length:{len(BODY)}\n\n".encode() + BODY + b"\0"
        self._left, self._times, self._done = left, times, done
        self._began, self._answer = 0.0, b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.write(self._connect)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        if not self._answer.endswith((b"\0", b"\0\n")):
            return
        assert self._answer.lstrip().startswith((b"CONNECTED", b"RECEIPT")), self._answer
        if self._answer.lstrip().startswith(b"RECEIPT"):
            self._times.append(perf_counter() - self._began)
            self._left[0] -= 1
        self._answer = b""
        if self._left[0] > 0:
            self._began = perf_counter()
            self._transport.write(self._send)
        elif not self._done.done():
            self._done.set_result(None)


async def load(
    port: int, login: str, passcode: str, queue: str, count: int, clients: int = CLIENTS
) -> tuple[float, list[float]]:
    """Sends a second, and how long each took."""
    loop = asyncio.get_running_loop()
    left, times, done = [count], list[float](), loop.create_future()
    began = perf_counter()
    transports = [
        (await loop.create_connection(lambda: Sender(login, passcode, queue, left, times, done), "127.0.0.1", port))[0]
        for _ in range(clients)
    ]
    await done
    took = perf_counter() - began
    for transport in transports:
        transport.close()
    return count / took, times


@contextmanager
def server(*words: str) -> Iterator[tuple[int, int]]:
    """A server: its port, and its number."""
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            line = next(line for line in child.stdout if "stomp://" in line)
            yield int(line.rsplit(":", 1)[1]), child.pid
        finally:
            child.terminate()


class Rates:
    """What one server did, round by round."""

    def __init__(self, port: int, pid: int, login: str, passcode: str) -> None:
        self._port, self._pid, self._login, self._passcode = port, pid, login, passcode
        self.rates, self._slow, self._work = (list[float]() for _ in range(3))

    def work(self, count: int, *, counts: bool) -> None:
        """One round; the first one warms up, and does not count."""
        before = processor_seconds(self._pid)
        rate, times = uvloop.run(load(self._port, self._login, self._passcode, "/queue/orders", count))
        if counts:
            self.rates.append(rate)
            self._slow.append(sorted(times)[int(len(times) * 0.99)] * 1000)
            self._work.append((processor_seconds(self._pid) - before) * 1000 / count)

    @property
    def rate(self) -> float:
        return statistics.median(self.rates)

    @property
    def slow(self) -> str:
        return f"{statistics.median(self._slow):.1f} ms"

    @property
    def processor(self) -> str:
        return f"{statistics.median(self._work):.3f} ms"


def measure(folder: Path, count: int, rounds: int) -> None:
    url = str(folder / "room.db")
    with postroom.open(url) as room:
        room.queues.create("orders")
        room.flows.add_principal("bench", "secret")
        room.access.grant("bench", "send", "orders")
        token = room.access.create_token("bench", "bench")
    words = ("-m", "postroom", "serve", "--room", url, "--port", "0", "--stomp", "0")
    with server(*words) as (port, pid), server("-c", BARE) as (other, bare_pid), rabbit(folder / "rabbit") as broker:
        ours, bare = Rates(port, pid, "bench", token), Rates(other, bare_pid, "bench", token)
        theirs = Rates(broker.port, broker.pid, "guest", "guest")
        for number in range(rounds + 1):
            for each in (ours, bare, *([theirs] if broker else [])):
                each.work(count, counts=number > 0)
    span = f"({min(ours.rates):,.0f}–{max(ours.rates):,.0f}); goal {GOAL:,}"
    print(f"sends over STOMP with receipts, {CLIENTS} clients: {ours.rate:,.0f}/s {span}")
    print(f"processor time of the server: {ours.processor} for each send")
    print(f"bare server, no store: {bare.rate:,.0f}/s; ratio {ours.rate / bare.rate:.2f}")
    print(f"99th percentile: {ours.slow}")
    if broker:
        ratios = [mine / their for mine, their in zip(ours.rates, theirs.rates, strict=True)]
        span = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"
        print(f"RabbitMQ, the same clients: {theirs.rate:,.0f}/s; ratio {span}")
        print(f"RabbitMQ, its processor time: {theirs.processor} for each send; 99th percentile {theirs.slow}")
    else:
        print(f"RabbitMQ: skipped, it {broker.why}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few sends")
    parser.add_argument("folder", nargs="?", type=Path, help="where the files are while it runs")
    given = parser.parse_args()
    quick = given.quick
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        measure(Path(folder), 200 if quick else 10_000, 1 if quick else 3)


if __name__ == "__main__":
    main()

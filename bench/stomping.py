"""Sends over STOMP, each with a receipt that is written after the commit, by 16 clients at once.

python bench/stomping.py            16 clients, 10,000 sends each round
python bench/stomping.py --quick    a few, to see that it runs

Beside it: a bare server that reads frames and writes receipts without a store, and, where ``rabbitmq-server`` with its
STOMP plugin listens on port 61613 (guest/guest), the same sends as persistent messages there.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
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

CLIENTS = 16
GOAL = 3_000
BODY = b"x" * 100
RABBIT = 61_613
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


async def load(port: int, login: str, passcode: str, queue: str, count: int) -> tuple[float, list[float]]:
    """Sends a second, and how long each took."""
    loop = asyncio.get_running_loop()
    left, times, done = [count], list[float](), loop.create_future()
    began = perf_counter()
    transports = [
        (await loop.create_connection(lambda: Sender(login, passcode, queue, left, times, done), "127.0.0.1", port))[0]
        for _ in range(CLIENTS)
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


def has_rabbit() -> bool:
    try:
        with socket.create_connection(("127.0.0.1", RABBIT), timeout=1):
            return True
    except OSError:
        return False


def measure(folder: Path, count: int, rounds: int) -> None:
    url = str(folder / "room.db")
    with postroom.open(url) as room:
        room.queues.create("orders")
        room.flows.add_principal("bench", "secret")
        room.access.grant("bench", "send", "orders")
        token = room.access.create_token("bench", "bench")
    ours, bare, rabbit, slowest, work = (list[float]() for _ in range(5))
    words = ("-m", "postroom", "serve", "--room", url, "--port", "0", "--stomp", "0")
    with server(*words) as (port, pid), server("-c", BARE) as (other, _):
        for number in range(rounds + 1):
            worked = processor_seconds(pid)
            served, times = uvloop.run(load(port, "bench", token, "/queue/orders", count))
            worked = (processor_seconds(pid) - worked) * 1000 / count
            without, _ = uvloop.run(load(other, "bench", token, "/queue/orders", count))
            theirs = uvloop.run(load(RABBIT, "guest", "guest", "/queue/orders", count))[0] if has_rabbit() else 0.0
            if number:  # the first one warms up
                ours.append(served)
                bare.append(without)
                rabbit.append(theirs)
                work.append(worked)
                slowest.append(sorted(times)[int(len(times) * 0.99)] * 1000)
    served, without = statistics.median(ours), statistics.median(bare)
    span = f"({min(ours):,.0f}–{max(ours):,.0f}); goal {GOAL:,}"
    print(f"sends over STOMP with receipts, {CLIENTS} clients: {served:,.0f}/s {span}")
    print(f"processor time of the server: {statistics.median(work):.3f} ms for each send")
    print(f"bare server, no store: {without:,.0f}/s; ratio {served / without:.2f}")
    print(f"99th percentile: {statistics.median(slowest):.1f} ms")
    if any(rabbit):
        theirs = statistics.median(rabbit)
        print(f"RabbitMQ: {theirs:,.0f}/s; ratio {served / theirs:.2f}")
    else:
        print("RabbitMQ: not installed (apt-get install rabbitmq-server; rabbitmq-plugins enable rabbitmq_stomp)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few sends")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), 200 if quick else 10_000, 1 if quick else 3)


if __name__ == "__main__":
    main()

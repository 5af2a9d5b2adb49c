"""Gateways: messages to a local HTTP sink in order, messages that come in by HTTP, each on disk, and between two
rooms by WS-ReliableMessaging, each once and in order.

python bench/gateways.py 4000
"""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time

import postroom
from machine import processor_seconds
from postroom.gateways.smtp_server import free_port

SINK = """
import asyncio, sys
class Sink(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.kept = transport, b""
    def data_received(self, data):
        self.kept += data
        while b"\\r\\n\\r\\n" in self.kept:
            head, _, rest = self.kept.partition(b"\\r\\n\\r\\n")
            size = int(head.lower().partition(b"content-length: ")[2].partition(b"\\r\\n")[0] or 0)
            if len(rest) < size:
                return
            print(rest[:size].decode(), flush=False)
            self.kept = rest[size:]
            self.transport.write(b"HTTP/1.1 204 No Content\\r\\n\\r\\n")
async def main():
    server = await asyncio.get_running_loop().create_server(Sink, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
_WARM = 64  # messages before the clock runs: what is loaded once is no part of a rate
OUT = "".join(f"create queue out{n} kind outgoingGateway mode persistent interface http port sink\n" for n in range(8))
IN = "create queue inbox kind incomingGateway mode persistent interface http port orders\n"


def outgoing(folder: Path, count: int, queues: int) -> tuple[float, float]:
    """Messages that were sent, each queue in its order: in a second, and in a second of the engine's processor time."""
    sink = subprocess.Popen([sys.executable, "-c", SINK], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert sink.stdout is not None
    port = int(sink.stdout.readline())
    (folder / "out.demaq").write_text(OUT)
    with postroom.open(folder / f"out{queues}.db") as room:
        room.gateways.add("sink", "http", address=f"http://127.0.0.1:{port}/")
        room.load(folder / "out.demaq")
        room.send_many("out0", ["warm"] * _WARM)
        room.run_until_idle()
        for queue in range(queues):
            room.send_many(f"out{queue}", [f"{queue} {number}" for number in range(count // queues)])
        began, worked = perf_counter(), process_time()
        room.run_until_idle()
        seconds, work = perf_counter() - began, process_time() - worked
        assert room.engine.outbox() == []
    sink.send_signal(signal.SIGINT)
    got = re.findall(r"^(\d) (\d+)$", sink.communicate()[0], re.M)
    for queue in range(queues):
        assert [int(number) for name, number in got if int(name) == queue] == list(range(count // queues)), "in order"
    sent = count // queues * queues
    return sent / seconds, sent / work


async def _post(port: int, count: int, at_once: int) -> float:
    async def client(some: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in range(some):
            body = f"<order><id>{number}</id></order>".encode()
            head = f"POST /orders HTTP/1.1\r\nHost: x\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}"
            writer.write(f"{head}\r\n\r\n".encode() + body)
            said = await reader.readuntil(b"\r\n\r\n")
            assert b" 202 " in said, said
            size = int(said.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(size)
        writer.close()

    began = perf_counter()
    await asyncio.gather(*(client(count // at_once) for _ in range(at_once)))
    return count // at_once * at_once / (perf_counter() - began)


def incoming(folder: Path, count: int, at_once: int) -> tuple[float, float]:
    """Messages that were stored and answered: in a second, and in a second of the server's processor time."""
    (folder / "in.demaq").write_text(IN)
    url = str(folder / "in.db")
    with postroom.open(url) as room:
        room.gateways.add("orders", "http", path="/orders")
        room.load(folder / "in.demaq")
        with listening(url) as (port, pid):
            asyncio.run(_post(port, at_once, at_once))
            worked = processor_seconds(pid)
            rate = asyncio.run(_post(port, count, at_once))
            worked = processor_seconds(pid) - worked
        stored = count // at_once * at_once
        assert sum(1 for _ in room.queues.info("inbox")) == stored + at_once
    return rate, stored / worked


SOAP = Path(__file__).parents[1] / "tests" / "gateways" / "soap"
RELIABLE = "create queue {} kind {}Gateway mode persistent interface supplier.wsdl port CapacityRequestPort" + (
    " using WS-ReliableMessaging errorqueue errs\ncreate queue errs kind basic mode persistent\n"
)


@contextmanager
def listening(url: str) -> Iterator[tuple[int, int]]:
    """A process that takes messages in: its port, and its number."""
    port = free_port("127.0.0.1")
    words = ["-m", "postroom", "--room", url, "gateway", "listen", "--http", f"127.0.0.1:{port}"]
    with subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        server.stderr.readline()
        try:
            yield port, server.pid
        finally:
            server.send_signal(signal.SIGTERM)


def reliable(folder: Path, count: int) -> tuple[float, float]:
    """Messages from one room to another: in a second, and in a second of processor time of both."""
    for file in SOAP.glob("supplier.*"):
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "to.demaq").write_text(RELIABLE.format("requests", "incoming"))
    (folder / "from.demaq").write_text(RELIABLE.format("orders", "outgoing"))
    with postroom.open(folder / "to.db") as there, postroom.open(folder / "from.db") as here:
        there.gateways.add("CapacityRequestPort", "soap", path="/capacity")
        there.load(folder / "to.demaq")
        with listening(str(folder / "to.db")) as (port, pid):
            here.gateways.add("CapacityRequestPort", "soap", address=f"http://127.0.0.1:{port}/capacity")
            here.load(folder / "from.demaq")
            numbers = range(count + _WARM)
            orders = [f'<order xmlns="urn:example:types"><id>{number}</id></order>' for number in numbers]
            here.send_many("orders", orders[:_WARM], format="xml")
            here.run_until_idle()
            here.send_many("orders", orders[_WARM:], format="xml")
            began, worked = perf_counter(), process_time() + processor_seconds(pid)
            here.run_until_idle()
            seconds, work = perf_counter() - began, process_time() + processor_seconds(pid) - worked
        assert [message.body for message in there.queues.peek("requests", limit=len(orders)).messages] == orders, (
            "in order"
        )
    return count / seconds, count / work


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for queues in (1, 8):
            rate, worked = outgoing(folder, count, queues)
            print(f"outgoing, {queues} queue(s): {rate:,.0f} messages/s, {1000 / worked:.2f} ms of processor time each")
        rate, worked = incoming(folder, count, 64)
        print(f"incoming, 64 connections: {rate:,.0f} messages/s, {1000 / worked:.2f} ms of processor time each")
        rate, worked = reliable(folder, count // 4)
        print(f"reliable, one sequence: {rate:,.0f} messages/s, {1000 / worked:.2f} ms of processor time of both, each")


if __name__ == "__main__":
    main()

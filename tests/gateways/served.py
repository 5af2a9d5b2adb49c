"""Rooms that take messages in by HTTP on loopback, and run their engine beside, without Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep

import uvicorn
from tests.faults.here import evaluate_here

import postroom
from postroom.room import Postroom

SOAP = Path(__file__).parent / "soap"
TYPES = "urn:example:types"
ORDER = f'<order xmlns="{TYPES}"><id>%d</id></order>'
REQUEST = f'<capacityRequest xmlns="{TYPES}"><item>%s</item><count>%d</count></capacityRequest>'


def loaded(room: Postroom, folder: Path, text: str, name: str = "p.demaq", **files: str) -> None:
    """Load a program that has the interface of the supplier beside it."""
    for source in SOAP.glob("supplier.*"):
        (folder / source.name).write_bytes(source.read_bytes())
    for file, said in files.items():
        (folder / file.replace("_", ".")).write_text(said)
    (folder / name).write_text(text)
    room.load(folder / name)


@contextmanager
def listening(room: Postroom) -> Iterator[int]:
    """The port at which a room listens."""
    config = uvicorn.Config(room.gateways.http_app(), port=0, log_level="warning", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def running(room: Postroom) -> Iterator[None]:
    """The engine of a room."""
    thread = threading.Thread(target=room.engine.run_totals)
    thread.start()
    try:
        yield
    finally:
        room.stop()
        thread.join()


@contextmanager
def opened(url: str, *, run: bool = False) -> Iterator[Postroom]:
    with ExitStack() as stack:
        room = stack.enter_context(postroom.open(url))
        evaluate_here(room)
        if run:
            stack.enter_context(running(room))
        yield room


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until something is so."""
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, "it did not come to be"
        sleep(0.02)


def listens(port: int) -> bool:
    """Whether someone on this machine waits for connections at a port."""
    return f"0100007F:{port:04X} 00000000:0000 0A" in Path("/proc/net/tcp").read_text()


def bodies(room: Postroom, queue: str) -> list[str]:
    """All that ever came into a queue, in its order."""
    found = {message.key: message.body for message in room.queues.info(queue)}
    return [
        body for _, body in sorted({**found, **{each.key: each.body for each in room.queues.history(queue)}}.items())
    ]

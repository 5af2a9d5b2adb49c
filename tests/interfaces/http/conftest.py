"""A room behind a real server on loopback, in a thread of the test."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from time import sleep
from typing import Any

import httpx
import pytest

import postroom
from postroom.interfaces.http.app import Interface
from postroom.interfaces.http.client.remote import RemoteRoom
from postroom.interfaces.http.server import Listening, Server, _config, bound
from postroom.room import Postroom

TRADING = """domain trading
space Trades : [issue: string, price: int]
space Big : [issue: string, price: int]
arc big : Trades -> Big select [issue: any, price: p > 75]
"""
MEMO = """type MEMO
| To: ____________ KEY: ___________ |
| Text: _________________________ |
field To   string required
field Text string free
field KEY  key    automatic
"""


@dataclass
class Served:
    url: str
    token: str
    room: Postroom  # as the server has it
    interface: Interface
    stop: Callable[[], None]  # ends the server; the room stays open
    connections: Callable[[], int]

    def client(self, token: str | None = None) -> httpx.Client:
        shown = self.token if token is None else token
        headers = {"authorization": f"Bearer {shown}"} if shown else {}
        return httpx.Client(base_url=self.url, headers=headers, trust_env=False, verify=False, timeout=20)

    def user(self, name: str, *grants: tuple[str, str]) -> str:
        """A token of a user with some grants."""
        self.room.flows.add_principal(name, "secret")
        for verb, object in grants:
            self.room.access.grant(name, verb, object)
        return self.room.access.create_token(name, "test")


@contextmanager
def serving(room: Postroom, unsent: int | None = None) -> Iterator[Served]:
    """``unsent`` are the bytes that the kernel keeps for a client that does not read."""
    where = Listening(port=0)
    found = bound(where)
    if unsent is not None:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, unsent)
    interface = Interface(room)
    server = Server(_config(interface, where))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [found]})
    thread.start()

    def stop() -> None:
        server.should_exit = True
        thread.join(30)

    try:
        while not server.started:
            assert thread.is_alive()
            sleep(0.01)
        room.flows.add_principal("boss", "secret", replace=True)  # a room may have had another server before
        room.access.grant("boss", "operate")
        token = room.access.create_token("boss", f"test at {found.getsockname()[1]}")
        url, state = f"http://127.0.0.1:{found.getsockname()[1]}", server.server_state
        yield Served(url, token, room, interface, stop, lambda: len(state.connections))
    finally:
        stop()
        found.close()
        assert not thread.is_alive()


@pytest.fixture
def served(room: Postroom) -> Iterator[Served]:
    """On both stores."""
    with serving(room) as found:
        yield found


@pytest.fixture
def here(sqlite_url: str) -> Iterator[Served]:
    """On SQLite, for what has nothing to do with the store."""
    with postroom.open(sqlite_url) as room, serving(room) as found:
        yield found


OFFICE = (
    MEMO
    + """counter desk at Jane takes MEMO from forms
procedure answer at Jane
  precondition asked : MEMO
    To: Jane
  action said on asked
    Text: yes
  destination back on asked copy 0 dossier answered
"""
)
SHOP = """create module shop errorqueue errors
create queue customers kind basic mode persistent
create queue errors kind basic mode persistent
create collection rates
create property id as xs:string queue customers value //id
create slicing byCustomer on id
create rule tell for customers if (/customer) then do enqueue <seen/> into errors
"""
FILES = {"trading.flow": TRADING, "memo.form": OFFICE, "shop.demaq": SHOP}


def furnish(room: Postroom, folder: Path) -> dict[str, str | int]:
    """Put something for every operation into a room; answers with what their examples call by other names."""
    for name in ("orders", "copies", "spare", "orders.dead", "forms"):
        room.queues.create(name, password="secret")
    for name in ("John", "Jane", "Jack"):
        room.stations.add(name, "secret")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    room.load(*[folder / name for name in FILES])
    room.flows.add_principal("ann", "secret")
    room.queues.create_source("T1", password="secret")
    room.consumers.schedule("nightly", "0 3 * * *", "orders", body="count")
    room.store.transact("test", lambda tx: tx.outbox.add("command", {"queue": "orders"}, "orders"))
    room.send_many("orders", [f"order {number}" for number in range(5)])
    leases = [each.lease for each in room.receive_many("orders", count=5, lease=3600, detached=True)]
    return {
        "KEY": room.send("orders", "first").key,
        "DEAD": room.send("orders.dead", "last").key,
        "FORM": room.stations.at("John", "secret").create("MEMO", To="Jane"),
        "TOKEN": room.access.create_token("ann", "x").split("_")[1],
        "EFFECT": room.engine.outbox()[0].id,
        **{f"LEASE-{number}": lease for number, lease in enumerate(leases, 1)},
    }


@pytest.fixture
def world(here: Served, tmp_path: Path) -> Iterator[tuple[Served, Callable[[str], str | int]]]:
    """A room with something for every operation, and what stands for the placeholders of their examples."""
    known = furnish(here.room, tmp_path)
    here.room.spheres.compensator(3600.0).announce()  # a slow machine ends no sphere
    sphere = here.room.sphere("SPHERE")
    with here.client() as client:
        for id in ("MINE", "OTHER"):
            assert client.post("/spheres", json={"id": id, "heartbeat": 600}).status_code == 200
        assert client.post("/spaces/Big/subscriptions", json={}).status_code == 200
    yield here, lambda text: known.get(text, text)
    if sphere.state == "ACTIVE":
        sphere.abort()


numbers = count(1)


class Two:
    """The room as it is here, and as a program has it."""

    def __init__(self, here: Postroom, it: Postroom, known: dict[str, Any]) -> None:
        self.here, self.it, self.known = here, it, known

    def queue(self, **options: Any) -> str:
        name = f"q{next(numbers)}"
        self.here.queues.create(name, **options)
        return name


@pytest.fixture(scope="module", params=["local", "served"])
def two(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    folder = tmp_path_factory.mktemp("both")
    with postroom.open(folder / "room.db", actor="boss") as here, serving(here) as served:
        known = furnish(here, folder)
        here.spheres.compensator(3600.0).announce()  # a slow machine ends no sphere
        if request.param == "local":
            yield Two(here, here, known)
            return
        with postroom.open(served.url, token=served.token) as it:
            assert isinstance(it, RemoteRoom)
            yield Two(here, it, known)

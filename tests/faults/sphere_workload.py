"""A program that owns spheres in every way, and one that compensates; each says what it was told had happened.

They print ``ok COMMITTED|ABORTED|moved ID``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from time import sleep

import postroom
from postroom import faults
from postroom.model.message import Message
from postroom.room import Postroom

HEARTBEAT, CHECK = 0.06, 0.2
QUEUES = ("flight", "hotel", "car")
ORDERS = (["NEW", "PAID", "SHIPPED"], [("NEW", "PAID"), ("PAID", "SHIPPED")])


def say(*words: object) -> None:
    print(*words, flush=True)


class Planned(faults.FaultInjected):
    """What a program means to fail by."""


class Xid(str):
    @property
    def gtrid(self) -> str:
        return str(self)


class Bank:
    """Payments as files, in two phases, with the face of a DB-API connection: what is prepared survives its process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.xid_now: str | None = None
        self.what = ""

    def xid(self, format: int, branch: str, rest: str) -> Xid:
        return Xid(branch)

    def tpc_begin(self, xid: Xid) -> None:
        self.xid_now = xid.gtrid

    def pay(self, what: str) -> None:
        self.what = what

    def tpc_prepare(self) -> None:
        (self.folder / f"{self.xid_now}.new").write_text(self.what)
        (self.folder / f"{self.xid_now}.new").rename(self.folder / f"{self.xid_now}.prepared")

    def tpc_commit(self, xid: Xid | None = None) -> None:
        name = xid or self.xid_now
        (self.folder / f"{name}.prepared").rename(self.folder / f"{name}.paid")

    def tpc_rollback(self, xid: Xid | None = None) -> None:
        (self.folder / f"{xid or self.xid_now}.prepared").unlink(missing_ok=True)

    def tpc_recover(self) -> list[Xid]:
        return [Xid(file.stem) for file in self.folder.glob("*.prepared")]

    def paid(self) -> set[str]:
        return {file.read_text() for file in self.folder.glob("*.paid")}


def taken(room: Postroom, queue: str) -> Message:
    """The next message of a queue, which is a primary."""
    message = room.receive(queue).message
    assert message is not None
    assert message.sphere is not None
    return message


def drain(room: Postroom) -> None:
    for queue in QUEUES:
        while room.receive(queue):
            pass


def in_a_thread(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def own(url: str, folder: Path) -> None:
    """Spheres with every kind of end, in one process."""
    with postroom.open(url) as room:
        for queue in QUEUES:
            room.queues.create(queue)
        orders = room.spheres.machine(*ORDERS)
        room.spheres.compensator(CHECK).announce()
        commits(room, folder)
        say("begin machine")
        room.spheres.watch_state("PAID", "car")
        orders.start("order")
        orders.move("order", "PAID")
        say("ok moved order")
        aborts(room)
        votes(room)
        orphan(room)
    say("finished")


def commits(room: Postroom, folder: Path) -> None:
    bank = Bank(folder)
    with room.sphere("good", heartbeat=HEARTBEAT) as sphere:
        sphere.enlist(bank)
        bank.pay("good")
        sphere.send("flight", "book good", compensation="cancel good")
        sphere.send("hotel", "book good", compensation="cancel good", on_commit="car")
        sphere.send("car", "note good", when="commit")
        sphere.send("car", "sorry good", when="abort")
        sphere.require("flight", receipt_within=30)
        message = taken(room, "flight")
        with message.membership.join(HEARTBEAT) as part:
            part.send("car", "book good too", compensation="cancel good too")
            message.acknowledge()
        sleep(3 * HEARTBEAT)
    say("ok COMMITTED good")
    drain(room)


def aborts(room: Postroom) -> None:
    try:
        with room.sphere("bad", heartbeat=HEARTBEAT) as sphere:
            for number in range(2):
                sphere.send("flight", f"book bad {number}", compensation=f"cancel bad {number}")
            sphere.send("hotel", "book bad", compensation="cancel bad")
            sphere.send("car", "sorry bad", when="abort")
            taken(room, "flight")
            taken(room, "flight").acknowledge(processed=True)
            raise Planned
    except Planned:
        say("ok ABORTED bad")
    drain(room)


def votes(room: Postroom) -> None:
    sphere = room.sphere("vote", heartbeat=HEARTBEAT)
    sphere.send("flight", "book vote", compensation="cancel vote")
    taken(room, "flight").membership.abort("no seats")
    say("ok ABORTED vote")
    try:
        sphere.commit()
    except postroom.errors.SphereOver:
        drain(room)
    else:
        say("bad: it was committed")


def orphan(room: Postroom) -> None:
    """Its owner is a thread that ends."""

    def work() -> None:
        sphere = room.sphere("orphan", heartbeat=HEARTBEAT)
        sphere.send("flight", "book orphan", compensation="cancel orphan")
        sphere.send("hotel", "book orphan", compensation="cancel orphan")
        taken(room, "flight")
        kept.append(sphere)

    kept: list[object] = []  # the handle outlives its thread: only heartbeats can tell
    in_a_thread(work)
    if not kept:
        raise Planned("the thread failed")
    while not room.spheres.compensate(CHECK).compensated:  # a busy machine may need another look
        sleep(CHECK)
    say("ok ABORTED orphan")


def leave(url: str, folder: Path) -> None:
    """Spheres in every state that an owner can leave behind; the process ends without a word."""
    room = postroom.open(url)
    for queue in QUEUES:
        room.queues.create(queue, password="pw")
    kept = [room.sphere(id, heartbeat=HEARTBEAT) for id in ("one", "two", "three", "parked", "committing")]
    for sphere in kept:
        sphere.send("flight", f"book {sphere.id}", compensation=f"cancel {sphere.id}")
        sphere.send("car", f"book {sphere.id}", compensation=f"cancel {sphere.id}")
        sphere.send("hotel", f"sorry {sphere.id}", when="abort")
    for _ in kept:
        room.receive("flight")
    room.queues.disable("hotel", password="pw", input_only=True)
    kept[3].abort("and a queue is on hold")
    room.queues.enable("hotel", password="pw")
    kept[4].require("car", receipt_within=100)
    threading.Thread(target=kept[4].commit, daemon=True).start()
    while kept[4].state != "COMMITTING":
        sleep(0.01)
    say("left")
    os._exit(0)


def engine(url: str, folder: Path) -> None:
    with postroom.open(url) as room:
        room.spheres.compensate(CHECK)
    say("finished")


def receive(url: str, folder: Path) -> None:
    """A program that takes a message in a sphere, and ends before the sphere does."""
    with postroom.open(url) as room:
        sphere = room.sphere("s", heartbeat=HEARTBEAT)
        message = sphere.receive("work")
        assert message is not None
        say("ok", message.body)
        sleep(60)

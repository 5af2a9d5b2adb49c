"""Random histories of spheres that send, receive each other's messages and end, all from one number.

A booking is ``do ID/N`` and is undone by ``undo ID/N``. A step of the history is taken by one of a few spheres, by a
recipient outside of all of them, or by the engine, whose rules pass on what they find. At the end every sphere ends,
and ``remains`` tells what must not be there.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from postroom.errors import SphereError
from postroom.model.message import Message
from postroom.room import Postroom
from postroom.spheres.sphere import Sphere

QUEUES = ("flight", "hotel", "car")


@dataclass
class History:
    room: Postroom
    chance: random.Random
    engine: Callable[[], object] | None = None
    open: dict[str, Sphere] = field(default_factory=dict)
    sends: dict[str, tuple[str, bool]] = field(default_factory=dict)  # by booking: its sphere, and whether it is undone
    held: dict[str, list[str]] = field(default_factory=dict)  # by sphere: what it has received
    taken: list[str] = field(default_factory=list)  # for good, in the order in which it was
    started: int = 0

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()
        while self.open:
            self.end(self.chance.choice(list(self.open)))

    def step(self) -> None:
        outside: dict[Callable[[], None], int] = {self.start: 2, self.take: 2, self.work: 2 if self.engine else 0}
        inside: dict[Callable[[str], None], int] = {self.send: 6, self.receive: 5, self.end: 2}
        if not self.open or self.chance.random() < 0.25:
            self.chance.choices(list(outside), list(outside.values()))[0]()
        else:
            verb = self.chance.choices(list(inside), list(inside.values()))[0]
            verb(self.chance.choice(list(self.open)))

    def start(self) -> None:
        if len(self.open) < 4:
            id = f"s{self.started}"
            self.started += 1
            self.open[id], self.held[id] = self.room.sphere(id), []

    def send(self, id: str) -> None:
        name = f"{id}/{len(self.sends)}"
        undone = self.chance.random() < 0.8
        queue = self.chance.choice(QUEUES)
        try:
            self.open[id].send(queue, f"do {name}", compensation=f"undo {name}" if undone else None)
        except SphereError:
            self.forget(id)
            return
        self.sends[name] = (id, undone)

    def receive(self, id: str) -> None:
        try:
            message = self.open[id].receive(self.chance.choice(QUEUES))
        except SphereError:
            self.forget(id)
            return
        if message is not None:
            self.held[id].append(str(message.body))

    def take(self) -> None:
        message = self.room.receive(self.chance.choice(QUEUES)).message
        if message is not None:
            self.taken.append(str(message.body))
            self.react(message)

    def react(self, message: Message) -> None:
        """A recipient may say something, or fail."""
        mood = self.chance.random()
        if message.sphere is None or "compensates" in message.properties:
            return
        try:
            if mood < 0.2:
                message.membership.abort("no room")
            elif mood < 0.4:
                message.acknowledge()
        except SphereError:
            return

    def end(self, id: str) -> None:
        sphere = self.open.pop(id)
        try:
            if self.chance.random() < 0.5:
                sphere.commit()
                self.taken += self.held.pop(id)
            else:
                sphere.abort()
                self.held.pop(id)
        except SphereError:  # a recipient was faster
            self.held.pop(id)

    def forget(self, id: str) -> None:
        del self.open[id]
        self.held.pop(id)

    def work(self) -> None:
        assert self.engine is not None
        self.engine()


def remains(history: History) -> list[str]:
    """What is wrong at the end, in words; nothing if all is right."""
    room, found = history.room, []
    waiting = [str(message.body) for queue in QUEUES for message in room.queues.info(queue)]
    states = {id: room.spheres.show(id).sphere.state for id in {id for id, _ in history.sends.values()}}
    for name, (id, undone) in history.sends.items():
        do, undo = waiting.count(f"do {name}"), waiting.count(f"undo {name}")
        did, undid = history.taken.count(f"do {name}"), history.taken.count(f"undo {name}")
        if do + did > 1 or undo + undid > 1:
            found.append(f"{name} is there twice")
        if states[id] == "COMMITTED" and (do + did != 1 or undo + undid):
            found.append(f"{name} is committed: {do} waiting, {did} taken, {undo + undid} undone")
        if states[id] == "ABORTED" and do:
            found.append(f"{name} is a phantom: its sphere is aborted")
        if states[id] == "ABORTED" and did and undone and undo + undid != 1:
            found.append(f"{name} was taken and is not undone")
        if states[id] == "ABORTED" and not did and undo:
            found.append(f"{name} is undone, and nobody had it")
        if states[id] not in ("COMMITTED", "ABORTED"):
            found.append(f"sphere {id} is {states[id]}")
    return found

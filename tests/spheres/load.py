"""Random owners, recipients and an engine, each in a process of its own, all from one seed.

``python -m tests.spheres.load own|take|engine ROOM SEED [SPHERES]``; owners say ``STATE ID`` of what they were told.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

import postroom
from postroom.errors import PostroomError, SphereError, StoreBusy
from postroom.model.message import Message
from postroom.room import Postroom
from postroom.spheres.sending import Compensation
from postroom.spheres.sphere import Sphere

QUEUES = ("flight", "hotel", "car")
HEARTBEAT, CHECK = 0.3, 1.0


class Planned(Exception):
    pass


def own(url: str, seed: str, spheres: str) -> None:
    """Sphere after sphere; at a random moment of a random one the process kills itself."""
    chance = random.Random(seed)
    fatal = chance.randrange(int(spheres)) if chance.random() < 0.7 else -1
    with postroom.open(url) as room:
        for number in range(int(spheres)):
            id = f"{seed}-{number}"
            try:
                with room.sphere(id, heartbeat=HEARTBEAT, commit_within=1.0) as sphere:
                    fill(sphere, chance, die=number == fatal)
                told = "COMMITTED"
            except (Planned, SphereError):
                told = room.spheres.show(id).sphere.state
            except StoreBusy:
                continue
            print(told, id, flush=True)


def fill(sphere: Sphere, chance: random.Random, die: bool) -> None:
    sends = chance.randrange(5)
    last = chance.randrange(sends + 1)
    for number in range(sends):
        if die and number == last:
            os.kill(os.getpid(), signal.SIGKILL)
        send(sphere, chance, f"{sphere.id}/{number}")
    if chance.random() < 0.2:
        sphere.require(chance.choice(QUEUES), receipt_within=0.5)
    if die:
        os.kill(os.getpid(), signal.SIGKILL)
    if chance.random() < 0.3:
        raise Planned


def send(sphere: Sphere, chance: random.Random, name: str) -> None:
    queue, when = chance.choice(QUEUES), chance.choice(("now", "now", "now", "commit", "abort"))
    undo = None
    if when == "now" and chance.random() < 0.8:
        undo = Compensation(f"undo {name}", queue=chance.choice((None, *QUEUES)))
    sphere.send(queue, f"do {name}", when=when, compensation=undo)


def take(url: str, seed: str) -> None:
    """A recipient of random manners, until its input ends."""
    chance = random.Random(seed)
    with postroom.open(url) as room:
        while os.getppid() == PARENT:
            with suppress(StoreBusy):
                if chance.random() < 0.3:
                    hold(room, chance)
                    continue
                message = room.receive(chance.choice(QUEUES), wait=0.05).message
                if message is not None and message.sphere is not None:
                    with suppress(SphereError):
                        react(message, chance)


def hold(room: Postroom, chance: random.Random) -> None:
    """Receive in a sphere of one's own, which may fail: then what others' spheres have sent goes back to them."""
    with suppress(Planned, SphereError), room.sphere(heartbeat=HEARTBEAT, commit_within=1.0) as sphere:
        for _ in range(chance.randrange(1, 4)):
            sphere.receive(chance.choice(QUEUES), wait=0.05)
        if chance.random() < 0.5:
            raise Planned


def react(message: Message, chance: random.Random) -> None:
    mood = chance.random()
    if mood < 0.4:
        message.acknowledge()
    elif mood < 0.5:
        message.membership.abort("no room")
    elif mood < 0.7:
        with suppress(Planned), message.membership.join(HEARTBEAT) as part:
            part.send(chance.choice(QUEUES), "do more", compensation="undo more")
            if chance.random() < 0.3:
                raise Planned


def engine(url: str, seed: str) -> None:
    """Check until killed."""
    with postroom.open(url) as room:
        room.spheres.compensator(CHECK).run()


def finish(room: Postroom) -> None:
    """After all owners have ended: everything comes to its end."""
    for _ in range(10):
        checked = room.spheres.compensate(CHECK)
        if not checked.spheres and not checked.parked:
            return


PARENT = os.getppid()

if __name__ == "__main__":
    programs: dict[str, Callable[..., None]] = {"own": own, "take": take, "engine": engine}
    try:
        programs[sys.argv[1]](*sys.argv[2:])
    except PostroomError as error:
        print(repr(error), file=sys.stderr)
        sys.exit(3)

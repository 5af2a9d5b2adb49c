"""A graph that changes under load: events are published while an engine on real Spark lets them flow.

``python -m tests.faults.flow_workload URL FOLDER NAME COUNT [MASTER]`` prints ``begin event N`` before a publication
and ``ok event N`` once it was acknowledged, ``step N`` after each step and ``finished`` at the end. A parent kills it
and looks where the acknowledged events are.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import postroom
from postroom.engine.runner import Totals
from postroom.room import Postroom

from .engine_workload import say

FLOW = """
domain load
space In : [n: int]
space Middle : [n: int] retain
space All : [n: int]
arc first : In -> Middle merge
arc all : Middle -> All select [n: n >= 0]
"""


def publish(url: str, name: str, count: int) -> None:
    """Events in their order, and in between the graph changes."""
    with postroom.open(url) as room:
        keeper = room.client("keeper")
        keeper.subscribe("Middle", durable=True)
        first = int(name) * 100_000
        for number in range(first, first + count):
            say("begin", "event", str(number))
            room.publish("In", {"n": number})
            say("ok", "event", str(number))
            change(room, number)


def change(room: Postroom, number: int) -> None:
    """Clients leave, come back, and others come and go."""
    if number % 10 == 3:
        room.client("keeper").disconnect()
    elif number % 10 == 7:
        room.client("keeper").connect()
    elif number % 20 == 5:
        room.client("guest").subscribe("Middle", "[n: n > 5]")
    elif number % 20 == 15:
        room.client("guest").unsubscribe()


def work(url: str, folder: Path, name: str, count: int, master: str) -> None:
    graph = folder / "load.flow"
    graph.write_text(FLOW)
    with postroom.open(url) as room:
        room.load(graph)
        publisher = threading.Thread(target=publish, args=(url, name, count))
        publisher.start()

        def progress(totals: Totals) -> None:
            say("step", str(totals.steps))

        while True:
            last = not publisher.is_alive()
            room.run_until_idle(master=master, step_messages=7, progress=progress)
            if last:
                break
    say("finished")


if __name__ == "__main__":
    url, folder, name, count, *master = sys.argv[1:]
    work(url, Path(folder), name, int(count), *(master or ["local[2]"]))

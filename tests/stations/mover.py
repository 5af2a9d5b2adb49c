"""A process that moves messages: ``python -m tests.stations.mover ROOM SEED STATIONS STOP`` until the file is there.

It gets the mail of its stations and ships on what they have, a few messages at a time, and modifies some. How many it
has shipped is in a file beside the other one.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import postroom
from postroom.errors import StoreBusy


def move(url: str, seed: int, stations: list[str], stop: Path) -> None:
    chance = random.Random(seed)
    moved = 0
    told = stop.with_name(f"moved-{seed}")
    with postroom.open(url, create=False) as room:
        everyone = list(room.stations.all())
        desks = [room.stations._station(name) for name in stations]
        print("begun", flush=True)
        while not stop.exists():
            desk = chance.choice(desks)
            try:
                desk.get(limit=chance.choice([1, 20, 200]))
                some = [image.key for image in desk.messages(limit=chance.choice([1, 10, 100]))]
                if some and chance.random() < 0.3:
                    desk.modify(chance.choice(some), Count=chance.randint(0, 99))
                if some:
                    moved += len(desk.ship(some, chance.choice(everyone)))
                    told.write_text(str(moved))
            except StoreBusy:  # another process had the store for long; nothing has happened
                continue


if __name__ == "__main__":
    move(sys.argv[1], int(sys.argv[2]), sys.argv[3].split(","), Path(sys.argv[4]))

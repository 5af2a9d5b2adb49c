"""The simulator from the command line: ``python -m tests.simulation.run --seed 7``, or many by ``--count``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.simulation.simulator import World, Wrong


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--seed", type=int, default=0, help="the first number")
    words.add_argument("--count", type=int, default=1, help="how many numbers, one after the other")
    words.add_argument("--log", action="store_true", help="print what was done")
    given = words.parse_args()
    failed = 0
    for seed in range(given.seed, given.seed + given.count):
        with tempfile.TemporaryDirectory() as folder:
            world = World(seed, Path(folder))
            try:
                world.run()
                said = "sound"
            except Wrong as error:
                said, failed = str(error), failed + 1
        if given.log:
            print("\n".join(world.log))
        if given.count == 1 or said != "sound":
            print(f"seed {seed}: {len(world.log)} events, {world.kills} kills, hash {world.hash}: {said}")
    print(f"{given.count} run(s), {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

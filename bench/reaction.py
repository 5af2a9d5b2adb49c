"""How soon an idle engine reacts, and what one message costs from the shell: ``python bench/reaction.py [COUNT]``."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, sleep

import postroom
from postroom.room import Postroom

RULES = """
create queue in kind basic mode persistent
create queue out kind basic mode persistent
create rule pass for in if (/m) then do enqueue <r>{string(/m)}</r> into out
"""
ARCS = """domain d
space S : [n: int]
space T : [n: int]
arc a : S -> T transform [n: x] => [n: x + 1]
"""


def reactions(folder: Path, count: int) -> list[float]:
    """Seconds from before a send to the receive of what its rule makes of it, by an engine that is idle."""
    (folder / "p.demaq").write_text(RULES)
    with postroom.open(folder / "idle.db") as room, postroom.open(folder / "idle.db") as other:
        room.load(folder / "p.demaq")
        engine = threading.Thread(target=room.run, daemon=True)
        engine.start()
        one_reaction(other)
        sleep(10)  # Spark starts beside
        found = []
        for _ in range(count):
            sleep(0.05)
            found.append(one_reaction(other))
        room.stop()
        engine.join()
    return found


def one_reaction(room: Postroom) -> float:
    began = perf_counter()
    room.send("in", "<m>1</m>", format="xml")
    received = room.receive("out", wait=60)
    assert received.message is not None
    return perf_counter() - began


def from_the_shell(folder: Path, name: str, text: str, send: list[str]) -> tuple[float, float]:
    """Seconds, and seconds of processor time, of ``postroom run --until-idle`` for one message."""
    (folder / name).write_text(text)
    program = [str(Path(sys.executable).with_name("postroom")), "--room", str(folder / f"{name}.db")]
    subprocess.run([*program, "load", str(folder / name)], check=True, capture_output=True)
    subprocess.run([*program, *send], check=True, capture_output=True)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    subprocess.run([*program, "run", "--until-idle"], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return perf_counter() - began, used


def main(count: int) -> None:
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for what, name, text, send in (
            ("rules", "p.demaq", RULES, ["send", "in", "--format", "xml", "--body", "<m>1</m>"]),
            ("arcs", "g.flow", ARCS, ["publish", "S", '{"n": 1}']),
        ):
            seconds, used = from_the_shell(place, name, text, send)
            print(f"run --until-idle, one message of {what}: {seconds:.2f} s, {used:.2f} s of processor time")
        found = reactions(place, count)
        late = quantiles(found, n=100)[98]
        print(f"an idle engine reacts: median {median(found) * 1000:.1f} ms, p99 {late * 1000:.1f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)

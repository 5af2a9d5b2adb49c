"""Two workers of a cluster on this machine decide claims; one is killed half-way, and nothing is lost or doubled.

python examples/cluster/demo.py [CLAIMS]
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic

from machines import Cluster

import postroom
from postroom import spark
from postroom.engine.runner import Totals

#: Runs in a room, on a Spark master with settings, and tells how many messages were processed.
Scenario = Callable[[str, str, dict[str, str], Callable[[int], None]], None]
PROGRAM = Path(__file__).parent / "claims.demaq"
STEP = 1_000  # messages: small enough that there is a half-way


def claim(number: int) -> str:
    region = ("north", "south", "east")[number % 3]
    return (
        f"<claim><claimID>c{number}</claimID><customer>p{number % 100}</customer>"
        f"<region>{region}</region><amount>{100 + number % 900}</amount></claim>"
    )


def paid(number: int) -> int:
    """What the rules must come to, reckoned without them."""
    return (100 + number % 900) * (50 if "7" in str(number % 100) else 100) // 100


def claims(count: int) -> Scenario:
    """The scenario: every claim leads to three questions, three answers and one decision."""

    def run(url: str, master: str, conf: dict[str, str], tell: Callable[[int], None]) -> None:
        with postroom.open(url) as room:
            room.load(PROGRAM)
            room.send_many("claims", [claim(number) for number in range(count)], format="xml")
            print(f"  {count:,} claims wait in {room.accept('claims').queues[0].queue}")

            def progress(totals: Totals) -> None:
                assert totals.last is not None
                seconds = totals.last.seconds
                print(
                    f"  step {totals.steps}: {totals.messages:,} messages so far"
                    f" (claim {seconds['claim']:.2f} s, evaluate {seconds['evaluate']:.2f} s,"
                    f" commit {seconds['commit']:.2f} s)",
                    flush=True,
                )
                tell(totals.messages)

            began = monotonic()
            totals = room.engine_run(until_idle=True, master=master, conf=conf, progress=progress, step_messages=STEP)
            seconds = monotonic() - began
            print(f"  {totals.messages:,} messages in {totals.steps} steps, {totals.messages / seconds:,.0f} a second")

    return run


def check(url: str, count: int) -> Mapping[str, int]:
    """Look at what is there: every claim decided once, with the right sum."""
    with postroom.open(url, create=False) as room:
        said = "".join(message.body for message in room.info("decided"))
        found = Counter(re.findall(r"<decision><claimID>c(\d+)</claimID><paid>(\d+)</paid></decision>", said))
        wanted = Counter({(str(number), str(paid(number))): 1 for number in range(count)})
        counts = {each.queue: (each.unprocessed, each.processed) for each in room.accept().queues}
        left = room.store.read(lambda tx: tx.staging.parts)
    return {
        "claims": count,
        "decided": sum(found.values()),
        "lost": sum((wanted - found).values()),
        "doubled or wrong": sum((found - wanted).values()),
        "errors": sum(counts["refused"]) + sum(counts["postroom-errors"]),
        "waiting": sum(counts[name][0] for name in ("claims", "police", "garage", "policies", "desk")),
        "answers left over": left,
    }


class Killing:
    """Whoever is told how far it is: half-way, and while the next job runs, the first worker is killed."""

    def __init__(self, cluster: Cluster, half: int) -> None:
        self._cluster = cluster
        self._half = half
        self._timer = threading.Timer(0.3, self._kill)

    def tell(self, messages: int) -> None:
        if messages >= self._half and not self._timer.ident:
            self._timer.start()

    def _kill(self) -> None:
        family = self._cluster.kill_worker(0)
        print(
            f"  half-way: worker 0 is killed, with its executor and their Python ({len(family)} processes)", flush=True
        )


def main(count: int) -> int:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    print("Starting PostgreSQL, a Spark master and two workers …", flush=True)
    with Cluster(workers=2) as cluster:
        print(f"  {cluster.master} with workers {', '.join(str(each.pid) for each in cluster.workers)}")
        try:
            claims(count)(cluster.url, cluster.master, cluster.conf, Killing(cluster, half=count * 7 // 2).tell)
        finally:
            spark.stop()
        found = check(cluster.url, count)
        alive = sum(each.poll() is None for each in cluster.workers)
    for what, number in found.items():
        print(f"  {what}: {number:,}")
    wrong = [what for what in ("lost", "doubled or wrong", "errors", "waiting", "answers left over") if found[what]]
    if wrong or alive != 1:
        print(f"Something is wrong: {', '.join(wrong) or f'{alive} workers are alive'}")
        return 1
    print("One worker of two was killed, and nothing is lost or doubled.")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3_000))

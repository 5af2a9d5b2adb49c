"""PostgreSQL and a Spark cluster of two workers on this machine; a worker is killed half-way, and nothing is lost.

python examples/cluster/demo.py [office [CLAIMS]] [volume [CLAIMS]]

``office`` is the scenario of examples/claims, through every capability; ``volume`` sends some thousand claims through
rules that ask three departments and join their answers. Without words it is both, each on a cluster of its own.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from machines import Cluster

import postroom
from postroom import spark
from postroom.engine.runner import Totals

HERE = Path(__file__).parent
STEP = 1_000  # messages: small enough that there is a half-way


class Killing:
    """Kills the first worker, once, a moment after it was told to: then a job is under way."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._timer = threading.Timer(0.3, self._kill)

    def begin(self) -> None:
        if not self._timer.ident:
            self._timer.start()

    def wait(self) -> None:
        if self._timer.ident:
            self._timer.join()

    def _kill(self) -> None:
        family = self._cluster.kill_worker(0)
        say(f"half-way: worker 0 is killed, with its executor and their Python ({len(family)} processes)")


#: Works on a cluster, has a worker killed half-way, and answers with what to count; what must be 0 begins with "-".
Scenario = Callable[[Cluster, Killing, int], Mapping[str, int]]


def say(text: str) -> None:
    print(f"  {text}", flush=True)


# --- every capability ---


def office(cluster: Cluster, killing: Killing, count: int) -> Mapping[str, int]:
    """The scenario of examples/claims, which checks itself; the worker is killed when procedures join the claims."""
    claims = _module(HERE.parent / "claims" / "claims.py")

    class Office(claims.Office):  # type: ignore[misc,name-defined]  # it comes from a file
        def settle(self) -> None:
            killing.begin()
            super().settle()

    spark.session(cluster.master, cluster.conf)  # the scenario names the master, and finds this session
    with postroom.open(cluster.url, actor="front office") as room:
        _, counts = claims.play(Office(room, cluster.master), claims.many(count))
        return {**counts, "-answers left over": room.store.read(lambda tx: tx.staging.parts)}


def _module(file: Path) -> Any:
    found = importlib.util.spec_from_file_location(file.stem, file)
    assert found is not None
    assert found.loader is not None
    made = importlib.util.module_from_spec(found)
    found.loader.exec_module(made)
    return made


# --- many messages ---


def volume(cluster: Cluster, killing: Killing, count: int) -> Mapping[str, int]:
    """Every claim leads to three questions, three answers and one decision: seven messages are processed for each."""
    with postroom.open(cluster.url) as room:
        room.load(HERE / "claims.demaq")
        room.send_many("claims", [claim(number) for number in range(count)], format="xml")
        say(f"{count:,} claims wait")

        def progress(totals: Totals) -> None:
            assert totals.last is not None
            spent = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in totals.last.seconds.items())
            say(f"step {totals.steps}: {totals.messages:,} messages so far ({spent})")
            if totals.messages >= count * 7 // 2:
                killing.begin()

        began = monotonic()
        totals = room.engine.run_totals(
            until_idle=True, master=cluster.master, conf=cluster.conf, progress=progress, step_messages=STEP
        )
        rate = totals.messages / (monotonic() - began)
        say(f"{totals.messages:,} messages in {totals.steps} steps, {rate:,.0f} a second")
        return counted(room, count)


def claim(number: int) -> str:
    region = ("north", "south", "east")[number % 3]
    return (
        f"<claim><claimID>c{number}</claimID><customer>p{number % 100}</customer>"
        f"<region>{region}</region><amount>{100 + number % 900}</amount></claim>"
    )


def paid(number: int) -> int:
    """What the rules must come to, reckoned without them."""
    return (100 + number % 900) * (50 if "7" in str(number % 100) else 100) // 100


def counted(room: postroom.Postroom, count: int) -> Mapping[str, int]:
    """Look at what is there: every claim decided once, with the right sum."""
    said = "".join(message.body for message in room.peek("decided"))
    found = Counter(re.findall(r"<decision><claimID>c(\d+)</claimID><paid>(\d+)</paid></decision>", said))
    wanted = Counter({(str(number), str(paid(number))): 1 for number in range(count)})
    counts = {each.queue: (each.unprocessed, each.processed) for each in room.count().queues}
    return {
        "claims": count,
        "decided": sum(found.values()),
        "-lost": sum((wanted - found).values()),
        "-doubled or wrong": sum((found - wanted).values()),
        "-errors": sum(counts["refused"]) + sum(counts["postroom-errors"]),
        "-waiting": sum(counts[name][0] for name in ("claims", "police", "garage", "policies", "desk")),
        "-answers left over": room.store.read(lambda tx: tx.staging.parts),
    }


# --- on a cluster ---


def played(scenario: Scenario, count: int) -> bool:
    """Whether a scenario ended as it must on a cluster that lost a worker."""
    print("Starting PostgreSQL, a Spark master and two workers …", flush=True)
    with Cluster(workers=2) as cluster:
        say(f"{cluster.master} with workers {', '.join(str(each.pid) for each in cluster.workers)}")
        killing = Killing(cluster)
        try:
            found = scenario(cluster, killing, count)
        finally:
            killing.wait()
            spark.stop()
        alive = sum(each.poll() is None for each in cluster.workers)
    for what, number in found.items():
        say(f"{what.removeprefix('-')}: {number:,}")
    wrong = [what[1:] for what, number in found.items() if what.startswith("-") and number]
    if wrong or alive != 1:
        print(f"Something is wrong: {', '.join(wrong) or f'{alive} workers are alive'}")
        return False
    print("One worker of two was killed, and nothing is lost or doubled.", flush=True)
    return True


SCENARIOS: Mapping[str, tuple[Scenario, int]] = {"office": (office, 40), "volume": (volume, 3_000)}


def main(words: Sequence[str]) -> int:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    chosen: dict[str, int] = {}
    for word in words:
        if word in SCENARIOS:
            chosen[word] = SCENARIOS[word][1]
        elif chosen and word.isdigit() and int(word) > 0:
            chosen[list(chosen)[-1]] = int(word)
        else:
            sys.exit(f"{word!r} is neither a scenario nor a number of claims; scenarios: {', '.join(SCENARIOS)}")
    wanted = chosen or {name: count for name, (_, count) in SCENARIOS.items()}
    return int(not all(played(SCENARIOS[name][0], count) for name, count in wanted.items()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Measure the rule engine: through Fig. 5 and Fig. 7 of the Demaq paper, as a room grows, and from an idle start.

End to end, with durable commits, on a warm Spark session. Beside it, in the same run, the same rules by the same
XQuery engine one message at a time, with a commit each and without Spark. A missed bound is said in the table and is no
failure of the program.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import postroom
from curves import curve
from lines import Line
from postroom.engine.evaluators import Evaluators
from postroom.engine.holding import LEASE
from postroom.engine.steps.effects import Arrival, Effects
from postroom.engine.steps.serial import Timeline
from postroom.engine.steps.stage import Turn
from postroom.engine.steps.watching import steps
from postroom.engine.way import answered
from postroom.room import Postroom
from postroom.rules.evaluation.chunks import Base, packed, settled
from postroom.rules.evaluation.share import RulesShare
from postroom.rules.evaluation.worker import RulesTask
from program import Bench, run, tell

FORK = """
create queue crm kind basic mode persistent
create queue finance kind basic mode persistent
create queue legal kind basic mode persistent
create queue supplier kind basic mode persistent
create rule newOfferRequest for crm
if (//offerRequest) then
  let $customerInfo := <requestCustomerInfo>{//requestID} {//customerID}</requestCustomerInfo>
  let $exportRestrictionsInfo := <requestRestrictions>{//requestID} {//items}</requestRestrictions>
  let $plantCapacityInfo := <requestCapacity>{//requestID} {//items}</requestCapacity>
  return do enqueue $customerInfo into finance,
    do enqueue $exportRestrictionsInfo into legal,
    do enqueue $plantCapacityInfo into supplier with Sender value "http://ws.chem.invalid/"
"""
JOIN = """
create queue crm kind basic mode persistent
create queue customer kind basic mode persistent
create queue archive kind basic mode persistent
create property requestID as xs:string fixed queue crm, customer, archive value //requestID
create slicing requestMsgs on requestID
create rule joinOrder for requestMsgs
if (qs:slice()[/customerInfoResult] and qs:slice()[/restrictionsResult] and qs:slice()[/capacityResult]
    and not(qs:slice()[/offer] or qs:slice()[/refusal])) then
  if (qs:slice()[/customerInfoResult/accept] and not(qs:slice()[/restrictionsResult/restrictedItem])
      and qs:slice()[/capacityResult/accept]) then
    let $request := qs:queue("crm")/offerRequest
    let $items := $request[//requestID = qs:slicekey()]/items
    return do enqueue <offer>{//requestID}{$items}</offer> into customer
  else do enqueue <refusal>{//requestID}</refusal> into customer
"""


@dataclass(frozen=True, slots=True)
class Sizes:
    backlog: int
    rounds: int
    singles: int  # one message at a time
    slices: int
    rooms: tuple[int, ...]
    grown: int  # messages processed in each room and round
    reactions: int
    warm: tuple[int, ...]


FULL = Sizes(50_000, 3, 1_000, 10_000, (10_000, 100_000, 1_000_000), 6_000, 50, (1_000, 1_000, 2_000, 10_000))
QUICK = Sizes(2_000, 1, 50, 300, (1_000, 5_000), 600, 5, (200,))


class RuleBench(Bench):
    def __init__(self, folder: Path, sizes: Sizes, master: str) -> None:
        super().__init__(folder, master)
        self._sizes = sizes

    def lines(self) -> Iterator[Line]:
        self._warm_up()
        tell("the fork of Fig. 5")
        yield from self._fork()
        tell("the join of Fig. 7")
        yield from self._join()
        tell("an idle engine")
        yield self._reaction()
        tell(f"rooms with {', '.join(f'{size:,}' for size in self._sizes.rooms)} messages")
        yield self._growth()

    def _warm_up(self) -> None:
        tell("starting Spark and warming up")
        for name, program, bodies in (("warm-fork", FORK, requests), ("warm-join", JOIN, results)):
            room = self._room(name, program, ".demaq")
            for count in self._sizes.warm:
                room.send_many("crm", bodies(count), format="xml")
                room.run_until_idle(master=self._master)
            self._close(room)

    # --- measures ---

    def _fork(self) -> Iterator[Line]:
        backlog, rates, ratios = self._sizes.backlog, [], []
        singles = []
        for number in self._rounds(self._sizes.rounds, share=0.2):
            room = self._room(f"fork-{number}", FORK, ".demaq")
            room.send_many("crm", requests(backlog), format="xml")
            seconds = self._run(room, "fork of Fig. 5", backlog)
            assert unprocessed(room) == [0, backlog, backlog, backlog]
            self._close(room)
            rates.append(backlog / seconds)
            singles.append(self._one_at_a_time(number))
            ratios.append(rates[-1] / singles[-1])
        rate = median(rates)
        name = f"fork of Fig. 5, backlog of {backlog:,}"
        yield Line(name, rate, "/s", rate, min(rates), max(rates), "fork")
        among = (median(ratios), min(ratios), max(ratios))
        yield Line(name, rate, "/s", *among, "fork-batch", "one message at a time, a commit each", median(singles))

    def _one_at_a_time(self, number: int) -> float:
        count = self._sizes.singles
        room = self._room(f"single-{number}", FORK, ".demaq")
        room.send_many("crm", requests(count), format="xml")
        share = Here(room.store.read(room._parts.programs.plan))
        fence = room.store.transact("lease", lambda tx: tx.leases.acquire(LEASE, "bench", 3600))
        start = perf_counter()
        turn = Turn(room.store, fence, Evaluators(_no_spark), lambda: 1)
        while next(steps(share, turn, ahead=0), None) is not None:
            pass
        seconds = perf_counter() - start
        assert unprocessed(room) == [0, count, count, count]
        self._close(room)
        return count / seconds

    def _join(self) -> Iterator[Line]:
        slices, rates = self._sizes.slices, []
        for number in self._rounds(self._sizes.rounds, share=0.2):
            room = self._room(f"join-{number}", JOIN, ".demaq")
            bodies = results(slices)
            room.send_many("crm", bodies, format="xml")
            # The offers are processed too: the slicing's rule watches the customers' queue.
            seconds = self._run(room, "join of Fig. 7", len(bodies) + slices)
            assert len(room.journal.slice("requestMsgs", "0")) == 5
            self._close(room)
            rates.append((len(bodies) + slices) / seconds)
        rate = median(rates)
        yield Line(f"join of Fig. 7 over {slices:,} slices", rate, "/s", rate, min(rates), max(rates), "join")

    def _growth(self) -> Line:
        """Cost per message in a room with many stored messages, each in a slice, beside one with few."""
        rooms = {}
        for size in self._sizes.rooms:
            rooms[size] = self._room(f"grown-{size}", JOIN, ".demaq")
            for start in range(0, size, 50_000):
                bodies = [
                    f"<old><requestID>old-{start + n}</requestID></old>" for n in range(min(50_000, size - start))
                ]
                rooms[size].send_many("archive", bodies, format="xml")
            self._run(rooms[size], f"room with {size:,}", size)  # they are processed, and their slices keep them
        small, large = self._sizes.rooms[0], self._sizes.rooms[-1]
        count, costs = self._sizes.grown // 4, {size: list[float]() for size in rooms}
        for turn in range(3):
            for size, room in rooms.items():
                bodies = results(count, f"turn-{turn}-")
                room.send_many("crm", bodies, format="xml")
                seconds = self._run(room, f"room with {size:,}", len(bodies) + count)
                costs[size].append(seconds / (len(bodies) + count) * 1e6)
        for room in rooms.values():
            self._close(room)
        self.curves.append(curve("a message of the join", "messages stored", "µs", costs))
        ratios = [many / few for many, few in zip(costs[large], costs[small], strict=True)]
        among = (median(ratios), min(ratios), max(ratios))
        others = (f"{small:,} stored", median(costs[small]))
        return Line(f"a message with {large:,} stored", median(costs[large]), "µs", *among, "growth", *others)

    def _reaction(self) -> Line:
        """From a send to the reaction that someone else receives, when the engine has nothing else to do."""
        room = self._room("idle", FORK, ".demaq")
        engine = threading.Thread(target=room.run, kwargs={"master": self._master})
        engine.start()
        taken = []
        with postroom.open(room.url) as sender, postroom.open(room.url) as receiver:
            for body in requests(self._sizes.reactions + 5):
                start = perf_counter()
                sender.send("crm", body, format="xml")
                assert receiver.receive("finance", wait=30).message is not None
                taken.append(perf_counter() - start)
        room.stop()
        engine.join()
        self._close(room)
        taken = taken[5:]
        seconds = median(taken)
        name = "from a send to an idle engine to its committed reaction"
        return Line(name, seconds, "s", seconds, min(taken), max(taken), "reaction")


class Here(RulesShare):
    """The rules evaluated in this process."""

    def evaluate(
        self, way: Any, arrivals: Sequence[Arrival], base: Base, known: Timeline, bay: Any = None
    ) -> Iterator[Mapping[int, Effects]]:
        yield settled(answered(RulesTask(self.plan), packed(arrivals, base, known)))


def _no_spark() -> Any:
    return None


def unprocessed(room: Postroom) -> list[int]:
    """What waits in the queues of the fork."""
    counts = {count.queue: count.unprocessed for count in room.queues.accept().queues}
    return [counts[name] for name in ("crm", "finance", "legal", "supplier")]


def requests(count: int) -> list[str]:
    return [
        f"<offerRequest><requestID>{n}</requestID><customerID>c{n % 700}</customerID>"
        f"<items><item>x{n}</item><item>y</item></items></offerRequest>"
        for n in range(count)
    ]


def results(slices: int, prefix: str = "") -> list[str]:
    """For each request itself and its three answers: first all requests, then the answers of each in turn."""
    found = [
        f"<offerRequest><requestID>{prefix}{n}</requestID><items><item>x{n}</item></items></offerRequest>"
        for n in range(slices)
    ]
    for n in range(slices):
        found += [
            f"<customerInfoResult><requestID>{prefix}{n}</requestID><accept/></customerInfoResult>",
            f"<restrictionsResult><requestID>{prefix}{n}</requestID></restrictionsResult>",
            f"<capacityResult><requestID>{prefix}{n}</requestID><accept/></capacityResult>",
        ]
    return found


if __name__ == "__main__":
    sys.exit(run(__doc__, lambda folder, quick, master: RuleBench(folder, QUICK if quick else FULL, master)))

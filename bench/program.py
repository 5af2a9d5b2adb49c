"""What the measuring programs have in common: their options, their report, their figures as JSON."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

import postroom
from bounds import BOUNDS
from curves import Curve
from lines import Line, table, verdict
from machine import machine, versions
from postroom.engine.runner import Totals
from postroom.room import Postroom
from results import Result, write


class Bench:
    """Makes rooms, and lets engines work in them."""

    def __init__(self, folder: Path, master: str) -> None:
        self._folder = folder
        self._master = master
        self.stages: dict[str, dict[str, float]] = {}  # microseconds a message, by what was measured
        self.curves: list[Curve] = []
        self.notes: list[str] = []  # what else the reader should know of this run
        self.seconds_max: float | None = None  # that it should take

    def lines(self) -> Iterator[Line]:
        raise NotImplementedError

    def _rounds(self, count: int, share: float, what: str = "") -> Iterator[int]:
        """So many rounds; fewer if one more would take more than this share of the time, on a slow machine."""
        start = perf_counter()
        for done in range(count):
            average = (perf_counter() - start) / max(done, 1)
            if done and self.seconds_max is not None and average * (done + 1) > share * self.seconds_max:
                about = f"{what}, " if what else ""
                self.notes.append(f"{about}{done} of {count} rounds: there was no time for more")
                return
            yield done

    def _room(self, name: str, text: str, suffix: str, stations: Iterable[str] = ()) -> Postroom:
        """A room of its own, with the definitions of a text, and with stations that they may name."""
        place = self._folder / name
        place.mkdir()
        file = place / f"definitions{suffix}"
        file.write_text(text)
        room = postroom.open(place / "room.db")
        for each in stations:
            room._parts.network.add_station(each, "control", None)  # passwords take their time
        room.load(file)
        return room

    def _close(self, room: Postroom) -> None:
        room.close()
        shutil.rmtree(Path(room.url).parent)

    def _run(self, room: Postroom, what: str, expected: int) -> float:
        """Seconds to process everything that waits; the stage times are kept for the report."""
        spent: dict[str, float] = {}

        def progress(totals: Totals) -> None:
            assert totals.last is not None
            for stage, seconds in totals.last.seconds.items():
                spent[stage] = spent.get(stage, 0.0) + seconds

        start = perf_counter()
        totals = room.engine.run_totals(until_idle=True, progress=progress, master=self._master, spark="always")
        seconds = perf_counter() - start
        assert (totals.messages, totals.failures) == (expected, 0), totals
        self.stages[what] = {stage: each / expected * 1e6 for stage, each in spent.items()}
        return seconds


def run(about: str | None, make: Callable[[Path, bool, str], Bench]) -> int:
    """Measure and report. ``make`` gets a folder, whether to be quick, and the Spark master."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run at all?")
    parser.add_argument("--master", default="local[*]", help="the Spark master")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE, line by line")
    parser.add_argument("--minutes", type=float, help="how long it should take: fewer rounds on a slow machine")
    options = parser.parse_args()
    part = Path(sys.argv[0]).stem
    start = perf_counter()
    build = Path("build")
    build.mkdir(exist_ok=True)
    result = Result(datetime.now(UTC).date().isoformat(), machine(), versions(), options.quick)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=build) as name:
        bench = make(Path(name).absolute(), options.quick, options.master)
        bench.seconds_max = None if options.minutes is None else options.minutes * 60
        result.curves, result.stages, result.notes = bench.curves, bench.stages, bench.notes

        def keep() -> None:
            result.seconds = perf_counter() - start
            if options.json is not None:
                write(options.json, {part: result})

        try:
            for line in bench.lines():
                result.lines.append(line)
                keep()
        finally:  # notes that were made since the last line are kept, too
            keep()
    print(report(part, result))
    return 0


def report(part: str, result: Result) -> str:
    bounds = BOUNDS.get(part, {})
    asked = [verdict(line, bounds[line.bound]) for line in result.lines if line.bound is not None]
    parts = [f"{fact}: {value}" for fact, value in {**result.machine, **result.versions}.items()]
    parts.append(f"\n{table(result.lines, bounds)}\n")
    if result.stages:
        parts.append("Stage times, microseconds a message:")
    for what, stages in result.stages.items():
        parts.append(f"  {what}: " + ", ".join(f"{stage} {each:.1f}" for stage, each in stages.items()))
    parts += result.notes
    met, missed = asked.count("met"), asked.count("not met")
    parts.append(f"\n{met} of {len(asked)} bounds met, {missed} missed; {result.seconds:.0f} s")
    return "\n".join(parts)


def tell(what: str) -> None:
    print(f"… {what}", file=sys.stderr, flush=True)

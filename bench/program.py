"""What the measuring programs on Spark have in common: their options, their report, their figures as JSON."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

import postroom
from lines import Line, table
from machine import machine, versions
from postroom.engine.runner import Totals
from postroom.room import Postroom


class Bench:
    """Makes rooms, and lets engines work in them."""

    def __init__(self, folder: Path, master: str) -> None:
        self._folder = folder
        self._master = master
        self.stages: dict[str, dict[str, float]] = {}  # microseconds a message, by what was measured

    def lines(self) -> Iterator[Line]:
        raise NotImplementedError

    def _room(self, name: str, text: str, suffix: str) -> Postroom:
        """A room of its own, with the definitions of a text."""
        place = self._folder / name
        place.mkdir()
        file = place / f"definitions{suffix}"
        file.write_text(text)
        room = postroom.open(place / "room.db")
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
        totals = room.engine_run(until_idle=True, progress=progress, master=self._master)
        seconds = perf_counter() - start
        assert (totals.messages, totals.failures) == (expected, 0), totals
        self.stages[what] = {stage: each / expected * 1e6 for stage, each in spent.items()}
        return seconds


def run(about: str | None, make: Callable[[Path, bool, str], Bench]) -> int:
    """Measure and report. ``make`` gets a folder, whether to be quick, and the Spark master."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run at all?")
    parser.add_argument("--master", default="local[*]", help="the Spark master")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    start = perf_counter()
    build = Path("build")
    build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=build) as name:
        bench = make(Path(name).absolute(), options.quick, options.master)
        lines = list(bench.lines())
    for fact, value in {**machine(), **versions()}.items():
        print(f"{fact}: {value}")
    print(f"\n{table(lines)}\n\nStage times, microseconds a message:")
    for what, stages in bench.stages.items():
        print(f"  {what}: " + ", ".join(f"{stage} {each:.1f}" for stage, each in stages.items()))
    missed = sum(not line.met for line in lines)
    print(f"\n{len(lines) - missed} of {len(lines)} bounds met, {missed} missed; {perf_counter() - start:.0f} s")
    if options.json is not None:
        figures = {"machine": machine(), "lines": [line.as_dict() for line in lines], "stages": bench.stages}
        options.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


def tell(what: str) -> None:
    sys.stderr.write(f"… {what}\n")

"""Measure everything and write ``docs/benchmarks.md``: part by part, each in a process of its own, within half an hour.

A part that fails or takes too long is said to have failed, on the page and by the exit status; the others are measured
all the same. A missed bound is no failure: the page says so, and what bounds it.

Where the processor time of a message goes is measured by ``processors.py``, for ``docs/profile.md``.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from time import perf_counter
from typing import IO

from machine import machine, versions
from page import judged, write_page
from parts import MINUTES_MAX, PARTS, Part
from results import Result, Results, read, write

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "bench" / "results.json"

WORDS_MAX = 200  # letters of an error that the page repeats
_RAISED = re.compile(r"[A-Za-z_][\w.]*(:|$)")

#: Says something to whoever waits.
Say = Callable[[str], None]


def main() -> int:
    options = _options()
    build = Path("build") / "bench"
    # What was measured small is for nobody's eyes but the tester's: it never reaches the project's page.
    kept = build / "results.json" if options.quick else KEPT
    docs = options.docs or (build / "docs" if options.quick else ROOT / "docs")
    if options.source is not None:
        results = read(options.source)
    else:
        chosen = [part for part in PARTS if not options.only or part.name in options.only]
        results = read(kept) if options.only and kept.exists() else {}
        results |= measure(chosen, build, options.quick, options.master, _clock())
        results = {part.name: results[part.name] for part in PARTS if part.name in results}
        write(kept, results)
    page = write_page(results, docs)
    for each in judged(results):
        if each.verdict != "met":
            print(f"{each.verdict}: {each.part.name}, {each.bound.asked}: {each.figure} ({each.bound})")
    failed = [name for name, each in results.items() if each.failed]
    print(f"{page} is written" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


def measure(
    parts: Sequence[Part], build: Path, quick: bool, master: str, say: Say, minutes_max: float = MINUTES_MAX
) -> Results:
    """One after the other; whatever becomes of one, the others are measured. None takes the shares of those to come."""
    build.mkdir(parents=True, exist_ok=True)
    results: Results = {}
    end = perf_counter() + minutes_max * 60
    for number, part in enumerate(parts):
        say(f"{part.name} begins")
        spare = 60 * sum(later.minutes for later in parts[number + 1 :])
        results[part.name] = result = _one(part, build, quick, master, end - perf_counter() - spare, say)
        say(f"{part.name} failed: {result.failed}" if result.failed else f"{part.name} took {result.seconds:.0f} s")
    return results


def _one(part: Part, build: Path, quick: bool, master: str, seconds_max: float, say: Say) -> Result:
    figures, log = build / f"{part.name}.json", build / f"{part.name}.log"
    figures.unlink(missing_ok=True)
    command = [sys.executable, str(part.program), "--json", str(figures), "--master", master]
    command += ["--minutes", f"{part.minutes:g}"]
    command += ["--quick"] if quick else []
    began = perf_counter()
    failed = _ran(command, log, seconds_max, lambda line: say(f"{part.name}: {line}"))
    if figures.exists():
        found = read(figures)[part.name]
    else:
        found = Result(datetime.now(UTC).date().isoformat(), machine(), versions(), quick)
        failed = failed or "it wrote no figures"
    return replace(found, seconds=perf_counter() - began, failed=failed)


def _ran(command: Sequence[str], log: Path, seconds_max: float, say: Say) -> str:
    """Run a program; answers with why it failed, or with nothing."""
    with log.open("w", encoding="utf-8") as kept, _started(command) as process:
        assert process.stdout is not None
        reader = Thread(target=_hear, args=(process.stdout, kept, say))
        reader.start()
        try:
            code = process.wait(timeout=max(seconds_max, 0))
        except subprocess.TimeoutExpired:
            return f"it was ended after {seconds_max:.0f} s: the time that is left belongs to others"
        finally:
            _end(process)
            reader.join()
    return "" if code == 0 else f"exit status {code}, {_last_words(log)}"


def _started(command: Sequence[str]) -> subprocess.Popen[str]:
    """In a group of its own, so that it can be ended with all that it has started."""
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", start_new_session=True
    )


def _last_words(log: Path) -> str:
    """What Python raised, if it did; Java may have said more after it."""
    said = [line.rstrip() for line in log.read_text(encoding="utf-8").split("\n") if line.strip()]
    raised = [line for line in said if _RAISED.match(line)]
    return (raised or said or ["without a word"])[-1][:WORDS_MAX]


def _hear(stream: IO[str], kept: IO[str], say: Say) -> None:
    """All it says is kept; what it says of its progress is passed on."""
    for line in stream:
        kept.write(line)
        kept.flush()
        if line.startswith("… "):
            say(line[2:].rstrip())


def _end(process: subprocess.Popen[str]) -> None:
    """With all that it has started: a Spark that is left behind would slow down the parts that follow."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _clock() -> Say:
    start = perf_counter()

    def say(what: str) -> None:
        minutes, seconds = divmod(int(perf_counter() - start), 60)
        print(f"[{minutes:02d}:{seconds:02d}] {what}", flush=True)

    return say


def _options() -> argparse.Namespace:
    about = f"Measure everything, within {MINUTES_MAX} minutes on two cores at rest, and write docs/benchmarks.md."
    names = [part.name for part in PARTS]
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--quick", action="store_true", help="small sizes, in build/bench/: does it run at all?")
    parser.add_argument("--only", action="append", choices=names, help="measure this part; others stay as they were")
    parser.add_argument("--from", dest="source", type=Path, metavar="FILE", help="write the page from kept results")
    parser.add_argument("--docs", type=Path, metavar="FOLDER", help="where the page and its plots go")
    parser.add_argument("--master", default="local[*]", help="the Spark master")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

"""Runs the tests in parts, four at a time: each waits for Java, disks and other processes half of its time.

``python tests/side_by_side.py -m "not slow"``: the words are for pytest. Each part has a Spark session, a PostgreSQL
server and folders of its own (in memory where there is plenty), and is printed when it has ended. A test that hangs
ends its part, and shows where.

A machine that stands still for seconds, because its host is busy, fails tests of what happens in time. A few tests that
failed are therefore run once more at the end, alone. What passes then is named in the last lines: it is worth a look.
``--coverage`` measures which branches are taken, and makes Python half as fast.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import psutil

ROOT = Path(__file__).parents[1]
#: The longest first, so that all lanes end at about the same time. ``REST`` stands for what is named nowhere. Where few
#: tests of a folder need a Spark session, they are in a part that has one.
REST = ("the rest",)
SPARK_IN_FAULTS = tuple(f"tests/faults/test_kill_{name}.py" for name in ("engine", "flows", "streams"))
SPARK_IN_COMMANDS = tuple(f"tests/interfaces/cli/commands/test_{name}.py" for name in ("procedures", "queries"))
PARTS = (
    ("tests/docs",),
    ("tests/flows", "tests/examples"),
    ("tests/stations", *SPARK_IN_COMMANDS),
    ("tests/engine", "tests/conformance", *SPARK_IN_FAULTS),
    ("tests/spheres", "tests/store"),
    ("tests/faults",),
    ("tests/gateways", "tests/queues", "tests/aio"),
    ("tests/rules", "tests/oracle", "tests/spheres/test_rules.py"),
    ("tests/interfaces",),
    REST,
    ("tests/interfaces/http",),
    ("tests/docs/test_tour.py",),
    ("tests/interfaces/web",),
    ("tests/house", "tests/simulation"),
)
LANES = 4
MEMORY = Path("/dev/shm")
MEMORY_BYTES_MIN = 4 * 2**30
HANGING_SECONDS = 600
COVERAGE = "--coverage"
#: More than so many failed tests are not the machine's fault.
AGAIN_MAX = 8
TESTS_FAILED = 1  # pytest's exit code; the others are of errors, of which none passes the second time


class Parts:
    """What is still to be run, what is running, and how it went."""

    def __init__(self, words: list[str], caches: Path, folder: str | None = None) -> None:
        self._words = words
        self._caches = caches
        self._folder = folder
        self._left = deque(PARTS)
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self.told: list[str] = []
        self._failed: list[tuple[str, ...]] = []
        self._broken = False

    def work(self) -> None:
        """One part after another, as long as there are any."""
        while True:
            with self._lock:
                if not self._left:
                    return
                part = self._left.popleft()
            self._run(part)

    def end(self) -> None:
        with self._lock:
            self._left.clear()
            for run in self._running:
                run.terminate()

    def again(self) -> bool:
        """Run the few tests that failed once more, one part after another; True if everything has passed by now."""
        failed = [test for part in self._failed for test in self._failures(part)]
        if self._broken or len(failed) > AGAIN_MAX:
            return False
        results = [self._run(part, "--last-failed", "--last-failed-no-failures=none") for part in self._failed]
        passed = all(results)
        self.told += [f"{test}: failed beside others{', and passed alone' if passed else ''}" for test in failed]
        return passed

    def _run(self, part: tuple[str, ...], *more: str) -> bool:
        name = " ".join((*part, *more))
        began = monotonic()
        with tempfile.TemporaryFile() as said:
            with self._lock:
                run = subprocess.Popen(
                    [*self._command(part), *more],
                    cwd=ROOT,
                    env=_environment(self._folder),
                    stdout=said,
                    stderr=said,
                )
                self._running.add(run)
            print(f"{name}: begun", flush=True)
            code = run.wait()
            with self._lock:
                self._running.discard(run)
                if code == TESTS_FAILED and self._failures(part) and not more:
                    self._failed.append(part)
                elif code:
                    self._broken = True
                self.told.append(
                    f"{name}: {'passed' if code == 0 else 'FAILED'} in {(monotonic() - began) / 60:.1f} min"
                )
                said.seek(0)
                sys.stdout.buffer.write(said.read())
                print(self.told[-1], flush=True)
        return code == 0

    def _failures(self, part: tuple[str, ...]) -> list[str]:
        """The names of the tests that failed, as pytest keeps them."""
        kept = self._cache(part) / "v/cache/lastfailed"
        return list(json.loads(kept.read_text())) if kept.exists() else []

    def _cache(self, part: tuple[str, ...]) -> Path:
        return self._caches / _plain(part)

    def _command(self, part: tuple[str, ...]) -> list[str]:
        measured = ["-m", "coverage", "run"] if COVERAGE in self._words else []
        bounds = ["-o", f"faulthandler_timeout={HANGING_SECONDS}", "-o", "faulthandler_exit_on_timeout=true"]
        bounds += ["-o", f"cache_dir={self._cache(part)}"]
        if self._folder is not None:
            bounds += [f"--basetemp={self._folder}/{_plain(part)}", "-o", "tmp_path_retention_policy=failed"]
        words = [word for word in self._words if word != COVERAGE]
        named = part if part is not REST else ()
        others = [place for other in PARTS if other is not REST for place in other if place not in part]
        ignored = [f"--ignore={place}" for place in others if part is REST or place.startswith(part)]
        return [sys.executable, *measured, "-m", "pytest", *named, *ignored, *bounds, *words]


def _plain(part: tuple[str, ...]) -> str:
    """A part as the name of a folder."""
    return part[0].replace("/", "-").replace(" ", "-")


def _stolen() -> float:
    """Seconds in which a processor of this machine had work and its host did something else; Linux alone tells."""
    return float(getattr(psutil.cpu_times(), "steal", 0.0))


def _environment(folder: str | None) -> dict[str, str]:
    # Hundreds of short programs are started: none shall compile what another has compiled.
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "POSTROOM_TESTS": folder or "/tmp"}


@contextmanager
def in_memory() -> Iterator[str | None]:
    """A folder in memory for the files of tests, if there is plenty of it; they wait for the disk else."""
    if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < MEMORY_BYTES_MIN:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="postroom-", dir=MEMORY) as folder:
        Path(folder).chmod(0o711)  # PostgreSQL is run by a user of its own
        yield folder


def main(words: list[str]) -> int:
    with in_memory() as folder, tempfile.TemporaryDirectory(prefix="postroom-") as caches:
        return run(Parts(words, Path(caches), folder))


def run(parts: Parts) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that none goes on without us
    stolen, began = _stolen(), monotonic()
    lanes = [threading.Thread(target=parts.work, daemon=True) for _ in range(LANES)]
    try:
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()
        passed = parts.again()
    finally:
        parts.end()
    print("\n".join(parts.told))
    print(f"{monotonic() - began:.0f} s; its host kept processors from this machine for {_stolen() - stolen:.0f} s")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

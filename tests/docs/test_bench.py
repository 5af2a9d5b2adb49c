"""The benchmarks run; their figures are for machines that are at rest, never for a test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest

import everything
import results
from lines import Line
from parts import MINUTES_MAX, PARTS, Part
from program import Bench, run

ROOT = Path(__file__).parents[2]

#: A part that measures one thing and then does something else.
PROGRAM = """
import subprocess, sys, time
from pathlib import Path
sys.path.insert(0, {bench!r})
from lines import Line
from results import Result, write
print("… the first", flush=True)
line = Line("first", 12.0, "/s", 2.0, 1.5, 2.5, None, "other", 6.0)
write(Path(sys.argv[sys.argv.index("--json") + 1]), {{{name!r}: Result("2026-01-02", {{}}, {{}}, lines=[line])}})
{then}
"""


def bench(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "bench" / "everything.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=900)


def program(folder: Path, name: str, then: str, minutes: float = 1) -> Part:
    (folder / f"{name}.py").write_text(PROGRAM.format(bench=str(ROOT / "bench"), name=name, then=then))
    return Part(name, minutes, folder)


def test_a_quick_run_of_one_part_writes_a_page_of_its_own_and_leaves_the_published_one(tmp_path: Path) -> None:
    published = (ROOT / "docs" / "benchmarks.md").read_text(), (ROOT / "bench" / "results.json").read_text()
    ran = bench(tmp_path, "--quick", "--only", "queues")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "[00:0" in ran.stdout
    assert "queues: single sends and receives" in ran.stdout
    assert "not measured: rules, the joining rule of Fig. 7 over 10,000 slices: – (≥ 10,000 /s)" in ran.stdout
    found = results.read(tmp_path / "build" / "bench" / "results.json")["queues"]
    assert (found.quick, found.failed, len(found.lines), len(found.curves)) == (True, "", 12, 3)
    page = (tmp_path / "build" / "bench" / "docs" / "benchmarks.md").read_text()
    assert "plain sqlite3: synchronous 2 (FULL), journal_mode wal" in page
    assert "small sizes" in page
    rules = "| Rules | the joining rule of Fig. 7 over 10,000 slices"
    assert f"{rules} | ≥ 10,000 /s | – | not measured |" in page
    assert published == ((ROOT / "docs" / "benchmarks.md").read_text(), (ROOT / "bench" / "results.json").read_text())


@pytest.mark.slow
def test_a_quick_run_of_everything_has_every_part(tmp_path: Path) -> None:
    ran = bench(tmp_path, "--quick", "--master", "local[2]")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = results.read(tmp_path / "build" / "bench" / "results.json")
    assert list(found) == [part.name for part in PARTS]
    page = (tmp_path / "build" / "bench" / "docs" / "benchmarks.md").read_text()
    for words in ("dbos: synchronous 2 (FULL), journal_mode delete", "CLIPS", "PySpark by hand", "DuckDB"):
        assert words in page
    assert "not measured" not in page


def test_a_part_that_fails_or_is_too_late_keeps_what_it_had_and_holds_up_nobody(tmp_path: Path) -> None:
    left = tmp_path / "left-behind"
    child = f"import os, time; open({str(left)!r}, 'w').write(str(os.getpid())); time.sleep(100)"
    parts = [
        program(tmp_path, "endless", f"subprocess.run([sys.executable, '-c', {child!r}])", minutes=0.1),
        program(
            tmp_path,
            "broken",
            "import atexit; atexit.register(print, '  at Java.java:1'); raise ValueError('no such thing')",
        ),
        Part("absent", 1, tmp_path),
        program(tmp_path, "sound", "print('all of it')"),
    ]
    said: list[str] = []
    started = monotonic()
    found = everything.measure(parts, tmp_path / "build" / "bench", False, "local[1]", said.append, minutes_max=3.1)
    assert monotonic() - started < 60
    assert found["endless"].failed == "it was ended after 6 s: the time that is left belongs to others"
    assert found["broken"].failed == "exit status 1, ValueError: no such thing"
    assert found["absent"].failed.startswith("exit status 2, ")
    assert found["sound"].failed == ""
    assert [len(each.lines) for each in found.values()] == [1, 1, 0, 1]
    assert "broken: the first" in said
    assert "all of it" in (tmp_path / "build" / "bench" / "sound.log").read_text()
    assert ended(int(left.read_text())), "what an ended part had started is ended too"


def ended(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] == "Z":
            return True
        sleep(0.05)
    return False


def test_a_failed_part_makes_the_exit_status_and_is_said_on_the_page(tmp_path: Path) -> None:
    kept = results.read(ROOT / "bench" / "results.json")
    kept["flows"].failed = "exit status 1, ValueError: no such thing"
    results.write(tmp_path / "kept.json", kept)
    ran = bench(tmp_path, "--from", str(tmp_path / "kept.json"), "--docs", str(tmp_path / "docs"))
    assert ran.returncode == 1
    assert "failed: flows" in ran.stdout
    page = (tmp_path / "docs" / "benchmarks.md").read_text()
    assert "`flows` failed: exit status 1, ValueError: no such thing." in page
    assert "**This part failed:**" in page


def test_what_was_noted_before_a_fault_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Bench):
        def lines(self) -> Iterator[Line]:
            self.seconds_max = 0.0
            yield from (Line("first", 1.0, "s", 1.0, 1.0, 1.0) for _ in self._rounds(3, share=0.5, what="the first"))
            self.notes.append("the scenario of before")
            raise ValueError("no such thing")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["broken.py", "--json", "kept.json"])
    with pytest.raises(ValueError, match="no such thing"):
        run("", lambda folder, quick, master: Broken(folder, master))
    found = results.read(Path("kept.json"))["broken"]
    assert [line.measure for line in found.lines] == ["first"]
    assert found.notes == ["the first, 1 of 3 rounds: there was no time for more", "the scenario of before"]


def test_the_shares_of_the_parts_are_half_an_hour() -> None:
    assert sum(part.minutes for part in PARTS) <= MINUTES_MAX == 30
    assert all(part.program.is_file() for part in PARTS)

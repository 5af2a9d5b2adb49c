"""Prose is checked: every example in README and guide is run, every page made from code is up to date."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.docs.preloaded import preloaded
from tests.programs import installed

from postroom import errors, faults
from postroom.queues.tree.checks import CHECKS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
TUTORIAL = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAM = Path(sys.executable).parent
#: Hundreds of commands are started; other tests measure what they run, and here that would take a quarter of the time.
UNMEASURED = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}


@dataclass
class Command:
    typed: str
    shown: list[str] = field(default_factory=list)


def commands_of(block: str) -> list[Command]:
    found: list[Command] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:]))
        elif line.startswith("> "):
            found[-1].typed += "\n" + line[2:]
        else:
            found[-1].shown.append(line)
    return found


def run_in_one_shell(commands: list[Command], folder: Path, program: Path) -> list[list[str]]:
    """What each command printed. One shell, because to Postroom a shell is a user."""
    end = "-- end of example --"
    script = "\n".join(f"{{ {command.typed}\n}} </dev/null 2>&1; echo '{end}'" for command in commands)
    environment = {
        **UNMEASURED,
        "PATH": f"{program}:{PROGRAM}:{os.environ['PATH']}",
        "COLUMNS": "200",
        "XDG_STATE_HOME": str(folder),
    }
    try:
        ran = subprocess.run(
            ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=900
        )
    finally:
        end_servers(folder)
    return [part.strip("\n").splitlines() for part in ran.stdout.split(end)[:-1]]


def end_servers(folder: Path) -> None:
    """A page that starts a PostgreSQL ends it, too; one that failed half-way has not."""
    for file in folder.rglob("postmaster.pid"):
        os.kill(int(file.read_text().split()[0]), signal.SIGINT)


def matches(expected: str, printed: str) -> bool:
    """Alike, where ``…`` stands for anything."""
    pattern = ".*".join(re.escape(part.strip()) for part in expected.split("…"))
    return re.fullmatch(pattern, printed.strip()) is not None


def as_installed(page: Path) -> bool:
    """Whether a page is run with the program itself, and not with a fork of it (``preloaded.py``)."""
    return page.name in ("README.md", "cobol.md") or "kill -KILL" in page.read_text()


@pytest.fixture(scope="module")
def quick_program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with preloaded(tmp_path_factory.mktemp("program")) as folder:
        yield folder


@pytest.mark.parametrize("page", [*PAGES, TUTORIAL], ids=lambda page: page.name)
def test_every_console_example_prints_what_the_page_says(page: Path, tmp_path: Path, quick_program: Path) -> None:
    if page.name == "cobol.md":
        installed("cobc", "gnucobol", required=True)
    check_console(page, tmp_path, PROGRAM if as_installed(page) else quick_program)


@pytest.mark.slow
@pytest.mark.parametrize("page", [*PAGES, TUTORIAL], ids=lambda page: page.name)
def test_every_console_example_prints_the_same_with_the_program_as_installed(page: Path, tmp_path: Path) -> None:
    if page.name == "cobol.md":
        installed("cobc", "gnucobol", required=True)
    check_console(page, tmp_path, PROGRAM)


def check_console(page: Path, folder: Path, program: Path) -> None:
    blocks = [text for kind, text in BLOCK.findall(page.read_text()) if kind == "console"]
    commands = [command for block in blocks for command in commands_of(block)]
    assert commands, "a page without examples is not a guide"
    printed = run_in_one_shell(commands, folder, program)
    assert len(printed) == len(commands)
    for command, lines in zip(commands, printed, strict=True):
        assert len(lines) == len(command.shown), f"$ {command.typed}\n" + "\n".join(lines)
        for expected, line in zip(command.shown, lines, strict=True):
            assert matches(expected, line), f"$ {command.typed}\nsays    {line}\nnot     {expected}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_python_example_runs(page: Path, tmp_path: Path) -> None:
    if page.name == "process-mining.md" and find_spec("pm4py") is None:
        pytest.skip("pm4py is not installed: pip install 'postroom[mining]'")
    blocks = [text for kind, text in BLOCK.findall(page.read_text()) if kind == "python"]
    assert blocks
    for block in blocks:
        ran = subprocess.run(
            [sys.executable, "-c", block], cwd=tmp_path, env=UNMEASURED, capture_output=True, text=True, timeout=240
        )
        assert ran.returncode == 0, ran.stderr


def test_the_tutorial_is_one_way_from_the_readme_to_all_guides() -> None:
    readme, text = (ROOT / "README.md").read_text(), TUTORIAL.read_text()
    assert readme.index("docs/tutorial.md") < readme.index("docs/guide/")
    for page in ("queues", "flows", "rules", "stations", "procedures", "spheres"):
        assert f"(guide/{page}.md)" in text, page
    verbs = re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for verb in re.findall(r"\bmake ([a-z-]+)", text):
        assert verb in verbs, f"make {verb}"


def test_the_matcher_can_tell_a_difference() -> None:
    assert matches("…  put  key …", "2026-01-01  put  key x")
    assert not matches("…  put  key", "2026-01-01  take  key")
    assert not matches("a", "b")


def test_the_reference_is_up_to_date() -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "reference" / "generate.py"), "--check"], capture_output=True, text=True
    )
    assert ran.returncode == 0, f"{ran.stdout}{ran.stderr}: run make reference"


def test_every_rule_of_the_description_language_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "description-language.md").read_text()
    source = (ROOT / "src" / "postroom" / "queues" / "tree" / "description.py").read_text()
    names = {rule.__name__.replace("_", "-") for rule in CHECKS} | set(
        re.findall(r'"([a-z]+(?:-[a-z]+)*)"\)$', source, re.M)
    )
    for name in names | {"no-processor", "no-station", "clause-once", "end-required"}:
        assert f"`{name}`" in page, name


def test_every_error_is_on_its_page() -> None:
    page = (ROOT / "docs" / "reference" / "errors.md").read_text()
    for kind in errors.every_error():
        assert f"`{kind.code}`" in page


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_fault_points_are_not_a_feature_for_users() -> None:
    for page in PAGES:
        assert "POSTROOM_FAULT" not in page.read_text()
    assert faults.armed is None

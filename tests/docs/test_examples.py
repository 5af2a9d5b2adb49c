"""Prose is checked: every example in README and guide is run, every page made from code is up to date."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from postroom import errors, faults
from postroom.queues.rules import CHECKS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAM = Path(sys.executable).parent


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


def run_in_one_shell(commands: list[Command], folder: Path) -> list[list[str]]:
    """What each command printed. One shell, because to Postroom a shell is a user."""
    end = "-- end of example --"
    script = "\n".join(f"{{ {command.typed}\n}} </dev/null 2>&1; echo '{end}'" for command in commands)
    environment = {
        **os.environ,
        "PATH": f"{PROGRAM}:{os.environ['PATH']}",
        "COLUMNS": "200",
        "XDG_STATE_HOME": str(folder),
    }
    ran = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    return [part.strip("\n").splitlines() for part in ran.stdout.split(end)[:-1]]


def matches(expected: str, printed: str) -> bool:
    """Alike, where ``…`` stands for anything."""
    pattern = ".*".join(re.escape(part.strip()) for part in expected.split("…"))
    return re.fullmatch(pattern, printed.strip()) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_console_example_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    blocks = [text for kind, text in BLOCK.findall(page.read_text()) if kind == "console"]
    commands = [command for block in blocks for command in commands_of(block)]
    assert commands, "a page without examples is not a guide"
    printed = run_in_one_shell(commands, tmp_path)
    assert len(printed) == len(commands)
    for command, lines in zip(commands, printed, strict=True):
        assert len(lines) == len(command.shown), f"$ {command.typed}\n" + "\n".join(lines)
        for expected, line in zip(command.shown, lines, strict=True):
            assert matches(expected, line), f"$ {command.typed}\nsays    {line}\nnot     {expected}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_python_example_runs(page: Path, tmp_path: Path) -> None:
    blocks = [text for kind, text in BLOCK.findall(page.read_text()) if kind == "python"]
    assert blocks
    for block in blocks:
        ran = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, timeout=240)
        assert ran.returncode == 0, ran.stderr


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
    source = (ROOT / "src" / "postroom" / "queues" / "description.py").read_text()
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
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_command_has_an_example_in_its_help() -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text()
    for section in page.split("\n## ")[1:]:
        name, text = section.split("\n", 1)
        if "Commands:" not in text:
            assert re.search(r"Examples?:", text), name


def test_the_tour_runs_to_its_end() -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "tour.py")], capture_output=True, text=True, timeout=600
    )
    assert ran.returncode == 0, ran.stdout[-1000:] + ran.stderr
    assert "The tour is over" in ran.stdout
    refused = subprocess.run([sys.executable, str(ROOT / "examples" / "tour.py"), "nowhere"], capture_output=True)
    assert refused.returncode == 1


def test_fault_points_are_not_a_feature_for_users() -> None:
    for page in PAGES:
        assert "POSTROOM_FAULT" not in page.read_text()
    assert faults.armed is None

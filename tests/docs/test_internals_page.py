"""The page that follows one message: the functions that it names run, in its order."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "internals.md").read_text()
SECTIONS = ["Send", "Run", "Receive"]
#: Prints each function of ours when it is first called, in threads, too.
PROGRAM = """
import shlex, sys, threading
from postroom.interfaces.cli import main as program
known, source = {}, program.__file__.removesuffix("interfaces/cli/main.py")
def look(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(source):
        known.setdefault((code.co_filename.removeprefix(source), code.co_qualname))
sys.argv = shlex.split(sys.argv[1])
threading.setprofile(look)
sys.setprofile(look)
try:
    program.main()
finally:
    sys.setprofile(None)
    print("\\n".join(f"called {name} {file}" for file, name in known))
"""


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[str, str]]]:
    """What each of the page's commands calls, in order."""
    folder = tmp_path_factory.mktemp("internals")
    (rules,) = re.findall(r"^```demaq\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (folder / "shop.demaq").write_text(rules)
    found = {}
    for name, command in zip(["", *SECTIONS], ["postroom load shop.demaq", *typed()], strict=True):
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, command], cwd=folder, capture_output=True, text=True, timeout=240
        )
        assert ran.returncode == 0, ran.stderr
        found[name] = [(name, file) for name, file in re.findall(r"^called (\S+) (\S+)$", ran.stdout, re.MULTILINE)]
    assert "<parcel><id>1</id></parcel>" in ran.stdout
    return found


def typed() -> list[str]:
    return re.findall(r"^`(postroom .*)`$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("section", SECTIONS)
def test_functions_run_in_the_order_of_the_page(section: str, called: dict[str, list[tuple[str, str]]]) -> None:
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    told = re.findall(r"^\| `([\w.]+)` \| `([\w/.]+)` \|", text, re.MULTILINE)
    assert len(told) > 3
    assert [each for each in called[section] if each in told] == told


def test_files_in_the_text_are_there() -> None:
    for file in re.findall(r"\(`([\w/]+\.py)`\)", PAGE):
        assert (ROOT / "src" / "postroom" / file).is_file()

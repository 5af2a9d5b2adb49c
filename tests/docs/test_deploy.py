"""What is in deploy/ is checked as far as it can be without a container."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"


def options() -> set[str]:
    said = subprocess.run([sys.executable, "-m", "postroom", "serve", "--help"], capture_output=True, text=True).stdout
    return set(re.findall(r"--[a-z-]+", said))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_the_unit_is_one(tmp_path: Path) -> None:
    unit = tmp_path / "postroom.service"
    text = (DEPLOY / "postroom.service").read_text()
    assert "ExecStart=/opt/postroom/bin/postroom serve" in text  # where the guides install it
    unit.write_text(text.replace("/opt/postroom/bin/postroom", "/bin/true"))
    ran = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True)
    assert (ran.returncode, [line for line in ran.stderr.splitlines() if "postroom.service" in line]) == (0, [])


@pytest.mark.parametrize("name", ["postroom.service", "compose.yaml", "Dockerfile"])
def test_every_option_is_one_of_serve(name: str) -> None:
    text = (DEPLOY / name).read_text()
    line = next(line for line in text.splitlines() if re.search(r"serve( |\")", line) and not line.startswith("#"))
    assert set(re.findall(r"(?<!\w)--[a-z-]+", line)) <= options()


def test_the_image_copies_what_is_there_and_what_an_installation_needs() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    copied = [word for line in re.findall(r"^COPY (.*)$", text, re.MULTILINE) for word in line.split()[:-1]]
    assert {"pyproject.toml", "requirements-run.lock", "src", "README.md", "LICENSE"} == set(copied)
    assert all((DEPLOY.parent / each).exists() for each in copied)

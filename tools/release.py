"""Makes a release in dist/: sdist, wheel, a software bill of materials and checksums.

Where the project is to be found is said by whoever releases it: ``make release HOME_URL=https://...``, or the remote
repository that this clone has as its origin. It becomes the project's addresses in the metadata.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"


def moment() -> int:
    """The time of the commit: archives say it of all their files."""
    told = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True)
    return int(told.stdout)


def home() -> str | None:
    """The address of the project on the web; None if nobody has said one."""
    told = os.environ.get("HOME_URL") or _origin()
    address = re.sub(r"^(?:ssh://)?git@([^:/]+)[:/]", r"https://\1/", told).removesuffix("/").removesuffix(".git")
    if re.fullmatch(r"https://[^\s\"\\@/]+(?:/[^\s\"\\@/]+)+", address):
        return address
    if os.environ.get("HOME_URL"):
        raise SystemExit(f"HOME_URL is {told!r}; give an address as https://example.org/project, without a password")
    return None


def _origin() -> str:
    command = ["git", "config", "--get", "remote.origin.url"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def addresses(home: str) -> str:
    """A table of ``pyproject.toml``: where to read, get and report."""
    return f"""[project.urls]
Homepage = "{home}"
Source = "{home}"
Issues = "{home}/issues"

"""


def build(home: str | None) -> list[Path]:
    """The sdist and the wheel of the files that git knows, made by the project's own build backend without fetching."""
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob("postroom-*"):
        old.unlink()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(moment())}
    with tempfile.TemporaryDirectory() as folder:
        _copy(Path(folder), home)
        for made in ("build_sdist", "build_wheel"):
            program = f"import sys; from setuptools import build_meta; build_meta.{made}(sys.argv[1])"
            command = [sys.executable, "-W", "ignore", "-c", program, str(DIST)]
            subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    (sdist,) = DIST.glob("postroom-*.tar.gz")
    _settle(sdist)
    (wheel,) = DIST.glob("postroom-*.whl")
    _settle_wheel(wheel)
    return sorted(DIST.glob("postroom-*"))


def _copy(folder: Path, home: str | None) -> None:
    told = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in told.stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    if home is not None:
        project = folder / "pyproject.toml"
        before, table, after = project.read_text().partition("[project.optional-dependencies]")
        project.write_text(before + addresses(home) + table + after)


def _settle(sdist: Path) -> None:
    """Write an archive anew with one time, one owner and one order: setuptools takes those of this machine."""
    with tarfile.open(sdist) as source:
        members = [(each, source.extractfile(each)) for each in source.getmembers()]
        plain = io.BytesIO()
        with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as target:
            for member, content in sorted(members, key=lambda pair: pair[0].name):
                member.mtime, member.uid, member.gid, member.uname, member.gname = moment(), 0, 0, "", ""
                member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
                member.pax_headers = {}
                target.addfile(member, content)
    sdist.write_bytes(gzip.compress(plain.getvalue(), mtime=0))


def _settle_wheel(wheel: Path) -> None:
    """Write a wheel anew with modes that do not depend on the umask of whoever made it, or took the clone."""
    with zipfile.ZipFile(wheel) as source:
        members = [(member, source.read(member)) for member in source.infolist()]
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as target:
        for member, content in members:
            mode = 0o755 if member.external_attr >> 16 & 0o100 else 0o644
            member.external_attr = (stat.S_IFREG | mode) << 16
            target.writestr(member, content)


def bill(version: str) -> dict[str, object]:
    """What is installed with it, in CycloneDX: the packages of the run-time lock with their hashes and licences."""
    lock = (ROOT / "requirements-run.lock").read_text()
    table = (ROOT / "docs" / "reference" / "licences.md").read_text()
    licences = dict(re.findall(r"^\| ([a-z0-9-]+) \| [0-9]\S* \| ([^|]+?) \|", table, re.MULTILINE))
    components = []
    pinned_with = re.compile(r"^([a-z0-9-]+)==(\S+) \\\n((?:    --hash=\S+(?: \\)?\n)+)", re.MULTILINE)
    for name, pinned, hashes in pinned_with.findall(lock):
        digests = re.findall("sha256:([0-9a-f]{64})", hashes)
        components.append(
            {
                "type": "library",
                "name": name,
                "version": pinned,
                "purl": f"pkg:pypi/{name}@{pinned}",
                "licenses": [{"license": {"name": licences[name]}}],
                "externalReferences": [
                    {
                        "type": "distribution",
                        "url": f"pkg:pypi/{name}@{pinned}",
                        "hashes": [{"alg": "SHA-256", "content": each} for each in digests],
                    }
                ],
            }
        )
    own = {"type": "application", "name": "postroom", "version": version, "purl": f"pkg:pypi/postroom@{version}"}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {**own, "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": components,
    }


def main() -> int:
    address = home()
    if address is None:
        sys.stderr.write("no address of the project is known: say make release HOME_URL=https://...\n")
    files = build(address)
    version = files[0].name.split("-")[1].removesuffix(".tar.gz")
    sbom = DIST / f"postroom-{version}.cdx.json"
    sbom.write_text(json.dumps(bill(version), indent=1) + "\n")
    sums = "".join(f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in (*files, sbom))
    (DIST / "SHA256SUMS").write_text(sums)
    sys.stdout.write(sums)
    return 0


if __name__ == "__main__":
    sys.exit(main())

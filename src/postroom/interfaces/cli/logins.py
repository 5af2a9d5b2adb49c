"""The acting station: by its password, or by a login whose token is in a file of the user."""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import re
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from postroom.errors import ArgumentInvalid, PrincipalRefused
from postroom.interfaces.cli import output
from postroom.interfaces.cli.context import exported_password, option, password_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from postroom.room import Postroom
    from postroom.stations.station import Station

StationOption = Annotated[str | None, option("--as STATION", "The acting station. Default: the one logged in.")]

#: What a URL may say of a password; the rest of it tells which room it is.
_SECRET = re.compile(r"(?<=://)([^/?@:]*):[^/?@]*(?=@)|(?<=[?&])(password|sslpassword)=[^&]*&?")


class Login(NamedTuple):
    station: str
    token: str


def acting(it: Postroom, name: str | None, *, stdin: bool = True, **spark: Any) -> Station:
    """The station that a command acts for.

    Without ``stdin`` the password is not read from there, because a message is. ``spark`` has the master and settings
    for its queries.
    """
    if it.url.startswith(("http://", "https://")):  # a server knows by the token who may act for whom
        if name is None:
            raise ArgumentInvalid(argument="--as", why="say which station acts; a server needs no login")
        return it.station(name, **spark)
    login = login_at(it.url)
    if login is not None and name in (None, login.station):
        try:
            return it.station(login.station, token=login.token, **spark)
        except PrincipalRefused:
            if name is None:
                raise
            output.note(f"the login of {name} has ended")
    if name is None:
        why = "say which station acts, or log in once with: postroom login STATION"
        raise ArgumentInvalid(argument="--as", why=why)
    prompt = f"password of {name}"
    return it.station(name, password_source(prompt)() if stdin else _typed(prompt), **spark)


def _typed(prompt: str) -> str:
    """A password from the environment or the terminal, even if standard input is redirected."""
    given = exported_password("be asked on the terminal")
    if given is not None:
        return given
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))  # getpass would look at standard input without it
    except OSError:
        why = "not from standard input here: set POSTROOM_PASSWORD, use a terminal, or log in before: postroom login"
        raise ArgumentInvalid(argument="password", why=why) from None
    return getpass.getpass(f"{prompt}: ")


# --- the file ---


def login_at(room: str) -> Login | None:
    """The current login at a room."""
    login = _read().get(_known_as(room))
    if not isinstance(login, dict):
        return None
    station, token = login.get("station"), login.get("token")
    return Login(station, token) if isinstance(station, str) and isinstance(token, str) else None


def keep(room: str, login: Login) -> None:
    """Store a login, replacing the one before."""
    with _changing() as known:
        known[_known_as(room)] = login._asdict()


def forget(room: str) -> None:
    with _changing() as known:
        known.pop(_known_as(room), None)


def _known_as(room: str) -> str:
    """A room's absolute URL without a password."""
    from postroom.store import absolute

    return _SECRET.sub(r"\1", absolute(room))


def _file() -> Path:
    """The file with logins; raises if this user has no private folder for it."""
    state = os.environ.get("XDG_STATE_HOME", "")
    folder = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
    return folder / "postroom" / "logins.json"


def _read() -> dict[str, Any]:
    """The content of the file; empty if it cannot be read or parsed."""
    try:
        logins = json.loads(_file().read_bytes())
    except (OSError, ValueError, RecursionError, RuntimeError):  # the last one: there is no home
        return {}
    return logins if isinstance(logins, dict) else {}


@contextmanager
def _changing() -> Iterator[dict[str, Any]]:
    """Read the file and write it back, under a lock."""
    try:
        file = _file()
        file.parent.parent.mkdir(parents=True, exist_ok=True)
        file.parent.mkdir(mode=0o700, exist_ok=True)
        file.parent.chmod(0o700)
        turn = os.open(file.parent, os.O_RDONLY)
        try:
            fcntl.flock(turn, fcntl.LOCK_EX)
            known = _read()
            yield known
            _write(file, json.dumps(known, indent=1))
        finally:
            os.close(turn)
    except OSError as error:
        raise ArgumentInvalid(argument="login", why=f"cannot write {error.filename}: {error.strerror}") from None
    except RuntimeError:
        raise ArgumentInvalid(argument="login", why="there is no home directory; set XDG_STATE_HOME") from None


def _write(file: Path, text: str) -> None:
    """Write the file atomically, through a private temporary file."""
    made, name = tempfile.mkstemp(dir=file.parent, prefix=f"{file.name}.")
    try:
        with os.fdopen(made, "w", encoding="utf-8") as opened:
            opened.write(text)
        os.replace(name, file)
    except OSError:
        os.unlink(name)
        raise

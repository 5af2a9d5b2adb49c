"""Rooms as a data source: what Spark writes enters a queue as everything else does."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import postroom
from postroom import spark
from postroom.engine.spark.java import java_home
from postroom.errors import EntryRefused, EventInvalid, QueueUnknown
from postroom.model.message import Draft
from postroom.room import Postroom
from postroom.spark import RoomSource


def put(room: Postroom, queue: str, *bodies: str) -> int:
    admitted = RoomSource.admission(room.store)
    drafts = [Draft.of(body, "xml" if body[0] == "<" else None) for body in bodies]
    return len(room.store.transact("deliver", lambda tx: admitted(tx, queue, drafts)))


def test_what_spark_delivers_is_in_the_queue_and_is_told_of_spark(tmp_path: Path) -> None:
    with postroom.open(tmp_path / "room.db", actor="ann") as room:
        room.queues.create("q")
        assert put(room, "q", "one", "two") == 2
        assert [message.body for message in room.peek("q")] == ["one", "two"]


def test_what_spark_delivers_is_checked_by_rules_and_arcs(tmp_path: Path) -> None:
    (tmp_path / "p.demaq").write_text(
        "create queue a kind basic mode persistent create property n as xs:integer queue a value //n"
    )
    (tmp_path / "g.flow").write_text("domain d space S : [n: int]")
    with postroom.open(tmp_path / "room.db") as room:
        room.load(tmp_path / "p.demaq", tmp_path / "g.flow")
        with pytest.raises(EntryRefused):
            put(room, "a", "<x><n>1</n></x>", "<x><n>no</n></x>")
        with pytest.raises(EventInvalid):
            put(room, "S", '["text"]')
        with pytest.raises(QueueUnknown):
            put(room, "nowhere", "x")
        assert [count.unprocessed for count in room.count().queues if count.queue in ("a", "S")] == [0, 0]
        put(room, "a", "<x><n>7</n></x>")
        (message,) = room.peek("a")
        assert message.properties["n"] == 7


def test_the_module_offers_a_session_and_the_data_source() -> None:
    assert spark.__all__ == ["register", "session", "stop", "write_package"]
    assert RoomSource.name() == "postroom"


#: What a worker of a cluster has beside Spark.
OF_A_CLUSTER = ("pyspark", "py4j", "pyarrow", "numpy", "psycopg", "psycopg_binary", "psutil", "typing_extensions")
COPYING = """\
import sys
sys.path.insert(0, "package.zip")
from pyspark.sql import SparkSession
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
session.sparkContext.addPyFile("package.zip")
import postroom.spark
assert postroom.__file__ == "package.zip/postroom/__init__.py"
postroom.spark.register(session)
def queue(name):
    return {"room": sys.argv[1], "queue": name}
orders = session.read.format("postroom").options(**queue("orders")).load()
orders.where("body > '4'").select("body").write.format("postroom").options(**queue("copies")).mode("append").save()
session.stop()
"""


def alone(folder: Path, program: str, *words: str) -> str:
    """What a program prints where only the package and what a cluster has can be imported."""
    spark.write_package(folder / "package.zip")
    few = folder / "few"
    few.mkdir()
    for name in OF_A_CLUSTER:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        place = Path(spec.origin) if spec.submodule_search_locations is None else Path(spec.origin).parent
        for part in (place, place.with_name(f"{name}.libs")):
            if part.exists():
                (few / part.name).symlink_to(part)
    python = os.path.realpath(sys.executable)
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME", "SPARK_SUBMIT_OPTS") if name in os.environ},
        "PYTHONPATH": str(few),
        "PYSPARK_PYTHON": python,
        "PYTHONNOUSERSITE": "1",
    }
    command = [python, "-c", program, *words]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_package_is_loaded_where_nothing_else_of_postroom_is(tmp_path: Path) -> None:
    program = (
        "import sys; sys.path.insert(0, 'package.zip'); import postroom.spark, postroom.store.postgres.store as of; "
    )
    assert alone(tmp_path, program + "print(of.__file__)") == "package.zip/postroom/store/postgres/store.py\n"
    names = zipfile.ZipFile(tmp_path / "package.zip").namelist()
    assert not [name for name in names if "/interfaces/" in name or "/gateways/" in name or not name.endswith(".py")]
    again = spark.write_package(tmp_path / "again.zip")
    assert again.read_bytes() == (tmp_path / "package.zip").read_bytes(), "the same modules make the same file"


@pytest.mark.slow
def test_a_session_with_the_package_alone_reads_and_writes_queues(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", java_home())
    with postroom.open(postgres_url) as room:
        for name in ("orders", "copies"):
            room.queues.create(name)
        room.send_many("orders", [str(number) for number in range(10)])
        alone(tmp_path, COPYING, postgres_url)
        assert [message.body for message in room.peek("copies")] == ["5", "6", "7", "8", "9"]

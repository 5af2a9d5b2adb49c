"""Statements end: in their time, when someone interrupts them, and before they fill the memory. Numbers are exact."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.stations.world import desk, network

from postroom.engine.bounded_process import BoundedProcesses, Ended
from postroom.errors import ArgumentInvalid, FieldRefused, SqlRefused
from postroom.room import Postroom
from postroom.stations.queries import sql
from postroom.stations.station import Station

FORM = """\
type PART
| Name: ________ Count: ______ Size: ________ |
| Marks: ________ |
field Name string required
field Count int free
field Size decimal free
field Marks list of string free
"""
ENDLESS = "SELECT count(*) FROM t a, t b, t c, t d, t e, t f, t g WHERE a.Name || b.Name || c.Name <> d.Name || e.Name"


@pytest.fixture
def room(sqlite_url: str, tmp_path: Path, spark: SparkSession) -> Iterator[Postroom]:
    with network(sqlite_url, tmp_path, {}, {"ann": "control"}, FORM) as opened:
        yield opened


@pytest.fixture
def ann(room: Postroom) -> Station:
    there = desk(room, "ann")
    there.create_many("PART", [{"Name": f"n{number}", "Count": number} for number in range(300)])
    there.query("PART", into="t")
    return there


def processes() -> list[str]:
    """The processes of ours that answer statements, and their children: a Java each."""
    listed = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    asked = [pid for pid, parent, said in rows if parent == str(os.getpid()) and "queries.sql_process" in said]
    return asked + [pid for pid, parent, _ in rows if parent in asked]


def ended(before: list[str]) -> bool:
    until = time.monotonic() + 10
    while set(before) & set(processes()):
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


def test_a_statement_that_takes_too_long_is_ended_with_its_java(ann: Station, spark: SparkSession) -> None:
    ann.sql("SELECT 1")
    before = processes()
    assert len(before) >= 2
    counted: list[float] = []

    def beside() -> None:
        for _ in range(5):
            began = time.monotonic()
            spark.range(1000).count()
            counted.append(time.monotonic() - began)

    thread = threading.Thread(target=beside)
    thread.start()
    began = time.monotonic()
    with pytest.raises(SqlRefused, match="limit of 2 seconds"):
        ann.sql(ENDLESS, timeout=2)
    assert time.monotonic() - began < 15
    thread.join(30)
    assert len(counted) == 5, "others use Spark meanwhile"
    assert ended(before), "it goes on"
    assert ann.sql("SELECT max(Count) AS n FROM t").rows == ((299,),), "and the next one is answered"


def test_an_interrupt_ends_a_statement_and_its_java(ann: Station) -> None:
    begun = threading.Event()
    assert signal.getsignal(signal.SIGINT) not in (None, signal.SIG_IGN, signal.SIG_DFL)

    def interrupt() -> None:
        begun.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        ann.sql(ENDLESS, progress=lambda done, total: begun.set())
    assert begun.is_set(), "someone was told how far it is"
    assert ended(processes())


def test_a_statement_that_fills_the_memory_ends_alone(ann: Station, spark: SparkSession) -> None:
    with pytest.raises(SqlRefused, match=r"memory|Spark cannot work it out"):
        ann.sql("SELECT length(string(collect_list(repeat(a.Name || b.Name, 100000)))) AS n FROM t a, t b")
    assert spark.range(10).count() == 10
    assert ann.sql("SELECT count(*) AS n FROM t").rows == ((300,),)


STOPPING = """
import json
from postroom.engine.bounded_process import attend
from postroom.stations.queries import sql_process

def answer(request, tell):
    if json.loads(request)[1] == "stop":
        sql_process._sessions[0].sparkContext._jsc.sc().stop()  # in Java, and Python does not know it
        return b"stopped"
    return sql_process.answer(request, tell)

attend(answer, lambda request: 120)
"""


@pytest.mark.slow
def test_a_process_whose_spark_has_stopped_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without enough memory Spark may stop after the statement that took it was answered."""
    (tmp_path / "stopping_for_a_test.py").write_text(STOPPING)
    monkeypatch.syspath_prepend(str(tmp_path))
    processes = BoundedProcesses("stopping_for_a_test")
    tables = json.dumps([120, "tables", "SELECT 1 FROM t", ["t"]]).encode()
    assert json.loads(processes.ask(tables)) == {"tables": ["t"]}
    assert processes.ask(b'[120, "stop"]') == b"stopped"
    with pytest.raises(Ended):
        processes.ask(tables, tries=1)
    assert json.loads(processes.ask(tables)) == {"tables": ["t"]}


def test_a_time_that_is_none_and_an_answer_that_is_too_large_are_refused(
    ann: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    for timeout in (0, -1, 1e9):
        with pytest.raises(ArgumentInvalid, match="timeout"):
            ann.sql("SELECT 1", timeout=timeout)
    monkeypatch.setattr("postroom.stations.queries.sql.SQL_BYTES_MAX", 10_000)
    with pytest.raises(SqlRefused, match="more than 10000 characters"):
        ann.sql("SELECT repeat('x', 1000) AS x FROM t")


def test_whole_numbers_have_64_bits_and_older_ones_are_still_asked(room: Postroom, ann: Station) -> None:
    large = 12345678901234567890123456
    for count in (2**63, -(2**63) - 1, str(large)):
        with pytest.raises(FieldRefused, match="Count: it takes whole numbers from -9223372036854775808 to"):
            ann.create("PART", Name="n", Count=count)
    edge = ann.create("PART", Name="n", Count=2**63 - 1)
    with pytest.raises(FieldRefused):
        ann.modify(edge, Count=2**63)
    body = f'{{"Name":"old","Count":{large},"Size":"0.123456789012345678"}}'
    kept = ann.table("t").kept
    edition = room.stations.form("PART")
    rows = list(sql._rows(edition, [*kept, kept[0]._replace(body=body)]))
    assert [field.dataType.simpleString() for field in sql.schema(edition, rows)][3:5] == [
        "decimal(38,0)",
        "decimal(38,18)",
    ]
    assert [field.dataType.simpleString() for field in sql.schema(edition, rows[:-1])][3:5] == [
        "bigint",
        "decimal(38,10)",
    ]
    asked = sql.ask(
        "SELECT max(Count) AS n, max(Size) AS s FROM t",
        {"t": edition},
        lambda _: [kept[0]._replace(body=body)],
    )
    assert asked.as_dict()["rows"] == [[str(large), "0.123456789012345678"]]

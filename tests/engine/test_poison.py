"""Messages that loop, recurse, eat memory or never stop talking: each is found and told of, and harms no other."""

from __future__ import annotations

import os
import re
import signal
import threading
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from pyspark.sql import SparkSession

import postroom
from postroom.engine.spark.worker import Bounds
from postroom.limits import MESSAGE_ACTIONS_MAX
from postroom.room import Postroom

MASTER = "local[2]"
WAY: dict[str, Any] = {"spark": "always"}
PROGRAM = """
create queue in kind basic mode persistent errorqueue errors
create queue out kind basic mode persistent
create queue errors kind basic mode persistent
create rule work for in
if (/m/@kind = "loop") then
  do enqueue <r>{count(for $i in 1 to 1000000000, $j in 1 to 1000000000 where $i * $j = count(/m) return 1)}</r>
  into out
else if (/m/@kind = "recurse") then
  do enqueue <r>{let $f := function($g, $n) {1 + $g($g, $n + 1)} return $f($f, count(/m))}</r> into out
else if (/m/@kind = "memory") then
  do enqueue <r>{let $a := array {for $i in 1 to 1000000000 return concat("item number ", $i * count(/m))}
                 return array:size($a) + count($a?*[. = "x"])}</r> into out
else if (/m/@kind = "long") then
  do enqueue <r>{string-join(for $i in 1 to 4000000 return "0123456789")}</r> into out
else if (/m/@kind = "slow") then
  do enqueue <r>{if (count(for $i in 1 to 40000000 where $i mod 7 = count(/m) return 1) > 1) then "slow" else ()}</r>
  into out
else if (/m/@kind = "many") then for $i in 1 to 10001 return do enqueue <r>{$i}</r> into out
else do enqueue <r>{string(/m)}</r> into out
"""


def allow(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """A chunk may take so long from now on."""
    bounds = Bounds(seconds, memory=800 * 1024**2)
    monkeypatch.setattr(Bounds, "beside", lambda master: bounds)


@pytest.fixture(params=[pytest.param("always", marks=pytest.mark.slow), "auto"])
def way(request: pytest.FixtureRequest) -> str:
    """On Spark, and in the engine's own worker."""
    if request.param == "always":
        request.getfixturevalue("spark")
    return str(request.param)


@pytest.fixture
def room(way: str, sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Postroom:
    allow(monkeypatch, seconds=2.0)
    monkeypatch.setitem(WAY, "spark", way)
    file = tmp_path / "program.demaq"
    file.write_text(PROGRAM)
    opened = postroom.open(sqlite_url)
    opened.load(file)
    return opened


def send(room: Postroom, *kinds: str) -> dict[str, str]:
    """Fifty good messages with some others among them; the keys of the others."""
    bad = {}
    for number in range(50):
        if number in (3, 30) and kinds:
            kind, *kinds = kinds  # type: ignore[assignment]  # a tuple's rest is a list
            bad[kind] = room.send("in", f'<m kind="{kind}">bad</m>', format="xml").key
        room.send("in", f"<m>{number}</m>", format="xml")
    return bad


def check(room: Postroom, bad: dict[str, str], code: str) -> None:
    """The good ones were answered once and in order; each bad one led to one error message of class system."""
    assert [message.body for message in room.queues.info("out")] == [f"<r>{number}</r>" for number in range(50)]
    told = {}
    for message in room.queues.info("errors"):
        assert "<class>system</class>" in message.body, message.body[:500]
        assert f"{code}</code>" in message.body, message.body[:500]
        (key,) = re.findall(r'<initialMessage key="([0-9.]+)"', message.body)
        assert key not in told
        told[key] = message.cause
    assert told == {key: key for key in bad.values()}
    for key in bad.values():
        assert [event.verb for event in room.trace(key)] == ["put", "take"]
    assert room.queues.info("in").messages == room.queues.info("postroom-errors").messages == []


def work_off(room: Postroom) -> tuple[int, int]:
    totals = room.engine.run_totals(until_idle=True, master=MASTER, **WAY)
    return totals.messages, totals.failures


@pytest.mark.parametrize(
    "kind", ["loop", pytest.param("recurse", marks=pytest.mark.slow), pytest.param("memory", marks=pytest.mark.slow)]
)
def test_a_message_that_kills_its_worker_is_found_among_fifty(room: Postroom, kind: str) -> None:
    bad = send(room, kind)
    assert work_off(room) == (51, 1)
    check(room, bad, "PR0005")


@pytest.mark.slow
def test_two_guilty_ones_in_one_step_are_both_found(room: Postroom) -> None:
    bad = send(room, "recurse", "loop")
    assert work_off(room) == (52, 2)
    check(room, bad, "PR0005")


@pytest.mark.parametrize("kind", ["long", "many"])
def test_a_message_whose_answer_is_over_the_budget_is_told_so(
    room: Postroom, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, seconds=60.0)
    assert MESSAGE_ACTIONS_MAX == 10_000, "the program makes one more"
    bad = send(room, kind)
    assert work_off(room) == (51, 1)
    check(room, bad, "PR0006")


def workers(spark: SparkSession) -> list[int]:
    """The Python workers of this session: the children of the daemon that its Java started."""
    java = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]  # a running session has one
    return [worker for daemon in children(java) for worker in children(daemon)]


def children(process: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):  # it has ended
        for task in Path(f"/proc/{process}/task").iterdir():
            with suppress(OSError):  # threads come and go
                found += map(int, (task / "children").read_text().split())
    return found


def seconds_used(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended
        return 0.0
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


@pytest.mark.slow  # Spark begins anew; without it: tests/engine/test_bounded_process.py
@pytest.mark.parametrize("way", ["always"])
def test_a_lone_message_whose_worker_died_by_another_hand_is_not_blamed(
    spark: SparkSession, room: Postroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, seconds=60.0)
    room.send("in", "<m>first</m>", format="xml")
    assert work_off(room) == (1, 0)
    before = {worker: seconds_used(worker) for worker in workers(spark)}
    killed: list[int] = []

    def kill_the_busy_one() -> None:
        end = monotonic() + 60
        while not killed and monotonic() < end:
            sleep(0.02)
            for worker in workers(spark):
                if not killed and seconds_used(worker) > before.get(worker, 0.0) + 1:
                    os.kill(worker, signal.SIGKILL)
                    killed.append(worker)

    thread = threading.Thread(target=kill_the_busy_one)
    thread.start()
    room.send("in", '<m kind="slow">alone</m>', format="xml")
    done = work_off(room)
    thread.join()
    assert (len(killed), done) == (1, (1, 0))
    assert [message.body for message in room.queues.info("out")] == ["<r>first</r>", "<r>slow</r>"]


def test_while_a_message_loops_those_of_other_queues_go_on(
    room: Postroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, seconds=10.0)
    file = tmp_path / "other.demaq"
    file.write_text(
        "create queue other kind basic mode persistent\ncreate queue answers kind basic mode persistent\n"
        "create rule answer for other\nif (/m) then do enqueue <a>{string(/m)}</a> into answers\n"
    )
    room.load(file)
    room.send("other", "<m>first</m>", format="xml")
    work_off(room)  # whatever has to start has started
    room.send("in", '<m kind="loop">bad</m>', format="xml")
    engine = threading.Thread(target=lambda: room.engine.run_totals(until_idle=True, master=MASTER, **WAY))
    engine.start()
    with postroom.open(room.url) as office:
        sleep(1.0)  # the engine has taken the message that loops
        office.send("other", "<m>second</m>", format="xml")
        received = [office.receive("answers", wait=30.0).message for _ in range(2)]
        assert [message and message.body for message in received] == ["<a>first</a>", "<a>second</a>"]
        assert [message.body for message in office.queues.info("in")] == ['<m kind="loop">bad</m>']  # it is not over
        assert office.queues.info("errors").messages == []
    engine.join()
    assert [re.findall("PR[0-9]+", message.body)[:1] for message in room.queues.info("errors")] == [["PR0005"]]
    assert room.queues.info("in").messages == []
    assert room.journal.verify().differences == ()

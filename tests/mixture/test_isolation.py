"""Wherever users' text or data is evaluated, one that loops, eats memory or ends its process stops only itself.

The table has a cell for each place and harm. A cell is a test of this file, the test of another file that covers it, or
the reason why the place's language cannot say such a thing; what is open is said. A test of a cell has someone else at
work in the same room, who goes on meanwhile, and an error that names what was guilty.
"""

from __future__ import annotations

import ast
import os
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import pytest
from tests.engine.test_poison import allow
from tests.rules.evaluation.test_xquery_process import doubled

import postroom
from postroom.engine.dispatch import Outcome
from postroom.errors import EntryRefused, ProgramInvalid
from postroom.room import Postroom
from postroom.rules.evaluation.xquery_process import BoundedXQuery
from postroom.store.kernel.outbox import Effect

PLACES = ("send", "schema", "load", "try", "step", "arc", "procedure", "counter", "query", "sql", "command")
SCHEMA = "tests/engine/test_schema_process.py::"
HARMS = ("loops", "eats memory", "ends its process")
HERE = "tests/mixture/test_isolation.py::"
SQL = "tests/stations/queries/test_sql_process.py::"
HANGING = "tests/stations/procedures/test_function_process.py::"
TABLE = {
    ("send", "loops"): "tests/rules/evaluation/test_xquery_process.py::"
    "test_a_long_value_at_the_door_refuses_its_message_and_keeps_no_writer_waiting",
    ("send", "eats memory"): f"{HERE}test_a_value_that_takes_too_much_refuses_its_message",
    # No function of XQuery ends a process; what comes nearest is a recursion without end.
    ("send", "ends its process"): f"{HERE}test_a_value_that_takes_too_much_refuses_its_message",
    (
        "schema",
        "loops",
    ): f"{SCHEMA}test_a_message_that_its_schema_never_ends_with_is_refused_and_keeps_no_writer_waiting",
    ("schema", "eats memory"): f"{SCHEMA}test_a_schema_that_takes_too_long_to_be_read_is_refused",
    ("schema", "ends its process"): "no: nothing in a schema calls a function, and it is read in a process apart",
    ("load", "loops"): "tests/rules/evaluation/test_indexing.py::"
    "test_a_path_that_takes_too_long_refuses_its_rule_and_keeps_no_writer_waiting",
    ("load", "eats memory"): f"{HERE}test_a_rule_that_takes_too_much_to_compile_refuses_its_load",
    ("load", "ends its process"): "no: a path of an index calls no function",
    (
        "try",
        "loops",
    ): "tests/rules/evaluation/test_xquery_process.py::test_a_dry_run_of_a_rule_that_takes_too_long_ends",
    ("try", "eats memory"): f"{HERE}test_a_dry_run_tells_what_takes_too_much",
    ("try", "ends its process"): f"{HERE}test_a_dry_run_tells_what_takes_too_much",
    ("step", "loops"): "tests/engine/test_poison.py::test_while_a_message_loops_those_of_other_queues_go_on",
    ("step", "eats memory"): f"{HERE}test_while_a_message_takes_too_much_those_of_other_queues_go_on",
    ("step", "ends its process"): f"{HERE}test_while_a_message_takes_too_much_those_of_other_queues_go_on",
    # No sign or function repeats anything; but arcs one behind another that join tables multiply rows.
    ("arc", "loops"): f"{HERE}test_events_that_multiply_from_arc_to_arc_stop_at_the_arc_that_is_guilty",
    ("arc", "eats memory"): f"{HERE}test_events_that_grow_from_arc_to_arc_stop_at_the_arc_that_is_guilty",
    # No function of the language ends a job; another one stands in for it.
    ("arc", "ends its process"): "tests/flows/evaluation/test_share.py::"
    "test_an_event_that_ends_its_job_loses_only_the_arc_that_is_guilty",
    ("procedure", "loops"): f"{HANGING}test_one_hanging_function_fails_its_own_set_while_other_stations_go_on",
    ("procedure", "eats memory"): f"{HANGING}test_a_function_that_ends_its_process_fails_its_own_set_alone",
    ("procedure", "ends its process"): f"{HANGING}test_a_function_that_ends_its_process_fails_its_own_set_alone",
    **dict.fromkeys(
        [("counter", harm) for harm in HARMS], f"{HANGING}test_a_bad_function_at_a_counter_stops_only_its_message"
    ),
    (
        "query",
        "loops",
    ): "tests/stations/queries/test_conditions.py::test_a_pattern_is_looked_for_in_a_long_text_at_once",
    ("query", "eats memory"): "no: a condition makes nothing, and the answer has at most IMAGES_MAX messages",
    ("query", "ends its process"): "no: a condition calls no function",
    (
        "sql",
        "loops",
    ): f"{SQL}test_a_statement_that_takes_too_long_is_ended_with_its_java",
    (
        "sql",
        "eats memory",
    ): f"{SQL}test_a_statement_that_fills_the_memory_ends_alone",
    ("sql", "ends its process"): "tests/stations/queries/test_sql.py::test_nothing_else_is_reached",
    ("command", "loops"): f"{HERE}test_beside_a_bad_command_others_go_on",
    ("command", "eats memory"): f"{HERE}test_beside_a_bad_command_others_go_on",
    ("command", "ends its process"): f"{HERE}test_beside_a_bad_command_others_go_on",
}
ROOT = Path(__file__).parents[2]
MEMORY = (
    "let $a := array {for $i in 1 to 1000000000 return concat('item ', $i * count(/x))} return count($a?*[. = 'y'])"
)
RECURSION = "let $f := function($g, $n) {1 + $g($g, $n + 1)} return $f($f, count(/x))"
QUEUES = "".join(f"create queue {name} kind basic mode persistent\n" for name in "ab")


def test_every_cell_has_a_test_that_is_there_or_a_reason() -> None:
    assert set(TABLE) == {(place, harm) for place in PLACES for harm in HARMS}
    for cell, said in TABLE.items():
        if not said.startswith(("no: ", "open: ")):
            file, name = said.split("::")
            found = {each.name for each in ast.walk(ast.parse((ROOT / file).read_text())) if hasattr(each, "name")}
            assert name in found, cell


#: On a machine at rest others are within a second: ``make test-all`` asks for that, when nothing else runs. A busy one
#: takes seconds to start the worker that serves them.
PACE_SECONDS = float(os.environ.get("POSTROOM_PACE_SECONDS", "4"))


class Pace:
    """How long each turn of someone took, beside how long this machine lets a thread wait that does nothing."""

    def __init__(self) -> None:
        self.turns: list[float] = []
        self._machine = 0.0

    @contextmanager
    def turn(self) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.turns.append(time.monotonic() - began)

    @contextmanager
    def kept(self, way: str = "auto") -> Iterator[Self]:
        """While the block runs, the machine is measured; at its end, no turn may have been longer than the bound.

        On Spark a job alone may take as long on a busy machine: there, what others do comes to an end, and that is all.
        """
        over = threading.Event()

        def idle() -> None:
            while not over.is_set():
                began = time.monotonic()
                time.sleep(0.01)
                self._machine = max(self._machine, time.monotonic() - began)

        with ThreadPoolExecutor(1) as pool:
            idling = pool.submit(idle)
            try:
                yield self
            finally:
                over.set()
            idling.result()
        slowest = max(self.turns, default=0.0)
        assert way == "always" or slowest < PACE_SECONDS + 10 * self._machine, (
            f"{slowest:.2f} s; the machine itself: {self._machine:.2f} s"
        )


def test_a_pace_can_tell_who_waited() -> None:
    with Pace().kept() as pace:
        for _ in range(3):
            with pace.turn():
                time.sleep(0.01)
    assert len(pace.turns) == 3
    with pytest.raises(AssertionError, match="the machine itself"), Pace().kept() as slow:
        slow.turns.append(1_000)


@contextmanager
def others(url: str, queue: str = "b", least: int = 3) -> Iterator[None]:
    """Someone else sends and receives in the same room, some times while the guilty one is at work."""
    pace = Pace()
    begun, over = threading.Event(), threading.Event()

    def work() -> None:
        with postroom.open(url, actor="other") as other:
            while not over.is_set():
                with pace.turn():
                    other.send(queue, "<z/>", format="xml")
                    other.receive(queue)
                begun.set()
                time.sleep(0.02)

    with pace.kept(), ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        assert begun.wait(60)
        try:
            yield
        finally:
            meanwhile = len(pace.turns) - 1
            over.set()
        working.result()
    assert meanwhile >= least, f"someone else had {meanwhile} turns"


def loaded(room: Postroom, folder: Path, text: str, name: str = "p.demaq") -> Path:
    file = folder / name
    file.write_text(text)
    room.load(file)
    return file


@pytest.mark.parametrize(("value", "code"), [(MEMORY, "PR0005"), (RECURSION, "SXLM0001")], ids=["memory", "recursion"])
def test_a_value_that_takes_too_much_refuses_its_message(
    room: Postroom, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, code: str
) -> None:
    monkeypatch.setattr("postroom.rules.answers.BoundedXQuery", lambda: BoundedXQuery(1.5))
    loaded(room, tmp_path, f"{QUEUES}create property p as xs:string queue a value string({value})")
    least = 3 if value == MEMORY else 0  # a recursion ends within some hundredths of a second
    with others(url, least=least), pytest.raises(EntryRefused, match=r"queue a refuses .*property p") as refused:
        room.send("a", "<x/>", format="xml")
    assert refused.value.facts["reason"] == code
    assert not list(room.queues.info("a"))


def test_a_rule_that_takes_too_much_to_compile_refuses_its_load(room: Postroom, url: str, tmp_path: Path) -> None:
    """Saxon computes at once what depends on no message: these are as many numbers as no machine holds."""
    loaded(room, tmp_path, QUEUES)
    rule = f"create rule guilty for a if ({doubled('($a, $a)')}) then do enqueue <y/> into b"
    with others(url, least=0), pytest.raises(ProgramInvalid, match="rule guilty: compiling it exceeded the limit"):
        loaded(room, tmp_path, f"{QUEUES} {rule}")
    assert not [entry for entry in room.definitions.catalog() if entry.name == "guilty"]


@pytest.mark.parametrize("value", [MEMORY, RECURSION], ids=["memory", "recursion"])
def test_a_dry_run_tells_what_takes_too_much(
    room: Postroom, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setattr("postroom.rules.tryout.TRYOUT_SECONDS", 0.5)
    loaded(room, tmp_path, QUEUES)
    room.send_many("a", ["<x/>"] * 3, format="xml")
    proposed = tmp_path / "new.demaq"
    proposed.write_text(f"create rule guilty for a if (/x) then do enqueue <y>{{{value}}}</y> into b")
    with others(url):
        found = list(room.definitions.try_out(proposed))
    assert len(found) == 3
    assert all("guilty" in str(each) and ("PR0005" in str(each) or "SXLM0001" in str(each)) for each in found)


@pytest.fixture(params=[pytest.param("always", marks=pytest.mark.slow), "auto"])
def way(request: pytest.FixtureRequest) -> str:
    """On Spark, and in the engine's own worker."""
    if request.param == "always":
        request.getfixturevalue("spark")
    return str(request.param)


@pytest.mark.parametrize("harm", ["memory", pytest.param("recurse", marks=pytest.mark.slow)])
def test_while_a_message_takes_too_much_those_of_other_queues_go_on(
    sqlite_url: str, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    allow(monkeypatch, seconds=3.0)
    value = MEMORY if harm == "memory" else RECURSION
    program = f"""{QUEUES}create queue c kind basic mode persistent create queue d kind basic mode persistent
    create rule guilty for a if (/x) then do enqueue <y>{{{value}}}</y> into b
    create rule good for c if (/x) then do enqueue <y/> into d"""
    with postroom.open(sqlite_url) as room, postroom.open(sqlite_url) as office:
        loaded(room, tmp_path, program)
        room.send("c", "<x/>", format="xml")
        room.run_until_idle(master="local[2]", spark=way)  # whatever has to start has started
        office.receive("d")
        engine = threading.Thread(target=lambda: room.run(master="local[2]", spark=way))
        engine.start()
        try:
            key = office.send("a", "<x/>", format="xml").key
            time.sleep(1)  # it has been taken
            with Pace().kept(way) as pace:
                for _ in range(4):
                    with pace.turn():
                        answer(office)
            # The guilty one is tried twice for three seconds; a recursion may end by itself.
            assert harm == "recurse" or not list(office.queues.info("postroom-errors")), "others waited for its end"
            error = office.receive("postroom-errors", wait=60).message
        finally:
            room.stop()
            engine.join(60)
        assert error is not None
        assert error.cause == key
        assert "<rule>guilty</rule>" in error.body
        assert room.journal.verify().differences == ()


def answer(office: Postroom) -> None:
    office.send("c", "<x/>", format="xml")
    assert office.receive("d", wait=60).message is not None


@pytest.mark.parametrize(("type", "first"), [("string", '"x"'), ("(int)", "(1)")], ids=["texts", "lists"])
def test_events_that_grow_from_arc_to_arc_stop_at_the_arc_that_is_guilty(
    sqlite_url: str, tmp_path: Path, way: str, type: str, first: str
) -> None:
    """Each arc doubles what it is given: behind thirty of them it would be a gigabyte, of which Java ends."""
    arcs = 30
    graph = f"domain d space T : [t: {type}] arc other : S0 -> T merge\n"
    graph += "".join(f"space S{number} : [t: {type}]\n" for number in range(arcs + 1))
    graph += "".join(
        f"arc a{number} : S{number} -> S{number + 1} transform [t: t] => [t: t + t]\n" for number in range(arcs)
    )
    with postroom.open(sqlite_url) as room:
        loaded(room, tmp_path, graph, "g.flow")
        for _ in range(2):
            room.publish("S0", f"[{first}]")
        room.run_until_idle(master="local[2]", spark=way)
        assert len(list(room.queues.info("T"))) == 2
        assert not list(room.queues.info(f"S{arcs}"))
        errors = [message.body for message in room.queues.info("postroom-errors")]
        assert len(errors) == 2
        guilty = "a22" if type == "string" else "a20"  # 4 MiB have room for so many
        assert all(f"arc {guilty}: " in body for body in errors), errors[0][:500]


def test_events_that_multiply_from_arc_to_arc_stop_at_the_arc_that_is_guilty(
    sqlite_url: str, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each arc meets every row of a table: behind five of them one event is 10^11 rows, none of which is delivered."""
    monkeypatch.setattr("postroom.flows.evaluation.dataflow.EVALUATION_SECONDS", 1.5)
    arcs = 5
    (tmp_path / "t.csv").write_text("v\n" + "".join(f"{number}\n" for number in range(200)))
    graph = 'domain d table t : [v: int] from "t.csv"\nspace T : [n: int] arc other : S0 -> T merge\n'
    graph += "".join(f"space S{number} : [n: int]\n" for number in range(arcs + 1))
    graph += "".join(
        f"arc a{number} : S{number} -> S{number + 1} transform [n: n] join t [v: v] => [n: v]\n"
        for number in range(arcs)
    )
    graph += f"space E : [n: int] arc end : S{arcs} -> E select [n: < 0]\n"
    graph += "domain e space X : [n: int] space Y : [n: int] arc x : X -> Y merge"
    with postroom.open(sqlite_url) as room, postroom.open(sqlite_url) as office:
        loaded(room, tmp_path, graph, "g.flow")
        office.publish("X", "[0]")
        room.run_until_idle(master="local[2]", spark=way)  # whatever has to start has started
        office.receive("Y")
        engine = threading.Thread(target=lambda: room.run(master="local[2]", spark=way))
        engine.start()
        try:
            key = office.publish("S0", "[1]").key
            time.sleep(1)  # it has been taken
            with Pace().kept(way) as pace:
                for _ in range(4):
                    with pace.turn():
                        flow(office)
            error = office.receive("postroom-errors", wait=300).message
            flow(office)
        finally:
            room.stop()
            engine.join(60)
        assert error is not None
        assert error.cause == key
        assert "<rule>a2</rule>" in error.body  # 40,000 rows take a twentieth of the limit, 8,000,000 ten times as long
        assert "arc a2: evaluation killed its worker, or exceeded the limit" in error.body
        assert [message.body for message in office.queues.info("T")] == ['{"n":1}']
        assert (
            not list(office.queues.info("E"))
            + list(office.queues.info("S0"))
            + list(office.queues.info("postroom-errors"))
        )
        assert room.journal.verify().differences == ()


def flow(office: Postroom) -> None:
    office.publish("X", "[1]")
    assert office.receive("Y", wait=30).message is not None


BAD = {
    "loops": ("while True: pass", "killed after its time limit of 2 s"),
    "eats memory": ("x = []\nwhile True: x.append(bytearray(1 << 24))", "exit 1"),
    "ends its process": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "exit -9"),
}


@pytest.mark.parametrize("harm", HARMS)
def test_beside_a_bad_command_others_go_on(
    room: Postroom, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    monkeypatch.setattr("postroom.engine.dispatch.OUTBOX_ATTEMPTS_MAX", 1)
    monkeypatch.setattr("postroom.gateways.command.COMMAND_BYTES_MAX", 1 << 28)
    script, (text, outcome) = tmp_path / "bad.py", BAD[harm]
    script.write_text(text)
    program = f'01 INPUT-QUEUE (BAD) COMMAND LINE IS "{sys.executable} {script}" TIMEOUT IS 2 SECONDS\n'
    program += '01 INPUT-QUEUE (GOOD) COMMAND LINE IS "true"\n01 INPUT-QUEUE (PLAIN)\n99\n'
    loaded(room, tmp_path, program, "t.qdl")
    done: dict[str, str] = {}

    def told(effect: Effect, outcome: Outcome, again: bool) -> None:
        done[effect.payload["path"]] = outcome.result["outcome"]
        if len(done) == 2:
            room.stop()

    room.send("BAD", "x")
    room.send("GOOD", "x")
    with others(url, "PLAIN", 3 if harm == "loops" else 0):
        room.run(report=told)
    assert done == {"GOOD": "exit 0", "BAD": outcome}
    assert harm != "loops" or list(done) == ["GOOD", "BAD"]  # the one in the limit of two seconds of the other

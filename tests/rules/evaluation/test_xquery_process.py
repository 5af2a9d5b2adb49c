"""XQuery in a process apart: one that loops or eats memory ends itself, and nobody else waits for it."""

from __future__ import annotations

import os
import resource
import threading
import time
from pathlib import Path

import pytest
from tests.rules.conftest import Load

import postroom
from postroom.errors import EntryRefused, ProgramInvalid
from postroom.rules.evaluation.xquery import QueryFailed
from postroom.rules.evaluation.xquery_process import BoundedXQuery, Compilation

LONG = "count(for $a in 1 to 100000, $b in 1 to 100000, $c in 1 to 100000 where $a + $b = $c + number(//x) return 1)"
ENDLESS = "matches(VALUE, '^(a|aa)+$')"


def program(value: str) -> str:
    return f"""create queue a kind basic mode persistent create queue b kind basic mode persistent
    create property p as xs:string queue a value {value}"""


def test_a_query_is_answered_as_by_saxon_itself() -> None:
    assert BoundedXQuery().run("<r>{count(/b/*), 'é'}</r>", "<b><x/><y/></b>") == "<r>2 é</r>"
    with pytest.raises(QueryFailed) as failed:
        Compilation().check("1 +\n $x")
    assert (failed.value.code, failed.value.line) == ("XPST0008", 2)


def doubled(piece: str, times: int = 40) -> str:
    """Each variable is twice the one before."""
    lets = (f"let $a{each} := {piece.replace('$a', f'$a{each - 1}')}" for each in range(1, times))
    return f"let $a0 := 1 {' '.join(lets)} return exists($a{times - 1}[. = 2])"


def test_a_compiler_that_counts_on_and_on_ends_within_a_second_of_processor_time() -> None:
    """Saxon computes at once what depends on no message: this is 2 to the power of 39 numbers."""
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    with pytest.raises(
        QueryFailed, match=r"PR0005: compiling it exceeded the limit of 0\.42 seconds of processor time"
    ):
        Compilation().check(doubled("($a, $a)"))
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin_and_work = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
    assert 0.4 < begin_and_work < 3  # with the start of that process
    Compilation().check(doubled("$a + $a"))
    Compilation().check(doubled("(//n, $a)"))


def test_one_rule_that_cannot_be_compiled_in_time_ends_the_load(tmp_path: Path) -> None:
    rules = " ".join(
        f"create rule r{each} for a if ({doubled('($a, $a)')}) then do enqueue <x/> into b" for each in range(20)
    )
    (tmp_path / "p.demaq").write_text(
        f"create queue a kind basic mode persistent create queue b kind basic mode persistent {rules}"
    )
    with postroom.open(tmp_path / "room.db") as room:
        with pytest.raises(ProgramInvalid, match="rule r0: compiling it exceeded the limit") as refused:
            room.definitions.load(tmp_path / "p.demaq")
        assert "r1" not in str(refused.value)
        assert room.definitions.catalog() == []


def test_what_takes_too_long_fails_and_the_next_is_answered() -> None:
    began = time.monotonic()
    with pytest.raises(QueryFailed, match="PR0005: evaluation exceeded the limit of"):
        BoundedXQuery(0.5).run(LONG, "<x>1</x>")
    assert time.monotonic() - began < 30
    assert BoundedXQuery().run("1 + 1", "<b/>") == "2"


def test_what_fills_memory_fails() -> None:
    with pytest.raises(QueryFailed, match="PR0005"):
        BoundedXQuery(2.0).run(
            "let $x := string(/x) return string-join(sort((1 to 30000000) ! concat(., $x)))", "<x>a</x>"
        )
    assert BoundedXQuery().run("1 + 1", "<b/>") == "2"


def test_a_fork_has_processes_of_its_own() -> None:
    assert BoundedXQuery().run("1", "<b/>") == "1"
    child = os.fork()
    if not child:
        os._exit(0 if BoundedXQuery().run("2", "<b/>") == "2" else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert BoundedXQuery().run("3", "<b/>") == "3"


def test_a_long_value_at_the_door_refuses_its_message_and_keeps_no_writer_waiting(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.rules.answers.BoundedXQuery", lambda: BoundedXQuery(1.0))
    room = load(program(ENDLESS.replace("VALUE", "string(/x)")))
    refused: list[EntryRefused] = []

    def send() -> None:
        with postroom.open(tmp_path / "room0.db", actor="slow") as other:
            try:
                other.send("a", f"<x>{'a' * 60}b</x>", format="xml")
            except EntryRefused as error:
                refused.append(error)

    slow = threading.Thread(target=send)
    slow.start()
    turns = 0
    while slow.is_alive():
        room.send("b", "<y/>", format="xml")
        turns += 1
        time.sleep(0.05)
    slow.join()
    assert [error.facts["reason"] for error in refused] == ["PR0005"]
    assert turns > 5
    assert not list(room.queues.info("a"))


def test_an_expression_that_takes_too_long_to_compile_is_refused(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom.rules.evaluation.xquery_process.XQUERY_CHECK_MORE_SECONDS", 0)
    began = time.monotonic()
    with pytest.raises(ProgramInvalid, match="PR0005"):
        load(program("+".join(["1"] * 20_000)))
    assert time.monotonic() - began < 20


def test_a_dry_run_of_a_rule_that_takes_too_long_ends(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.rules.tryout.TRYOUT_SECONDS", 0.2)
    room = load(program("'v'"))
    for number in range(20):
        room.send("a", f"<x>{number}</x>", format="xml")
    proposed = tmp_path / "new.demaq"
    proposed.write_text(f"create rule r for a if ({LONG} = 7) then do enqueue <y/> into b")
    began = time.monotonic()
    found = list(room.definitions.try_out(proposed))
    assert time.monotonic() - began < 60
    assert len(found) == 20
    assert all("PR0005" in str(each) for each in found)

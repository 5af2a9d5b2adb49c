"""Real COBOL programs against rooms on both stores: against each other, killed, started by queues."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import pytest
from tests.interfaces.cobol.conftest import EXAMPLES, hear, say, start

import postroom
from postroom.room import Postroom

Program = Callable[[Path], Path]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest) -> str:
    made: str = request.getfixturevalue(f"{request.param}_url")
    with postroom.open(made) as room:
        room.load(EXAMPLES / "orders.qdl")
    return made


def waiting(room: Postroom, queue: str) -> list[str]:
    return [message.body for message in room.peek(queue)]


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, "it took too long"
        sleep(0.05)


def order(customer: str, *lines: tuple[str, int]) -> list[str]:
    return [customer.ljust(25), *(f"{item:20}{quantity:05}" for item, quantity in lines)]


def test_an_order_is_typed_in_and_answered_while_the_teller_waits(program: Program, url: str, tmp_path: Path) -> None:
    teller = start(program(EXAMPLES / "teller.cob"), url, tmp_path, "WAIT")
    entry = start(program(EXAMPLES / "entry.cob"), url, tmp_path)
    for line in (*order("JONES", ("NAILS", 100), ("GLUE", 3)), "END", *order("SMITH", ("WOOD", 7)), "END", "STOP"):
        say(entry, line)
    assert entry.wait(60) == 0
    assert teller.wait(60) == 0
    with postroom.open(url) as room:
        assert waiting(room, "COUNTER") == [
            "JONES".ljust(25) + "   2 LINES     103",
            "SMITH".ljust(25) + "   1 LINES       7",
        ]
        assert waiting(room, "ORDERS") == []
        assert room.queues.peek("COUNTER").messages[0].properties["advancing"] == "A1"
        assert room.journal.verify().differences == ()


def test_a_sender_that_is_killed_between_send_and_emi_has_sent_nothing(
    program: Program, url: str, tmp_path: Path
) -> None:
    entry = start(program(EXAMPLES / "entry.cob"), url, tmp_path)
    for line in order("JONES", ("NAILS", 100)):
        say(entry, line)
        assert hear(entry) == "KEPT"
    entry.kill()
    entry.wait()
    entry = start(program(EXAMPLES / "entry.cob"), url, tmp_path)
    for line in (*order("SMITH", ("WOOD", 7)), "END", "STOP"):
        say(entry, line)
    assert entry.wait(60) == 0
    with postroom.open(url) as room:
        assert waiting(room, "ORDERS") == ["".join(order("SMITH", ("WOOD", 7))), ""]


def test_a_message_restarts_at_its_first_segment_if_its_reader_is_killed(
    program: Program, url: str, tmp_path: Path
) -> None:
    with postroom.open(url) as room:
        room.queues.send_segments("ORDERS", ["ONE", "TWO", "THREE"], group=True)
    first, second = (start(program(EXAMPLES / "segments.cob"), url, tmp_path) for _ in range(2))
    for line in ("ORDERS", ""):
        say(first, line)
    assert hear(first) == "00 1 0003 ONE"
    say(first, "")
    assert hear(first) == "00 1 0003 TWO"
    for line in ("ORDERS", ""):
        say(second, line)
    assert hear(second) == "NO DATA"  # it is locked
    first.kill()
    first.wait()
    with postroom.open(url) as room:
        until(lambda: not [queue for queue in room.count().queues if queue.locked_by])
    for expected in ("00 1 0003 ONE", "00 1 0003 TWO", "00 3 0005 THREE", "NO DATA"):
        say(second, "")
        assert hear(second) == expected
    say(second, "STOP")
    assert second.wait(60) == 0
    with postroom.open(url) as room:
        assert room.journal.verify().differences == ()


def test_a_reader_goes_on_with_its_message_if_the_reader_of_the_one_before_is_killed(
    program: Program, url: str, tmp_path: Path
) -> None:
    with postroom.open(url) as room:
        for texts in (["A-ONE", "A-TWO"], ["B-ONE", "B-TWO", "B-THREE"]):
            room.queues.send_segments("ORDERS", texts)
    first, second = (start(program(EXAMPLES / "segments.cob"), url, tmp_path) for _ in range(2))
    for reader, texts in ((first, ["00 1 0005 A-ONE", "00 2 0005 A-TWO"]), (second, ["00 1 0005 B-ONE"])):
        say(reader, "ORDERS")
        for text in texts:
            say(reader, "")
            assert hear(reader) == text
    first.kill()
    first.wait()
    with postroom.open(url) as room:
        until(lambda: room.count().queues[0].unprocessed == 2)
    for text in ("00 1 0005 B-TWO", "00 2 0007 B-THREE", "00 1 0005 A-ONE", "00 2 0005 A-TWO", "NO DATA"):
        say(second, "")
        assert hear(second) == text
    say(second, "STOP")
    assert second.wait(60) == 0
    with postroom.open(url) as room:
        assert room.journal.verify().differences == ()


@pytest.mark.slow
def test_what_a_killed_program_received_is_back_and_what_an_ended_one_received_is_not(
    program: Program, url: str, tmp_path: Path
) -> None:
    with postroom.open(url) as room:
        room.send("ORDERS", "WHOLE")
    for killed in (True, False):
        reader = start(program(EXAMPLES / "segments.cob"), url, tmp_path)
        for line in ("ORDERS", ""):
            say(reader, line)
        assert hear(reader) == "00 2 0005 WHOLE"
        if killed:
            reader.kill()
        else:
            say(reader, "STOP")
        reader.wait(60)
        with postroom.open(url) as room:
            until(lambda: len(waiting(room, "ORDERS")) == killed)  # noqa: B023


@pytest.mark.slow
def test_a_queue_starts_the_teller_with_its_cd_filled_in(cobc: str, tmp_path: Path) -> None:
    for name in ("teller.cob", "order-line.cpy", "started.qdl"):
        shutil.copy(EXAMPLES / name, tmp_path)
    url = str(tmp_path / "room.db")
    with postroom.open(url) as room:
        room.load(tmp_path / "started.qdl")
        room.queues.send_segments("ORDERS", order("JONES", ("NAILS", 100)))
        command = [sys.executable, "-m", "postroom", "--room", url, "run", "--until-idle"]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)
        assert ran.returncode == 0, ran.stderr
        until(lambda: waiting(room, "COUNTER") == ["JONES".ljust(25) + "   1 LINES     100"])


@pytest.mark.slow
def test_a_cobol_program_meets_a_rule_and_a_procedure_and_fills_in_a_form(program: Program, tmp_path: Path) -> None:
    url = str(tmp_path / "room.db")

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "postroom", "--room", url, *words]
        environment = {**os.environ, "POSTROOM_PASSWORD": "secret", "XDG_STATE_HOME": str(tmp_path)}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    run("station", "add", "Simon")
    run("load", str(EXAMPLES / "claim.demaq"), str(EXAMPLES / "claim.form"))
    desk = start(program(EXAMPLES / "claim.cob"), url, tmp_path)
    for line in ("ANN SMITH", "12.50", "ROOF DAMAGED"):
        say(desk, line)
    assert hear(desk) == "STATUS 00"
    assert desk.wait(60) == 0
    run("run", "--until-idle")
    run("login", "Simon")
    (form,) = json.loads(run("list", "CLAIM", "--json"))["messages"]
    fields = [form["fields"][name] for name in ("Claimant", "Amount", "Loss", "State")]
    assert fields == ["ANN SMITH", "12.50", "ROOF DAMAGED", "paid at once"]


LEVEL_2 = """\
SEVERAL 20 010
COUNT 30
PART 00
SEGMENT 00
OTHER END 00
NO TEXT 60
LONG 50
NOTHING 60
GROUP 00
PURGED 00
PURGED 70 4
KEY 40
DISABLED 00
AGAIN 15 5
HELD 10 2
ENABLED 00
ALL 00 000001
SUB 00 000001
LEAF 00 000001
NONE 20
INPUT OFF 00
GOT 00 2 SUB-A       S-ONE       0005 HELLO
INPUT ON 00
NO DATA
"""


def test_level_2_of_the_communication_module(program: Program, url: str, tmp_path: Path) -> None:
    """Tables of destinations, partial sends, purge, every kind of disable, counts on several levels."""
    (tmp_path / "tree.qdl").write_text(
        '01 INPUT-QUEUE (MAIN) PASSWORD IS "MAIN"\n 02 SUB-QUEUE-1 (SUB-A)\n  03 SUB-QUEUE-2 (S-ONE)\n'
        '  03 SUB-QUEUE-2 (S-TWO)\n 02 SUB-QUEUE-1 (SUB-B)\n01 OUTPUT-QUEUE (LOG) PASSWORD IS "LOG"\n99\n'
    )
    with postroom.open(url) as room:
        room.load(tmp_path / "tree.qdl", change_passwords=True)
        leaf = room.count("MAIN", "SUB-A", "S-ONE").queues[0].queue
    text = (Path(__file__).parent / "level2.cob").read_text().replace('"S-ONE" TO OUT', f'"{leaf}" TO OUT')
    (tmp_path / "level2.cob").write_text(text)
    ran = start(program(tmp_path / "level2.cob"), url, tmp_path)
    said, _ = ran.communicate(timeout=120)
    assert [line.rstrip() for line in said.splitlines()] == LEVEL_2.splitlines()
    assert ran.returncode == 0
    with postroom.open(url) as room:
        bodies = [(message.body, dict(message.properties)) for message in room.peek("LOG")]
    assert bodies[:2] == [("HELLO", {}), ("ABCABCABC", {"end": "EGI", "segments": "6,3"})]
    assert bodies[2][0] == "AB"


FORMS = """\
TERMINAL DESK
DATA 00 1 0003
REST 00 2 0003
PURGED 00
AGAIN 70
PAGE 00
BLANK 00
NO TEXT 60
GROUP 00
KEY 40
OFF 00
ALREADY 15
ON 00
NOBODY 21
WITHIN 00
"""


def test_every_other_form_of_a_statement_is_compiled_and_run(program: Program, url: str, tmp_path: Path) -> None:
    """An I-O CD of a program that a terminal's queue has started, REPLACING LINE, channels, a program in a program."""
    file = tmp_path / "forms.cob"
    file.write_text((Path(__file__).parent / "forms.cob").read_text())
    with postroom.open(url) as room:
        for name in ("FROM-DESK", "TO-DESK", "LOG"):
            room.queues.create(name)
        room.queues.create_source("DESK", password="DESKKEY", input="FROM-DESK", output="TO-DESK")
        room.queues.send_segments("FROM-DESK", ["ONE", "TWO"])
    ran = start(program(file), url, tmp_path, "-arg", "FROM-DESK")
    said, _ = ran.communicate(timeout=120)
    assert [line.rstrip() for line in said.splitlines()] == FORMS.splitlines()
    assert ran.returncode == 0
    with postroom.open(url) as room:
        assert [(message.body, dict(message.properties)) for message in room.peek("TO-DESK")] == [
            ("HELLO", {"advancing": "APR"}),
            ("HELLO" * 3, {"segments": "10,5", "end": "EGI", "advancing": "B2R,A0"}),
        ]
        assert [dict(message.properties) for message in room.peek("LOG")] == [{"advancing": "R"}]

"""Every verb in every state of a queue, as a table: from the Multics text, the ANSI status keys and decision 0005.

The columns are the states a queue can be in, the rows what is asked of it. An entry is a status key: of the answer, or
of the refusal. Status 91 is a lock, 92 a hold that refuses, 10 a hold that accepts and keeps.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

import pytest

import postroom
from postroom.errors import PasswordWrong, PostroomError, QueueHeld, QueueLocked
from postroom.queues.results import Received
from postroom.room import Postroom

BODY = "one\ntwo\nthree"

_DIES = """
import os, sys, postroom
room = postroom.open(sys.argv[1], actor="ghost")
for queue in sys.argv[2:]:
    assert room.receive(queue, segment=True).message.body == "one"
os._exit(0)
"""


def _dead_reader(url: str, *queues: str) -> None:
    subprocess.run([sys.executable, "-c", _DIES, url, *queues], check=True)


def _other_reader(url: str) -> Postroom:
    other = postroom.open(url, actor="other", owner="elsewhere/1/1")
    assert other.receive("q", segment=True).message is not None
    return other


Verb = Callable[[Postroom, str], object]
STATES: dict[str, Verb] = {
    "open": lambda room, q: None,
    "input held": lambda room, q: room.queues.disable(q, password="pw", input_only=True),
    "held": lambda room, q: room.queues.disable(q, password="pw"),
    "output held": lambda room, q: room.queues.disable(q, password="pw", output_only=True),
    "read by me": lambda room, q: room.receive(q, segment=True),
    "read by another": lambda room, q: None,  # another process or user does it
    "its reader died": lambda room, q: None,
}
VERBS: dict[str, Verb] = {
    "send": lambda room, q: room.send(q, "x"),
    "send_many": lambda room, q: room.send_many(q, ["x", "y"]),
    "distribute": lambda room, q: room.queues.distribute([q], "x"),
    "receive": lambda room, q: room.receive(q, wait=0.0),
    "receive segment": lambda room, q: room.receive(q, segment=True, wait=0.0),
    "accept": lambda room, q: room.queues.accept(q),
    "accept all": lambda room, q: room.queues.accept(),
    "info": lambda room, q: room.queues.info(q),
    "history": lambda room, q: room.queues.history(q),
    "disable": lambda room, q: room.queues.disable(q, password="pw"),
    "disable, wrong": lambda room, q: room.queues.disable(q, password="no"),
    "disable, unasked": lambda room, q: room.queues.disable(q, password=_ask),
    "enable": lambda room, q: room.queues.enable(q, password="pw"),
    "enable, wrong": lambda room, q: room.queues.enable(q, password="no"),
}


def _ask() -> str:
    return "pw"


TABLE = """
                  open  input held  held  output held  read by me  read by another  its reader died
send              00    92          92    10           91          91               00
send_many         00    92          92    10           91          91               00
distribute        00    92          92    10           91          91               00
receive           00    00          92    92           00          91               00
receive segment   00    00          92    92           00          91               00
accept            00    00          00    00           91          91               00
accept all        00    00          00    00           00          00               00
info              00    00          00    00           91          91               00
history           00    00          00    00           91          91               00
disable           00    00          15    00           91          91               00
disable, wrong    40    40          40    40           91          91               40
disable, unasked  00    00          15    00           91          91               00
enable            15    00          00    00           91          91               15
enable, wrong     40    40          40    40           91          91               40
"""


def _expected(of: str = TABLE) -> dict[str, dict[str, str]]:
    """Of each state what each verb answers."""
    _, *rows = of.strip("\n").splitlines()
    table: dict[str, dict[str, str]] = {state: {} for state in STATES}
    for row in rows:
        for state, key in zip(STATES, row[18:].split(), strict=True):
            table[state][row[:18].strip()] = key
    return table


def test_the_table_has_every_verb_and_every_state() -> None:
    head = TABLE.strip("\n").splitlines()[0]
    assert head.split() == " ".join(STATES).split()
    assert all(list(verbs) == list(VERBS) for verbs in _expected().values())


@pytest.mark.parametrize("state", STATES)
def test_every_verb_answers_by_the_table(url: str, state: str) -> None:
    expected = _expected()[state]
    with postroom.open(url) as room, postroom.open(url, actor="other", owner="elsewhere/1/1") as other:
        for verb in VERBS:
            room.queues.create(verb, password="pw")
            room.send(verb, BODY)
            STATES[state](room, verb)
        if state == "its reader died":
            _dead_reader(url, *VERBS)
        for verb in VERBS if state == "read by another" else ():
            assert other.receive(verb, segment=True).message is not None
        assert {verb: _key(room, verb) for verb in VERBS} == expected
        for verb, key in expected.items():
            reader = other if state == "read by another" else room
            if state.startswith("read") or (verb == "receive segment" and key == "00"):
                reader.receive(verb, wait=0.0)  # the rest: what has a lock cannot be looked at
            arrived = {"send": 1, "send_many": 2, "distribute": 1}.get(verb, 0) if key in ("00", "10") else 0
            if "enable" not in verb:
                room.queues.enable(verb, password="pw")
            bodies = [message.body for message in [*room.queues.info(verb), *room.queues.history(verb)]]
            assert sorted(bodies) == sorted([BODY, "x", "y"][: 1 + arrived]), verb


def _key(room: Postroom, verb: str, verbs: dict[str, Verb] = VERBS) -> str:
    """The status of an answer, or of a refusal that changed nothing."""
    try:
        answer: Any = verbs[verb](room, verb)
    except PostroomError as refusal:
        return refusal.status if refusal.happened == "no" else "it happened"
    return str(getattr(answer, "status", "00"))


OPERATORS: dict[str, Verb] = {
    "purge": lambda room, q: room.consumers.purge(q),
    "purge, dry": lambda room, q: room.consumers.purge(q, dry=True),
    "move out": lambda room, q: room.consumers.move(q, to="elsewhere"),
    "move out, dry": lambda room, q: room.consumers.move(q, to="elsewhere", dry=True),
    "move in": lambda room, q: room.consumers.move("reserve", to=q, limit=1),
    "move in, dry": lambda room, q: room.consumers.move("reserve", to=q, limit=1, dry=True),
    "redrive": lambda room, q: room.consumers.redrive(q, to="elsewhere"),
    "redrive in": lambda room, q: room.consumers.redrive("reserve", to=q, limit=1),
    "lease": lambda room, q: room.receive_many(q, count=1, lease=60),
    "set_mode": lambda room, q: room.queues.set_mode(q, keep_processed=True),
    "remove": lambda room, q: room.queues.remove(q),
}
#: An operator takes messages out of a queue on hold; only a reader in the midst of a message keeps it.
OPERATORS_TABLE = """
                  open  input held  held  output held  read by me  read by another  its reader died
purge             00    00          00    00           91          91               00
purge, dry        00    00          00    00           91          91               00
move out          00    00          00    00           91          91               00
move out, dry     00    00          00    00           91          91               00
move in           00    92          92    00           91          91               00
move in, dry      00    92          92    00           91          91               00
redrive           00    00          00    00           91          91               00
redrive in        00    92          92    00           91          91               00
lease             00    00          92    92           91          91               00
set_mode          00    00          00    00           91          91               00
remove            99    99          99    99           91          91               99
"""


@pytest.mark.parametrize("state", STATES)
def test_every_verb_of_operators_answers_by_the_table(url: str, state: str) -> None:
    """A reader who is in the midst of a message gets its other segments, whatever was tried meanwhile."""
    expected = _expected(OPERATORS_TABLE)[state]
    assert list(expected) == list(OPERATORS)
    with postroom.open(url) as room, postroom.open(url, actor="other", owner="elsewhere/1/1") as other:
        for queue in ("elsewhere", "reserve"):
            room.queues.create(queue)
        room.send_many("reserve", ["x"] * 20)
        for verb in OPERATORS:
            room.queues.create(verb, password="pw")
            room.send_many(verb, ["zero", BODY, "four\nfive"])
            for leased in room.receive_many(verb, count=1, lease=60):  # from now on it is taken by a shorter way
                leased.done()
            STATES[state](room, verb)
        if state == "its reader died":
            _dead_reader(url, *OPERATORS)
        for verb in OPERATORS if state == "read by another" else ():
            assert other.receive(verb, segment=True).message is not None
        assert {verb: _key(room, verb, OPERATORS) for verb in OPERATORS} == expected
        reader = other if state == "read by another" else room
        for verb in OPERATORS if state.startswith("read") else ():
            got = [reader.receive(verb, segment=True, wait=0.0).message for _ in range(2)]
            assert [message and message.body for message in got] == ["two", "three"], verb
        assert room.journal.verify().differences == ()


def test_what_an_output_hold_has_accepted_comes_in_order_when_it_ends(url: str) -> None:
    with postroom.open(url) as room:
        room.queues.create("out", password="pw")
        room.send("out", "first")
        room.queues.disable("out", password="pw", output_only=True)
        sent = [room.send("out", "second"), room.send("out", "third", idempotency_key="k")]
        assert [one.status for one in sent] == ["10", "10"]
        assert room.send("out", "third", idempotency_key="k").key == sent[1].key
        shared = room.queues.distribute(["out"], "fourth")
        assert (shared.status, shared.deliveries[0].error_key) == ("10", "0")
        assert room.send_many("out", ["fifth"]).status == "10"
        with pytest.raises(QueueHeld, match="output only"):
            room.receive("out")
        shape = room.queues.accept("out").queues[0].as_dict()
        assert (shape["unprocessed"], shape["held"], shape["hold"]) == (5, True, "output only")
        room.queues.enable("out", password="pw")
        got = [room.receive("out").message for _ in range(5)]
        assert [message and message.body for message in got] == ["first", "second", "third", "fourth", "fifth"]
        assert room.journal.verify().differences == ()


def test_a_wait_goes_on_through_a_hold(url: str) -> None:
    with postroom.open(url) as waits, postroom.open(url) as operator:
        operator.queues.create("q", password="pw")
        operator.queues.disable("q", password="pw", output_only=True)
        found: list[Received] = []
        thread = threading.Thread(target=lambda: found.append(waits.receive("q", wait=20)))
        begun = monotonic()
        thread.start()
        operator.send("q", "kept")
        sleep(0.2)
        assert not found
        operator.queues.enable("q", password="pw")
        thread.join()
        assert monotonic() - begun < 15
        assert found[0].message is not None
        assert found[0].message.body == "kept"


def test_a_wait_that_ends_in_a_hold_says_so(url: str) -> None:
    with postroom.open(url) as room:
        room.queues.create("q", password="pw")
        room.queues.disable("q", password="pw")
        with pytest.raises(QueueHeld):
            room.receive("q", wait=0.1)


def test_a_password_is_told_before_the_state(url: str) -> None:
    with postroom.open(url) as room:
        room.queues.create("q", password="pw")
        room.queues.disable("q", password="pw")
        with pytest.raises(PasswordWrong):
            room.queues.disable("q", password="no")
        assert room.queues.disable("q").status == "15"  # none was given
        other = _locked(url, room)
        with pytest.raises(QueueLocked):
            room.queues.disable("q", password="no")
        other.close()


def _locked(url: str, room: Postroom) -> Postroom:
    room.queues.enable("q", password="pw")
    room.send("q", BODY)
    return _other_reader(url)


@pytest.mark.parametrize(
    "body", ["a", "a\n", "a\n\n", "\n", "\n\n", "", "a\r\nb\r\n", "a\r\n\r\n", "\ra\r", "a\n\n\nb"]
)
def test_segments_lose_no_part_of_a_body(room: Postroom, body: str) -> None:
    room.queues.create("q")
    room.send("q", body)
    segments = []
    while (received := room.receive("q", segment=True)).message is not None:
        segments.append(received.message.body)
    assert "\n".join(segments) + ("\n" if body.endswith("\n") else "") == body


def test_a_stale_lock_is_not_shown(url: str) -> None:
    with postroom.open(url) as room:
        room.queues.create("q")
        room.send("q", BODY)
        other = _other_reader(url)
        assert room.queues.accept().queues[0].locked_by == "other"
        other.receive("q")
        other.close()
        room.send("q", BODY)
        _dead_reader(url, "q")
        shape = room.queues.accept().queues[0].as_dict()
        assert "locked_by" not in shape
        assert room.queues.accept("q").queues[0].unprocessed == 1

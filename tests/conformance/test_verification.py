"""The journal alone says where everything is: what it comes to is what is stored, and a wrong row or line is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults.here import evaluate_here

import postroom
from postroom.errors import JournalTooOld, PostroomError
from postroom.model.message import Draft
from postroom.room import Postroom
from postroom.store.transaction import Transaction
from postroom.store.verification import Verified, verified

TREE = '01 INPUT-QUEUE (M) COMMAND LINE IS "{command}"\n   02 SUB-QUEUE-1 ({name})\n99\n'
PROGRAM = """
create queue asked kind basic mode persistent
create queue kept kind basic mode persistent
create queue later kind echo mode persistent
create property id as xs:string fixed queue asked, kept value //id
create slicing same on id
create rule answer for asked
if (//ask) then (
  do enqueue <answer>{//id}</answer> into kept,
  do enqueue <late/> into later with target value "kept" with timeout value 100000,
  do enqueue <now/> into later with target value "kept" with timeout value 0)
create rule forget for same
if (qs:slice()/forget) then do reset
"""
FLOW = """
domain trade
space In : [n: int]
space Out : [n: int]
arc all : In -> Out merge
"""
FORM = """\
type NOTE
| No: ____ Text: ______________ KEY: ___ |
field No int required
field Text string free
field KEY key automatic
"""


def live(room: Postroom, folder: Path) -> None:
    """Do what a room can do, so that of every kind of thing one is left as something made it."""
    queues(room, folder)
    rules(room, folder)
    stations(room, folder)
    spheres(room)
    effects(room)


def queues(room: Postroom, folder: Path) -> None:
    tree = folder / "tree.qdl"
    for name, command in (("A", "true"), ("B", "false")):
        tree.write_text(TREE.format(name=name, command=command))
        room.load(tree)
    for name in ("plain", "held", "half", "gone", "purged", "read", "freed"):
        room.create_queue(name, password="pw")
    room.remove_queue("gone")
    room.send_many("plain", ["1", "2", "3"])
    room.receive("plain")
    room.receive("plain", segment=True)
    for name in ("read", "freed"):
        room.send(name, "a\nb")
    room.receive("read", segment=True)
    with postroom.open(room.url) as other:
        other.receive("freed", segment=True)
    room.disable("half", password="pw")
    room.enable("half", password="pw")
    room.disable("held", password="pw")
    room.send_many("purged", ["1", "2"])
    room.receive("purged")
    room.set_mode("purged", keep_processed=False)
    room.receive("purged")


def rules(room: Postroom, folder: Path) -> None:
    program, graph = folder / "program.demaq", folder / "graph.flow"
    program.write_text(PROGRAM)
    graph.write_text(FLOW)
    room.load(program, graph)
    for number in range(3):
        room.send("asked", f"<ask><id>{number}</id></ask>", format="xml")
    room.send("asked", "<forget><id>1</id></forget>", format="xml")
    room.publish_many("In", [{"n": 1}, {"n": 2}])
    evaluate_here(room).run_until_idle(step_messages=3)
    assert room.sweep()
    room.add_principal("someone", "pw")
    room.add_principal("leaver", "pw")
    room.remove_principal("leaver")


def stations(room: Postroom, folder: Path) -> None:
    form = folder / "note.form"
    form.write_text(FORM)
    room.load(form)
    for name in ("ann", "bob", "cid"):
        room.add_station(name, "pw")
    room.remove_station("cid")
    ann, bob = room._station("ann"), room._station("bob")
    keys = [ann.create("NOTE", No=number) for number in range(4)]
    for key in keys:
        ann.add_to_dossier("kept", key)
    ann.modify(keys[2], Text="other")
    ann.remove_from_dossier("kept", keys[2])
    ann.ship(keys[:2], "bob")
    bob.get(limit=1)
    for name in ("north", "south"):
        room.add_node(name, str(folder / f"{name}.db"))
    room.remove_node("south")


def spheres(room: Postroom) -> None:
    orders = room.machine(["NEW", "PAID"], [("NEW", "PAID")])
    orders.start("order")
    orders.move("order", "PAID")
    with room.sphere("good") as good:
        good.send("plain", "book", compensation="cancel")
    bad = room.sphere("bad")
    bad.send("plain", "book", compensation="cancel")
    bad.abort()


def effects(room: Postroom) -> None:
    room.send(("M", "B"), "wakes")
    (woken,) = room.outbox()
    payload = {"command": "true"}
    others = [room.store.transact("send", lambda tx: tx.outbox.add("command", payload, "q")) for _ in range(3)]
    room.drop_effect(others[0])
    room.store.transact("send", lambda tx: tx.outbox.done(room._effect(tx, others[1]), {}))
    room.store.transact("send", lambda tx: tx.outbox.attempt(room._effect(tx, others[2])))
    room.retry(others[2])
    room.store.transact("send", lambda tx: tx.outbox.attempt(woken))
    room.store.transact("send", lambda tx: tx.outbox.failed(woken, {"outcome": "no"}, None))


class Undo(Exception):
    pass


def after(room: Postroom, statement: str, *values: object) -> Verified:
    """What is found after a change of the tables, which is then undone."""
    found: list[Verified] = []

    def work(tx: Transaction) -> None:
        assert tx.session.run(statement, values), f"nothing to change: {statement} {values}"
        found.append(verified(tx))
        raise Undo

    with pytest.raises(Undo):
        room.store.transact("send", work)
    return found[0]


ROWS = {
    "message": (
        "DELETE FROM messages WHERE key = (SELECT min(key) FROM messages)",
        "UPDATE messages SET queue = queue + 1 WHERE key = (SELECT min(key) FROM messages)",
        "UPDATE messages SET state = 1 WHERE key = (SELECT min(key) FROM messages WHERE state = 0)",
        "UPDATE messages SET state = 2 WHERE key = (SELECT min(key) FROM messages)",
        "UPDATE messages SET position = position + 1 WHERE key = (SELECT min(key) FROM messages)",
        "UPDATE messages SET number = number + 1 WHERE key = (SELECT min(key) FROM messages)",
        "UPDATE messages SET last = 1 WHERE key = (SELECT max(key) FROM messages)",
        "UPDATE messages SET processed = 1 WHERE key = (SELECT min(key) FROM messages)",
    ),
    "departed message": (
        "DELETE FROM departed WHERE key = (SELECT min(key) FROM departed)",
        "UPDATE departed SET last = last - 1 WHERE key = (SELECT min(key) FROM departed)",
        "INSERT INTO departed (key, last) VALUES (1, 1)",
    ),
    "queue": (
        "UPDATE queues SET hold = 0 WHERE name = 'held'",
        "UPDATE queues SET hold = 1 WHERE name = 'half'",
        "UPDATE queues SET keep = 1 WHERE name = 'purged'",
        "UPDATE queues SET retired = 0 WHERE name = 'gone'",
        "UPDATE queues SET command = 'other' WHERE path = 'M/B'",
        "UPDATE queues SET door = 0 WHERE name = 'asked'",
        "UPDATE queues SET path = 'elsewhere' WHERE name = 'plain'",
    ),
    "counts of queue": (
        "UPDATE queues SET departed = departed - 1 WHERE name = 'plain'",
        "UPDATE queues SET processed = processed + 1 WHERE name = 'plain'",
        "UPDATE queues SET arrived = arrived + 1 WHERE name = 'purged'",
    ),
    "lock of queue": (
        "DELETE FROM locks",
        "UPDATE locks SET segment = segment + 1",
    ),
    "token": ("DELETE FROM tokens WHERE entity = 'order'",),
    "dossier": (
        "DELETE FROM dossiers",
        "UPDATE dossiers SET name = 'other'",
    ),
    "timer": ("DELETE FROM timers", "UPDATE timers SET due = due + 1"),
    "effect": (
        "UPDATE outbox SET state = 'pending' WHERE state = 'failed'",
        "UPDATE outbox SET attempts = attempts + 1",
        "DELETE FROM outbox",
    ),
    "node": ("DELETE FROM nodes",),
    "station": ("UPDATE stations SET node = 'north' WHERE name = 'ann'", "DELETE FROM stations"),
    "principal": ("DELETE FROM principals WHERE name = 'someone'",),
    "versions": ("DELETE FROM versions WHERE version = (SELECT max(version) FROM versions)",),
}


#: Of whom nothing is left that a line could tell: what others do meanwhile, and what is written down for people.
UNHEARD = {"lease", "release-lease", "graph", "reset"}


def test_what_is_stored_is_what_the_journal_says(room: Postroom, tmp_path: Path) -> None:
    live(room, tmp_path)
    found = room.verify()
    assert found.differences == ()
    assert found.messages >= sum(each.unprocessed + each.processed for each in room.accept().queues) > 0
    wrong_rows_are_found(room)
    lost_lines_are_found(room)
    changed_lines_are_found(room)
    assert room.verify() == found, "nothing was left behind"


def wrong_rows_are_found(room: Postroom) -> None:
    for what, statements in ROWS.items():
        for statement in statements:
            kinds = {each.what for each in after(room, statement).differences}
            assert any(each.startswith(f"{what} ") for each in kinds), f"{statement}: {kinds}"


def lost_lines_are_found(room: Postroom) -> None:
    """The newest of every kind: a new kind must be heard, or be said to tell nothing."""
    rows = room.store.read(lambda tx: tx.session.rows("SELECT verb, max(seq) FROM journal GROUP BY verb"))
    verbs = {row[0]: row[1] for row in rows}
    assert verbs.keys() >= UNHEARD
    for verb, seq in verbs.items():
        found = after(room, "DELETE FROM journal WHERE seq = ?", seq).differences
        assert bool(found) == (verb not in UNHEARD), f"{verb}: {found}"


def changed_lines_are_found(room: Postroom) -> None:
    for change in ("prior = prior - 1", "source = source + 1", "target = target + 1", "message = message + 1"):
        statement = f"UPDATE journal SET {change} WHERE seq = (SELECT max(seq) FROM journal WHERE verb = 'take')"
        assert after(room, statement).differences, change
    for change in ("verb = 'move' WHERE verb = 'take'", "detail = '{}' WHERE verb = 'sweep'"):
        assert after(room, f"UPDATE journal SET {change}").differences[0].what.startswith("line "), change


def test_a_room_without_anything_and_many_differences(room: Postroom) -> None:
    assert room.verify() == Verified(0, 0, 0, 0, ())
    room.create_queue("q")
    room.send_many("q", [str(number) for number in range(150)])
    found = after(room, "DELETE FROM messages")
    assert (found.messages, len(found.differences)) == (150, 100), "the first hundred are told"
    assert {each.tables for each in found.differences[1:]} == {None}
    assert found.as_dict()["differences"][0]["what"].startswith("counts of queue")


def test_a_failed_transaction_is_in_neither(room: Postroom) -> None:
    room.create_queue("q")
    before = room.verify()

    def work(tx: Transaction) -> None:
        queue = tx.queues.named("q")
        assert queue is not None
        tx.messages.put(queue, Draft("x", "text", None, "{}"))
        raise Undo

    with pytest.raises(Undo):
        room.store.transact("send", work)
    with pytest.raises(PostroomError):
        room.send("nowhere", "x")
    assert room.verify() == before


def test_a_journal_of_an_earlier_version_is_not_called_damaged(room: Postroom) -> None:
    room.create_queue("q")
    room.send("q", "x")
    first = next(event.seq for event in room.journal(10) if event.verb == "create-queue")
    change = "UPDATE journal SET detail = NULL WHERE verb = 'create-queue'"
    room.store.transact("send", lambda tx: tx.session.run(change))
    with pytest.raises(JournalTooOld, match=f"line {first} of the journal"):
        room.verify()

"""A room in which everything was done that a room can do: of every kind of thing one is left."""

from __future__ import annotations

from pathlib import Path

from tests.faults.here import evaluate_here

import postroom
from postroom.room import Postroom

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
        room.queues.create(name, password="pw")
    room.queues.remove("gone")
    room.send_many("plain", ["1", "2", "3"])
    room.receive("plain")
    room.receive("plain", segment=True)
    for name in ("read", "freed"):
        room.send(name, "a\nb")
    room.receive("read", segment=True)
    with postroom.open(room.url) as other:
        other.receive("freed", segment=True)
    room.queues.disable("half", password="pw")
    room.queues.enable("half", password="pw")
    room.queues.disable("held", password="pw")
    room.send_many("purged", ["1", "2"])
    room.receive("purged")
    room.queues.set_mode("purged", keep_processed=False)
    room.receive("purged")


def rules(room: Postroom, folder: Path) -> None:
    program, graph = folder / "program.demaq", folder / "graph.flow"
    program.write_text(PROGRAM)
    graph.write_text(FLOW)
    room.load(program, graph)
    for number in range(3):
        room.send("asked", f"<ask><id>{number}</id></ask>", format="xml")
    room.send("asked", "<forget><id>1</id></forget>", format="xml")
    room.flows.publish_many("In", [{"n": 1}, {"n": 2}])
    evaluate_here(room).run_until_idle(step_messages=3)
    assert room.engine.sweep()
    room.flows.add_principal("someone", "pw")
    room.flows.add_principal("leaver", "pw")
    room.flows.remove_principal("leaver")


def stations(room: Postroom, folder: Path) -> None:
    form = folder / "note.form"
    form.write_text(FORM)
    room.load(form)
    for name in ("ann", "bob", "cid"):
        room.stations.add(name, "pw")
    room.stations.remove("cid")
    ann, bob = room.stations._station("ann"), room.stations._station("bob")
    keys = [ann.create("NOTE", No=number) for number in range(4)]
    for key in keys:
        ann.add_to_dossier("kept", key)
    ann.modify(keys[2], Text="other")
    ann.remove_from_dossier("kept", keys[2])
    ann.ship(keys[:2], "bob")
    bob.get(limit=1)
    for name in ("north", "south"):
        room.stations.add_node(name, str(folder / f"{name}.db"))
    room.stations.remove_node("south")


def spheres(room: Postroom) -> None:
    orders = room.spheres.machine(["NEW", "PAID"], [("NEW", "PAID")])
    orders.start("order")
    orders.move("order", "PAID")
    with room.sphere("good") as good:
        good.send("plain", "book", compensation="cancel")
    bad = room.sphere("bad")
    bad.send("plain", "book", compensation="cancel")
    bad.abort()


def effects(room: Postroom) -> None:
    room.send(("M", "B"), "wakes")
    (woken,) = room.engine.outbox()
    payload = {"command": "true"}
    others = [room.store.transact("send", lambda tx: tx.outbox.add("command", payload, "q")) for _ in range(3)]
    room.engine.drop_effect(others[0])
    room.store.transact("send", lambda tx: tx.outbox.done(room.engine._effect(tx, others[1]), {}))
    room.store.transact("send", lambda tx: tx.outbox.attempt(room.engine._effect(tx, others[2])))
    room.engine.retry(others[2])
    room.store.transact("send", lambda tx: tx.outbox.attempt(woken))
    room.store.transact("send", lambda tx: tx.outbox.failed(woken, {"outcome": "no"}, None))

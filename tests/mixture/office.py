"""The definitions of a room in which everything meets, and what may be done there, also by a process that dies.

Every message says something that no other says, so that a model can know it without its key.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.faults.here import HereFlows, HereStage, evaluate_here

import postroom
from postroom.room import Postroom
from postroom.spheres.sending import Compensation
from postroom.stations.procedures.evaluation import evaluate_here as handle_here

HEARTBEAT, CHECK = 5.0, 60.0  # owners die by their processes here, so nobody has to wait for a heartbeat
KEEPING, DISCARDING, TREE = "keeping", "discarding", "INP_0000"
QUEUES = (KEEPING, DISCARDING, TREE)
ASKED = "asked"  # rules watch it
MAIL = "mail:"  # before the name of a station, for its letters
WRITER = SimpleNamespace(name="ann")
PASSWORD = "pw"
TREE_TEXT = """
01 INPUT-QUEUE (DESK)
   02 SUB-QUEUE-1 (ONE) PASSWORD IS "pw" COMMAND LINE IS "true"
   02 SUB-QUEUE-1 (TWO{more})
99
"""
PROGRAM = """
create queue asked kind basic mode persistent
create queue answered kind basic mode persistent
create queue broken kind basic mode persistent
create queue later kind echo mode persistent
create queue echoed kind basic mode persistent
create property id as xs:string fixed queue asked value //id
create slicing same on id
create rule answer for asked errorqueue broken
if (//ask) then (
  do enqueue <answer version="{version}"><id>{{string(//id)}}</id><n>{{xs:integer(//n)}}</n></answer> into answered,
  do enqueue <late><id>{{string(//id)}}</id></late> into later with target value "echoed" with timeout value 0)
create rule finish for same
if (qs:slice()/ask and qs:slice()/fin) then do reset
"""
FLOW = """
domain trade
space In : [n: int, w: int]
space Middle : [n: int, w: int]
space Out : [n: int, w: int]
space Half : [n: int]
arc first : In -> Middle merge
arc big : Middle -> Out select [n: any, w: w >= {bound}]
arc half : In -> Half transform [n: n, w: w] => [n: n]
"""
FORM = """\
type NOTE
| No: _____ Text: ________ KEY: ___ |
field No int required
field Text string free
field KEY key automatic
type ORDER
| No: _____ Pair: __ Status: ________ KEY: ___ |
field No int required
field Pair int required
field Status string free
field KEY key automatic
type BILL
| No: _____ Pair: __ KEY: ___ |
field No int required
field Pair int required
field KEY key automatic
"""
PROCEDURE = """\
procedure join at dan
  precondition order : ORDER
  precondition bill : BILL
    Pair: ?order.Pair
  action paid on order
    Status: {status}
  destination on on order copy 0 ship eve
  destination kept on bill copy 0 dossier joined
"""
STATIONS = {"ann": "control", "bob": "control", "cid": "north", "dan": "control", "eve": "control"}


def written(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text)
    return file


def furnish(url: str, folder: Path) -> None:
    """Make the room."""
    with postroom.open(url) as room:
        room.load(written(folder, "tree.qdl", TREE_TEXT.format(more="")))
        room.queues.create(KEEPING, password=PASSWORD)
        room.queues.create(DISCARDING, keep_processed=False, password=PASSWORD)
        load_rules(room, folder, 1)
        room.queues.set_password("answered", password=PASSWORD)
        load_flow(room, folder, 0)
        room.load(written(folder, "types.form", FORM))
        room.stations.add_node("north", str(folder / "north.db"))
        for name, node in STATIONS.items():
            room._parts.network.add_station(name, node, None)
        load_procedure(room, folder, "paid")
        room.spheres.compensator(CHECK).announce()


def opened(url: str, *, here: bool) -> Postroom:
    """The room; ``here`` evaluates all rules, arcs and actions in this process, without Spark."""
    room = postroom.open(url, create=False)
    if here:
        evaluate_here(room)
        room._parts.interpreter.evaluate = handle_here
        room._parts.runner._stages = (HereStage(room), HereFlows(room._parts.room_graphs), room._parts.interpreter)
    return room


# --- what may be done ---


def send(room: Postroom, queue: str, *bodies: str) -> None:
    if len(bodies) == 1:
        room.send(queue, bodies[0])
    else:
        room.send_many(queue, bodies)


def receive(room: Postroom, queue: str) -> str | None:
    found = room.receive(queue).message
    return None if found is None else found.body


def begin_reading(room: Postroom, queue: str) -> None:
    """Someone reads the first segment, and ends."""
    room.receive(queue, segment=True)
    os._exit(7)


def hold(room: Postroom, queue: str, input_only: bool) -> None:
    room.queues.disable(*path(queue), password=PASSWORD, input_only=input_only)


def release(room: Postroom, queue: str) -> None:
    room.queues.enable(*path(queue), password=PASSWORD)


def path(queue: str) -> tuple[str, ...]:
    """Whoever holds a queue names it as its level has the password."""
    return ("DESK", "ONE") if queue == TREE else (queue,)


def mode(room: Postroom, queue: str, keep: bool) -> None:
    room.queues.set_mode(queue, keep_processed=keep)


def ask(room: Postroom, *bodies: str) -> None:
    room.send_many("asked", bodies, format="xml")


def publish(room: Postroom, *events: tuple[int, int]) -> None:
    room.flows.publish_many("In", [{"n": n, "w": w} for n, w in events])


def subscribe(room: Postroom, client: str, durable: bool) -> None:
    room.client(client).subscribe("In", durable=durable)


def unsubscribe(room: Postroom, client: str) -> None:
    room.client(client).unsubscribe()


def create(room: Postroom, station: str, number: int) -> str:
    return room.stations._station(station).create("NOTE", No=number, Text="first")


def pair(room: Postroom, type: str, number: int, pair: int) -> None:
    """A message for the procedure, in two commits: if only the first is made, nothing waits for it."""
    ann = room.stations._station("ann")
    ann.ship(ann.create(type, No=number, Pair=pair), "dan")


def modify(room: Postroom, station: str, key: str, text: str) -> None:
    room.stations._station(station).modify(key, Text=text)


def ship(room: Postroom, station: str, key: str, to: str) -> None:
    room.stations._station(station).ship(key, to)


def get(room: Postroom, station: str) -> list[str]:
    return room.stations._station(station).get()


def dossier(room: Postroom, station: str, key: str, into: bool) -> None:
    desk = room.stations._station(station)
    if into:
        desk.add_to_dossier("kept", key)
    else:
        desk.remove_from_dossier("kept", key)


def switch(room: Postroom, enabled: bool) -> None:
    if enabled:
        room.stations.enable_procedure("join")
    else:
        room.stations.disable_procedure("join")


def load_tree(room: Postroom, folder: Path, more: str) -> None:
    room.load(written(folder, "tree.qdl", TREE_TEXT.format(more=more)))


def load_rules(room: Postroom, folder: Path, version: int) -> None:
    room.load(written(folder, "program.demaq", PROGRAM.format(version=version)))


def load_flow(room: Postroom, folder: Path, bound: int) -> None:
    room.load(written(folder, "trade.flow", FLOW.format(bound=bound)))


def load_procedure(room: Postroom, folder: Path, status: str) -> None:
    room.load(written(folder, "procedures.form", PROCEDURE.format(status=status)))


def engine(room: Postroom, step_messages: int) -> None:
    """Now on Spark, now in the engine's own worker."""
    room.run_until_idle(step_messages=step_messages, master="local[2]", spark="auto" if step_messages % 2 else "always")


def sweep(room: Postroom) -> None:
    room.engine.sweep()


def compensate(room: Postroom) -> None:
    room.spheres.compensator(CHECK).check()


#: One send of a sphere: when, to which queue, what, what undoes it and where, and where that goes on commit.
Planned = tuple[str, str, str, str | None, str | None, str | None]


def sphere_send(sphere: Any, planned: Planned) -> None:
    when, queue, body, undo, target, kept = planned
    if queue.startswith(MAIL):
        fields, instead = ({"No": int(number), "Text": "first"} if number else None for number in (body, undo))
        sphere.mail(WRITER, queue.removeprefix(MAIL), "NOTE", fields, when=when, compensation=instead)
        return
    form = "xml" if body.startswith("<") else None
    compensation = None if undo is None else Compensation(undo, queue=target, format=form)
    sphere.send(queue, body, when=when, compensation=compensation, on_commit=kept, format=form)


def orphan(room: Postroom, id: str, sends: Sequence[Planned]) -> None:
    """An owner that ends in the middle."""
    sphere = room.sphere(id, heartbeat=HEARTBEAT)
    for planned in sends:
        sphere_send(sphere, planned)
    os._exit(7)


ACTS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        *(
            send,
            receive,
            begin_reading,
            hold,
            release,
            mode,
            ask,
            publish,
            subscribe,
            unsubscribe,
            create,
            pair,
            modify,
            ship,
            get,
        ),
        *(dossier, switch, load_tree, load_rules, load_flow, load_procedure, engine, sweep, compensate, orphan),
    )
}


def alone(url: str, name: str, arguments: Sequence[Any]) -> None:
    """Do one of these in a process of its own, which may be killed in it."""
    with opened(url, here=True) as room:
        ACTS[name](room, *arguments)

"""A program that does everything a room can do, and says before and after each step what it does.

``work`` prints a line ``begin VERB …`` before a step and ``ok VERB …`` once it was
acknowledged. A parent kills it at a fault point and compares what was acknowledged with what the room holds.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from tests.faults.here import evaluate_here

import postroom
from postroom.engine.datasource.delivery import Receipt, deliver
from postroom.engine.datasource.tail import Tail
from postroom.model.message import Draft
from postroom.model.types import Field, MessageType

PROGRAM = """
create queue requests kind basic mode persistent
create queue replies kind basic mode persistent
create queue later kind echo mode persistent
create queue broken kind basic mode persistent
create queue done kind basic mode persistent
create collection prices
create property id as xs:string fixed queue requests, replies value //id
create slicing pairs on id
create rule answer for requests errorqueue broken
if (//request) then (
  do enqueue <reply>{//id}<n>{xs:integer(//n)}</n></reply> into replies,
  do enqueue <late>{//id}</late> into later with target value "requests" with timeout value 0)
create rule finish for pairs
if (qs:slice()/late and qs:slice()/reply and not(qs:slice()/request[not(qs:slice()/reply)])) then (
  do enqueue <end>{qs:slicekey()}</end> into done,
  do reset)
"""
DESCRIPTION = """
01 INPUT-QUEUE (M) COMMAND LINE IS "true"
   02 SUB-QUEUE-1 (A)
   02 SUB-QUEUE-1 (B)
01 OUTPUT-QUEUE (OUT)
99
"""


def say(*words: str) -> None:
    print(*words, flush=True)


def work(url: str, folder: Path) -> None:
    description = folder / "tree.qdl"
    description.write_text(DESCRIPTION)
    with postroom.open(url) as room:
        room.load(description)
        for name in ("keep", "spare"):
            room.queues.create(name)
        room.queues.create("drop", keep_processed=False, password="pw")
        room.queues.set_password("keep", password="pw")
        room.definitions.define_type(MessageType("Note", (Field("Text"),)))
        for queue in ("keep", "drop"):
            sends(room, queue)
            receives(room, queue)
        room.queues.disable("drop", password="pw")
        room.queues.enable("drop", password="pw")
        room.queues.set_mode("spare", keep_processed=False)
        room.queues.remove("spare")
        effects(room)
        rules(room, folder)
        flows(room, folder)
        deliveries(room)
        hand_outs(room)
        leave_a_lock(room)
        room.journal.mend()
    say("finished")


def sends(room: postroom.Postroom, queue: str) -> None:
    for number in range(4):
        body = f"{queue}-{number}\nsecond line"
        say("begin", "send", queue, f"{queue}-{number}")
        say("ok", "send", room.send(queue, body).key, f"{queue}-{number}")
    bodies = [f"{queue}-many-{number}" for number in range(3)]
    say("begin", "send", queue, *bodies)
    say("ok", "send-many", *room.send_many(queue, bodies).keys)
    say("begin", "send", queue, f"{queue}-shared")
    shared = room.queues.distribute([queue, "OUT"], f"{queue}-shared")
    say("ok", "send", str(shared.deliveries[0].key), f"{queue}-shared")


def receives(room: postroom.Postroom, queue: str) -> None:
    for _ in range(2):
        say("begin", "receive", queue)
        received = room.receive(queue)
        assert received.message is not None
        say("ok", "receive", queue, received.message.key)
    for _ in range(2):
        say("begin", "segment", queue)
        received = room.receive(queue, segment=True)
        assert received.message is not None
        if received.end_of_message:
            say("ok", "receive", queue, received.message.key)


def effects(room: postroom.Postroom) -> None:
    room.send("INP_0000", "wakes the command")
    say("ok", "effect")
    (effect,) = room.engine.outbox()
    room.engine.retry(effect.id)
    payload = {"command": "true", "queue": "INP_0001", "path": "M/B"}
    unwanted = room.store.transact("send", lambda tx: tx.outbox.add("command", payload, "q"))
    room.engine.drop_effect(unwanted)
    room.run_until_idle()


def rules(room: postroom.Postroom, folder: Path) -> None:
    program, prices = folder / "program.demaq", folder / "prices.xml"
    program.write_text(PROGRAM)
    prices.write_text("<prices/>")
    room.load(program)
    room.definitions.load_collection("prices", prices)
    for number in range(6):
        say("begin", "request", f"r{number}")
        n = "x" if number == 3 else str(number)  # one of them breaks its rule
        sent = room.send("requests", f"<request><id>r{number}</id><n>{n}</n></request>", format="xml")
        say("ok", "request", sent.key, f"r{number}")
    evaluate_here(room).run_until_idle(step_messages=4)
    room.engine.sweep()


FLOW = """
domain trade
allow operator : disableArc, enableArc
space In : [n: int]
space All : [n: int]
space Big : [n: int]
space Doubled : [n: int]
arc all : In -> All merge
arc big : In -> Big select [n: n >= 0]
arc doubled : In -> Doubled transform [n: n] => [n: 2 * n]
"""


def flows(room: postroom.Postroom, folder: Path) -> None:
    """The graph changes while events are published; each phase is what holds of those behind it."""
    graph = folder / "trade.flow"
    graph.write_text(FLOW)
    room.load(graph)
    room.flows.add_principal("operator", "pw")
    operator, desk, guest = room.client("operator", "pw"), room.client("desk"), room.client("guest")
    numbers = iter(range(100))

    def publish(phase: str) -> None:
        number = next(numbers)
        say("begin", "event", str(number), phase)
        room.publish("In", {"n": number})
        say("ok", "event", str(number), phase)

    def publish_many(phase: str, count: int) -> None:
        some = [next(numbers) for _ in range(count)]
        for number in some:
            say("begin", "event", str(number), phase)
        room.flows.publish_many("In", [{"n": number} for number in some])
        for number in some:
            say("ok", "event", str(number), phase)

    publish("early")
    desk.subscribe("In", "[n: any]", durable=True)
    guest.subscribe("In")
    publish("subscribed")
    run = evaluate_here(room).run_until_idle
    run(step_messages=1)
    desk.disconnect()
    publish_many("away", 3)
    guest.unsubscribe()
    run(step_messages=2)
    publish("away")
    desk.connect()
    publish("back")
    operator.publish("meta:trade", {"DisableArc": {"arcName": "big"}})
    publish("disabled")
    operator.publish("meta:trade", {"EnableArc": {"arcName": "big"}})
    publish("enabled")
    room.flows.add_principal("leaver", "pw")
    room.flows.remove_principal("leaver")
    run(step_messages=2)


def deliveries(room: postroom.Postroom) -> None:
    """What the Spark data source does with a room: a batch that comes twice, and a look at how far a queue has got."""
    bodies = [f"batch-{number}" for number in range(3)]
    say("begin", "send", "keep", *bodies)
    for _ in range(2):
        deliver(
            room.store,
            "keep",
            Draft.many(bodies),
            lambda tx, queue, drafts: room._parts.verbs.enter(tx, (queue,), drafts),
            Receipt("query", 0),
        )
    say("ok", "send-many", *(message.key for message in room.queues.info("keep") if message.body in bodies))
    assert Tail(room.store, "keep").last(0) > 0


def hand_outs(room: postroom.Postroom) -> None:
    """Takes that wait for a confirmation: one that comes, and one that does not."""

    def fail(received: object) -> None:
        raise OSError("gone")

    say("begin", "send", "drop", "drop-handed")
    say("ok", "send", room.send("drop", "drop-handed").key, "drop-handed")
    with contextlib.suppress(OSError):
        room.receive("drop", deliver=fail)
    received = room.receive("drop", deliver=lambda received: None)
    assert received.message is not None
    say("ok", "receive", "drop", received.message.key)


def leave_a_lock(room: postroom.Postroom) -> None:
    room.receive("keep", segment=True)  # given back when the room closes

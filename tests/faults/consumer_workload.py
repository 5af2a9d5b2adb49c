"""A program that leases messages and ends each lease in another way, and says what it was told.

``work`` prints ``ok VERB KEY`` for each step that was acknowledged, and ``begin VERB KEY`` before it.
"""

from __future__ import annotations

import postroom
from postroom.model.message import Draft
from postroom.queues.leases.leased import LeasedMessage
from postroom.queues.leases.leasing import Ended
from postroom.queues.sending import Posting


def say(*words: str) -> None:
    print(*words, flush=True)


def work(url: str) -> None:
    with postroom.open(url) as room:
        for name in ("q", "kept"):
            room.queues.create(name)
        room.consumers.set_policy("q", attempts=2, lease=600)
        say("ok", "ready")
        for number in range(12):
            say("ok", "send", room.send("q", str(number)).key)
        ends(room)
        lapse(room)
        room.consumers.schedule("tick", "* * * * *", "kept", body="x")
        room.consumers.unschedule("tick")
        room.consumers.move("q", to="kept", limit=2)
        room.consumers.redrive("q.dead", limit=1)
    say("finished")


def ends(room: postroom.Postroom) -> None:
    for _ in range(2):  # the second lease of a queue takes the express way
        step(room, "done", lambda message: message.done())
    step(room, "release", lambda message: message.release())
    step(room, "delay", lambda message: message.release(delay=0.001))
    step(room, "extend", lambda message: (message.extend(600), message.done()))
    step(room, "fail", lambda message: message.fail("once"))
    step(room, "fail", lambda message: message.fail("twice"))
    step(room, "fail", lambda message: message.fail("at once", final=True))
    step(room, "done", lambda message: answered(room, message))
    several = room.receive_many("q", count=3)
    room.consumers.done_many(several)
    for message in several:
        say("ok", "done", message.key)


def lapse(room: postroom.Postroom) -> None:
    """The time of a lease is over, a message expires, and one is chosen by its properties."""
    say("ok", "send", room.send("q", "chosen", properties={"region": "EU"}).key)
    room.send("q", "expired", expires=0.000001)
    chosen = room.receive("q", lease=0.001, where="region = 'EU'").message
    assert chosen is not None
    say("begin", "lapse", chosen.key)
    again = room.receive("q", lease=600, wait=30, where="region = 'EU'").message
    assert again is not None
    assert (again.key, again.attempts) == (chosen.key, 2)
    again.done()
    say("ok", "done", again.key)


def answered(room: postroom.Postroom, message: LeasedMessage) -> None:
    """Its end and an answer in one commit."""
    answer = Posting(("kept",), Draft.of(f"answer to {message.key}"), None, None, "someone")
    (sent,) = room._parts.together.commit([answer], [Ended(message.lease)])
    say("ok", "send", sent.key)


def step(room: postroom.Postroom, verb: str, end: object) -> None:
    message = room.receive("q", lease=600).message
    assert isinstance(message, LeasedMessage)
    say("begin", verb, message.key)
    end(message)  # type: ignore[operator]
    say("ok", verb, message.key)

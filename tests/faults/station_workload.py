"""A program that does everything stations can do, over a control node and two others, and says what it does.

``work`` prints ``begin VERB …`` before a step and
``ok VERB …`` once it was acknowledged.
"""

from __future__ import annotations

from pathlib import Path

import postroom
from postroom.model.key import key_text
from postroom.stations.queries.node_answers import Part, read_part
from postroom.stations.queries.query import Scope, _Query
from postroom.stations.queries.reading import Plan
from postroom.stations.station import Station
from postroom.store.tables.tracking import MAILBOXES, STATIONS

FORM = """\
type NOTE
| To: ____________ KEY: ___________ |
| Number: ____ Text: ______________ |
field To string required
field KEY key automatic
field Number int once
field Text string free
"""
HOMES = {"ann": "north", "bob": "south", "cid": "control"}


def say(*words: object) -> None:
    print(*words, flush=True)


def work(folder: Path, urls: list[str]) -> None:
    file = folder / "note.form"
    file.write_text(FORM)
    with postroom.open(urls[0]) as room:
        room.load(file)
        for name, url in (("north", urls[1]), ("south", urls[2])):
            room.stations.add_node(name, url)
        for name, node in HOMES.items():
            room.stations.add(name, "pw", node)
            say("ok", "station", name)
        desks = [room.stations._station(name) for name in HOMES]
        number = 0
        for around in range(3):
            for desk in desks:
                number += 1
                say("begin", "create", number)
                key = desk.create("NOTE", To="x", Number=number, Text="first")
                say("ok", "create", number, key)
                number = more(desk, key, number)
            mail(desks)
            if around == 0:
                file.write_text(FORM + "index Text\n")
                room.load(file)
                nearly_out_of_keys(room)
            say("begin", "query")
            say("ok", "query", *query(room))
        desks[0].query("NOTE", into="kept")
        desks[0].drop_table("kept")
        room.stations.logout("ann", room.stations.login("ann", "pw"))
    say("finished")


def more(desk: Station, key: str, number: int) -> int:
    """Copies, another text, a dossier."""
    say("begin", "copy", number)
    say("ok", "copy", number, *desk.copy(key, 2))
    say("begin", "modify", key)
    desk.modify(key, Text="second")
    say("ok", "modify", key)
    desk.add_to_dossier("kept", key)
    return number


def mail(desks: list[Station]) -> None:
    """Everyone ships what they have to the next, and gets what has come."""
    for sender, receiver in zip(desks, [*desks[1:], desks[0]], strict=True):
        keys = [image.key for image in sender.messages()]
        say("begin", "ship", receiver.name, *keys)
        assert all(each.delivered for each in sender.ship(keys, receiver.name))
        say("ok", "ship", receiver.name, *keys)
    for desk in desks:
        say("begin", "get", desk.name)
        say("ok", "get", desk.name, *desk.get())


def nearly_out_of_keys(room: postroom.Postroom) -> None:
    """The next copies at north need a new block."""
    store = room._parts.network.store("north")

    def spend(tx: object) -> None:
        head = tx.keys.take(1)[0] // 100_000  # type: ignore[attr-defined]
        tx.session.run("UPDATE counters SET value = ? WHERE name = 'keys'", ((head + 1) * 100_000 - 1,))  # type: ignore[attr-defined]
        tx.keys._next = tx.keys._stop = 0  # type: ignore[attr-defined]

    store.transact("create", spend)


def query(room: postroom.Postroom, type: str = "NOTE") -> list[str]:
    """A global query, read here and not on Spark."""
    network = room._parts.network
    asked = _Query(network, Plan(type, ()), Scope(tuple(network.nodes()), None), room._parts.owner, 30)
    try:
        asked.open()
        parts = [Part(node, url, STATIONS) for node, url in network.ways().items()]
        parts.append(Part("control", network.url, MAILBOXES))
        late = [each.key for each in asked._met_nowhere()]
        rows = [row for part in parts for row in read_part(0, part, asked.number, asked.plan, None).rows()]
        assert not [row["error"] for row in rows if row["error"]]
        return [key_text(key) for key in [*late, *(row["key"] for row in rows)]]
    finally:
        asked.close()

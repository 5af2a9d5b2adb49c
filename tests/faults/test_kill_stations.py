"""Stations over three stores, killed or failed at every fault point: every message in one place, none lost."""

from __future__ import annotations

import signal
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from tests.conftest import Rooms
from tests.faults import forked, station_workload

import postroom
from postroom import faults
from postroom.errors import NodeDown
from postroom.model.key import key_text
from postroom.model.message import Stored
from postroom.model.place import place_of
from postroom.room import Postroom
from postroom.stations.mail import mail
from postroom.store.kernel.queues import LEAVING, MAILBOX, STATION, Queue
from postroom.store.kernel.transaction import Transaction

from .station_workload import HOMES, query

_LATER = ("create", "modify", "ship", "get", "arrive", "conclude", "query-open", "index")
POINTS = [
    (f"{label}.{moment}", nth)
    for label in faults.STATION_LABELS
    for moment in faults.MOMENTS
    for nth in ((1, 4) if label in _LATER else (1,))
]
LAYOUTS = {"sqlite": "sss", "postgres": "ppp", "across": "pss", "back": "spp"}


def run(urls: list[str], folder: Path, point: str, action: str, nth: int) -> str:
    folder.mkdir()
    child = forked.run(station_workload.work, folder, urls, folder=folder, fault=f"{point}:{action}:{nth}", seconds=180)
    if action == "kill":
        assert child.code == -signal.SIGKILL, f"{point} was not reached: {child.complaints[-2000:]}"
    elif point.startswith("query-close"):
        assert child.code in (0, 3), "the answer is there, and the query ends by the clock"
    else:
        assert child.code == 3, f"{point}: {child.said[-300:]}{child.complaints[-2000:]}"
    return child.said


def places(room: Postroom) -> list[tuple[str, str]]:
    """Every message of the network with its place, as the stores have it."""
    found = []
    for node in room._parts.network.nodes():
        try:
            store = room._parts.network.store(node)
        except NodeDown:  # it was being added
            assert not [name for name, home in room.stations.all().items() if home == node]
            continue
        for kind in (STATION, MAILBOX, LEAVING):
            for queue, stored in store.read(partial(_contents, kind)):
                assert len(stored) == queue.unprocessed, f"{queue.name} counts {queue.unprocessed}"
                assert all(each.sound for each in stored)
                found += [(key_text(each.key), place_of(queue.name)) for each in stored]
    return found


def _contents(kind: str, tx: Transaction) -> list[tuple[Queue, list[Stored]]]:
    return [(queue, tx.slices.queue(queue.name)) for queue in tx.queues.of_kind(kind)]


def check(urls: list[str], said: str) -> None:
    lines = [line.split() for line in said.splitlines()]
    with postroom.open(urls[0]) as room:
        before = places(room)
        resting = Counter(key for key, place in before if place != LEAVING)
        assert set(resting.values()) <= {1}, f"in two places: {resting}"
        for node in room._parts.network.nodes():
            if node == "control" or node in room.stations.all().values():
                mail.recover(room._parts.network, node)
        after = dict(places(room))
        assert len(after) == len(places(room)), "a message is in two places"
        assert set(after) == {key for key, _ in before}, "one came or went by the recovery"
        assert LEAVING not in after.values()
        check_history(lines, after)
        check_works(room, after)


def check_history(lines: list[list[str]], after: dict[str, str]) -> None:
    made: set[str] = set()
    held: dict[str, set[str]] = {}  # where a message may be, by the last that was acknowledged or begun
    for word, verb, *more in (line for line in lines if len(line) > 1):
        if (word, verb) in (("ok", "create"), ("ok", "copy")):
            made |= set(more[1:])
        elif (word, verb) == ("ok", "ship"):
            held |= {key: {f"mailbox:{more[0]}", more[0]} for key in more[1:]}
        elif (word, verb) == ("begin", "ship"):
            held |= {key: held.get(key, {after[key]}) | {f"mailbox:{more[0]}"} for key in more[1:]}
        elif (word, verb) == ("ok", "get"):
            held |= {key: {more[0]} for key in more[1:]}
        elif (word, verb) == ("ok", "query"):
            assert sorted(more) == sorted(made), "a query missed a message, or counted it twice"
    assert made <= set(after), f"lost: {made - set(after)}"
    for key, where in held.items():
        assert after[key] in where, f"{key} is in {after[key]}, not in {where}"


def check_works(room: Postroom, after: dict[str, str]) -> None:
    """The network goes on: every station has what the stores say, mail moves, a query finds all."""
    stations = room.stations.all()
    for name in stations:
        desk = room.stations._station(name)
        assert {image.key for image in desk.messages()} == {key for key, place in after.items() if place == name}
        desk.get()
        for dossier in desk.dossiers():
            assert {image.place for image in desk.dossier(dossier)} == {name}
    if len(stations) == len(HOMES):
        key = room.stations._station("ann").create("NOTE", To="bob")
        room.stations._station("ann").ship(key, "bob")
        assert key in room.stations._station("bob").get()
        assert sorted(query(room)) == sorted([*after, key])
        assert [image.key for image in room.stations._station("bob").query("NOTE", To="bob")] == [key]


def layout(kinds: str, many: int, rooms: Rooms) -> list[list[str]]:
    columns = [rooms("sqlite" if kind == "s" else "postgres", many) for kind in kinds]
    return [list(urls) for urls in zip(*columns, strict=True)]


RUNS = [(layout, action) for layout in LAYOUTS for action in ("kill", "raise")]
#: All points take minutes in each kind of run; between them the kinds have every third one.
SOME = [pytest.param(*run, POINTS[3 * at :: 24], id="-".join(run)) for at, run in enumerate(RUNS)]
ALL = [pytest.param(*run, POINTS, id="-".join([*run, "all"]), marks=pytest.mark.slow) for run in RUNS]


@pytest.mark.parametrize(("kinds", "action", "points"), [*SOME, *ALL])
def test_at_every_fault_point_each_message_is_in_one_place(
    kinds: str, action: str, points: list[tuple[str, int]], tmp_path: Path, rooms: Rooms
) -> None:
    urls = layout(LAYOUTS[kinds], len(points), rooms)

    def one(number: int, point: str, nth: int) -> None:
        check(urls[number], run(urls[number], tmp_path / str(number), point, action, nth))

    forked.at_each(points, action, one)


def test_the_check_itself_can_fail(tmp_path: Path) -> None:
    """A gate that cannot close is no gate."""
    urls = [str(tmp_path / name) for name in ("c.db", "n.db", "s.db")]
    done = forked.run(station_workload.work, tmp_path, urls, folder=tmp_path, seconds=60)
    assert done.said.endswith("finished\n"), done.complaints
    check(urls, done.said)
    with pytest.raises(AssertionError, match="lost"):
        check(urls, done.said + "ok create 99 00077.00001\n")
    with pytest.raises(AssertionError, match="missed a message"):
        check(urls, done.said + "ok query 00002.00001\n")

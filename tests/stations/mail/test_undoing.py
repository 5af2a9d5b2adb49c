"""Undo at other nodes: what procedures made there of a sphere's message is withdrawn, or named; nothing is left."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Urls
from tests.faults import forked
from tests.faults.afar_workload import work, working
from tests.spheres.invariants import check
from tests.stations.procedures.office import load
from tests.stations.world import CLAIM, desk, network

from postroom import faults
from postroom.errors import QueueUnknown, SphereOver
from postroom.room import Postroom
from postroom.stations.places.names import database, mailbox
from postroom.stations.procedures import interpreter, ties
from postroom.store.kernel.queues import SYSTEM_ERRORS

PROCEDURES = """\
procedure copy at South
  precondition pre : CLAIM
    Amount: < 100
  destination here on pre copy 0 leave
  destination there on pre copy 1 ship North
  destination too on pre copy 2 leave
procedure refuse at South
  precondition pre : CLAIM
    Amount: >= 100
  destination here on pre copy 0 abort "too much"
"""
NODE = "branch"


@pytest.fixture(params=["ss", "pp", "sp"])
def nodes(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """The stores of a control node and another one, each on SQLite or PostgreSQL."""

    def url(number: int, kind: str) -> str:
        if kind == "s":
            return str(tmp_path / f"node{number}.db")
        urls: Urls = request.getfixturevalue("urls")
        return urls()

    control, branch = [url(number, kind) for number, kind in enumerate(request.param)]
    with network(control, tmp_path, {NODE: branch}, {"North": "control", "South": NODE}, CLAIM) as opened:
        load(opened, tmp_path, PROCEDURES)
    return control, branch


@pytest.fixture
def room(nodes: tuple[str, str]) -> Iterator[Postroom]:
    with working(nodes[0]) as opened:
        yield opened
        check(opened)
        assert opened.journal.verify().differences == ()


def claim(room: Postroom, id: str, amount: int = 7) -> None:
    """A sphere whose message a procedure at the other node has handled."""
    sphere = room.sphere(id)
    sphere.mail(desk(room, "North"), "South", "CLAIM", {"Claimant": "Ann", "Amount": amount})
    room.run_until_idle()


def outcomes(room: Postroom, id: str = "s") -> list[str]:
    return sorted(send.outcome for send in room.spheres.show(id).sends if send.maker == "procedure copy")


def at_south(room: Postroom) -> list[str]:
    """What is in the station's database at the other node."""
    store = room._parts.network.store(NODE)
    return [each.body for each in store.read(lambda tx: tx.messages.next_of(database("South"), 0, 100))]


def in_box(room: Postroom) -> int:
    return len(room.store.read(lambda tx: tx.messages.next_of(mailbox("North"), 0, 100)))


def errors(room: Postroom) -> list[str]:
    with suppress(QueueUnknown):
        return [message.body for message in room.queues.info(SYSTEM_ERRORS)]
    return []


def test_what_was_made_at_another_node_is_withdrawn_there_and_in_mailboxes(room: Postroom) -> None:
    claim(room, "s")
    assert (len(at_south(room)), in_box(room)) == (2, 1)
    room.spheres.abort("s")
    assert room.spheres.show("s").sphere.state == "ABORTED"
    assert (len(at_south(room)), in_box(room)) == (1, 0), "the message itself had been taken by the station"
    assert outcomes(room) == ["withdrawn", "withdrawn"]
    assert errors(room) == []


def test_what_someone_has_touched_or_fetched_is_named(room: Postroom) -> None:
    claim(room, "s")
    south, north = desk(room, "South"), desk(room, "North")
    made = next(image.key for image in south.query("CLAIM") if room.trace(image.key)[0].verb == "create")
    south.modify(made, {"Note": "seen"})
    (got,) = north.get()
    room.spheres.abort("s")
    assert outcomes(room) == ["stands", "stands"]
    told = errors(room)
    assert len(told) == 2
    assert all("procedure copy made it, someone has taken it" in each for each in told)
    assert [key for key in (made, got) if not any(f'key="{key}"' in each for each in told)] == []
    assert len(at_south(room)) == 2


def test_on_commit_all_of_it_stays_and_nothing_is_remembered_there(room: Postroom) -> None:
    sphere = room.sphere("s")
    sphere.mail(desk(room, "North"), "South", "CLAIM", {"Claimant": "Ann", "Amount": 7})
    sphere.require("South", processing_within=60)
    room.run_until_idle()
    sphere.commit()
    assert (len(at_south(room)), in_box(room)) == (2, 1)
    room.engine.sweep()
    assert room._parts.network.store(NODE).read(lambda tx: tx.afar.spheres("", 10)) == []


def test_what_is_made_after_the_end_disappears_at_once(room: Postroom) -> None:
    sphere = room.sphere("s")
    sphere.mail(desk(room, "North"), "South", "CLAIM", {"Claimant": "Ann", "Amount": 7})
    (key,) = desk(room, "South").get()
    sphere.abort()
    room.run_until_idle()
    assert (len(at_south(room)), in_box(room)) == (1, 0)
    assert room.trace(key)[-1].verb == "leave", "the procedure has run"
    assert errors(room) == []


def test_a_node_that_does_not_answer_parks_the_end(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    claim(room, "s")
    store = room._parts.network._open[NODE]
    way = type(room._parts.network)._way
    monkeypatch.setattr(type(room._parts.network), "_way", staticmethod(lambda node: way(node) + "-gone"))
    assert room.spheres.abort("s") == "ABORTING"
    assert [(send.outcome, send.recipient) for send in room.spheres.show("s").sends if send.when == "node"] == [
        ("parked", NODE)
    ]
    assert in_box(room) == 0, "what can be undone is"
    monkeypatch.undo()
    room._parts.network._open[NODE] = store
    assert room.spheres.compensate().compensated == 1
    assert (outcomes(room), len(at_south(room))) == (["withdrawn", "withdrawn"], 1)


def test_a_procedure_of_another_node_votes(room: Postroom) -> None:
    claim(room, "s", 700)
    room.spheres.compensate()
    told = room.spheres.show("s").sphere
    assert (told.state, told.reason) == ("ABORTED", "too much")
    with pytest.raises(SphereOver):
        room.spheres.abort("s")


def test_an_abort_between_the_two_commits_of_a_step_is_known_to_the_second(
    room: Postroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ties.announce

    def announce(*about: Any) -> ties.Ties:
        found = before(*about)
        if found.bound:
            assert found.failed == set()
            assert room.spheres.abort("s") == "ABORTED"
        return found

    monkeypatch.setattr(interpreter, "announce", announce)
    claim(room, "s")
    assert (len(at_south(room)), in_box(room), errors(room)) == (1, 0, [])


def test_a_node_that_was_removed_is_named(room: Postroom) -> None:
    claim(room, "s")
    room.store.transact("node", lambda tx: tx.nodes.remove(NODE))
    assert room.spheres.abort("s") == "ABORTED"
    (told,) = errors(room)
    assert f"at node {NODE}, which was removed" in told


SLICE = [("procedure.committed", 2), ("arrive.begun", 2), ("compensate.committed", 1)]
LABELS = [
    *(
        ("sphere-send", 2),
        ("procedure", 1),
        ("procedure", 2),
        ("arrive", 1),
        ("arrive", 2),
        ("conclude", 1),
        ("conclude", 2),
    ),
    *(("acknowledge", 1), ("compensate", 1), ("compensate", 2)),
]
ALL = [(f"{label}.{moment}", nth) for label, nth in LABELS for moment in faults.MOMENTS]


@pytest.mark.parametrize(
    ("point", "nth"), [*SLICE, *(pytest.param(*each, marks=pytest.mark.slow) for each in ALL if each not in SLICE)]
)
def test_a_crash_anywhere_leaves_nothing(nodes: tuple[str, str], tmp_path: Path, point: str, nth: int) -> None:
    child = forked.run(work, nodes[0], folder=tmp_path, fault=f"{point}:kill:{nth}")
    assert (child.said, child.code) == ("begun\n", -signal.SIGKILL), child.complaints[-2000:]
    with working(nodes[0]) as room:
        room.spheres.compensate()
        room.run_until_idle()
        room.spheres.compensate()
        assert room.spheres.show("s").sphere.state == "ABORTED"
        assert (len(at_south(room)), in_box(room)) in [(1, 0), (0, 0)]
        assert set(outcomes(room)) <= {"withdrawn"}
        assert errors(room) == []
        check(room, over=True)
        assert room.journal.verify().differences == ()

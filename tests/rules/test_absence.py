"""Rules that fire when something has not come: in time, after a restart, once, and not when it came."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import pytest
from tests.rules.conftest import without_spark

import postroom
from postroom.errors import ProgramInvalid
from postroom.room import Postroom
from postroom.room.loading import read

QUEUES = "create queue a kind basic mode persistent create queue b kind basic mode persistent\n"
PROGRAM = f"""{QUEUES}create property id as xs:string queue a value //id create slicing s on id
create rule remind for s
unless (qs:slice()/paid) within "P14D"
if (/bill) then do enqueue <remind>{{//id, qs:slicekey()}}</remind> into b
create rule close for s if (/close) then do reset
"""
SECOND = 1_000_000
DAY = 86_400 * SECOND


class World:
    """A room with a clock of its own, which may be closed and opened again."""

    def __init__(self, url: str, folder: Path, program: str = PROGRAM) -> None:
        self.url = url
        self.now = 1_800_000_000 * SECOND
        self.room = self.open()
        (folder / "p.demaq").write_text(program)
        self.room.load(folder / "p.demaq")

    def open(self) -> Postroom:
        return without_spark(postroom.open(self.url, clock=lambda: self.now))

    def again(self) -> None:
        self.room.close()
        self.room = self.open()

    def send(self, *said: str, queue: str = "a", run: bool = True) -> None:
        for what in said:
            name, _, number = what.partition(" ")
            self.room.send(queue, f"<{name}><id>{number}</id></{name}>", format="xml")
        if run:
            self.room.run_until_idle()

    def after(self, microseconds: int, run: bool = True) -> list[str]:
        self.now += microseconds
        if run:
            self.room.run_until_idle()
        found = chain(self.room.queues.history("b"), self.room.queues.info("b"))
        return [message.body for message in sorted(found, key=lambda message: message.key)]


Make = Callable[..., World]


@pytest.fixture
def make(url: str, tmp_path: Path) -> Iterator[Make]:
    made: list[World] = []

    def world(program: str = PROGRAM) -> World:
        made.append(World(url, tmp_path, program))
        return made[-1]

    yield world
    for each in made:
        each.room.close()


@pytest.fixture
def world(make: Make) -> World:
    return make()


def reminder(number: int) -> str:
    return f"<remind><id>{number}</id>{number}</remind>"


def test_it_fires_when_its_time_is_over_and_once(world: World) -> None:
    world.send("bill 1", "other 2")
    assert world.after(14 * DAY - SECOND) == []
    assert world.after(SECOND) == [reminder(1)]
    assert world.after(30 * DAY) == [reminder(1)]


def test_it_does_not_fire_if_what_must_come_has_come(world: World) -> None:
    world.send("bill 1", "bill 2")
    world.after(13 * DAY)
    world.send("paid 1")
    assert world.after(2 * DAY) == [reminder(2)]


def test_a_restart_changes_nothing_and_what_came_too_late_came_too_late(world: World) -> None:
    world.send("bill 1", "bill 2", "bill 3", run=False)
    world.now += 5 * DAY  # the time counts from when a message came, not from when it was looked at
    world.room.run_until_idle()
    world.again()
    world.now += 9 * DAY - 1
    world.send("paid 1", run=False)
    world.now += 2
    world.send("paid 2", run=False)
    world.again()
    world.now += 3 * DAY
    assert world.after(0) == [reminder(2), reminder(3)]


def test_what_is_sent_at_the_very_moment_is_in_time(world: World) -> None:
    world.send("bill 1")
    world.now += 14 * DAY
    world.send("paid 1", run=False)
    assert world.after(DAY) == []


def test_a_slice_that_was_reset_is_over(world: World) -> None:
    world.send("bill 1", "bill 2")
    world.after(DAY)
    world.send("close 1")
    world.after(DAY)
    world.send("bill 1")
    assert world.after(12 * DAY) == [reminder(2)], "of the first life nothing is missing"
    assert world.after(2 * DAY) == [reminder(2), reminder(1)]


def test_of_a_queue_by_a_moment_and_nothing_is_swept_that_will_be_asked_for(make: Make) -> None:
    world = make(
        f"{QUEUES}create queue c kind basic mode persistent\n"
        "create rule seen for c if (/paid) then do enqueue <seen>{//id}</seen> into b\n"
        "create rule late for a\n"
        'unless (qs:queue("c")[paid/id = qs:message()//id]) by (xs:dateTime("2027-01-15T08:00:00Z") + '
        "xs:dayTimeDuration('P10D'))\n"
        "if (/order) then (do enqueue <late>{//id}</late> into b, do enqueue <late>again</late> into b)",
    )
    world.send("order 1", "order 2")
    world.send("paid 1", queue="c")
    world.room.engine.sweep()
    assert world.after(9 * DAY) == ["<seen><id>1</id></seen>"]
    assert world.after(2 * DAY) == ["<seen><id>1</id></seen>", "<late><id>2</id></late>", "<late>again</late>"]
    assert world.room.engine.sweep() > 0, "now nobody asks any more"


def test_silence_after_a_message(make: Make) -> None:
    program = (
        f"{QUEUES}create property from as xs:string queue a value //id create slicing s on from\n"
        'create rule silent for s unless (exists(qs:slice()[. >> qs:slice()[1]])) within "PT5M"\n'
        "if (/beat) then do enqueue <silent>{qs:slicekey()}</silent> into b"
    )
    world = make(program)
    world.send("beat 1", "beat 2")
    world.after(60 * SECOND)
    world.send("beat 1")
    assert world.after(241 * SECOND) == ["<silent>2</silent>"]


def test_a_deadline_that_is_none_is_an_error_of_the_message(make: Make) -> None:
    world = make(PROGRAM.replace('within "P14D"', "within (//soon)"))
    world.send("bill 1")
    (error,) = [message.body for message in world.room.queues.info("postroom-errors")]
    assert "<code>PR0008</code>" in error
    assert "<rule>remind</rule>" in error


def test_it_is_printed_and_loaded_again_with_its_queues(world: World, tmp_path: Path) -> None:
    world.send("bill 1")
    printed = world.room.definitions.files()
    assert b'unless (qs:slice()/paid) within ("P14D")' in printed["p.demaq"]
    assert b"remind-waiting" not in printed["p.demaq"]
    (tmp_path / "p.demaq").write_bytes(printed["p.demaq"])
    world.room.load(tmp_path / "p.demaq")
    assert world.after(14 * DAY) == [reminder(1)]
    assert "slice s by property id" in world.room.definitions.explain("remind").reads


REFUSED = [
    ("unless () within 'P1D' if (/x) then do enqueue <y/> into b", "a condition in parentheses"),
    ("unless (1) if (/x) then do enqueue <y/> into b", "within or by"),
    ("unless (1) within 5 if (/x) then do enqueue <y/> into b", "a text in quotes"),
    ("unless (1) within 'P1D' if (/x) then do enqueue <y/> into b else ()", "has no else"),
    ("unless (1) within 'P1D' (if (/x) then do enqueue <y/> into b)", "begins with if"),
    ("unless (doc('x')) within 'P1D' if (/x) then do enqueue <y/> into b", "reaches outside"),
    ("unless (qs:queue()) within 'P1D' if (/x) then do enqueue <y/> into b", "name the queue"),
    ("unless (qs:slice()) within 'P1D' if (/x) then do enqueue <y/> into b", "is for rules on slicings"),
    ("unless ($qs:m) within 'P1D' if (/x) then do enqueue <y/> into b", "a variable with a prefix"),
    ("unless (1) within (1 +) if (/x) then do enqueue <y/> into b", "is expected here"),
    ("unless ($none) within 'P1D' if (/x) then do enqueue <y/> into b", "$none"),
]


@pytest.mark.parametrize(("text", "what"), REFUSED)
def test_what_is_refused(tmp_path: Path, text: str, what: str) -> None:
    file = tmp_path / "p.demaq"
    file.write_text(f"{QUEUES}create rule r for a\n{text}")
    with pytest.raises(ProgramInvalid) as refusal:
        read([file]).check(None)
    assert any(what in str(each) for each in refusal.value.facts["problems"]), refusal.value.facts["problems"]


def test_an_error_when_it_fires_is_one_of_the_queue_that_it_watches(make: Make) -> None:
    """It was nobody's but the system's: the queue in which messages wait has no error queue of its own."""
    world = make(
        "create queue a kind basic mode persistent errorqueue b create queue b kind basic mode persistent\n"
        "create rule r for a unless (1 idiv count(/none)) within (1) if (/m) then do enqueue <o/> into b\n"
        "create rule s for a unless (false()) within (1) if (/m) then do enqueue <o>{xs:date('x')}</o> into a\n"
        "create rule t for b errorqueue b unless (1 idiv 0) within (1) if (/error) then do enqueue <o/> into a"
    )
    world.send("m 1")
    told = "".join(world.after(2 * SECOND))
    assert [told.count(f"<code>{code}</code>") for code in ("FOAR0001", "FORG0001")] == [1, 1]
    assert told == "".join(world.after(9 * SECOND)), "an error in handling errors is not another of the same"
    assert len(list(world.room.queues.info("postroom-errors"))) == 2

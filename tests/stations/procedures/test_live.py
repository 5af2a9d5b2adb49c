"""People at work beside the engine: whatever they move or change meanwhile, each working set is handled once."""

from __future__ import annotations

import random
import threading
from collections import Counter
from pathlib import Path

import postroom
from postroom.errors import MessageElsewhere, StoreBusy
from postroom.stations.procedures.evaluation import evaluate_here

from .office import about, office
from .test_interpreter import JOIN

PEOPLE, PAIRS = 3, 40


def person(url: str, number: int, said: list[tuple[int, str, str]], failed: list[BaseException]) -> None:
    """Creates pairs of messages, writes on them, ships them away and brings them back."""
    draw = random.Random(number)
    try:
        with postroom.open(url) as room:
            ann, cid = room.stations._station("ann"), room.stations._station("cid")
            for place in range(PAIRS):
                no = number * 1_000 + place
                order = (ann if draw.random() < 0.5 else cid).create("ORDER", No=no)
                bill = ann.create("BILL", No=no, Amount=str(no))
                if draw.random() < 0.5:
                    disturb(room, draw, order)
                if room.journal.locate(order) == "cid":
                    cid.ship(order, "ann")
                said.append((no, order, bill))
    except BaseException as error:
        failed.append(error)


def disturb(room: postroom.Postroom, draw: random.Random, order: str) -> None:
    ann, cid = room.stations._station("ann"), room.stations._station("cid")
    try:
        if draw.random() < 0.5:
            ann.modify(order, Team=f"team {draw.random()}")
        else:
            ann.ship(order, "cid")
            cid.get()
            cid.ship(order, "ann")
    except (MessageElsewhere, StoreBusy):  # a procedure, or someone who gets all mail, was faster
        pass


def test_people_and_procedures_at_once(url: str, tmp_path: Path) -> None:
    said: list[tuple[int, str, str]] = []
    failed: list[BaseException] = []
    with office(url, tmp_path, JOIN) as room:
        people = [threading.Thread(target=person, args=(url, each, said, failed)) for each in range(PEOPLE)]
        for each in people:
            each.start()
        while any(each.is_alive() for each in people):
            room.run_until_idle(step_messages=5)
        assert not failed, failed
        cid = room.stations._station("cid")
        for image in [*cid.messages("ORDER")]:
            cid.ship(image.key, "ann")
        room.run_until_idle()
        cid.get()
        for image in [*cid.messages("ORDER")]:
            cid.ship(image.key, "ann")
        room.run_until_idle()
        assert len(said) == PEOPLE * PAIRS
        for no, order, bill in said:
            assert room.journal.locate(order) == "mailbox:bob", (no, order, room.journal.locate(order))
            (shipped,) = [event for event in room.trace(order) if event.by == "procedure join"]
            assert shipped.detail is not None
            assert shipped.detail["with"] == [bill]
            assert Counter(event.by for event in room.trace(bill))["procedure join"] == 1
            assert about(room, bill).handled == ("join",)
        assert room.stations.waiting() == []


def test_an_engine_that_is_replaced_half_way_doubles_nothing(url: str, tmp_path: Path) -> None:
    with office(url, tmp_path, JOIN) as room:
        ann = room.stations._station("ann")
        orders = ann.create_many("ORDER", [{"No": n} for n in range(30)])
        ann.create_many("BILL", [{"No": n} for n in range(30)])
        with postroom.open(url) as other:
            other._parts.interpreter.evaluate = evaluate_here
            for _ in range(30):  # two engines in turns, each stopped after a step
                for each in (room, other):
                    each._parts.runner.run(
                        spark=lambda: None,  # type: ignore[arg-type,return-value]
                        until_idle=True,
                        step_messages=2,
                        progress=lambda _, each=each: each.stop(),  # type: ignore[misc]
                    )
        assert {room.journal.locate(key) for key in orders} == {"mailbox:bob"}
        assert all(len(room.trace(key)) == 2 for key in orders)

"""Chunks on their way to a worker and back."""

from __future__ import annotations

from pathlib import Path

import postroom
from postroom.engine.effects import Arrival, Document, Enqueue, Granule
from postroom.rules.stage import evaluated, packed, together, unpacked

PROGRAM = """
create queue a kind basic mode persistent
create queue b kind basic mode persistent
create property id as xs:string queue a, b value //id
create slicing s on id
create rule r for s if (qs:slice()/x) then do enqueue <y>{//id}{count(qs:slice())}</y> into b
"""


def arrival(order: int, id: str, queue: str = "a") -> Arrival:
    body = f"<x><id>{id}</id></x>"
    reads = ((Granule("slice", "s", id),),)
    return Arrival(order, queue, 100 + order, "xml", None, body, f'{{"id":"{id}"}}', 0, None, reads)


def test_a_chunk_comes_back_as_effects_that_saw_each_other(tmp_path: Path) -> None:
    (tmp_path / "p.demaq").write_text(PROGRAM)
    with postroom.open(tmp_path / "r.db") as room:
        room.load(tmp_path / "p.demaq")
        plan = room.store.read(room._programs.plan)
    base = {Granule("slice", "s", "1"): [Document(100, "xml", None, "<x><id>1</id></x>")]}
    chunk = [arrival(0, "1"), arrival(1, "1"), arrival(2, "2")]
    effects, unsettled, orders = unpacked(evaluated(plan, packed(chunk, base, {})))
    assert (unsettled, orders) == (set(), [0, 1, 2])
    (first,), (second,) = effects[0], effects[1]
    assert isinstance(first, Enqueue)
    assert isinstance(second, Enqueue)
    assert (first.body, second.body) == ("<y><id>1</id>1</y>", "<y><id>1</id>2</y>")
    assert first.slices == (("s", "1"),)
    assert 2 not in effects  # its slice is empty


def test_messages_that_look_at_one_slice_travel_together() -> None:
    arrivals = [arrival(order, str(order % 3)) for order in range(30)]
    chunks = together(arrivals, 3)
    assert sorted(len(chunk) for chunk in chunks) == [10, 10, 10]
    for chunk in chunks:
        assert len({each.reads for each in chunk}) == 1
        assert [each.order for each in chunk] == sorted(each.order for each in chunk)
    assert together(arrivals, 1) == [arrivals]

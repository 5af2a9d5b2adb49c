"""Rules in a worker: a packed chunk is answered for each of its messages."""

from __future__ import annotations

from postroom.engine.steps.effects import Arrival, Change, Document, Enqueue, Granule
from postroom.rules.compilation.compiler import compiled
from postroom.rules.compilation.plan import Plan
from postroom.rules.evaluation.chunks import packed, unpacked
from postroom.rules.evaluation.worker import RulesTask
from postroom.rules.language.definitions import Program
from postroom.rules.language.reader import parse

SLICE, ENTRY, QUEUE = Granule("slice", "s", "k"), Granule("index", "b x", "v"), Granule("queue", "b")


def arrival(order: int, *granules: Granule, body: str = "<x/>", failure: str | None = None) -> Arrival:
    reads = tuple((each,) for each in granules)
    return Arrival(order, "a", 100_001 + order, "xml", None, body, "{}", 5, None, reads, failure)


def plan(text: str = "create rule r for a if (/x) then do enqueue <y>{string(/x)}</y> into b") -> Plan:
    queues = "create queue a kind basic mode persistent create queue b kind basic mode persistent\n"
    return compiled(Program(parse(queues + text, "f.demaq")), 7, "m")


def evaluated(plan: Plan, chunk: bytes) -> bytes:
    task = RulesTask(plan)
    return task.answer(task.read(chunk), None, len(chunk))


def test_evaluation_of_a_packed_chunk_answers_for_each_message() -> None:
    chunk = packed([arrival(4, body="<x>1</x>"), arrival(5, body="<n/>"), arrival(6, failure="too long")], {}, {})
    effects, unsettled, orders = unpacked(evaluated(plan(), chunk))
    assert orders == [4, 5, 6]
    assert unsettled == set()
    assert {order: made[0].queue for order, made in effects.items() if isinstance(made[0], Enqueue)} == {
        4: "b",
        6: "postroom-errors",
    }
    (first,) = effects[4]
    assert first == Enqueue("r", "b", "xml", None, '{"rule":"r"}', "<y>1</y>")


def test_messages_of_a_chunk_see_what_earlier_ones_have_made() -> None:
    text = "create rule r for a if (/x) then do enqueue <y>{count(qs:queue('b'))}</y> into b"
    chunk = packed([arrival(number, QUEUE) for number in range(4)], {QUEUE: [Document(1, "xml", None, "<y/>", 1)]}, {})
    effects, unsettled, _ = unpacked(evaluated(plan(text), chunk))
    assert unsettled == set()
    assert [effects[number][0].body for number in range(4)] == [  # type: ignore[union-attr]
        "<y>1</y>",
        "<y>2</y>",
        "<y>3</y>",
        "<y>4</y>",
    ]


def test_what_others_make_is_seen_by_those_behind_them() -> None:
    text = "create rule r for a if (/x) then do enqueue <y>{count(qs:queue('b'))}</y> into b"
    made = Document(0, "xml", None, "<y/>")
    chunk = packed([arrival(0, QUEUE), arrival(5, QUEUE)], {QUEUE: []}, {QUEUE: [Change(3, made), Change(7, made)]})
    effects, _, _ = unpacked(evaluated(plan(text), chunk))
    assert [effects[number][0].body for number in (0, 5)] == ["<y>0</y>", "<y>2</y>"]  # type: ignore[union-attr]

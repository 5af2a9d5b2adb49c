"""Few messages travel as JSON, and say what they say in Arrow."""

from __future__ import annotations

from postroom.engine.steps.effects import Arrival, Change, Document, Enqueue, Granule, ResetSlice
from postroom.rules.evaluation import chunks, small_chunks

SLICE, QUEUE = Granule("slice", "by", 'ä"1'), Granule("queue", "q")
ARRIVALS = [
    Arrival(3, "in", 7, "xml", "T", "<m>\U0001f600 \\ \u2028</m>", '{"p":1}', 2**62, 5, ((SLICE,), (QUEUE, SLICE))),
    Arrival(4, "in", 8, "text", None, "", "{}", 0, None, (), "it killed its worker"),
]
BASE = {SLICE: [Document(1, "xml", None, "<a/>", 2)], QUEUE: []}
KNOWN = {SLICE: [Change(1, Document(0, "json", "T", "{}", 1)), Change(2, None)]}
EFFECTS = {
    3: (
        Enqueue("r", "q", "xml", None, "{}", "<b/>"),
        Enqueue("r", "q", "json", "T", "{}", "[]", (("by", "1"),), (("i", "v"),), 250, failed=True),
        Enqueue("r", "q", "text", None, "{}", "x", compensates=True),
        ResetSlice("r", "by", "1"),
    ),
    4: (),
}


def test_a_chunk_arrives_as_it_was_in_both_forms() -> None:
    found = small_chunks.chunk_of(small_chunks.packed(ARRIVALS, BASE, KNOWN))
    assert found.arrivals == ARRIVALS
    assert (dict(found.base), dict(found.given)) == (BASE, KNOWN)
    assert found == chunks.chunk_of(chunks.packed(ARRIVALS, BASE, KNOWN))


def test_an_answer_comes_back_as_it_was_in_both_forms() -> None:
    found = small_chunks.settled(small_chunks.answer_of([3, 4, 9], EFFECTS, {9}))
    assert found == EFFECTS == chunks.settled(chunks.answer_of([3, 4, 9], EFFECTS, {9}))

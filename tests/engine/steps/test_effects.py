"""Pending actions, and the sets that they change."""

from __future__ import annotations

from postroom.engine.steps.effects import PLAIN, Arrival, Enqueue, Granule, ResetSlice, changes

ENQUEUE = Enqueue("r", "q", "xml", None, "{}", "<m/>")


def test_a_new_message_changes_its_queue_its_slices_and_its_entries() -> None:
    placed = ENQUEUE._replace(slices=(("s", "1"),), entries=(("i", "x"),))
    found = dict(changes(7, (ResetSlice("r", "s", "2"), placed)))
    assert list(found) == [
        Granule("slice", "s", "2"),
        Granule("queue", "q"),
        Granule("slice", "s", "1"),
        Granule("index", "i", "x"),
    ]
    assert found[Granule("slice", "s", "2")].document is None
    document = found[Granule("queue", "q")].document
    assert document is not None
    assert (document.key, document.body, document.place) == (0, "<m/>", 1)
    assert {change.at for change in found.values()} == {7}


def test_what_undoes_is_seen_by_nobody() -> None:
    assert list(changes(0, (ENQUEUE._replace(compensates=True),))) == []


def test_an_arrival_knows_all_that_it_looks_at_and_may_fail() -> None:
    one, other = Granule("queue", "a"), Granule("slice", "s", "k")
    arrival = Arrival(0, "q", 1, "xml", None, "<m/>", "{}", 0, None, ((one,), (other, one)))
    assert arrival.granules == (one, other, one)
    assert arrival.failing("why").failure == "why"


def test_a_plain_message_ends_with_what_is_usual() -> None:
    assert (*ENQUEUE[:6], *PLAIN) == ENQUEUE

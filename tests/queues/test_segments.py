"""Segments that do not depend on line ends, and portions for areas that are short."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.errors import AreaShort, ArgumentInvalid
from postroom.queues.segments import Area, End, Segments, composed
from postroom.room import Postroom

TEXTS = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12), min_size=1, max_size=6)


def received(room: Postroom, *queue: str, segment: bool = False, area: int | None = None) -> list[tuple[str, str, int]]:
    """Portion after portion up to the end of a message."""
    found = []
    while True:
        one = room.receive(*queue, segment=segment, area=area)
        assert one.message is not None
        assert one.portion is not None
        found.append((one.message.body, one.portion.end.value, one.portion.current_char))
        if one.end_of_message:
            return found


def test_segments_keep_their_line_ends_and_their_emptiness(room: Postroom) -> None:
    room.queues.create("q")
    room.queues.send_segments("q", ["a\nb", "", "c"], group=True)
    assert room.peek("q").messages[0].properties == {"segments": "3,0,1", "end": "EGI"}
    assert received(room, "q", segment=True) == [("a\nb", "1", 3), ("", "1", 3), ("c", "3", 4)]
    room.send("q", "first\nsecond\n")
    assert received(room, "q", segment=True) == [("first", "1", 5), ("second", "2", 12)]


def test_a_short_area_gets_a_message_in_portions_and_the_queue_stays_locked(room: Postroom) -> None:
    room.queues.create("q")
    room.queues.send_segments("q", ["abcde", "fg"])
    room.send("q", "next")
    assert received(room, "q", area=3) == [("abc", "0", 3), ("def", "0", 6), ("g", "2", 7)]
    assert received(room, "q", area=3, segment=True) == [("nex", "0", 3), ("t", "2", 4)]
    room.queues.send_segments("q", ["abcde", "fg"])
    portions = received(room, "q", area=3, segment=True)
    assert portions == [("abc", "0", 3), ("de", "1", 5), ("fg", "2", 7)]
    assert room.journal.verify().differences == ()


def test_the_rest_of_a_message_in_a_short_area_is_not_lost_with_its_reader(sqlite_url: str) -> None:
    import postroom

    with postroom.open(sqlite_url) as room:
        room.queues.create("q")
        room.send("q", "abcdef")
        assert room.receive("q", area=4).message.body == "abcd"  # type: ignore[union-attr]
    with postroom.open(sqlite_url) as room:
        assert received(room, "q", area=4) == [("abcd", "0", 4), ("ef", "2", 6)]


def test_a_whole_receive_after_segments_releases_all_of_the_message(room: Postroom) -> None:
    room.queues.create("q")
    room.queues.send_segments("q", ["one", "two", "three"])
    assert room.receive("q", segment=True).message.body == "one"  # type: ignore[union-attr]
    assert room.receive("q").message.body == "onetwothree"  # type: ignore[union-attr]


@given(TEXTS, st.integers(4, 9), st.booleans())
def test_portions_put_together_are_the_message(texts: list[str], size: int, whole: bool) -> None:
    body, _ = composed(texts)
    starts = [sum(map(len, texts[:place])) for place in range(len(texts))]
    segments = Segments(body, tuple((start, start + len(text)) for start, text in zip(starts, texts, strict=True)))
    place = (0, 0)
    found: list[str] = []
    ends: list[End] = []
    while not ends or not ends[-1].completes:
        step = segments.portion(*place, Area(size), whole=whole)
        assert len(step.text.encode()) <= size
        found.append(step.text)
        ends.append(step.end)
        place = step.then
    assert "".join(found) == body
    if not whole:
        assert ends.count(End.SEGMENT) == len(texts) - 1


def test_an_area_that_is_too_short_for_one_character_takes_nothing(room: Postroom) -> None:
    room.queues.create("q")
    room.send("q", "€")
    with pytest.raises(AreaShort) as refused:
        room.receive("q", area=2)
    assert refused.value.status == "98"
    assert received(room, "q", area=3) == [("€", "2", 1)]


def test_a_property_that_is_no_list_of_lengths_changes_nothing(room: Postroom) -> None:
    room.queues.create("q")
    for said in ("9", "1,x", "1*999999,1*999999", ""):
        room.send("q", "a\nb", properties={"segments": said})
        assert [text for text, _, _ in received(room, "q", segment=True)] == ["a", "b"]


def test_what_is_no_message_in_segments_is_refused(room: Postroom) -> None:
    room.queues.create("q")
    for wrong in ("", "text"):  # a text is no list of segments
        with pytest.raises(ArgumentInvalid):
            room.queues.send_segments("q", wrong)
    with pytest.raises(ArgumentInvalid):
        room.queues.send_segments("q", [])
    with pytest.raises(ArgumentInvalid):
        room.queues.send_segments("q", ["a"], properties={"segments": "1"})
    with pytest.raises(ArgumentInvalid):
        room.receive("q", area=0)
    assert room.count("q").queues[0].unprocessed == 0

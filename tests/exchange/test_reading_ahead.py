"""Items that are read in a thread: the same, in their order, with their errors, and no more of them than are wanted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count, islice

import pytest

from postroom.exchange.reading_ahead import read_ahead


def test_all_items_come_in_their_order() -> None:
    with read_ahead(iter(range(1_000))) as items:
        assert list(items) == list(range(1_000))
    with read_ahead(iter([None, ValueError(), ()])) as odd:
        assert [type(item) for item in odd] == [type(None), ValueError, tuple]
    with read_ahead(iter(())) as nothing:
        assert list(nothing) == []


def test_an_error_of_the_reader_comes_after_what_was_read_before_it() -> None:
    def broken() -> Iterator[int]:
        yield from range(5)
        raise LookupError("line 6")

    with read_ahead(broken()) as items:
        assert [next(items) for _ in range(5)] == list(range(5))
        with pytest.raises(LookupError, match="line 6"):
            next(items)


def test_who_stops_early_leaves_no_thread_and_little_was_read() -> None:
    read: list[int] = []

    def numbers() -> Iterator[int]:
        for number in count():
            read.append(number)
            yield number

    with read_ahead(numbers()) as items:
        assert list(islice(items, 3)) == [0, 1, 2]
    assert len(read) <= 3 + 4
    assert not [thread for thread in threading.enumerate() if thread.name == "postroom-reading"]


def test_it_reads_in_another_thread_while_its_items_are_used() -> None:
    here, reader = threading.current_thread(), list[threading.Thread]()
    second = threading.Event()

    def two() -> Iterator[int]:
        reader.append(threading.current_thread())
        yield 1
        second.set()
        yield 2

    with read_ahead(two()) as items:
        assert next(items) == 1
        assert second.wait(20), "it goes on before the second is asked for"
        assert next(items) == 2
    assert reader[0] is not here

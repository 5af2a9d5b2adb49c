"""The journal read a page at a time, while others write and archive."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults.upkeep_workload import write_here

from postroom.engine import archiving
from postroom.exchange import events
from postroom.exchange.events import Origins, Passed, happenings
from postroom.model.key import key_number
from postroom.room import Postroom


def test_nothing_is_missed_if_it_is_archived_meanwhile_and_nothing_new_is_told(
    room: Postroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "JOURNAL_PAGE_ROWS", 4)
    room.queues.create("q")
    keys = [room.send("q", str(number)).key for number in range(10)]
    pages, seen = happenings(room.store, Passed()), []
    seen += next(pages)
    room.send("q", "later")
    archiving.archive(room.store, 2**62, tmp_path / "old", write_here)
    for page in pages:
        seen += page
    assert [one.key for one in seen] == keys
    assert all(one.activity == "put q" for one in seen)


def test_damaged_lines_are_counted_and_left_out(sqlite_url: str) -> None:
    import apsw

    import postroom

    with postroom.open(sqlite_url) as room:
        room.queues.create("q")
        room.send_many("q", ["1", "2"])
    apsw.Connection(sqlite_url).execute("UPDATE journal SET verb = 'take' WHERE seq = (SELECT max(seq) FROM journal)")
    with postroom.open(sqlite_url) as room:
        passed = Passed()
        told = [one for page in happenings(room.store, passed) for one in page]
    assert (len(told), passed.damaged, passed.of_room) == (1, 1, 1)


def test_the_beginning_of_a_long_chain_is_found_with_few_known(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_ROOTS_KNOWN_MAX", 3)
    room.queues.create("q")
    first = key = room.send("q", "0").key
    chain = [first]
    for number in range(30):
        key = room.send("q", str(number), cause=key).key
        chain.append(key)
    origins = Origins(room.store)
    for some in (chain[20:], chain[:5], chain[::7]):
        numbers = set(map(key_number, some))
        assert origins.roots(numbers) == dict.fromkeys(numbers, key_number(first))

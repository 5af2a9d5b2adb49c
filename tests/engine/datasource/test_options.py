"""Options of the data source: what they mean, and what is refused before anything is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import StructType

from postroom.engine.datasource.options import (
    READING,
    STREAMING,
    WRITING,
    Choice,
    Place,
    batch_max,
    choice,
    partitions,
    parts,
    place,
    word,
)
from postroom.errors import ArgumentInvalid, PostroomError
from postroom.limits import SCAN_MESSAGES, SCAN_PARTITIONS_MAX
from postroom.spark import RoomSource
from postroom.store.tables.scans import Wanted


def test_a_path_is_made_absolute_where_it_was_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert place({"room": "a.db", "queue": "q"}, READING) == Place(os.path.join(tmp_path, "a.db"), "q")
    assert place({"path": "a.db", "queue": "q"}, READING).url == os.path.join(tmp_path, "a.db")
    assert place({"room": "postgresql://h/d", "queue": "q"}, READING).url == "postgresql://h/d"
    assert place({"room": "a.db", "queue": "q", "actor": "me"}, WRITING).actor == "me"


def test_names_of_options_are_free_in_case() -> None:
    options = CaseInsensitiveDict({"Room": "a.db", "QUEUE": "q", "maxperbatch": "7"})
    assert place(options, STREAMING).queue == "q"
    assert batch_max(options) == 7


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"queue": "q"}, "option room: give the path or the PostgreSQL URL"),
        ({"room": "", "queue": "q"}, "option room"),
        ({"room": "a.db"}, "option queue: give the name"),
        ({"room": "a.db", "queue": "q", "partition": "2"}, "option partition: there is none; did you mean partitions?"),
        ({"room": "a.db", "queue": "q", "zzz": "2"}, "option zzz: there is none"),
        ({"room": "a.db", "queue": "q", "maxPerBatch": "2"}, "option maxPerBatch: there is none"),
    ],
)
def test_what_means_nothing_is_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(ArgumentInvalid) as refused:
        place(options, READING)
    assert words in str(refused.value)


def test_an_actor_is_a_printable_name() -> None:
    with pytest.raises(ArgumentInvalid, match="option actor"):
        place({"room": "a.db", "queue": "q", "actor": "a\nb"}, WRITING)


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5", "", "١", str(SCAN_PARTITIONS_MAX + 1)])
def test_a_number_is_a_number(value: str) -> None:
    with pytest.raises(ArgumentInvalid, match="is not a number from 1 to"):
        partitions({"partitions": value})
    assert partitions({}) is None


def test_a_choice_is_one_of_its_words() -> None:
    assert word({}, "corrupt", ("fail", "skip")) == "fail"
    assert word({"corrupt": "skip"}, "corrupt", ("fail", "skip")) == "skip"
    source = RoomSource(CaseInsensitiveDict({"room": "a.db", "queue": "q", "startingOffset": "middle"}))
    with pytest.raises(ArgumentInvalid, match="option startingOffset: 'middle' is not one of: earliest, latest"):
        source.streamReader(StructType())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"state": "gone"}, "option state: 'gone' is not one of: processed, unprocessed"),
        ({"since": "yesterday"}, "option since: 'yesterday' is not a time such as"),
        ({"until": ""}, "option until"),
        ({"key": "1"}, "'1' is not a message key"),
    ],
)
def test_a_filter_that_means_nothing_is_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(PostroomError, match=words):
        choice(options)


def test_without_filters_all_is_wanted() -> None:
    assert choice({}) == Choice(("processed", "unprocessed"), None, Wanted())


def test_partitions_follow_the_number_of_messages() -> None:
    assert [parts(None, count) for count in (0, 1, SCAN_MESSAGES, SCAN_MESSAGES + 1)] == [1, 1, 1, 2]
    assert parts(None, 10**12) == SCAN_PARTITIONS_MAX
    assert [parts(4, count) for count in (0, 3, 100)] == [1, 3, 4]

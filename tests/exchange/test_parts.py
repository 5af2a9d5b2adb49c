"""A file that is divided into batches."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from tests.exchange.test_bulk import lines

from postroom.errors import ArgumentInvalid
from postroom.exchange.message_files import Options
from postroom.exchange.parts import FilePart, Reading, batches, read_rows, sent_before


def test_batches_are_the_file_in_order_within_both_limits(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    random = Random(27)
    texts = [f'"{"x" * random.randrange(40)}"' for _ in range(300)]
    file.write_text("\n".join(texts) + "\n")
    for begin in (0, 1, 120, 300):
        found = list(batches(Reading(file, Options(), "", begin, 20, 200)))
        assert [draft.body for batch in found for draft in batch.drafts] == texts[begin:]
        assert all(len(batch.drafts) <= 20 for batch in found)
        assert all(sum(len(draft.body) for draft in batch.drafts[:-1]) < 200 for batch in found)
        assert [batch.part.message_count for batch in found][-1:] == ([300] if begin < 300 else [])
        assert all(one.place < other.place for one, other in pairwise(found))
        assert all(batch.place == file.stat().st_size for batch in found[-1:])


def test_a_beginning_is_known_by_its_content_and_the_identity(tmp_path: Path) -> None:
    file = lines(tmp_path / "a.jsonl", range(50))
    parts = [batch.part for batch in batches(Reading(file, Options(), "mine", 0, 20, 1 << 20))]
    assert [part.message_count for part in parts] == [20, 40, 50]
    assert sent_before(file, Options(), "mine", parts) == 50
    assert sent_before(file, Options(), "mine", parts[:2]) == 40
    assert sent_before(file, Options(), "another", parts) == 0
    lines(file, range(50), bad=30).write_text(file.read_text().replace("{\n", '{"n": 0}\n'))
    assert sent_before(file, Options(), "mine", parts) == 20
    (part, *_) = parts
    assert sent_before(file, Options(), "mine", [FilePart(part.message_count + 1, part.digest)]) == 0


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{"body": "x"}],
        [{"body": 1, "format": "text", "type": None, "properties": {}}],
        [{"body": "x", "format": "text", "type": 5, "properties": {}}],
        [{"body": "x", "format": "text", "type": None, "properties": []}],
    ],
)
def test_rows_that_are_no_messages_are_refused(rows: list[dict[str, object]]) -> None:
    with pytest.raises(ArgumentInvalid, match="rows"):
        read_rows(rows)


def test_a_part_is_checked() -> None:
    assert FilePart.checked(1, "0" * 32) == FilePart(1, "0" * 32)
    for count, digest in ((0, "0" * 32), (1, "0" * 31), (1, "g" * 32)):
        with pytest.raises(ArgumentInvalid):
            FilePart.checked(count, digest)

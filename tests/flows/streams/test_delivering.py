"""Files that a batch brings outside: whole, and replaced when the batch comes again."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.faults.disk import Kept, plain_files

from postroom.flows.language.outside import Outside
from postroom.flows.language.types import parse
from postroom.flows.streams.delivering import Staged, dead_letter, deliver_files, lines_of, staged, stem_of
from postroom.flows.streams.routing import Refused
from postroom.model.definitions import Position

TYPE = parse("[n: int]")


def sink(format: str) -> Outside:
    return Outside("files", "g", "out", format, Position("f", 1))


def test_a_batch_that_comes_again_replaces_its_files_and_no_others(tmp_path: Path) -> None:
    out, stem = tmp_path / "out", stem_of("A b/ü", "0123456789", 7)
    assert stem == "A-b---01234567-00000007"
    spark = tmp_path / "goal=x"
    for parts in (3, 1):
        spark.mkdir(exist_ok=True)
        for part in range(parts):
            (spark / f"part-{part}").write_text('{"n":1}\n{"n":2}\n')
        given = Staged(staged(tmp_path, "x"), ['{"n":3}'])
        assert deliver_files(out, stem, sink("json"), TYPE, given) == 2 * parts + 1
        assert len(list(lines_of(sorted(out.glob("*"))))) == 2 * parts + 1
    assert deliver_files(out, stem_of("A b/ü", "0123456789", 8), sink("json"), TYPE, Staged(more=['{"n":9}'])) == 1
    assert len(list(out.iterdir())) == 3


def test_rows_are_one_file(tmp_path: Path) -> None:
    assert deliver_files(tmp_path, "s", sink("csv"), TYPE, Staged(more=['{"n":1}', '{"n":2}'])) == 2
    assert (tmp_path / "s-0000.csv").read_text() == "n\n1\n2\n"


def test_a_dead_letter_says_what_and_why() -> None:
    said = json.loads(dead_letter(Refused("S", "why", "é", "a"), {"batch": 3}))
    assert said == {"space": "S", "arc": "a", "reason": "why", "body": "é", "batch": 3}


def test_files_are_on_disk_with_their_folders_before_their_batch_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Kept(tmp_path)
    monkeypatch.setattr(os, "fsync", disk.fsync)
    deliver_files(tmp_path / "data" / "high", "s", sink("json"), TYPE, Staged(more=['{"n":9}']))
    assert len(plain_files(tmp_path)) == 1
    assert disk.files() == plain_files(tmp_path)

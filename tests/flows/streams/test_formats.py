"""Files of rows: what is written is read back, and what is damaged is one problem."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from postroom.flows.language.types import parse as parse_type
from postroom.flows.streams.formats import admitted, rows_of, write

TYPE = parse_type("[s: string, n: int, x: float, p: decimal, d: date, t: timestamp, b: boolean]")
BODIES = [
    '{"s":"a, \\"b\\"","n":-5,"x":1.5,"p":"1.50","d":"2026-03-01","t":"2026-03-01T10:00:00.000001Z","b":true}',
    '{"s":"é\\n","n":9223372036854775807,"x":0.1,"p":"0.000000000000000001","d":"0001-01-01",'
    '"t":"2026-03-01T10:00:00.000000Z","b":false}',
]


@pytest.mark.parametrize("format", ["csv", "parquet", "avro"])
def test_what_is_written_is_read_back(format: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    write(file, BODIES, format, TYPE)
    rows = list(rows_of(file.read_bytes(), format, TYPE, "S"))
    assert [row.problem for row in rows] == [None, None]
    wanted = BODIES if format != "parquet" else [BODIES[0].replace('"1.50"', '"1.500000000000000000"'), BODIES[1]]
    assert [row.body for row in rows] == wanted


@pytest.mark.parametrize("format", ["csv", "parquet", "avro"])
def test_a_damaged_file_is_one_problem(format: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    write(file, BODIES, format, TYPE)
    whole = file.read_bytes()
    for content in (b"", b"\xff\xfe\x00", whole[: len(whole) // 2]):
        rows = list(rows_of(content, format, TYPE, "S"))
        assert len([row for row in rows if row.problem is not None]) <= 1
        assert all(row.body in BODIES for row in rows if row.problem is None)


def test_a_row_that_does_not_fit_says_why() -> None:
    rows = list(rows_of(b"n,s\n1,a\n1.5,b\nx,c\n1,d,more\n1\n", "csv", parse_type("[n: int, s: string]"), "S"))
    assert [row.problem is None for row in rows] == [True, False, False, False, False]
    assert "a whole number is wanted" in str(rows[1].problem)
    assert "more than the header has" in str(rows[3].problem)
    assert "the field s is missing" in str(rows[4].problem)
    assert json.loads(rows[2].body) == {"n": "x", "s": "c"}  # what was read, as a program can read it


def test_a_line_is_an_event_or_says_why_not() -> None:
    type = parse_type("[n: int]")
    assert admitted(' { "n" : 1 } ', type, "S").body == '{"n":1}'
    assert admitted("[1]", type, "S").body == '{"n":1}'
    for line in ("", "x", '{"n":1,"n":2}', '{"n":"1"}', '{"n":1,"m":2}', "[" * 100_000):
        assert admitted(line, type, "S").problem, line[:20]

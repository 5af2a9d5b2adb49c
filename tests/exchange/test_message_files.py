"""Rows of files as messages."""

from __future__ import annotations

import csv
import json
import tempfile
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.errors import ArgumentInvalid, FileLineInvalid, FileUnreadable
from postroom.exchange import message_files
from postroom.exchange.message_files import Options, drafts
from postroom.model.body import Format, json_text


def rows(file: Path, **options: Any) -> list[tuple[int, str, str]]:
    return [(number, draft.format, draft.body) for number, draft in drafts(file, Options(**options))]


def test_json_lines_are_sent_as_they_are_written(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'\xef\xbb\xbf{"a": 1.50}\r\n\n  [1,\t2]  \n"x\xe2\x80\xa8y"')
    assert rows(file) == [(1, "json", '{"a": 1.50}'), (3, "json", "[1,\t2]"), (4, "json", '"x\u2028y"')]


def test_a_row_of_csv_is_an_object(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text('id,item\n17,"paper, ""fine""\nwhite"\n\n18,\n')
    assert [(number, json.loads(body)) for number, _, body in rows(file)] == [
        (3, {"id": "17", "item": 'paper, "fine"\nwhite'}),
        (5, {"id": "18", "item": ""}),
    ]


@given(st.lists(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=2, max_size=2)))
def test_a_row_of_csv_is_written_as_any_json_is(made: list[list[str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a.csv"
        with file.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([["a", 'b "é"'], *made])
        assert [body for _, _, body in rows(file)] == [json_text({"a": one, 'b "é"': two}) for one, two in made]


def test_a_number_that_json_has_not_is_named_by_its_row(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"n": [1.5, 2.5, float("nan")]}), tmp_path / "a.parquet")
    with pytest.raises(FileLineInvalid, match="line 3: "):
        rows(tmp_path / "a.parquet")


def test_a_row_of_parquet_is_an_object_without_losing_digits(tmp_path: Path) -> None:
    table = pyarrow.table(
        {
            "id": [1, 2],
            "price": [Decimal("12345678901234567890.12"), None],
            "day": [date(2026, 11, 17), None],
            "tags": [["a"], []],
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    assert [json.loads(body) for _, _, body in rows(tmp_path / "a.parquet")] == [
        {"id": 1, "price": "12345678901234567890.12", "day": "2026-11-17", "tags": ["a"]},
        {"id": 2, "price": None, "day": None, "tags": []},
    ]


def test_lines_of_text_may_be_xml(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("<a/>\n<b/>\n")
    assert rows(file) == [(1, "text", "<a/>"), (2, "text", "<b/>")]
    assert rows(file, format=Format.XML) == [(1, "xml", "<a/>"), (2, "xml", "<b/>")]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.jsonl", '{"a": 1}\n{"a": 1, "a": 2}\n', "line 2: .*twice"),
        ("a.jsonl", "1\n\nNaN\n", "line 3: .*NaN"),
        ("a.csv", "a,b\n1,2\n3\n", "line 3: it has 1 values, and there are 2 columns"),
        ("a.csv", "a,a\n1,2\n", "line 1: the names of columns"),
        ("a.csv", 'a,b\n1,"2\n', "line 2"),
        ("a.txt", "a\nb\0\n", "line 2: .*NUL"),
    ],
)
def test_what_is_no_message_is_named_by_its_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(FileLineInvalid, match=said):
        rows(tmp_path / name)


def test_files_that_cannot_be_read_and_options_that_do_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "latin.jsonl").write_bytes(b'"a"\n"\xe9"\n')
    (tmp_path / "not.parquet").write_text("x")
    for name in ("latin.jsonl", "not.parquet", "none.csv"):
        with pytest.raises(FileUnreadable):
            rows(tmp_path / name)
    bad: list[tuple[str, dict[str, Any]]] = [
        ("a.xls", {}),
        ("a.csv", {"format": Format.XML}),
        ("a.csv", {"messages": True}),
    ]
    for name, options in bad:
        with pytest.raises(ArgumentInvalid):
            rows(tmp_path / name, **options)
    monkeypatch.setattr(message_files, "_LINE_CHARS_MAX", 10)
    (tmp_path / "long.txt").write_text("x" * 11)
    with pytest.raises(FileLineInvalid, match="longer"):
        rows(tmp_path / "long.txt")


def test_whole_messages(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    good = {"key": "00001.00001", "body": "<a/>", "format": "xml", "properties": {"p": 1}, "type": None}
    file.write_text(json.dumps(good) + "\n")
    ((_, draft),) = drafts(file, Options(messages=True))
    assert draft == ("<a/>", "xml", None, '{"p":1}')
    for odd in ([1], {"text": "x"}, {"body": 1, "format": "text"}, {**good, "properties": [1]}, {**good, "other": 1}):
        file.write_text(json.dumps(odd) + "\n")
        with pytest.raises(FileLineInvalid):
            rows(file, messages=True)


@pytest.mark.parametrize(
    ("delimiter", "text"), [(";", "id;n\na,b;1\n"), ("\t", 'id\tn\n"a,b"\t1\n'), (",", 'id,n\n"a,b",1\n')]
)
def test_columns_are_parted_by_what_is_asked_for(tmp_path: Path, delimiter: str, text: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text(text)
    ((_, draft),) = drafts(file, Options(delimiter=delimiter))
    assert json.loads(draft.body) == {"id": "a,b", "n": "1"}
    if delimiter != ",":
        with pytest.raises(FileLineInvalid, match=r"line 1: it has one column, 'id.+n'; name what parts the columns"):
            list(drafts(file, Options()))


@pytest.mark.parametrize("delimiter", ["", ";;", '"', "\n", "\0"])
def test_a_delimiter_is_one_character(tmp_path: Path, delimiter: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a;b\n1;2\n")
    with pytest.raises(ArgumentInvalid, match="delimiter: one character"):
        list(drafts(file, Options(delimiter=delimiter)))
    (tmp_path / "a.txt").write_text("a\n")
    with pytest.raises(ArgumentInvalid, match=r"it parts the columns of \.csv"):
        list(drafts(tmp_path / "a.txt", Options(delimiter=";")))

"""Forms, procedures and counters as a language of a room: read, checked, loaded, printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroom.errors import FormInvalid
from postroom.room import Postroom
from postroom.stations.loading import FormLanguage

TYPE = "type ORDER\n| No: ___ |\nfield No int required\n"
PROCEDURE = "procedure p at ann\n  precondition a : ORDER\n  destination d on a copy 0 leave\n"


def test_files_are_read_together_and_a_name_is_in_one_of_them(tmp_path: Path) -> None:
    first, second = tmp_path / "a.form", tmp_path / "b.form"
    first.write_text(PROCEDURE)
    second.write_text(TYPE)
    language = FormLanguage(None, None)
    files = language.read([first, second])
    assert files.count == 2
    files.check(None, alone=True)
    with pytest.raises(FormInvalid, match="type ORDER is already at"):
        language.read([second, second])


def test_what_is_loaded_is_printed_and_reads_to_the_same(room: Postroom, tmp_path: Path) -> None:
    room._parts.network.add_station("ann", "control", None)
    file = tmp_path / "a.form"
    file.write_text(TYPE + PROCEDURE)
    room.load(file)
    printed = room.store.read(FormLanguage(None, None).printed)
    assert list(printed) == ["office.form"]
    (tmp_path / "again.form").write_bytes(printed["office.form"])
    language = FormLanguage(None, None)
    assert language.read([tmp_path / "again.form"]).office == language.read([file]).office

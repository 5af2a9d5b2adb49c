"""What is said of a file that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroom.model.paths import printable, why_unread


def refusal(file: str | Path) -> str:
    with pytest.raises(OSError) as refused:
        Path(file).read_bytes()
    return why_unread(file, refused.value)


def test_of_a_relative_path_that_leads_nowhere_it_is_told_where_but_no_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert refusal("none.qdl") == "No such file or directory (looked for from the working directory)"
    assert refusal("sub/none.qdl") == "No such file or directory (looked for from the working directory)"
    assert refusal(tmp_path / "none.qdl") == "No such file or directory"
    assert refusal(".") == "Is a directory"


def test_a_name_of_any_bytes_is_shown_as_text() -> None:
    assert printable("a\udcff") == "a\ufffd"

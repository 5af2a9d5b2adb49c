"""A path is text, or it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroom.errors import ArgumentInvalid
from postroom.room.paths import path_of


@pytest.mark.parametrize("name", ["a\ud800", "\udcff", "a\0b"])
@pytest.mark.parametrize("kind", [str, Path])
def test_a_name_that_is_no_text_is_refused(name: str, kind: type[str] | type[Path]) -> None:
    with pytest.raises(ArgumentInvalid, match="folder: its name must be text") as caught:
        path_of(kind(name), "folder")
    assert str(caught.value).encode()


def test_every_other_name_is_a_path() -> None:
    assert [path_of("a/ü 📮"), path_of(Path("b"))] == [Path("a/ü 📮"), Path("b")]

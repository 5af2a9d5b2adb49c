"""Forms by version: a message stays readable by the form that it was made with."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from postroom.errors import FunctionUnknown, TypeUnknown
from postroom.room import Postroom
from postroom.stations.forms.catalog import Edition, Forms, check
from postroom.stations.forms.reader import parse
from postroom.store.kernel.transaction import Transaction

FIRST = "type NOTE\n| Text: ____ |\nfield Text string free\n"
SECOND = "type NOTE\n| Text: ____ More: ____ |\nfield Text string free\nfield More int free\n"


def load(room: Postroom, folder: Path, text: str) -> None:
    (folder / "note.form").write_text(text)
    room.load(folder / "note.form")


def test_a_form_is_found_by_name_and_by_version(room: Postroom, tmp_path: Path) -> None:
    forms = Forms()
    load(room, tmp_path, FIRST)
    first = room.store.read(lambda tx: forms.named(tx, "NOTE"))
    load(room, tmp_path, SECOND)
    second = room.store.read(lambda tx: forms.named(tx, "NOTE"))
    assert (str(first.form), str(second.form), first.version < second.version) == (FIRST, SECOND, True)

    def at(tx: Transaction, known: Forms) -> list[Edition]:
        return [known.at(tx, "NOTE", version) for version in (first.version, second.version, 0)]

    for known in (forms, Forms()):  # with what it remembers, and without; the last version is unknown
        assert room.store.read(partial(at, known=known)) == [first, second, second]
    assert list(room.store.read(forms.now)) == ["NOTE"]


def test_a_type_that_is_not_there_is_named_with_the_nearest(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path, FIRST)
    with pytest.raises(TypeUnknown, match="did you mean NOTE"):
        room.store.read(lambda tx: Forms().named(tx, "NOTES"))


def test_loading_the_same_again_is_no_new_version(room: Postroom, tmp_path: Path) -> None:
    load(room, tmp_path, FIRST)
    version = room.store.read(lambda tx: tx.definitions.version())
    load(room, tmp_path, FIRST)
    assert room.store.read(lambda tx: tx.definitions.version()) == version


def test_a_function_that_nobody_has_registered_is_refused_with_its_place() -> None:
    text = "type T\n| A: __ B: __ |\nfield A int free\nfield B int automatic nobody_has_this\n"
    with pytest.raises(FunctionUnknown, match=r"t\.form:4.*nobody_has_this"):
        check(parse(text, "t.form"))

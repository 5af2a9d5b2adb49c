"""What a room asks of every definition language; ``tests/room/test_languages.py`` has what each does."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from postroom.engine.language import Load, Terms
from postroom.room import Postroom
from postroom.room.languages import languages


def test_a_load_does_nothing_that_it_does_not_say(room: Postroom) -> None:
    load = Load()
    before = room.store.read(lambda tx: tx.journal.newest())
    assert room.store.transact("load", load.write) is None
    assert room.store.transact("load", load.finish) is None
    load.committed()
    assert room.store.read(lambda tx: tx.journal.newest()) == before


def test_the_terms_of_a_load_do_not_change_on_the_way() -> None:
    terms = Terms(("a.qdl",), "ann", "", alone=True)
    assert (terms.drop, terms.change_passwords) == (False, False)
    with pytest.raises(FrozenInstanceError):
        terms.drop = True  # type: ignore[misc]  # that is the question


def test_every_language_has_a_suffix_of_its_own_and_says_what_it_defines() -> None:
    known = languages()
    assert len({language.suffix for language in known}) == len(known)
    assert all(language.suffix.startswith(".") and language.defines for language in known)

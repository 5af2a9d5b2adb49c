"""Procedures of a room: kept in the order of their first definition, switched off and on, and removed."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import postroom
from postroom.errors import DefinitionUnknown, FormInvalid, FunctionUnknown
from postroom.stations.procedures import catalog
from postroom.store.kernel.transaction import Transaction

from .office import load, office

FIRST = "procedure first at ann\n  precondition a : ORDER\n  destination d on a copy 0 ship bob\n"
SECOND = "procedure second at ann\n  precondition a : BILL\n  destination d on a copy 0 leave\n"


def test_a_new_version_keeps_its_place(url: str, tmp_path: Path) -> None:
    with office(url, tmp_path, FIRST) as room:
        load(room, tmp_path, SECOND)
        load(room, tmp_path, FIRST.replace("bob", "cid"))
        kept = room.store.read(catalog.kept)
        assert [(each.procedure.name, each.enabled) for each in kept] == [("first", True), ("second", True)]
        assert "ship" in str(kept[0].procedure)
        assert kept[0].since > kept[1].since
        (station,) = room.store.read(room._parts.interpreter.procedures.now).values()
        assert (station.station, [plan.name for plan in station.plans]) == ("ann", ["first", "second"])


def test_what_is_switched_off_stays_so_when_it_is_loaded_again(url: str, tmp_path: Path) -> None:
    with office(url, tmp_path, FIRST) as room:
        assert room.store.transact("load", lambda tx: catalog.set_enabled(tx, "first", False))
        assert not room.store.transact("load", lambda tx: catalog.set_enabled(tx, "first", False)), "it was already"
        load(room, tmp_path, FIRST.replace("bob", "cid"))
        assert [each.as_dict()["state"] for each in room.store.read(catalog.kept)] == ["disabled"]
        assert room.store.read(room._parts.interpreter.procedures.now) == {}
        assert room.store.read(room._parts.interpreter.procedures.any), "there is one, though it is disabled"
        room.store.transact("load", lambda tx: catalog.remove(tx, "first"))
        assert room.store.read(catalog.kept) == []
        with pytest.raises(DefinitionUnknown, match="procedure first"):
            room.store.transact("load", lambda tx: catalog.remove(tx, "first"))


def test_what_is_switched_off_while_it_is_loaded_says_what_was_loaded(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever switches it writes it anew: not as it was before a load that came meanwhile."""
    named, others = catalog.named, list[threading.Thread]()

    def again() -> None:
        with postroom.open(url) as mine:
            load(mine, tmp_path, FIRST.replace("bob", "cid"))

    def late(tx: Transaction, name: str) -> Any:
        found = named(tx, name)
        if not others:
            others.append(threading.Thread(target=again))
            others[0].start()
            others[0].join(2)  # it waits until it is switched off, so that time is over
        return found

    with office(url, tmp_path, FIRST) as room:
        monkeypatch.setattr(catalog, "named", late)
        room.stations.disable_procedure("first")
        others[0].join()
        (kept,) = room.store.read(catalog.kept)
        assert not kept.enabled
        assert 'ship "cid"' in str(kept.procedure)


@pytest.mark.parametrize(
    ("text", "error", "why"),
    [
        (FIRST.replace("at ann", "at bob"), FormInvalid, "procedure first is at ann"),
        (FIRST.replace("ship bob", "ship where(?a.No)"), FunctionUnknown, "where"),
    ],
)
def test_what_cannot_be_loaded_is_refused_and_changes_nothing(
    url: str, tmp_path: Path, text: str, error: type[Exception], why: str
) -> None:
    with office(url, tmp_path, FIRST) as room:
        before = room.store.read(catalog.kept)
        with pytest.raises(error, match=why):
            load(room, tmp_path, text)
        assert room.store.read(catalog.kept) == before


def test_what_is_printed_is_read_to_the_same() -> None:
    (procedure,) = catalog.parsed(FIRST, "f")
    assert catalog.parsed(str(procedure), "f") == [procedure]

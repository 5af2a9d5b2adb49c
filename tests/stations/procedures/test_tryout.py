"""A dry run of procedures: what they would do with what stations hold. Nothing is changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.stations.world import desk

from postroom.errors import FormInvalid
from postroom.room import Postroom
from postroom.stations.office import proposed_forms, read
from postroom.stations.procedures.evaluation import evaluate_here
from postroom.stations.procedures.tryout import Handled
from postroom.stations.procedures.tryout import tried as tried_out

from .office import office

TEXT = """\
procedure pay at ann
  precondition order : ORDER
    No: < 10
  action act on order
    Status: paid
  destination d0 on order copy 0 ship bob
  destination d1 on order copy 1 dossier done
"""


def tried(room: Postroom, text: str) -> list[Handled]:
    read_text = read(text, "f")
    forms = room.store.read(lambda tx: proposed_forms(tx, read_text))
    return list(tried_out(room._parts.network, read_text.procedures, forms, None, evaluate_here))


def test_it_tells_each_set_and_changes_nothing(url: str, tmp_path: Path) -> None:
    with office(url, tmp_path, "") as room:
        ann = desk(room, "ann")
        first, _ = ann.create("ORDER", No=1), ann.create("ORDER", No=11)
        before = room.store.read(lambda tx: tx.journal.newest())
        (handled,) = tried(room, TEXT)
        assert (handled.key, handled.queue) == (first, "ann")
        own, copy = handled.as_dict()["actions"]
        assert (own["action"], own["queue"], own["acts_on"]) == ("ship", "bob", first)
        assert (copy["action"], copy["queue"], copy["acts_on"]) == ("dossier", "done", "new")
        assert '"Status":"paid"' in own["body"]
        assert room.store.read(lambda tx: tx.journal.newest()) == before


def test_a_set_that_would_fail_says_why(url: str, tmp_path: Path) -> None:
    with office(url, tmp_path, "") as room:
        desk(room, "ann").create("ORDER", No=1, Item="nobody")
        (handled,) = tried(room, TEXT.replace("bob", "?order.Item"))
        (action,) = handled.effects
        assert action["action"] == "error"
        assert "nobody" in action["body"]
        with pytest.raises(FormInvalid, match="there is no type"):
            tried(room, TEXT.replace(": ORDER", ": ORDRE"))

"""A dry run of counters tells what they would do, and changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.stations.counters.claims import CLAIM, IN, LINES, OUT, load
from tests.stations.world import desk

from postroom.errors import FormInvalid
from postroom.room import Postroom
from postroom.store.kernel.queues import SYSTEM_ERRORS


def test_try_tells_what_proposed_counters_would_do_and_changes_nothing(here: Postroom, tmp_path: Path) -> None:
    load(here, tmp_path, CLAIM)
    fits, misfit = here.send("claims", LINES), here.send("claims", "Claimant: Bob")
    archive = desk(here, "North")
    mail = archive.create("CLAIM", Claimant="Cid", Amount=3)
    archive.ship(mail, "Archive")
    (tmp_path / "new.form").write_text(IN + OUT)
    before = here.store.read(lambda tx: tx.journal.newest())
    told = [each.as_dict() for each in here.definitions.try_out(tmp_path / "new.form")]
    assert [(each["key"], each["queue"]) for each in told] == [
        (fits.key, "claims"),
        (misfit.key, "claims"),
        (mail, "mailbox:Archive"),
    ]
    actions = [each["actions"][0] for each in told]
    assert [(each["action"], each["rule"], each["queue"]) for each in actions] == [
        ("enqueue", "front", "mailbox:North"),
        ("error", "front", SYSTEM_ERRORS),
        ("enqueue", "back", "settled"),
    ]
    assert '"Amount":"12.50"' in actions[0]["body"]
    assert "field 'Amount' is required" in actions[1]["body"]
    assert list(here.definitions.try_out(tmp_path / "new.form", since=datetime.now(UTC) + timedelta(hours=1))) == []
    assert here.store.read(lambda tx: tx.journal.newest()) == before
    (tmp_path / "new.form").write_text(IN.replace("North", "Nobody"))
    with pytest.raises(FormInvalid, match="no station Nobody"):
        list(here.definitions.try_out(tmp_path / "new.form"))


def test_try_asks_the_admission_of_the_queue(here: Postroom, tmp_path: Path) -> None:
    (tmp_path / "claims.flow").write_text("domain d\nspace Out : [Claimant: string, Loss_Date: date]\n")
    here.load(tmp_path / "claims.flow")
    load(here, tmp_path, CLAIM)
    north = desk(here, "North")
    for given in ({"Loss Date": "2026-11-30"}, {}):
        north.ship(north.create("CLAIM", {"Claimant": "Ann", "Amount": 1, **given}), "Archive")
    (tmp_path / "new.form").write_text(OUT.replace("settled", "Out"))
    bodies = [each.as_dict()["actions"][0]["body"] for each in here.definitions.try_out(tmp_path / "new.form")]
    assert bodies[0] == '{"Claimant":"Ann","Loss_Date":"2026-11-30"}'
    assert "the field Loss_Date is missing" in bodies[1]


def test_one_message_is_tried_by_the_counter_in_force(here: Postroom, tmp_path: Path) -> None:
    load(here, tmp_path, CLAIM + IN)
    before = here.store.read(lambda tx: tx.journal.newest())
    fits, misfit, none = (
        here.definitions.try_message(queue, body=body)
        for queue, body in (("claims", LINES), ("claims", "Claimant: Bob"), ("settled", LINES))
    )
    assert fits is not None
    assert misfit is not None
    assert none is None
    said = [tried.as_dict()["actions"][0] for tried in (fits, misfit)]
    assert [(each["action"], each["rule"], each["queue"]) for each in said] == [
        ("enqueue", "front", "mailbox:North"),
        ("error", "front", SYSTEM_ERRORS),
    ]
    assert "field 'Amount' is required" in said[1]["body"]
    assert here.store.read(lambda tx: tx.journal.newest()) == before

"""What waits for a queue on hold, as every process sees it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.rules.conftest import without_spark

from postroom.engine.blocked import Blocked, blocked
from postroom.room import Postroom

SORT = """create queue intake kind basic mode persistent create queue large kind basic mode persistent
create queue small kind basic mode persistent
create rule sort for intake if (//big) then do enqueue <l/> into large else do enqueue <s/> into small
"""


@pytest.fixture
def shop(room: Postroom, tmp_path: Path) -> Postroom:
    file = tmp_path / "shop.demaq"
    file.write_text(SORT)
    without_spark(room).load(file)
    room.queues.set_password("large", password="pw")
    room.queues.disable("large", password="pw")
    return room


def noted(room: Postroom) -> dict[str, Blocked]:
    return room.store.read(blocked)


def test_a_note_counts_while_the_message_waits_and_the_queue_is_on_hold(shop: Postroom) -> None:
    key = shop.send("intake", "<big/>", format="xml").key
    behind = shop.send("intake", "<x/>", format="xml").key
    assert (noted(shop), shop.journal.why(key).hold) == ({}, ""), "nobody has evaluated it"
    shop.run_until_idle()
    (note,) = noted(shop).values()
    assert (note.queue, note.goal) == ("intake", "large")
    assert [shop.journal.why(each).hold for each in (key, behind)] == ["large"] * 2, "first in, first out"
    assert shop.journal.why(behind).as_dict()["waits_for"] == "large"
    (seen,) = [queue for queue in shop.operations.overview().queues if queue.waits_for]
    assert (seen.name, seen.as_dict()["waits_for"]) == ("intake", "large")
    shop.queues.enable("large", password="pw")
    assert noted(shop) == {}
    shop.queues.disable("large", password="pw")
    assert noted(shop) != {}
    shop.queues.enable("large", password="pw")
    shop.run_until_idle()
    shop.queues.disable("large", password="pw")
    assert (noted(shop), shop.journal.why(key).hold) == ({}, "")
    assert shop.journal.verify().differences == ()


def test_a_message_in_a_queue_on_hold_waits_for_that(shop: Postroom) -> None:
    shop.queues.enable("large", password="pw")
    key = shop.send("large", "x").key
    shop.queues.disable("large", password="pw")
    assert shop.journal.why(key).hold == "large"

"""The rules' part in a step."""

from __future__ import annotations

from tests.rules.conftest import Load

from postroom.engine.steps.stage import Share
from postroom.room import Postroom
from postroom.rules.programs import Programs
from postroom.rules.stage import RulesStage


def share(room: Postroom) -> Share | None:
    return room.store.read(lambda tx: RulesStage(Programs()).share(tx))


def test_there_is_no_share_without_rules_and_echo_queues(load: Load) -> None:
    assert share(load("create queue a kind basic mode persistent")) is None


def test_a_rule_is_watched_in_the_version_in_force(load: Load) -> None:
    room = load("create queue a kind basic mode persistent")
    text = "create queue a kind basic mode persistent priority 2 create rule r for a if (/x) then do enqueue . into a"
    load(text, room)
    found = share(room)
    assert found is not None
    assert (found.version, dict(found.watched.queues)) == (2, {"a": 2})


def test_an_echo_queue_alone_has_a_share(load: Load) -> None:
    found = share(load("create queue wait kind echo mode persistent"))
    assert found is not None
    assert found.watched.echoes == ("wait",)
    assert dict(found.watched.queues) == {}

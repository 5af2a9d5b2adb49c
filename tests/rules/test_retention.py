"""How long messages stay: what holds them, what a slice contains, what a sweep takes away."""

from __future__ import annotations

import pytest
from tests.rules.conftest import Load

from postroom.errors import DefinitionUnknown, KeyInvalid, MessageGone, MessageUnknown

PROGRAM = """create queue a kind basic mode persistent create queue b kind basic mode persistent
create queue free kind basic mode persistent
create property k as xs:string queue a, b value //k create slicing s on k
create property l as xs:string queue a value //l create slicing t on l
create rule pass for a if (//pass) then do enqueue <y>{//k}</y> into b
create rule done for s if (//done) then do reset
create rule all for a if (//all) then (do reset s key //k, do reset t key //l)
create rule out for free if (/x) then do enqueue <z/> into b
"""


def test_a_message_is_held_by_its_slices_until_each_is_reset(load: Load) -> None:
    room = load(PROGRAM)
    key = room.send("a", "<x><k>1</k><l>2</l></x>", format="xml").key
    held = room.journal.why(key)
    assert (held.held_by, held.processed, held.removable, held.queue) == ((("s", "1"), ("t", "2")), False, False, "a")
    room.run_until_idle()
    assert (room.journal.why(key).processed, room.journal.why(key).removable) == (True, False)
    room.send("a", "<x><k>1</k><done/></x>", format="xml")
    room.run_until_idle()
    assert room.journal.why(key).as_dict() == {
        "key": key,
        "held_by": [{"slicing": "t", "slicekey": "2"}],
        "removable": False,
    }
    assert room.engine.sweep() == 1  # the one that said done
    room.send("a", "<x><k>other</k><l>2</l><all/></x>", format="xml")
    room.run_until_idle()
    assert room.journal.why(key).removable
    assert room.engine.sweep() == 2
    with pytest.raises(MessageGone):
        room.journal.why(key)
    assert [event.verb for event in room.trace(key)] == ["put", "take"]


def test_a_slice_is_its_current_lifetime_in_the_order_of_arrival(load: Load) -> None:
    room = load(PROGRAM)
    for _ in range(2):
        room.send("a", "<x><k>1</k><pass/></x>", format="xml")
    room.run_until_idle()
    assert [(each.queue, each.processed is not None) for each in room.journal.slice("s", "1")] == [
        ("a", True),
        ("a", True),
        ("b", True),
        ("b", True),
    ]
    room.send("b", "<x><k>1</k><done/></x>", format="xml")
    assert len(room.journal.slice("s", "1")) == 5
    room.run_until_idle()
    assert room.journal.slice("s", "1") == []
    later = room.send("b", "<x><k>1</k></x>", format="xml").key
    assert [each.key for each in room.journal.slice("s", "1")] == [later]
    assert room.journal.slice("s", "never") == []


def test_enqueue_and_reset_count_in_the_order_of_the_actions(load: Load) -> None:
    queues = """create queue a kind basic mode persistent create queue b kind basic mode persistent
    create property k as xs:string queue b value string(//k) create slicing s on k
    """
    for actions, left in (
        ("(do enqueue <y><k>1</k></y> into b, do reset s key '1')", 0),
        ("(do reset s key '1', do enqueue <y><k>1</k></y> into b)", 1),
    ):
        room = load(f"{queues}create rule r for a if (/x) then {actions}")
        room.send("a", "<x/>", format="xml")
        room.run_until_idle()
        assert len(room.journal.slice("s", "1")) == left
        assert len(list(room.queues.info("b"))) == 1


def test_a_sweep_takes_processed_messages_of_queues_without_slices_and_leaves_the_waiting(load: Load) -> None:
    room = load(PROGRAM)
    keys = room.send_many("free", ["<x/>"] * 5, format="xml").keys
    assert room.engine.sweep() == 0
    room.run_until_idle()
    waiting = room.send("free", "<x/>", format="xml").key
    assert room.journal.why(keys[0]).removable
    assert not room.journal.why(waiting).removable
    # The five that were processed; what they made is processed too, and held by no slice.
    assert room.engine.sweep() == 10
    assert room.engine.sweep() == 0
    assert [each.key for each in room.queues.info("free")] == [waiting]


def test_queues_that_keep_their_history_are_not_swept(load: Load) -> None:
    room = load("create collection c")
    room.queues.create("hand")
    key = room.send("hand", "x").key
    room.receive("hand")
    held = room.journal.why(key)
    assert (held.keeps, held.removable, held.processed) == (True, False, True)
    assert room.engine.sweep() == 0


def test_a_message_that_someone_received_goes_too(load: Load) -> None:
    room = load(PROGRAM)
    key = room.send("b", "<x><k>1</k></x>", format="xml").key
    assert room.receive("b").message is not None
    assert room.engine.sweep() == 0  # its slice holds it
    load(
        PROGRAM.replace("slicing s", "slicing u").replace("for s", "for u").replace("reset s", "reset u"),
        room,
        drop=True,
    )
    assert room.engine.sweep() == 1
    with pytest.raises(MessageGone):
        room.show(key)


def test_a_queue_that_gets_a_slicing_keeps_what_may_go_in_reach_of_a_sweep(load: Load) -> None:
    plain = "create queue a kind basic mode persistent create queue b kind basic mode persistent "
    rule = "create rule r for a if (/x) then do enqueue <y/> into b "
    room = load(plain + rule)
    room.send("a", "<x>1</x>", format="xml")
    room.run_until_idle()
    load(f"{plain}{rule}create property p as xs:string queue a value string(/x) create slicing s on p", room)
    held = room.send("a", "<x>2</x>", format="xml").key
    room.run_until_idle()
    assert room.engine.sweep() == 1
    assert room.journal.why(held).held_by == (("s", "2"),)


def test_a_sweep_goes_on_until_nothing_is_left(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom.rules.retention.SWEEP_MESSAGES", 3)
    room = load(PROGRAM)
    room.send_many("free", ["<n/>"] * 10, format="xml")
    room.run_until_idle()
    assert room.engine.sweep() == 10


def test_what_does_not_exist_is_told(load: Load) -> None:
    room = load(PROGRAM)
    with pytest.raises(DefinitionUnknown, match=r"there is no slicing ss .*; did you mean s"):
        room.journal.slice("ss", "1")
    with pytest.raises(MessageUnknown):
        room.journal.why("00001.09999")
    with pytest.raises(KeyInvalid):
        room.journal.why("nonsense")

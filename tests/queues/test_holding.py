"""Disable and enable: passwords, groups, both meanings of hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import postroom
from postroom.errors import PasswordMissing, PasswordWrong, QueueHeld, QueueUnknown
from postroom.room import Postroom


def never() -> str:
    raise AssertionError("no password should have been asked for")


def test_a_held_queue_neither_accepts_nor_releases_and_can_be_inspected(tree: Postroom) -> None:
    tree.send("INP_0000", "before")
    held = tree.queues.disable("INP_0000", password="QUE")
    assert (held.status, held.changed) == ("00", ("INP_0000",))
    with pytest.raises(QueueHeld) as caught:
        tree.send("INP_0000", "x")
    assert caught.value.status == "92"
    with pytest.raises(QueueHeld):
        tree.receive("INP_0000")
    with pytest.raises(QueueHeld):
        tree.receive("INP_0000", segment=True)
    assert [message.body for message in tree.queues.info("INP_0000")] == ["before"]
    assert tree.queues.accept("INP_0000").queues[0].as_dict()["held"] is True
    assert tree.queues.enable("INP_0000", password="QUE").changed == ("INP_0000",)
    assert tree.receive("INP_0000").message is not None


def test_already_so_is_said_and_no_password_is_asked(tree: Postroom) -> None:
    assert tree.queues.enable("INP_0000", password=never).status == "15"
    tree.queues.disable("INP_0000", password="QUE")
    again = tree.queues.disable("INP_0000", password=never)
    assert (again.status, again.changed) == ("15", ())


def test_a_wrong_password_aborts_and_is_noted(tree: Postroom) -> None:
    with pytest.raises(PasswordWrong) as caught:
        tree.queues.disable("INP_0000", password="nope")
    assert caught.value.status == "40"
    assert not tree.queues.accept("INP_0000").queues[0].held
    assert tree.journal.last(1)[0].verb == "denied"
    assert "nope" not in str(tree.journal.last(1)[0])


def test_blanks_on_the_right_of_a_password_do_not_count(tree: Postroom) -> None:
    assert tree.queues.disable("INP_0000", password="QUE       ").status == "00"


def test_a_group_has_one_password_of_its_own(tree: Postroom) -> None:
    with pytest.raises(PasswordWrong):
        tree.queues.disable("MASTER-QUEUE", password="QUE")
    held = tree.queues.disable("MASTER-QUEUE", password="MASTER")
    assert held.changed == ("INP_0000", "INP_0001", "INP_0002", "INP_0003")
    assert tree.queues.enable("INP_0000", password="QUE").changed == ("INP_0000",)
    assert tree.queues.disable("MASTER-QUEUE", password="MASTER").changed == ("INP_0000",)
    assert len(tree.queues.enable("MASTER-QUEUE", password="MASTER").changed) == 4


def test_a_level_without_a_password_cannot_be_held(tree: Postroom) -> None:
    for reference, advice in (
        (("MASTER-QUEUE", "SUBQ-3"), "name MASTER-QUEUE"),
        (("INP_0002",), "name MASTER-QUEUE, which has one, or .* alone with: postroom queue password INP_0002"),
        (("OQ3",), "PASSWORD IS"),
    ):
        with pytest.raises(PasswordMissing, match=advice) as caught:
            tree.queues.disable(*reference, password=never)
        assert caught.value.status == "40"
    with pytest.raises(QueueUnknown):
        tree.queues.disable("NOBODY", password=never)


def test_input_only_stops_the_inflow_and_still_releases(tree: Postroom) -> None:
    tree.send("INP_0000", "in time")
    tree.queues.disable("INP_0000", password="QUE", input_only=True)
    with pytest.raises(QueueHeld, match="input only"):
        tree.send("INP_0000", "late")
    assert tree.receive("INP_0000").message is not None
    assert tree.queues.accept("INP_0000").queues[0].as_dict()["hold"] == "input only"
    assert tree.queues.disable("INP_0000", password="QUE").changed == ("INP_0000",)
    with pytest.raises(QueueHeld):
        tree.receive("INP_0000")


def test_a_hold_survives_restart(url: str, write: Callable[[str], Path]) -> None:
    with postroom.open(url) as room:
        room.queues.create("q", password="pw")
        room.queues.disable("q", password="pw")
    with postroom.open(url) as again:
        with pytest.raises(QueueHeld):
            again.send("q", "x")
        again.queues.enable("q", password="pw")
        assert again.send("q", "x").status == "00"


@pytest.mark.usefixtures("real_passwords")
def test_no_password_is_stored_in_clear(tree: Postroom) -> None:
    secrets = tree.store.read(lambda tx: tx.principals.secrets("queue"))
    assert set(secrets) == {"MASTER-QUEUE", "MASTER-QUEUE/SUBQ-1/QUE1A"}
    for secret in secrets.values():
        assert secret.startswith("$argon2id$v=19$m=65536,t=3,p=4$")


def test_a_password_can_be_set_and_changed_with_the_old_one(room: Postroom) -> None:
    room.queues.create("q")
    assert not room.queues.has_password("q")
    room.queues.set_password("q", password="first")
    assert room.queues.has_password("q")
    with pytest.raises(PasswordWrong):
        room.queues.set_password("q", password="second")
    with pytest.raises(PasswordWrong):
        room.queues.set_password("q", password="second", old="guess")
    room.queues.set_password("q", password="second", old="first")
    assert room.queues.disable("q", password="second").status == "00"


def test_a_refusal_names_the_level_to_enable_whatever_was_asked(tree: Postroom) -> None:
    tree.queues.create("single")
    tree.send("single", "x")
    tree.queues.disable("MASTER-QUEUE", password="MASTER")
    asked: list[Callable[[], object]] = [
        lambda: tree.send("INP_0001", "x"),
        lambda: tree.receive("INP_0001"),
        lambda: tree.receive("INP_0001", lease=10),
        lambda: tree.consumers.move("single", to="INP_0001"),
        lambda: tree.consumers.move("single", to="INP_0001", dry=True),
        lambda: tree.consumers.redrive("single", to="INP_0001"),
        lambda: tree.definitions.try_message("INP_0001", body="x"),
    ]
    for ask in asked:
        with pytest.raises(QueueHeld) as caught:
            ask()
        assert caught.value.facts["level"] == "MASTER-QUEUE"

"""The journal alone says where everything is: what it comes to is what is stored, and a wrong row or line is found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.store.life import live

from postroom.errors import JournalTooOld, PostroomError
from postroom.model.message import Draft
from postroom.room import Postroom
from postroom.store.kernel.transaction import Transaction
from postroom.store.proof.verification import Verified, verified


class Undo(Exception):
    pass


def after(room: Postroom, statement: str, *values: object) -> Verified:
    """What is found after a change of the tables, which is then undone."""
    found: list[Verified] = []

    def work(tx: Transaction) -> None:
        assert tx.session.run(statement if tx.session.counts_arrivals else _tallied(statement), values), (
            f"nothing to change: {statement} {values}"
        )
        found.append(verified(tx))
        raise Undo

    with pytest.raises(Undo):
        room.store.transact("send", work)
    return found[0]


def _tallied(statement: str) -> str:
    """The same change of a count where it is not in the row of the queue."""
    found = re.fullmatch(r"UPDATE queues SET ((departed|processed|arrived) = .*) WHERE name = (.*)", statement)
    return (
        statement
        if found is None
        else f"UPDATE tallies SET {found[1]} WHERE queue = (SELECT id FROM queues WHERE name = {found[3]})"
    )


ROWS = {
    "message": (
        "DELETE FROM messages WHERE key = (SELECT min(key) FROM messages)",
        "UPDATE messages SET queue = queue + 1 WHERE key = (SELECT min(key) FROM messages)",
        "UPDATE messages SET state = 1 WHERE key = (SELECT min(key) FROM messages WHERE state = 0)",
        "UPDATE messages SET state = 2 WHERE key = (SELECT min(key) FROM messages)",
        "UPDATE messages SET position = position + 1 WHERE key = (SELECT min(key) FROM messages)",
        "UPDATE messages SET number = number + 1 WHERE key = (SELECT min(key) FROM messages)",
        "UPDATE messages SET last = 1 WHERE key = (SELECT max(key) FROM messages)",
        "UPDATE messages SET processed = 1 WHERE key = (SELECT min(key) FROM messages)",
    ),
    "departed message": (
        "DELETE FROM departed WHERE key = (SELECT min(key) FROM departed)",
        "UPDATE departed SET last = last - 1 WHERE key = (SELECT min(key) FROM departed)",
        "INSERT INTO departed (key, last) VALUES (1, 1)",
    ),
    "queue": (
        "UPDATE queues SET hold = 0 WHERE name = 'held'",
        "UPDATE queues SET hold = 1 WHERE name = 'half'",
        "UPDATE queues SET keep = 1 WHERE name = 'purged'",
        "UPDATE queues SET retired = 0 WHERE name = 'gone'",
        "UPDATE queues SET command = 'other' WHERE path = 'M/B'",
        "UPDATE queues SET door = 0 WHERE name = 'asked'",
        "UPDATE queues SET path = 'elsewhere' WHERE name = 'plain'",
    ),
    "counts of queue": (
        "UPDATE queues SET departed = departed - 1 WHERE name = 'plain'",
        "UPDATE queues SET processed = processed + 1 WHERE name = 'plain'",
        "UPDATE queues SET arrived = arrived + 1 WHERE name = 'purged'",
    ),
    "lock of queue": (
        "DELETE FROM locks",
        "UPDATE locks SET segment = segment + 1",
    ),
    "token": ("DELETE FROM tokens WHERE entity = 'order'",),
    "dossier": (
        "DELETE FROM dossiers",
        "UPDATE dossiers SET name = 'other'",
    ),
    "timer": ("DELETE FROM timers", "UPDATE timers SET due = due + 1"),
    "effect": (
        "UPDATE outbox SET state = 'pending' WHERE state = 'failed'",
        "UPDATE outbox SET attempts = attempts + 1",
        "DELETE FROM outbox",
    ),
    "node": ("DELETE FROM nodes",),
    "station": ("UPDATE stations SET node = 'north' WHERE name = 'ann'", "DELETE FROM stations"),
    "principal": ("DELETE FROM principals WHERE name = 'someone'",),
    "versions": ("DELETE FROM versions WHERE version = (SELECT max(version) FROM versions)",),
}


#: Of whom nothing is left that a line could tell: what others do meanwhile, and what is written down for people.
UNHEARD = {"lease", "release-lease", "graph", "reset"}


def test_what_is_stored_is_what_the_journal_says(room: Postroom, tmp_path: Path) -> None:
    live(room, tmp_path)
    found = room.journal.verify()
    assert found.differences == ()
    assert found.messages >= sum(each.unprocessed + each.processed for each in room.queues.accept().queues) > 0
    wrong_rows_are_found(room)
    lost_lines_are_found(room)
    changed_lines_are_found(room)
    assert room.journal.verify() == found, "nothing was left behind"


def wrong_rows_are_found(room: Postroom) -> None:
    for what, statements in ROWS.items():
        for statement in statements:
            kinds = {each.what for each in after(room, statement).differences}
            assert any(each.startswith(f"{what} ") for each in kinds), f"{statement}: {kinds}"


def lost_lines_are_found(room: Postroom) -> None:
    """The newest of every kind: a new kind must be heard, or be said to tell nothing."""
    rows = room.store.read(lambda tx: tx.session.rows("SELECT verb, max(seq) FROM journal GROUP BY verb"))
    verbs = {row[0]: row[1] for row in rows}
    assert verbs.keys() >= UNHEARD
    for verb, seq in verbs.items():
        differences = after(room, "DELETE FROM journal WHERE seq = ?", seq).differences
        found = [each for each in differences if "the line before it has" not in str(each.journal)]  # a mere gap
        assert bool(found) == (verb not in UNHEARD), f"{verb}: {found}"


def changed_lines_are_found(room: Postroom) -> None:
    for change in ("prior = prior - 1", "source = source + 1", "target = target + 1", "message = message + 1"):
        statement = f"UPDATE journal SET {change} WHERE seq = (SELECT max(seq) FROM journal WHERE verb = 'take')"
        assert after(room, statement).differences, change
    for change in ("verb = 'move' WHERE verb = 'take'", "detail = '{}' WHERE verb = 'sweep'"):
        assert after(room, f"UPDATE journal SET {change}").differences[0].what.startswith("line "), change


def test_a_room_without_anything_and_many_differences(room: Postroom) -> None:
    assert room.journal.verify() == Verified(0, 0, 0, 0, ())
    room.queues.create("q")
    room.send_many("q", [str(number) for number in range(150)])
    found = after(room, "DELETE FROM messages")
    assert (found.messages, len(found.differences)) == (150, 100), "the first hundred are told"
    assert {each.tables for each in found.differences[1:]} == {None}
    first = "counts of queue" if room.store.session.counts_arrivals else "message"  # of a tally no row is left out
    assert found.as_dict()["differences"][0]["differs"].startswith(first)


def test_a_failed_transaction_is_in_neither(room: Postroom) -> None:
    room.queues.create("q")
    before = room.journal.verify()

    def work(tx: Transaction) -> None:
        queue = tx.queues.named("q")
        assert queue is not None
        tx.messages.put(queue, Draft("x", "text", None, "{}"))
        raise Undo

    with pytest.raises(Undo):
        room.store.transact("send", work)
    with pytest.raises(PostroomError):
        room.send("nowhere", "x")
    assert room.journal.verify() == before


def test_a_journal_of_an_earlier_version_is_not_called_damaged(room: Postroom) -> None:
    room.queues.create("q")
    room.send("q", "x")
    first = next(event.seq for event in room.journal.last(10) if event.verb == "create-queue")
    change = "UPDATE journal SET digest = NULL, detail = CASE WHEN verb = 'create-queue' THEN NULL ELSE detail END"
    room.store.transact("send", lambda tx: tx.session.run(change))
    found = room.journal.verify()
    assert (found.older, found.differences) == (1, ())
    assert after(room, "UPDATE messages SET number = 9").differences, "what it says is still compared"
    room.store.transact("send", lambda tx: tx.session.run("DELETE FROM queues"))
    with pytest.raises(JournalTooOld, match=f"entry {first} of the journal"):
        room.journal.verify()

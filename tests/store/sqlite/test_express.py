"""The express lane of SQLite has exactly the effect of the long way, and knows when not to take a case."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import postroom
from postroom import faults
from postroom.errors import (
    ArgumentInvalid,
    CommitUnknown,
    KeysExhausted,
    MessageCorrupt,
    OutputFailed,
    QueueHeld,
    QueueLocked,
    QueueUnknown,
    RoomReentered,
    StoreStopped,
)
from postroom.limits import KEY_TAIL
from postroom.model.key import key_text
from postroom.model.message import Draft
from postroom.queues.results import Sent
from postroom.queues.segments import Area
from postroom.queues.sending import Posting
from postroom.queues.sessions import QueueSession
from postroom.room import Postroom
from postroom.store.kernel.base import Receipt, Sending
from postroom.store.kernel.owner import own_token, process_token
from postroom.store.kernel.queues import Hold
from postroom.store.kernel.transaction import Transaction
from postroom.store.sqlite import express
from postroom.store.sqlite.store import SqliteStore

TABLES = ("queues", "messages", "journal", "departed", "outbox", "locks", "counters", "handouts")


def contents(room: Postroom) -> dict[str, list[Any]]:
    assert isinstance(room.store, SqliteStore)
    execute = room.store.session.connection.execute
    return {table: execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in TABLES}


STEPS = st.lists(
    st.sampled_from(
        "send send receive receive segment many hold release discard keep line hand hand answer answer leave".split()
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=60)
@given(steps=STEPS)
def test_with_and_without_the_express_lane_the_room_is_the_same(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fast, slow = (
            postroom.open(Path(folder) / name, clock=lambda: 1_000_000, owner=process_token())
            for name in ("fast.db", "slow.db")
        )
        with fast, slow:
            # The ignores: taking the lane away is the point of this test, and a subclass would not be the store itself.
            slow.store.send_one = lambda queue, draft, receipt=None: None  # type: ignore[method-assign]
            slow.store.receive_one = lambda queue: None  # type: ignore[method-assign]
            slow.store.hand_one = lambda queue, owner, fits: None  # type: ignore[method-assign]
            slow.store.answer_one = lambda queue, draft, confirms: None  # type: ignore[method-assign]
            for room in (fast, slow):
                room.queues.create("q")
                room.queues.create("answers")
            answers = [played(room, steps) for room in (fast, slow)]
            assert answers[0] == answers[1]
            assert contents(fast) == contents(slow)


def played(room: Postroom, steps: list[str]) -> list[Any]:
    session = room.queues.session()
    found = [play(room, step, session) for step in steps]
    session.close(orderly=False)
    return found


def play(room: Postroom, step: str, session: QueueSession) -> Any:
    try:
        if step == "line":
            return room.send("q", "a line", properties={"a": 1})
        if step == "hand":
            handed = session.receive(("q",), area=Area(7))
            return handed.message and handed.message.as_dict(), handed.portion, handed.passed
        if step == "answer":
            return session.send([("answers",)], "answer"), session._unconfirmed.taken
        if step == "leave":
            return session.close(orderly=False)
        if step == "send":
            return room.send("q", "one\ntwo", properties={"a": 1})
        if step == "many":
            return list(room.send_many("q", ["x", "y"]).keys)
        if step in ("receive", "segment"):
            received = room.receive("q", segment=step == "segment")
            return received.message and received.message.as_dict(), received.passed, received.end_of_message
        if step in ("keep", "discard"):
            return room.queues.set_mode("q", keep_processed=step == "keep")
        hold = Hold.FULL if step == "hold" else Hold.NONE
        room.store.transact("hold", lambda tx: tx.queues.hold(tx.queues.locked(1), hold))
        return step
    except (QueueHeld, QueueLocked) as refusal:
        return refusal.code


@pytest.fixture
def room(sqlite_url: str) -> Iterator[Postroom]:
    with postroom.open(sqlite_url) as opened:
        opened.queues.create("q", password="pw")
        for body in ("a", "b", "c", "d"):
            opened.send("q", body)
        yield opened


def test_an_open_queue_goes_by_the_express_lane(room: Postroom) -> None:
    assert room.store.send_one(1, Draft.of("express")) is not None
    message = room.store.receive_one(1)
    assert message is not None
    assert message.body == "a"
    assert message.processed is not None


def test_what_it_cannot_do_it_leaves_to_the_long_way(room: Postroom) -> None:
    before = contents(room)
    assert room.store.send_one(99, Draft.of("x")) is None
    assert room.store.receive_one(99) is None
    assert contents(room) == before
    room.queues.disable("q", password="pw")
    assert room.store.send_one(1, Draft.of("x")) is None
    assert room.store.receive_one(1) is None
    with pytest.raises(QueueHeld):
        room.send("q", "x")
    with pytest.raises(QueueHeld):
        room.receive("q")
    room.queues.enable("q", password="pw")
    room.send_many("q", [])
    room.queues.set_mode("q", keep_processed=False)
    assert room.store.receive_one(1) is None
    assert room.receive("q").message is not None


def test_a_queue_with_a_command_line_is_not_its_case(sqlite_url: str, tmp_path: Path) -> None:
    (tmp_path / "t.qdl").write_text('01 INPUT-QUEUE (A) COMMAND LINE IS "true"\n99')
    with postroom.open(sqlite_url) as room:
        room.load(tmp_path / "t.qdl")
        for _ in range(3):
            room.send("A", "x")
            room.receive("A")
        assert len(room.engine.outbox()) == 3


def test_a_damaged_head_is_not_its_case(room: Postroom) -> None:
    room.receive("q")
    assert isinstance(room.store, SqliteStore)
    room.store.session.connection.execute("UPDATE messages SET body = 'forged' WHERE body = 'b'")
    with pytest.raises(MessageCorrupt):
        room.receive("q")
    assert room.receive("q").message is not None


def test_a_reference_that_leads_elsewhere_later_is_followed_anew(sqlite_url: str, tmp_path: Path) -> None:
    file = tmp_path / "t.qdl"
    with postroom.open(sqlite_url) as room:
        file.write_text("01 INPUT-QUEUE (A)\n01 INPUT-QUEUE (X)\n99")
        room.load(file)
        room.send("X", "into the input queue")
        assert room.receive("X").message is not None
        file.write_text("01 INPUT-QUEUE (A)\n01 OUTPUT-QUEUE (X)\n99")
        room.load(file)
        room.send("X", "into the output queue")
        assert [message.queue for message in room.queues.info("X")] == ["OUT_0000"]
        assert room.receive("X").message is not None
        file.write_text("01 INPUT-QUEUE (A)\n99")
        room.load(file)
        with pytest.raises(QueueUnknown):
            room.send("X", "nowhere")


@pytest.mark.parametrize("label", ["send", "receive"])
def test_its_faults_are_told_as_on_the_long_way(room: Postroom, label: str) -> None:
    def act() -> None:
        room.send("q", "x") if label == "send" else room.receive("q")

    room.receive("q")
    before = contents(room)["messages"]
    faults.arm(f"{label}.committing", "raise")
    with pytest.raises(faults.FaultInjected):
        act()
    assert contents(room)["messages"] == before
    faults.arm(f"{label}.committed", "raise")
    with pytest.raises(CommitUnknown):
        act()
    with pytest.raises(StoreStopped):
        act()


# --- sends that share a commit ---


def sending(queue: int, body: str, receipt: Receipt | None = None, actor: str = "ann") -> Sending:
    return Sending(queue, Draft.of(body), receipt, actor)


def test_threads_that_send_at_once_share_commits(room: Postroom) -> None:
    assert isinstance(room.store, SqliteStore)
    keys = room.store._transaction.keys
    while keys._stop - keys._next < 16:
        room.send("q", "keys are to be at hand")
    begun, end = room.journal.last(1)[0].seq, monotonic() + 30
    with ThreadPoolExecutor(16) as pool:
        with room.store._mutex:  # someone is at it, and all of them come meanwhile
            sends = [pool.submit(room.send, "q", f"body {number}") for number in range(16)]
            while len(room.store._waiting) < 16:
                assert monotonic() < end
        sent = [send.result().key for send in sends]
    assert len(set(sent)) == 16
    events = room.journal.after(begun)
    assert sorted(event.key for event in events if event.key) == sorted(sent)
    assert len({event.time for event in events}) == 1, "one commit has one time"
    assert not room.journal.verify().differences
    assert [message.body for message in room.peek("q")][:4] == ["a", "b", "c", "d"]


def test_a_refused_send_of_a_group_fails_alone(room: Postroom) -> None:
    room.queues.create("held", password="pw")
    room.queues.disable("held", password="pw")
    used = Receipt("once", b"1")
    first, again, other, unknown, plain, after = room.store.send_each(
        [
            sending(1, "first", used),
            sending(1, "first", used),
            sending(1, "other", Receipt("once", b"2")),
            sending(99, "nowhere"),
            sending(2, "held"),
            sending(1, "after", actor="bob"),
        ]
    )
    assert isinstance(first, int)
    assert again == first
    assert isinstance(other, ArgumentInvalid)
    assert (unknown, plain) == (None, None), "the long way says what is wrong"
    assert isinstance(after, int)
    last = room.journal.last(2)
    assert [(event.verb, event.by) for event in last] == [("put", "ann"), ("put", "bob")]
    assert not room.journal.verify().differences


def alike(count: int) -> list[Sending]:
    return [sending(1, f"body {number} \N{EURO SIGN}") for number in range(count)]


GROUPS = {
    "alike": alike(10),
    "two queues": [sending(1 + number % 2, f"{number}") for number in range(10)],
    "two actors": [sending(1, f"{number}", actor="ann" if number % 3 else "bob") for number in range(10)],
    "two formats": [Sending(1, Draft.of("[1]", "json" if number > 7 else "text"), None, "ann") for number in range(10)],
    "one retry": [sending(1, f"{number}", Receipt("once", b"1") if number == 4 else None) for number in range(10)],
    "with properties": [
        Sending(1, Draft.of("x", properties={"n": number % 9 // 8}), None, "ann") for number in range(10)
    ],
}


@pytest.mark.parametrize("sends", GROUPS.values(), ids=GROUPS.keys())
def test_a_group_is_the_same_room_as_one_send_after_another(tmp_path: Path, sends: list[Sending]) -> None:
    together, apart = (
        postroom.open(tmp_path / name, clock=lambda: 1_000_000, actor="ann") for name in ("together.db", "apart.db")
    )
    with together, apart:
        for room in (together, apart):
            for name in ("p", "q"):
                room.queues.create(name)
                room.send(name, "the first one")
            room.store.transact("send", have_keys)
        keys = together.store.send_each(sends)
        for each in sends:
            with apart.store.acting(each.actor):
                key = apart.store.send_one(each.queue, each.draft, each.receipt)
                assert key == keys.pop(0)
                assert key is not None
        assert contents(together) == contents(apart)
        assert not together.journal.verify().differences


def have_keys(tx: Transaction) -> None:
    tx.keys.give_back(tx.keys.take(100)[0])


@pytest.mark.parametrize("sends", GROUPS.values(), ids=GROUPS.keys())
def test_a_group_reserves_its_keys_in_its_own_commit(room: Postroom, sends: list[Sending]) -> None:
    """Else those without a key would be sent one by one, each in a commit of its own."""
    room.queues.create("other")
    assert isinstance(room.store, SqliteStore)
    keys, begun = room.store._transaction.keys, room.journal.last(1)[0].seq
    assert not keys.has(len(sends))
    sent = room.store.send_each(sends)
    assert len({each for each in sent if isinstance(each, int)}) == len(sends)
    assert len({event.time for event in room.journal.after(begun)}) == 1
    assert not room.journal.verify().differences


@pytest.mark.parametrize("sends", GROUPS.values(), ids=GROUPS.keys())
def test_keys_that_were_reserved_by_a_group_that_failed_are_not_used(room: Postroom, sends: list[Sending]) -> None:
    """The counter in the store does not know of them: another process would get the same."""
    room.queues.create("other")
    faults.arm("send.committing", "raise")
    assert room.store.send_each(sends) == [None] * len(sends)
    sent = room.store.send_each(sends)
    with postroom.open(room.url) as another:
        theirs = another.send_many("q", ["x"] * 1_000).keys
    more = [room.send("q", "x").key for _ in range(100)]
    assert not {key_text(key) for key in sent if isinstance(key, int)} & {*theirs}
    assert not {*more} & {*theirs}


def test_without_a_key_that_is_left_each_of_a_group_hears_of_it(room: Postroom) -> None:
    """A room with few keys left sends as many as it has."""
    room.store.transact("keys", lambda tx: tx.keys.use_block(tx.keys.give_block()))
    room.store.transact("keys", lambda tx: tx.keys.take(KEY_TAIL - 6))
    wanted = [Posting(("q",), draft, None, None, "ann") for _, draft, *_ in alike(10)]
    outcomes = room._parts.verbs.send_each(wanted)
    assert [isinstance(each, Sent) for each in outcomes] == [True] * 5 + [False] * 5
    assert {type(each) for each in outcomes[5:]} == {KeysExhausted}
    assert [message.body for message in room.peek("q")][4:] == [draft.body for _, draft, *_ in alike(5)]
    assert not room.journal.verify().differences


def test_more_than_a_group_can_have_go_in_several(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(express, "GROUP_MESSAGES_MAX", 4)
    begun = room.journal.last(1)[0].seq
    assert all(isinstance(each, int) for each in room.store.send_each(alike(10)))
    assert [message.body for message in room.peek("q")][4:] == [draft.body for _, draft, *_ in alike(10)]
    times = Counter(event.time for event in room.journal.after(begun))
    assert sorted(times.values()) == [2, 4, 4]


@pytest.mark.parametrize(("moment", "error"), [("committing", None), ("committed", CommitUnknown)])
def test_every_send_of_a_group_hears_of_a_commit_that_failed(
    room: Postroom, moment: str, error: type[Exception] | None
) -> None:
    faults.arm(f"send.{moment}", "raise")
    outcomes = room.store.send_each([sending(1, "x"), sending(1, "y")])
    if error is None:
        assert outcomes == [None, None], "nothing was written: each goes the long way"
        assert room.count("q").queues[0].unprocessed == 4
    else:
        assert [type(each) for each in outcomes] == [error, error]
        assert outcomes[0] is not outcomes[1]
        with pytest.raises(StoreStopped):
            room.count()


def test_a_send_that_cannot_enter_leaves_nothing_behind_for_others_to_send(room: Postroom) -> None:
    def work(tx: Transaction) -> None:
        room.store.send_one(1, Draft.of("from inside"))

    with pytest.raises(RoomReentered):
        room.store.transact("send", work)
    room.send("q", "later")
    assert [message.body for message in room.peek("q")] == ["a", "b", "c", "d", "later"]


def test_a_retry_is_known_by_its_key_in_the_express_lane(room: Postroom) -> None:
    first = room.send("q", "once", idempotency_key="k")
    assert room.send("q", "once", idempotency_key="k").key == first.key
    with pytest.raises(ArgumentInvalid, match="another message"):
        room.send("q", "twice", idempotency_key="k")
    assert room.count("q").queues[0].unprocessed == 5


@pytest.mark.parametrize("count", [1, 2, 3, 31, 64, 150])
def test_a_group_of_any_size_takes_few_statements_and_is_in_its_order(room: Postroom, count: int) -> None:
    """Each statement lets go of Python's lock and has to get it again, which costs more than the row."""
    assert isinstance(room.store, SqliteStore)
    queues = ["a", "b"]
    for name in queues:
        room.queues.create(name)
        room.send(name, "first")
    ids = {queue.name: queue.id for queue in room.store.read(lambda tx: tx.queues.all())}
    sends = [
        Sending(ids[queues[place % 2]], Draft.of(f"{place}"), None, f"actor {place % 3}") for place in range(count)
    ]
    keys = room.store._transaction.keys
    while keys._stop - keys._next < count:
        room.send("a", "keys are to be at hand")
    said: list[str] = []

    def trace(cursor: Any, sql: str, bindings: Any) -> bool:
        said.append(sql)
        return True

    room.store.session.connection.exec_trace = trace
    try:
        outcomes = room.store.send_each(sends)
    finally:
        room.store.session.connection.exec_trace = None
    assert all(isinstance(each, int) for each in outcomes)
    assert len(said) <= 20, said
    for place, name in enumerate(queues):
        bodies = [message.body for message in room.peek(name)]
        assert bodies[-len(range(place, count, 2)) :] == [f"{each}" for each in range(place, count, 2)] or count == 1
    assert not room.journal.verify().differences


def test_a_receive_that_is_not_final_is_written_with_the_answer(room: Postroom) -> None:
    """The commit of the receive need not be on disk; every other one is."""
    execute = room.store.session.execute  # type: ignore[attr-defined]
    session = room.queues.session()
    assert session.receive(("q",), area=Area(10)).message is not None  # the first one takes the long way
    session.send([("q",)], "x")
    statements: list[str] = []

    def note(_: Any, statement: str, __: Any) -> bool:
        statements.append(statement)
        return True

    room.store.session.connection.exec_trace = note  # type: ignore[attr-defined]
    received = session.receive(("q",), area=Area(10)).message
    assert received is not None
    assert [each.rstrip(";") for each in statements if "synchronous" in each] == [
        "PRAGMA synchronous = NORMAL",
        "PRAGMA synchronous = FULL",
    ]
    statements.clear()
    session.send([("q",)], "answer")
    assert not any("synchronous" in each for each in statements)
    room.store.session.connection.exec_trace = None  # type: ignore[attr-defined]
    assert execute("PRAGMA synchronous").fetchall() == [(2,)]
    session.close()
    assert room.journal.verify().differences == ()


def test_what_another_program_of_this_process_has_in_hand_does_not_slow_a_receive(room: Postroom) -> None:
    """A process that may have ended must be looked at, the long way; this one has not."""
    first, second = room.queues.session(), room.queues.session()
    first.send([("q",)], "known")
    had = first.receive(("q",), area=Area(10)).message
    assert had is not None
    handed = room.store.hand_one(1, own_token(), lambda stored: True)
    assert handed is not None
    assert handed[0].body == "b"
    other = process_token(1)  # as if another process had it
    room.store.transact("confirm", lambda tx: tx.session.run("UPDATE handouts SET owner = ?", (other,)))
    assert room.store.hand_one(1, own_token(), lambda stored: True) is None
    assert room.store.receive_one(1) is None
    room.store.transact("confirm", lambda tx: tx.session.run("UPDATE handouts SET owner = ?", (own_token(),)))
    first.close(orderly=False)
    again = second.receive(("q",), area=Area(10)).message
    assert again is not None
    assert again.key == had.key
    second.close()


def test_an_answer_to_what_another_has_meanwhile_is_refused_and_not_sent(room: Postroom) -> None:
    session = room.queues.session()
    session.send([("q",)], "known")
    assert session.receive(("q",), area=Area(10)).message is not None
    room.store.transact("confirm", lambda tx: tx.session.run("DELETE FROM handouts"))
    before = room.count("q").queues[0].unprocessed
    with pytest.raises(OutputFailed):
        session.send([("q",)], "answer")
    assert room.count("q").queues[0].unprocessed == before

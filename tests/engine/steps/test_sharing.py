"""A step that commits beside senders and receivers, on PostgreSQL: who waits for it, and who does not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.conftest import Urls
from tests.faults.here import HereStage, evaluate_here

import postroom
from postroom import faults
from postroom.engine.holding import LEASE
from postroom.engine.steps import sharing
from postroom.engine.steps.effects import Effects, Enqueue, Failed, ResetSlice
from postroom.engine.steps.sharing import Use, uses
from postroom.engine.steps.stage import Watched
from postroom.engine.steps.step import Claim, claim, commit
from postroom.errors import PostroomError
from postroom.limits import FOLD_LINES
from postroom.model.message import IN_SPHERE, Message, Stored
from postroom.queues.leases.leased import LeasedMessage
from postroom.room import Postroom
from postroom.store.kernel.base import Store
from postroom.store.kernel.batch import Stale
from postroom.store.kernel.message_rows import record
from postroom.store.kernel.queues import Queues, Unshared
from postroom.store.kernel.transaction import Transaction

PROGRAM = """
create queue other kind basic mode persistent
create rule copy for a if (/m) then do enqueue <r>{string(/m)}</r> into b
"""
TALLIED = "SELECT q.name, t.arrived FROM tallies t JOIN queues q ON q.id = t.queue"
DRAWING = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 0"
BOTH, PUTS, TAKES = Use(True, True), Use(puts=True), Use(takes=True)


@pytest.fixture
def room(postgres_url: str, tmp_path: Path) -> Iterator[Postroom]:
    """Messages of queue a are copied to queue b."""
    (tmp_path / "p.demaq").write_text(PROGRAM)
    with postroom.open(postgres_url) as opened:
        opened.queues.create("a")
        opened.queues.create("b")
        opened.load(tmp_path / "p.demaq")
        evaluate_here(opened)
        yield opened
        assert opened.journal.verify().differences == ()


@pytest.fixture
def other(postgres_url: str, room: Postroom) -> Iterator[Postroom]:
    """Someone else, who knows the queues and gives up soon if he has to wait."""
    with postroom.open(postgres_url) as opened:
        for queue in ("a", "b"):
            opened.send_many(queue, ["<known/>", "<known/>"], format="xml")
            assert opened.receive(queue).message is not None
            (leased,) = opened.receive_many(queue, count=1, lease=60)
            leased.done()
        opened.store.session.connection.execute("SET lock_timeout = '500ms'")  # type: ignore[attr-defined]  # PostgreSQL's
        yield opened


@contextmanager
def committing(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """In this block a step has done all and does not commit, until the function is called that this answers with."""
    reached, go, failures = threading.Event(), threading.Event(), list[BaseException]()

    def reach(point: str) -> None:
        if point == "step.committing":
            reached.set()
            assert go.wait(30)

    def work() -> None:
        try:
            room.run_until_idle()
        except BaseException as error:
            failures.append(error)
            reached.set()

    thread = threading.Thread(target=work)

    def end() -> None:
        go.set()
        thread.join(30)
        assert (thread.is_alive(), failures) == (False, [])

    with monkeypatch.context() as patch:
        patch.setattr(faults, "armed", True)
        patch.setattr(faults, "reach", reach)
        thread.start()
        assert reached.wait(30)
        assert failures == []
        try:
            yield end
        finally:
            go.set()
            thread.join(30)


def send(room: Postroom, *texts: str, queue: str = "a") -> None:
    room.send_many(queue, [f"<m>{text}</m>" for text in texts], format="xml")


def bodies(room: Postroom, queue: str) -> list[str]:
    return [message.body for message in room.peek(queue)]


def body(message: Message | None) -> str | None:
    return None if message is None else message.body


def counts(room: Postroom, queue: str) -> tuple[int, int]:
    (count,) = room.queues.accept(queue).queues
    return count.unprocessed, count.processed


# --- who does not wait ---


@pytest.mark.parametrize("queue", ["a", "b"])
def test_a_send_does_not_wait_for_the_commit_of_a_step(
    room: Postroom, other: Postroom, monkeypatch: pytest.MonkeyPatch, queue: str
) -> None:
    send(room, "1", "2")
    with committing(room, monkeypatch) as end:
        assert other.send(queue, "<m>3</m>", format="xml").key is not None
        send(other, "4", "5", queue=queue)
        assert bodies(other, "b") == (["<m>3</m>", "<m>4</m>", "<m>5</m>"] if queue == "b" else [])
        end()
    assert counts(room, "a") == (0, 4 if queue == "b" else 7)
    assert bodies(room, "b")[:2] == ["<r>1</r>", "<r>2</r>"], "their lines are lower: the step had them before"
    assert len(bodies(room, "b")) == 5


def test_a_sender_without_keys_does_not_wait_for_the_keys_of_a_step(
    room: Postroom, other: Postroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(room, *map(str, range(200)))
    with committing(room, monkeypatch) as end:
        other.store._transaction.keys.use(0, 0)
        other.send("a", "<m>3</m>", format="xml")
        end()
    assert len(bodies(room, "b")) == 201


def test_a_receive_and_a_lease_take_what_a_step_does_not_have(
    room: Postroom, other: Postroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(room, "1", "2")
    send(other, "x", "y", "z", queue="b")
    with committing(room, monkeypatch) as end:
        send(other, "3", "4", "5", "6")
        assert body(other.receive("a").message) == "<m>3</m>", "the first two are in the hands of the step"
        leased = other.receive("a", lease=60).message
        assert isinstance(leased, LeasedMessage)
        assert leased.body == "<m>4</m>"
        assert body(other.receive("b").message) == "<m>x</m>"
        (many,) = other.receive_many("b", count=1, lease=60)
        many.done()
        leased.done()
        end()
    assert counts(room, "a") == (0, 8)
    assert bodies(room, "b") == ["<m>z</m>", "<r>1</r>", "<r>2</r>", "<r>5</r>", "<r>6</r>"]


def test_a_second_step_does_not_wait_for_the_first_if_they_put_into_the_same_queue(
    room: Postroom, other: Postroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(room, "1", "2")
    with committing(room, monkeypatch) as end:
        other.store.transact("x", lambda tx: tx.queues.shared(_id(tx, "b"), puts=True, takes=False))
        end()
    assert bodies(room, "b") == ["<r>1</r>", "<r>2</r>"]


def _id(tx: Transaction, name: str) -> int:
    queue = tx.queues.named_to_read(name)
    assert queue is not None
    return queue.id


# --- who waits ---

ALONE: dict[str, Callable[[Postroom, str], object]] = {
    "hold": lambda room, queue: room.store.transact("hold", lambda tx: tx.queues.named(queue)),
    "policy": lambda room, queue: room.consumers.set_policy(queue, max_messages=100),
    "load": lambda room, queue: room.store.transact("x", lambda tx: tx.queues.locked_all([queue])),
    "purge": lambda room, queue: room.queues.set_mode(queue, keep_processed=False),
    "a receive that finds nothing": lambda room, queue: room.receive(queue),
}


@pytest.mark.parametrize("queue", ["a", "b"])
@pytest.mark.parametrize("name", ALONE)
def test_whoever_has_a_queue_alone_waits_for_a_step(
    room: Postroom, other: Postroom, monkeypatch: pytest.MonkeyPatch, name: str, queue: str
) -> None:
    send(room, "1", "2")
    with committing(room, monkeypatch) as end:
        with pytest.raises(PostroomError, match="lock timeout"):
            ALONE[name](other, queue)
        end()
    assert bodies(room, "b") == ["<r>1</r>", "<r>2</r>"]


def test_a_step_waits_for_whoever_has_a_queue_alone(room: Postroom, postgres_url: str) -> None:
    send(room, "1")
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SELECT postroom_lock(id) FROM queues WHERE name = 'b'")
        threading.Timer(0.5, connection.commit).start()
        done = threading.Thread(target=room.run_until_idle)
        done.start()
        done.join(0.3)
        assert done.is_alive()
        done.join(30)
    assert bodies(room, "b") == ["<r>1</r>"]


def test_counts_are_not_written_down_while_a_step_is_under_way_and_nobody_waits_for_that(
    room: Postroom, other: Postroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = other.store.session.connection.execute  # type: ignore[attr-defined]  # PostgreSQL's
    noted = "SELECT calm FROM tallies WHERE queue = 1"
    send(room, "1", "2")
    with committing(room, monkeypatch) as end:
        before = run(noted).fetchall()
        run("SELECT postroom_calm(1)")
        assert run(noted).fetchall() == before
        end()
    run("SELECT postroom_calm(1)")
    assert run(noted).fetchall() == [(2**63 - 1,)]


# --- takes ---


def _claimed(room: Postroom) -> tuple[int, Claim]:
    fence = room.store.transact("lease", lambda tx: tx.leases.acquire(LEASE, "tester", 600))
    share = room.store.read(HereStage(room).share)
    assert share is not None
    found = room.store.transact("claim", lambda tx: claim(tx, share, 10, fence, {}, {}))
    assert found is not None
    return fence, found


@pytest.mark.parametrize("lease", [None, 60.0])
def test_a_step_whose_message_someone_has_taken_changes_nothing(
    room: Postroom, other: Postroom, lease: float | None
) -> None:
    send(room, "1", "2")
    fence, claimed = _claimed(room)
    assert body(other.receive("a", lease=lease).message) == "<m>1</m>"
    effects: dict[int, Effects] = {
        each.order: (Enqueue("copy", "b", "xml", None, "{}", "<r/>"),) for each in claimed.arrivals
    }
    with pytest.raises(Stale):
        room.store.transact("step", lambda tx: commit(tx, claimed, effects, 2, fence, shares=True))
    assert bodies(room, "b") == []
    assert bodies(room, "a") == ["<m>2</m>"]


def test_a_step_waits_for_whoever_just_takes_its_message_and_does_it_if_that_fails(
    room: Postroom, postgres_url: str
) -> None:
    send(room, "1", "2")
    fence, claimed = _claimed(room)
    nothing: dict[int, Effects] = {each.order: () for each in claimed.arrivals}
    with psycopg.connect(postgres_url) as connection:
        receive = "SELECT body FROM postroom_receive((SELECT id FROM queues WHERE name = 'a'), 'other', NULL)"
        assert connection.execute(receive).fetchall() == [("<m>1</m>",)]
        threading.Timer(0.3, connection.rollback).start()
        room.store.transact("step", lambda tx: commit(tx, claimed, nothing, 2, fence, shares=True))
    assert counts(room, "a") == (0, 2)


# --- counts ---


def test_counts_are_those_of_whoever_has_the_queues_alone(urls: Urls, tmp_path: Path) -> None:
    (tmp_path / "p.demaq").write_text(PROGRAM)
    found = []
    for shares in (True, False):
        with postroom.open(urls()) as room, pytest.MonkeyPatch.context() as patch:
            for queue in ("a", "b"):
                room.queues.create(queue)
            room.load(tmp_path / "p.demaq")
            evaluate_here(room)
            names = _shared_by(room)
            if not shares:
                patch.setattr(Queues, "can_share", lambda *_, **__: False)
            told: list[Any] = []
            for number in range(4):
                send(room, *(f"{number}.{each}" for each in range(5)))
                assert body(room.receive("a").message) == f"<m>{number}.0</m>"
                room.run_until_idle()
                assert room.receive("b").message is not None
                told.append((counts(room, "a"), counts(room, "b"), bodies(room, "b")))
                if number == 1:
                    room.store.transact("x", lambda tx: [tx.queues.named("a"), tx.queues.named("b")])
            assert names == ({"a", "b"} if shares else set())
            assert room.journal.verify().differences == ()
            found.append((told, [(each.verb, each.source, each.target) for each in room.journal.last(200)]))
    assert found[0] == found[1]


def test_counts_of_long_steps_are_written_down(room: Postroom) -> None:
    send(room, *map(str, range(FOLD_LINES)))
    room.run_until_idle()
    rows = room.store.read(
        lambda tx: tx.session.rows("SELECT q.name, t.arrived FROM tallies t JOIN queues q ON q.id = t.queue")
    )
    assert ("b", FOLD_LINES) in rows
    assert counts(room, "b") == (FOLD_LINES, 0)


def test_numbers_that_are_drawn_at_once_have_none_of_another_such_draw_among_them(
    room: Postroom, postgres_url: str
) -> None:
    """Else two steps that put into two queues could come in one order in the first, and in another in the second."""
    drawn: list[list[int]] = []

    def draw() -> None:
        with psycopg.connect(postgres_url) as connection:
            for _ in range(20):
                drawn.extend(numbers for (numbers,) in connection.execute("SELECT postroom_draw(500)").fetchall())

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(drawn) == 80
    spans = sorted((min(numbers), max(numbers)) for numbers in drawn)
    assert all(earlier[1] < later[0] for earlier, later in pairwise(spans))
    held = room.store.read(
        lambda tx: tx.session.rows("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 0")
    )
    assert held == [], "nobody keeps the lock"


# --- what is had alone ---


def _shared_by(room: Postroom) -> set[str]:
    """The queues that steps share from now on."""
    names = set[str]()
    shared = Queues.shared

    def noting(self: Queues, id: int, **use: bool) -> Any:
        queue = shared(self, id, **use)
        names.add(queue.name)
        return queue

    room.store._transaction.queues.shared = noting.__get__(room.store._transaction.queues)  # type: ignore[method-assign]
    return names


CHANGES: dict[str, tuple[Callable[[Postroom], object], set[str]]] = {
    "nothing": (lambda room: None, {"a", "b"}),
    "a limit of the target": (lambda room: room.consumers.set_policy("b", max_messages=100), {"a"}),
    "an order of the target": (lambda room: room.consumers.set_policy("b", order="strict"), {"a"}),
    "a command of the target": (lambda room: room.store.transact("x", _command), {"a"}),
    "a source that keeps nothing": (lambda room: room.queues.set_mode("a", keep_processed=False), {"b"}),
    "urgent messages": (lambda room: room.send("b", "now", priority=9), {"a", "b"}),
    "later messages": (lambda room: room.send("b", "later", delay=60), {"a", "b"}),
}


def _command(tx: Transaction) -> None:
    queue = tx.queues.named("b")
    assert queue is not None
    tx.queues.evolve(queue, path="b", ordinal=0, command="true")


@pytest.mark.parametrize("name", CHANGES)
def test_a_queue_with_more_to_look_at_is_had_alone(room: Postroom, name: str) -> None:
    change, expected = CHANGES[name]
    change(room)
    names = _shared_by(room)
    send(room, "1", "2")
    fence, claimed = _claimed(room)
    effects: dict[int, Effects] = {
        each.order: (Enqueue("copy", "b", "xml", None, "{}", "<r/>"),) for each in claimed.arrivals
    }
    room.store.transact("step", lambda tx: commit(tx, claimed, effects, 2, fence, shares=True))
    assert names == expected
    assert bodies(room, "b")[-2:] == ["<r/>", "<r/>"]


def test_a_step_that_finds_more_to_look_at_under_its_lock_is_repeated_alone(
    room: Postroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.consumers.set_policy("b", max_messages=100)
    monkeypatch.setattr(Queues, "can_share", lambda *_, **__: True)
    send(room, "1", "2")
    room.run_until_idle()
    assert bodies(room, "b") == ["<r>1</r>", "<r>2</r>"]


@pytest.mark.parametrize("how", ["named", "locked", "locked_all", "settled"])
def test_nobody_has_a_queue_alone_that_he_shares(room: Postroom, how: str) -> None:
    """Two who did that would wait for each other."""
    asked: Any = {"named": "a", "locked": 1, "locked_all": ["a"], "settled": 1}[how]

    def work(tx: Transaction) -> None:
        assert tx.queues.shared(1, puts=True, takes=True).name == "a"
        with pytest.raises(Unshared):
            getattr(tx.queues, how)(asked)

    room.store.transact("x", work)
    room.store.transact("x", lambda tx: getattr(tx.queues, how)(asked))


def test_what_cannot_be_counted_from_rows_is_refused_in_a_shared_queue(room: Postroom) -> None:
    def work(tx: Transaction) -> None:
        queue = tx.queues.shared(1, puts=True, takes=True)
        for change in (tx.counts.come_back, tx.counts.end_lease, tx.counts.keep, lambda one: tx.counts.purge(one, 1)):
            with pytest.raises(Unshared):
                change(queue)
        with pytest.raises(Unshared):
            tx.counts.depart(queue, 1, kept=False)

    room.store.transact("x", work)


# --- which uses a step has ---


def stored(queue: str, key: int = 1, properties: str = "{}") -> Stored:
    return record((key, queue, 1, None, None, "xml", "<m/>", b"", properties, None, 1, 1, 1))


PLAIN = Enqueue("r", "b", "xml", None, "{}", "<r/>")
WATCHED = Watched({"a": 0})
USES: dict[str, tuple[Effects, Watched, dict[str, Use]]] = {
    "plain": ((PLAIN,), WATCHED, {"a": TAKES, "b": PUTS}),
    "into itself": ((PLAIN._replace(queue="a"),), WATCHED, {"a": BOTH}),
    "nothing": ((), WATCHED, {"a": TAKES}),
    "an error": ((PLAIN._replace(failed=True),), WATCHED, {"a": TAKES, "b": PUTS}),
    "into a slice": ((PLAIN, PLAIN._replace(slices=(("s", "1"),))), WATCHED, {"a": TAKES}),
    "into an index": ((PLAIN._replace(entries=(("i", "1"),)), PLAIN), WATCHED, {"a": TAKES}),
    "with a delay": ((PLAIN._replace(delay=1),), WATCHED, {"a": TAKES}),
    "passed": ((PLAIN._replace(passed=True),), WATCHED, {"a": TAKES}),
    "compensating": ((PLAIN._replace(compensates=True),), WATCHED, {"a": TAKES}),
    "a reset": ((ResetSlice("r", "s", "1"), PLAIN), WATCHED, {"a": TAKES, "b": PUTS}),
    "a failed attempt": ((Failed("why", False),), WATCHED, {}),
    "from a sliced queue": ((PLAIN,), Watched({"a": 0}, sliced=frozenset("a")), {"b": PUTS}),
    "what stays": ((PLAIN,), Watched({"a": 0}, staying=frozenset("b")), {"a": TAKES}),
    "out of use": ((PLAIN,), Watched({"a": 0}, past=frozenset("b")), {"a": TAKES}),
}


@pytest.mark.parametrize("name", USES)
def test_a_step_shares_the_queues_in_which_it_does_no_more_than_others(name: str) -> None:
    made, watched, expected = USES[name]
    assert uses([(stored("a"), made)], watched, {}) == expected


def test_a_message_whose_time_has_come_is_taken_alone() -> None:
    assert uses([(stored("a"), (PLAIN,))], WATCHED, {1: object()}) == {"b": PUTS}


def test_a_step_with_a_message_of_a_sphere_has_its_queues_alone() -> None:
    assert uses([(stored("a"), (PLAIN,)), (stored("c", 2, f'{{"{IN_SPHERE}'), ())], WATCHED, {}) == {}


def test_a_store_of_one_file_shares_nothing(sqlite_url: str) -> None:
    with postroom.open(sqlite_url) as room:
        room.queues.create("a")
        assert not room.store.read(lambda tx: tx.queues.can_share(1, puts=True, takes=True))


def test_puts_are_counted() -> None:
    assert sharing.puts({0: (PLAIN, ResetSlice("r", "s", "1")), 1: (), 2: (PLAIN, PLAIN)}) == 3


def test_a_store_reserves_keys_if_it_has_too_few(room: Postroom) -> None:
    keys = room.store._transaction.keys
    room.store.reserve_keys(1_000)
    assert keys.has(1_000)
    before = keys._next
    room.store.reserve_keys(1_000)
    assert keys._next == before
    assert Store.reserve_keys(room.store, 10_000) is None  # type: ignore[func-returns-value]
    assert not keys.has(10_000_000)

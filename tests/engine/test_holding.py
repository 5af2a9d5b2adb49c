"""Several engines on one room: who has which queues, who takes over, and who comes too late; on both stores."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep

import pytest
from tests.faults.here import HereRules, evaluate_here

import postroom
from postroom.engine.holding import Divided, Holding, engines
from postroom.engine.steps.effects import Effects
from postroom.engine.steps.step import Claim, claim, commit
from postroom.room import Postroom
from postroom.store.kernel.batch import Stale
from postroom.store.kernel.transaction import Transaction

NAMES = ("a", "b", "c", "d")
PROGRAM = "".join(
    f"create queue {name} kind basic mode persistent\ncreate queue {name}-out kind basic mode persistent\n"
    f"create rule copy-{name} for {name} if (/m) then do enqueue <r>{{string(/m)}}</r> into {name}-out\n"
    for name in NAMES
)
READING = """
create queue sums kind basic mode persistent
create rule look for sums if (count(qs:queue("a-out")) ge 0) then do enqueue <s>{string(/m)}</s> into d-out
"""


@pytest.fixture
def divided(room: Postroom, tmp_path: Path) -> Postroom:
    (tmp_path / "p.demaq").write_text(PROGRAM + READING)
    room.load(tmp_path / "p.demaq")
    return room


def wait_until(true: Callable[[], object]) -> None:
    end = monotonic() + 60
    while not true():
        assert monotonic() < end, "it did not come about"
        sleep(0.02)


def shares(room: Postroom) -> list[tuple[str, ...]]:
    return [engine.queues for engine in room.store.read(engines)]


def are_shared(room: Postroom, count: int) -> bool:
    """Whether so many engines have all queues that can be divided, each some of them."""
    found = shares(room)
    return len(found) == count and all(found) and sorted(name for some in found for name in some) == list(NAMES)


def joining(room: Postroom, owner: str, free: tuple[str, ...] = NAMES) -> Holding:
    return Holding(room.store, owner, lambda tx: Divided(frozenset(free), frozenset(free)))


@contextmanager
def engine(url: str) -> Iterator[Postroom]:
    """An engine that stays, in a thread of its own, on a room of its own."""
    with postroom.open(url) as room:
        evaluate_here(room)
        runner = room._parts.runner
        runner._stages = (HereRules(room), *runner._stages[1:])
        failures: list[BaseException] = []

        def run() -> None:
            try:
                room.run()
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield room
        finally:
            room.stop()
            thread.join(60)
        assert not thread.is_alive()
        assert failures == []


def sent_everywhere(room: Postroom, *texts: str) -> None:
    for text in texts:
        for name in NAMES:
            room.send(name, f"<m>{text}</m>", format="xml")


def answers(room: Postroom, name: str) -> list[str]:
    return [message.body for message in room.peek(f"{name}-out") if message.body.startswith("<r>")]


def test_engines_divide_the_queues_and_take_over_from_one_that_goes(divided: Postroom, url: str) -> None:
    with engine(url), ExitStack() as second:
        wait_until(lambda: are_shared(divided, 1))
        second.enter_context(engine(url))
        wait_until(lambda: are_shared(divided, 2))
        (first,) = [each for each in divided.store.read(engines) if each.leads]
        assert len(first.queues) == 2
        sent_everywhere(divided, "1", "2")
        divided.send("sums", "<m>x</m>", format="xml")
        wait_until(lambda: all(len(answers(divided, name)) == 2 for name in NAMES))
        second.close()
        wait_until(lambda: are_shared(divided, 1))
        sent_everywhere(divided, "3")
        wait_until(lambda: all(len(answers(divided, name)) == 3 for name in NAMES))
        wait_until(lambda: "<s>x</s>" in [message.body for message in divided.peek("d-out")])
    assert shares(divided) == []
    assert [answers(divided, name) for name in NAMES] == [["<r>1</r>", "<r>2</r>", "<r>3</r>"]] * 4
    assert divided.journal.verify().differences == ()


def test_an_engine_that_helped_leads_when_the_leader_goes(divided: Postroom, url: str) -> None:
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(engine(url))
        wait_until(lambda: are_shared(divided, 1))
        second.enter_context(engine(url))
        wait_until(lambda: are_shared(divided, 2))
        first.close()
        wait_until(lambda: [each.leads for each in divided.store.read(engines)] == [True])
        wait_until(lambda: are_shared(divided, 1))
        divided.send("sums", "<m>x</m>", format="xml")
        wait_until(lambda: "<s>x</s>" in [message.body for message in divided.peek("d-out")])


def test_what_looks_at_others_is_not_divided(divided: Postroom) -> None:
    found = divided.store.read(divided._parts.runner._divided)
    assert found == Divided(frozenset({*NAMES, "sums"}), frozenset(NAMES))


def test_neither_is_what_resets_a_slice(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "p.demaq").write_text(
        "create queue a kind basic mode persistent\ncreate queue b kind basic mode persistent\n"
        "create property k as xs:string queue a, b value //k create slicing s on k\n"
        "create rule over for a if (/over) then do reset s key string(//k)\n"
        "create rule copy for b if (/m) then do enqueue <c/> into a\n"
    )
    room.load(tmp_path / "p.demaq")
    assert room.store.read(room._parts.runner._divided).free == {"b"}


def test_a_silent_engine_loses_its_queues_and_comes_back(room: Postroom) -> None:
    one, two = joining(room, "elsewhere/1/1"), joining(room, "elsewhere/2/2")
    for each in (one, two, one, two):
        each.balance()
    assert (sorted(one.queues), sorted(two.queues)) == (["a", "c"], ["b", "d"])
    assert not one.balance()
    room.store.transact("lease", lambda tx: tx.session.run("UPDATE leases SET expires = 1 WHERE name = 'engine 1'"))
    two.balance()
    assert two.queues == set(NAMES)
    with pytest.raises(Stale):
        room.store.transact("step", lambda tx: one.check(tx, ["a"]))
    room.store.transact("step", lambda tx: two.check(tx, NAMES))
    room.store.transact("lease", one.beat)  # it has woken up
    for each in (one, two, one, two):
        each.balance()
    assert (sorted(one.queues), sorted(two.queues)) == (["a", "c"], ["b", "d"])
    room.store.transact("step", lambda tx: one.check(tx, ["a", "c"]))


def test_a_place_that_was_taken_is_not_two_engines(room: Postroom) -> None:
    one, two = joining(room, "elsewhere/1/1"), joining(room, "elsewhere/2/2")
    one.balance()
    room.store.transact("lease", lambda tx: tx.session.run("UPDATE leases SET expires = 1 WHERE name = 'engine 1'"))
    two.balance()
    room.store.transact("lease", one.beat)
    assert [each.place for each in room.store.read(engines)] == [1]
    one.balance()
    assert [each.place for each in room.store.read(engines)] == [1, 2]
    one.leave()
    assert [each.queues for each in room.store.read(engines)] == [NAMES]


def test_queues_that_can_no_longer_be_divided_are_let_go(room: Postroom) -> None:
    one = joining(room, "elsewhere/1/1")
    one.balance()
    one._divided = lambda tx: Divided(frozenset({"a"}), frozenset({"a"}))
    one.balance()
    assert one.queues == {"a"}


def test_beside_an_engine_that_shares_nothing_others_have_nothing(room: Postroom) -> None:
    room.store.transact("lease", lambda tx: tx.leases.acquire("engine", "elsewhere/9/9", 60))
    one = joining(room, "elsewhere/1/1")
    one.balance()
    assert one.queues == frozenset()


def _claimed(room: Postroom, held: Holding) -> Claim:
    stage = HereRules(room)

    def work(tx: Transaction) -> Claim:
        share = stage.share(tx)
        assert share is not None
        found = claim(tx, share, 10, 0, dict.fromkeys(held.others(), ""), {}, holding=held)
        assert found is not None
        return found

    return room.store.transact("claim", work)


def test_a_late_engine_cannot_commit(divided: Postroom) -> None:
    one, two = joining(divided, "elsewhere/1/1"), joining(divided, "elsewhere/2/2")
    one.balance()
    key = divided.send("a", "<m>1</m>", format="xml").key
    late = _claimed(divided, one)
    statement = "UPDATE leases SET expires = 1 WHERE name = 'engine 1'"
    divided.store.transact("lease", lambda tx: tx.session.run(statement))
    two.balance()
    nothing: dict[int, Effects] = {arrival.order: () for arrival in late.arrivals}
    with pytest.raises(Stale):
        divided.store.transact("step", lambda tx: commit(tx, late, nothing, 1, 0, holding=one))
    assert [event.verb for event in divided.trace(key)] == ["put"]
    again = _claimed(divided, two)
    divided.store.transact("step", lambda tx: commit(tx, again, nothing, 1, 0, holding=two))
    assert [event.verb for event in divided.trace(key)] == ["put", "take"]


def test_a_send_does_not_wait_for_a_claim(postgres_url: str, tmp_path: Path) -> None:
    (tmp_path / "p.demaq").write_text(PROGRAM)
    held, sent = threading.Event(), threading.Event()
    with postroom.open(postgres_url) as room, postroom.open(postgres_url) as sender:
        room.load(tmp_path / "p.demaq")
        sender.send("a", "<m>1</m>", format="xml")
        one = joining(room, "elsewhere/1/1")
        one.balance()
        share = room.store.read(HereRules(room).share)
        assert share is not None

        def hold(tx: Transaction) -> None:
            assert claim(tx, share, 10, 0, {}, {}, holding=one) is not None
            held.set()
            assert sent.wait(60), "the send waits for the claim"

        thread = threading.Thread(target=lambda: room.store.transact("claim", hold))
        thread.start()
        assert held.wait(60)
        sender.send("a", "<m>2</m>", format="xml")
        sender.send_many("a", ["<m>3</m>"], format="xml")
        sent.set()
        thread.join(60)
        assert sender.count("a").queues[0].unprocessed == 3

"""The engine on real Spark: it wakes, waits, stops and starts again, and every message has its effects once."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGCONT
from time import monotonic, sleep
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.freezing import freeze

import postroom
from postroom import Field, MessageType
from postroom.engine import runner
from postroom.engine.runner import Totals
from postroom.engine.spark.executor_store import Bay
from postroom.engine.steps.effects import Arrival, Effects
from postroom.engine.steps.serial import Timeline
from postroom.engine.steps.stage import Share
from postroom.engine.steps.watching import WatchingStage
from postroom.engine.way import Way
from postroom.errors import LeaseHeld, LeaseLost, PostroomError
from postroom.limits import WORKER_MESSAGES_MAX
from postroom.model.key import key_number
from postroom.room import Postroom
from postroom.rules.evaluation.chunks import Base
from postroom.rules.evaluation.share import RulesShare
from postroom.store.kernel.transaction import Transaction

pytestmark = pytest.mark.usefixtures("spark")

ROOT = Path(__file__).parents[2]
MASTER = "local[2]"
QUEUES = """
create system errorqueue errors
create queue in kind basic mode persistent
create queue out kind basic mode persistent
create queue other kind basic mode persistent
create queue errors kind basic mode persistent
create queue later kind echo mode persistent
"""
ECHO = "create rule answer for in if (/m) then do enqueue <r>{string(/m)}</r> into out"
Act = Callable[[], object]


@pytest.fixture
def one_room(sqlite_url: str) -> Iterator[Postroom]:
    """For what is the same on both stores."""
    with postroom.open(sqlite_url) as opened:
        yield opened


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., None]:
    """Load one program of one module; a second call replaces the first."""

    def load(room: Postroom, *rules: str, queues: str = QUEUES) -> None:
        file = tmp_path / "program.demaq"
        file.write_text("\n".join([queues, *rules]))
        room.load(file)

    return load


Load = Callable[..., None]


def work_off(room: Postroom, **options: Any) -> Totals:
    return room.engine.run_totals(until_idle=True, master=MASTER, **options)


def send(room: Postroom, *texts: object, queue: str = "in") -> list[str]:
    return [room.send(queue, f"<m>{text}</m>", format="xml").key for text in texts]


def bodies(room: Postroom, queue: str = "out") -> list[str]:
    return [message.body for message in room.queues.info(queue)]


def answers(room: Postroom) -> list[str]:
    return [body.removeprefix("<r>").removesuffix("</r>") for body in bodies(room)]


def verbs(room: Postroom, key: str) -> list[str]:
    return [event.verb for event in room.trace(key)]


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, "it did not happen in time"
        sleep(0.02)


@contextmanager
def running(room: Postroom, **options: Any) -> Iterator[list[BaseException]]:
    """An engine in a thread of its own; at the end it is stopped, and what it raised is raised here."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            room.run(master=MASTER, **options)
        except PostroomError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        wait_until(lambda: not thread.is_alive() or any(event.verb == "lease" for event in room.journal.last(1000)))
        yield raised
    finally:
        room.stop()
        room.store.transact("send", lambda tx: tx.wake())
        thread.join(60)
        assert not thread.is_alive()


@dataclass(frozen=True)
class InterruptedShare(RulesShare):
    act: Act

    def evaluate(
        self, way: Way, arrivals: Sequence[Arrival], base: Base, known: Timeline, bay: Bay | None = None
    ) -> Iterator[Mapping[int, Effects]]:
        found = list(super().evaluate(way, arrivals, base, known, bay))
        self.act()
        yield from found


class Interrupted(WatchingStage):
    """The rules' stage; something happens in the world after the first claim and before its commit."""

    def __init__(self, room: Postroom, *acts: Act) -> None:
        self._programs = room._parts.programs
        self._acts = list(acts)

    def share(self, tx: Transaction, waiting: Collection[str] = ()) -> Share | None:
        return InterruptedShare(self._programs.plan(tx), lambda: self._acts and self._acts.pop(0)())


def interrupt(room: Postroom, *acts: Act) -> None:
    room._parts.runner._stages = (Interrupted(room, *acts),)


# --- running ---


def test_a_message_wakes_an_idle_engine_without_a_polling_delay(
    room: Postroom, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (
        "engine.runner.IDLE_SECONDS",
        "store.files.wakeup.RECHECK_SECONDS",
        "store.postgres.store.RECHECK_SECONDS",
    ):
        monkeypatch.setattr(f"postroom.{module}", 600)  # only a wake-up can end its sleep
    load(room, ECHO)
    with running(room):
        for number in range(3):
            sleep(0.3)  # it has gone to sleep again
            send(room, number)
            wait_until(lambda number=number: len(bodies(room)) == number + 1)  # type: ignore[misc]  # mypy cannot tell the type of a default
    assert answers(room) == ["0", "1", "2"]


def test_definitions_loaded_while_it_runs_hold_for_the_next_step(room: Postroom, load: Load) -> None:
    load(room, ECHO)
    with running(room):
        send(room, "a")
        wait_until(lambda: len(bodies(room)) == 1)
        load(room, "create rule answer for in if (/m) then do enqueue <new>{string(/m)}</new> into out")
        send(room, "b")
        wait_until(lambda: len(bodies(room)) == 2)
    assert bodies(room) == ["<r>a</r>", "<new>b</new>"]


def test_a_step_that_began_under_old_definitions_is_done_again_under_the_new(room: Postroom, load: Load) -> None:
    load(room, ECHO)
    keys = send(room, "a", "b")
    new = "create rule answer for in if (/m) then do enqueue <new>{string(/m)}</new> into out"
    interrupt(room, lambda: load(room, new))
    assert work_off(room).messages == 2
    assert bodies(room) == ["<new>a</new>", "<new>b</new>"]
    assert [verbs(room, key) for key in keys] == [["put", "take"]] * 2


def test_stop_ends_it_after_the_step_in_hand(room: Postroom, load: Load) -> None:
    load(room, ECHO)
    send(room, *"abc")
    interrupt(room, room.stop)
    totals = work_off(room, step_messages=1)
    assert (totals.steps, totals.messages, totals.created) == (1, 1, 1)
    assert answers(room) == ["a"]
    assert len(bodies(room, "in")) == 2
    assert work_off(room).messages == 2


def test_progress_is_told_after_each_step_and_the_totals_add_up(one_room: Postroom, load: Load) -> None:
    load(one_room, ECHO, "create rule fail for in if (string(/m) = 'bad') then do enqueue <r>{1 idiv 0}</r> into out")
    send(one_room, "a", "bad", "b", "c", "d")
    told: list[tuple[int, int, int, int]] = []

    def progress(totals: Totals) -> None:
        assert totals.last is not None
        assert set(totals.last.seconds) == {"claim", "evaluate", "commit"}
        told.append((totals.steps, totals.messages, totals.created, totals.failures))

    totals = work_off(one_room, step_messages=2, progress=progress)
    assert told == [(1, 2, 2, 1), (2, 4, 4, 1), (3, 5, 5, 1)]
    assert (totals.steps, totals.messages, totals.created, totals.failures) == told[-1]
    assert answers(one_room) == ["a", "b", "c", "d"]
    assert "FOAR0001" in bodies(one_room, "errors")[0]


def test_steps_grow_while_they_are_short_and_shrink_when_they_are_long(
    one_room: Postroom, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(one_room, "create rule nothing for in if (/never) then do enqueue <r/> into out")
    claimed: list[int] = []

    def progress(totals: Totals) -> None:
        assert totals.last is not None
        claimed.append(totals.last.claimed)
        sizes.append(one_room._parts.runner._size)
        if len(claimed) == 4:
            monkeypatch.setattr(runner, "STEP_SECONDS", 0.0)

    sizes: list[int] = []
    monkeypatch.setattr(runner, "STEP_SECONDS", 1000.0)
    one_room.send_many("in", ["<m/>"] * 3000, format="xml")
    one_room._parts.runner._size = 20
    assert work_off(one_room, progress=progress).messages == 3000
    assert claimed == [20, 20, 20, 320, 320, 320, 1980], "two steps were claimed before the first was done"
    assert sizes == [320, 320, 320, 5120, 2560, 1280, 640], "the last three were too long"


def test_steps_that_a_worker_has_to_keep_small_do_not_make_the_first_of_spark_a_huge_one(
    one_room: Postroom, load: Load
) -> None:
    load(one_room, "create rule nothing for in if (/never) then do enqueue <r/> into out")
    one_room.send_many("in", ["<m/>"] * 600, format="xml")
    claimed: list[int] = []

    def progress(totals: Totals) -> None:
        assert totals.last is not None
        claimed.append(totals.last.claimed)
        assert one_room._parts.runner._size == runner._STEP_MESSAGES_FIRST

    one_room.engine.run_totals(until_idle=True, progress=progress, master=MASTER, spark="auto")
    assert claimed[:3] == [WORKER_MESSAGES_MAX] * 3


def test_an_engine_idle_for_a_while_sweeps_what_nothing_holds(
    room: Postroom, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "SWEEP_IDLE_SECONDS", 0.2)
    held = """
    create property k as xs:string queue out value string(.)
    create slicing group on k
    create rule see for group if (/never) then do reset"""
    load(room, ECHO, held)
    (key,) = send(room, "a")
    with running(room):
        wait_until(lambda: len(room.queues.history("out").messages) == 1)
        wait_until(lambda: not room.queues.history("in").messages)
    assert [message.body for message in room.queues.history("out")] == ["<r>a</r>"], "a slice holds it"
    assert verbs(room, key)[:2] == ["put", "take"]


# --- order ---


def test_a_higher_priority_goes_first_and_equals_in_the_order_of_arrival(one_room: Postroom, load: Load) -> None:
    queues = "create system errorqueue errors create queue errors kind basic mode persistent\n" + "\n".join(
        f"create queue {name} kind basic mode persistent {more}"
        for name, more in (("low", ""), ("same", ""), ("high", "priority 5"), ("out", ""))
    )
    rules = [f"create rule r{name} for {name} if (/m) then do enqueue <r>{{string(/m)}}</r> into out"
             for name in ("low", "same", "high")]  # fmt: skip
    load(one_room, *rules, queues=queues)
    for number, queue in enumerate(["low", "same", "low", "high", "same", "high"]):
        send(one_room, f"{queue}{number}", queue=queue)
    work_off(one_room, step_messages=2)
    assert answers(one_room) == ["high3", "high5", "low0", "same1", "low2", "same4"]


def test_a_rule_may_feed_its_own_queue_for_a_while(one_room: Postroom, load: Load) -> None:
    load(
        one_room,
        "create rule down for in if (/m > 0) then do enqueue <m>{/m - 1}</m> into in else do enqueue <end/> into out",
    )
    send(one_room, 12, 7)
    totals = work_off(one_room)
    assert (totals.messages, totals.steps) == (21, 13)
    assert bodies(one_room) == ["<end/>", "<end/>"]


def test_echoes_come_back_in_the_order_of_their_time_also_after_a_restart(url: str, load: Load) -> None:
    now = [1_000_000_000_000_000]
    rule = """create rule wait for in if (/m) then
        do enqueue <m>{string(/m)}</m> into later with target value "out" with timeout value xs:integer(/m)"""
    with postroom.open(url, clock=lambda: now[0]) as room:
        load(room, rule)
        send(room, 30, 10, 20, 10)
        work_off(room)
        assert (len(bodies(room, "later")), bodies(room)) == (4, [])
        now[0] += 10_500_000
        work_off(room)
        assert bodies(room) == ["<m>10</m>", "<m>10</m>"]
    now[0] += 60_000_000
    with postroom.open(url, clock=lambda: now[0]) as room:
        work_off(room, step_messages=1)
        assert bodies(room) == ["<m>10</m>", "<m>10</m>", "<m>20</m>", "<m>30</m>"]
        assert bodies(room, "later") == []
        assert work_off(room).messages == 0


def test_a_clock_that_jumps_back_and_forth_loses_and_doubles_nothing(url: str, load: Load) -> None:
    day = 86_400_000_000
    now = [1_000_000_000_000_000]
    rule = """create rule wait for in if (/m) then (do enqueue <r>{string(/m)}</r> into out,
        do enqueue <m>{string(/m)}</m> into later with target value "other" with timeout value 60)"""
    with postroom.open(url, clock=lambda: now[0]) as room:
        load(room, rule)
        for number, jump in enumerate([0, -day, 2 * day, -2 * day, day]):
            now[0] += jump
            send(room, number)
            work_off(room)
        now[0] += 3 * day
        work_off(room)
        assert answers(room) == ["0", "1", "2", "3", "4"]
        assert sorted(bodies(room, "other")) == [f"<m>{number}</m>" for number in range(5)]


def test_the_clock_may_jump_in_the_middle_of_a_step(sqlite_url: str, load: Load) -> None:
    day = 86_400_000_000
    now = [1_000_000_000_000_000]

    def jump(by: int) -> Act:
        return lambda: now.__setitem__(0, now[0] + by)

    with postroom.open(sqlite_url, clock=lambda: now[0]) as room:
        load(room, ECHO)
        send(room, *"abc")
        interrupt(room, jump(day), jump(-3 * day), jump(2 * day))
        assert work_off(room, step_messages=1).messages == 3
        assert answers(room) == ["a", "b", "c"]


# --- what rules see ---


def test_json_and_typed_forms_pass_through_rules(one_room: Postroom, load: Load) -> None:
    one_room.definitions.define_type(MessageType("Claim", (Field("Name"), Field("Amount"))))
    load(
        one_room,
        """create rule json for in if (. instance of map(*)) then
            do enqueue map {"double": ?n * 2, "list": array {?list?*}} into out""",
        "create rule form for other if (/Claim/Name) then do enqueue <r>{string(/Claim/Name)}</r> into out",
        "create rule text for other if (starts-with(string(.), 'plain')) then do enqueue string(.) || '!' into out",
    )
    one_room.send("in", {"n": 21, "list": [1, "zwei", None]})
    one_room.send("other", {"Name": "Smith", "Amount": "12"}, type="Claim")
    one_room.send("other", "plain <text> & more")
    assert work_off(one_room).failures == 0, bodies(one_room, "errors")
    found = [(message.format, message.body) for message in one_room.queues.info("out")]
    assert found[1:] == [("xml", "<r>Smith</r>"), ("text", "plain <text> & more!")]
    assert found[0][0] == "json"
    assert '"double":42' in found[0][1].replace(" ", "")


# --- holds and locks ---


def test_a_target_on_hold_blocks_its_source_and_the_others_go_on(room: Postroom, load: Load) -> None:
    load(room, ECHO, "create rule side for other if (/m) then do enqueue <e/> into errors")
    room.queues.set_password("out", password="pw")
    room.queues.disable("out", password="pw")
    send(room, "a", "b")
    send(room, "x", queue="other")
    totals = work_off(room)
    assert totals.waiting == {"in": "out"}
    assert (len(bodies(room, "in")), bodies(room), bodies(room, "errors")) == (2, [], ["<e/>"])
    with running(room):
        sleep(0.5)
        assert len(bodies(room, "in")) == 2
        room.queues.enable("out", password="pw")
        wait_until(lambda: answers(room) == ["a", "b"])


def test_a_message_before_the_blocked_one_is_done_and_one_behind_it_waits(one_room: Postroom, load: Load) -> None:
    load(
        one_room, "create rule sort for in if (/m = 'b') then do enqueue <r/> into out else do enqueue <r/> into other"
    )
    one_room.queues.set_password("out", password="pw")
    one_room.queues.disable("out", password="pw")
    send(one_room, *"abc")
    assert work_off(one_room).messages == 1
    assert bodies(one_room, "in") == ["<m>b</m>", "<m>c</m>"]
    one_room.queues.enable("out", password="pw")
    assert work_off(one_room).messages == 2
    assert (bodies(one_room, "other"), bodies(one_room)) == (["<r/>"] * 2, ["<r/>"])


def test_a_watched_queue_on_hold_waits(room: Postroom, load: Load) -> None:
    load(room, ECHO)
    room.queues.set_password("in", password="pw")
    send(room, "a")
    room.queues.disable("in", password="pw")
    with running(room):
        sleep(0.5)
        assert bodies(room) == []
        room.queues.enable("in", password="pw")
        wait_until(lambda: answers(room) == ["a"])


def test_a_queue_put_on_hold_in_the_middle_of_a_step_releases_nothing_more(room: Postroom, load: Load) -> None:
    load(room, ECHO)
    room.queues.set_password("in", password="pw")
    send(room, *"ab")
    interrupt(room, lambda: room.queues.disable("in", password="pw"))
    work_off(room)
    assert (answers(room), len(bodies(room, "in"))) == ([], 2)
    room.queues.enable("in", password="pw")
    work_off(room)
    assert answers(room) == ["a", "b"]


def test_an_echo_whose_target_is_on_hold_waits_and_stops_nobody_else(room: Postroom, load: Load) -> None:
    load(
        room,
        """create rule wait for in if (/m) then
            do enqueue <late/> into later with target value "other" with timeout value 0""",
    )
    room.queues.set_password("other", password="pw")
    room.queues.disable("other", password="pw")
    send(room, "a")
    steps: list[int] = []

    def progress(totals: Totals) -> None:
        steps.append(totals.steps)
        if len(steps) > 6:
            room.stop()

    totals = work_off(room, progress=progress)
    assert totals.waiting == {"later": "other"}
    assert len(steps) <= 3, "it must not try the same step again and again"
    room.queues.enable("other", password="pw")
    work_off(room)
    assert bodies(room, "other") == ["<late/>"]


def test_due_echoes_of_a_queue_on_hold_do_not_hide_those_of_another(one_room: Postroom, load: Load) -> None:
    load(
        one_room,
        "create queue second kind echo mode persistent",
        """create rule wait for in if (/m = 'held') then
              do enqueue <late/> into later with target value "out" with timeout value 0
           else do enqueue <free/> into second with target value "out" with timeout value 0""",
    )
    one_room.queues.set_password("later", password="pw")
    send(one_room, *["held"] * 4, "free")
    interrupt(one_room, lambda: None)
    one_room._parts.runner._size = 16
    done = work_off(one_room, step_messages=5, progress=lambda totals: one_room.stop())
    assert done.steps == 1
    one_room.queues.disable("later", password="pw")
    work_off(one_room, step_messages=2)
    assert bodies(one_room) == ["<free/>"]
    one_room.queues.enable("later", password="pw")
    work_off(one_room)
    assert bodies(one_room) == ["<free/>"] + ["<late/>"] * 4


def test_a_lock_of_a_process_that_ended_does_not_stop_the_engine(room: Postroom, url: str, load: Load) -> None:
    load(room, ECHO)
    send(room, "a\nb", "c")
    code = "import sys, os, postroom; room = postroom.open(sys.argv[1]); room.receive('in', segment=True); os._exit(0)"
    subprocess.run([sys.executable, "-c", code, url], check=True, timeout=60)
    work_off(room)
    assert answers(room) == ["a\nb", "c"]


# --- others in the same room ---


def test_a_claimed_message_that_someone_receives_first_is_not_processed_twice(
    room: Postroom, url: str, load: Load
) -> None:
    load(room, ECHO)
    keys = send(room, *"abc")
    received: list[str] = []

    def receive() -> None:
        with postroom.open(url) as other:
            message = other.receive("in").message
            assert message is not None
            received.append(message.body)

    interrupt(room, receive)
    totals = work_off(room)
    assert (received, answers(room), totals.messages) == (["<m>a</m>"], ["b", "c"], 2)
    assert [verbs(room, key) for key in keys] == [["put", "take"]] * 3


def test_a_claimed_message_that_someone_began_to_read_is_left_to_them(room: Postroom, url: str, load: Load) -> None:
    load(room, ECHO)
    send(room, "a\nb", "c")
    with postroom.open(url) as other:
        interrupt(room, lambda: other.receive("in", segment=True).message)
        work_off(room)
        assert answers(room) == []
        while not (received := other.receive("in", segment=True)).end_of_message:
            assert received.message is not None
        work_off(room)
    assert answers(room) == ["c"]


def test_a_second_engine_is_refused(room: Postroom, url: str, load: Load) -> None:
    load(room, ECHO)
    with running(room), postroom.open(url) as other:
        with pytest.raises(LeaseHeld):
            work_off(other)
        send(room, "a")
        wait_until(lambda: answers(room) == ["a"])


def test_an_engine_whose_lease_was_taken_over_in_a_step_cannot_commit_it(room: Postroom, url: str, load: Load) -> None:
    load(room, ECHO)
    keys = send(room, *"ab")

    def take_over() -> None:
        with postroom.open(url, clock=lambda: 10**18) as other:
            other.store.transact("lease", lambda tx: tx.leases.acquire("engine", "elsewhere/1/1", 10))
        with postroom.open(url) as other:
            other.store.transact("release-lease", lambda tx: tx.leases.release("engine", 2))

    interrupt(room, take_over)
    with pytest.raises(LeaseLost):
        work_off(room)
    assert bodies(room) == []
    with postroom.open(url) as next_one:
        assert work_off(next_one).messages == 2
    assert answers(room) == ["a", "b"]
    assert [verbs(room, key) for key in keys] == [["put", "take"]] * 2


SLEEPER = """
import sys, time, postroom
from postroom.engine import beating, runner
from tests.faults.here import HereShare, HereStage

beating.ENGINE_LEASE_SECONDS = runner.ENGINE_LEASE_SECONDS = 1.0
evaluate = HereShare.evaluate

def slowly(self, *arguments):
    found = list(evaluate(self, *arguments))
    print("evaluated", flush=True)
    time.sleep(2)
    return iter(found)

HereShare.evaluate = slowly
with postroom.open(sys.argv[1]) as room:
    room._parts.runner._stages = (HereStage(room),)
    try:
        room._parts.runner.run(spark=lambda: None, until_idle=True)  # a share that evaluates here needs none
    except postroom.errors.LeaseLost as lost:
        print(lost.code)
"""


def test_an_engine_that_slept_for_longer_than_its_lease_commits_nothing(room: Postroom, url: str, load: Load) -> None:
    load(room, ECHO)
    keys = send(room, *"ab")
    late = subprocess.Popen([sys.executable, "-c", SLEEPER, url], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert late.stdout is not None
        assert late.stdout.readline() == "evaluated\n"
        freeze(room, late.pid)
        sleep(3)  # three leases
        assert work_off(room).messages == 2
        late.send_signal(SIGCONT)
        said, _ = late.communicate(timeout=60)
    finally:
        late.kill()
        late.wait()
    assert said == "lease-lost\n"
    assert answers(room) == ["a", "b"]
    assert [verbs(room, key) for key in keys] == [["put", "take"]] * 2


# --- damage ---


def damage(room: Postroom, key: str) -> None:
    def work(tx: Transaction) -> None:
        changed = "UPDATE messages SET body = replace(body, 'm', 'n') WHERE key = ?"
        assert tx.session.run(changed, (key_number(key),)) == 1

    room.store.transact("send", work)


@pytest.mark.parametrize("step_messages", [None, 1])
def test_a_damaged_message_is_set_aside_and_the_others_go_on(
    room: Postroom, load: Load, step_messages: int | None
) -> None:
    load(room, ECHO)
    keys = send(room, *"abcd")
    damage(room, keys[0])
    damage(room, keys[2])
    assert work_off(room, step_messages=step_messages).messages == 2
    assert answers(room) == ["b", "d"]
    assert [verbs(room, key)[-1] for key in keys] == ["set-aside", "take", "set-aside", "take"]


def test_a_damaged_message_in_an_echo_queue_is_set_aside_and_the_others_go_on(room: Postroom, load: Load) -> None:
    rule = """create rule wait for in if (/m) then
        do enqueue <m>{string(/m)}</m> into later with target value "out" with timeout value 0"""
    load(room, rule)
    send(room, *"abc")
    work_off(room, step_messages=3, progress=lambda totals: room.stop())
    first = room.queues.info("later").messages[0].key
    damage(room, first)
    work_off(room)
    assert bodies(room) == ["<m>b</m>", "<m>c</m>"]
    send(room, "d")
    work_off(room)
    assert bodies(room)[-1] == "<m>d</m>"
    assert verbs(room, first)[-1] == "set-aside"


def test_an_idle_engine_keeps_its_workers_but_starts_none(
    one_room: Postroom, load: Load, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def jobs() -> int:
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))

    monkeypatch.setattr(runner, "WARM_SECONDS", 0.2)
    load(one_room, ECHO)
    before = jobs()
    with running(one_room):
        sleep(2)
        assert jobs() == before
        send(one_room, "a")
        wait_until(lambda: answers(one_room) == ["a"])
        wait_until(lambda: jobs() >= before + 4)
        send(one_room, "b")
        wait_until(lambda: answers(one_room) == ["a", "b"])

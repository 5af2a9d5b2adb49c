"""Attempts of the engine, as the policies of queues say: rules, arcs, counters; on both stores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.faults.here import evaluate_here
from tests.stations.counters.claims import CLAIM, IN, JSON, furnished
from tests.stations.counters.claims import load as load_counter

from postroom import faults
from postroom.engine.steps.attempts import NO_TRIES, Tries, failed
from postroom.engine.steps.effects import Arrival, Document, Effects, Enqueue, Failed, Granule
from postroom.engine.steps.failures import Failure, error_message, told
from postroom.errors import ArgumentInvalid
from postroom.faults import FaultInjected
from postroom.model.message import Value
from postroom.room import Postroom
from postroom.store.kernel.policies import Policy
from postroom.store.kernel.queues import SYSTEM_ERRORS

QUEUES = """
create queue in kind basic mode persistent
create queue out kind basic mode persistent
create queue switch kind basic mode persistent
create queue errors kind basic mode persistent
"""
DIVIDE = "create rule divide for in errorqueue errors if (/m) then do enqueue <r>{60 div xs:integer(/m)}</r> into out"
#: Fails until something is in the queue ``switch``.
LATER = """create rule later for in errorqueue errors
if (/m) then do enqueue <r>{if (empty(qs:queue("switch"))) then error(xs:QName("x"), "off") else string(/m)}</r>
into out"""


@pytest.fixture
def load(room: Postroom, tmp_path: Path) -> Callable[..., Postroom]:
    """Rules in force, and steps that are evaluated in this process."""

    def load(*rules: str, queues: str = QUEUES) -> Postroom:
        (tmp_path / "p.demaq").write_text("\n".join([queues, *rules]))
        room.load(tmp_path / "p.demaq")
        return evaluate_here(room)

    return load


Load = Callable[..., Postroom]


def work(room: Postroom) -> Any:
    return room.engine.run_totals(until_idle=True)


def bodies(room: Postroom, queue: str) -> list[str]:
    return [message.body for message in room.peek(queue)]


def verbs(room: Postroom, key: str) -> list[str]:
    return [event.verb for event in room.trace(key)]


def sound(room: Postroom) -> None:
    assert room.journal.verify().differences == ()


# --- rules ---


def test_a_rule_that_fails_is_tried_as_often_as_the_policy_says(load: Load) -> None:
    room = load(DIVIDE)
    room.consumers.set_policy("in", attempts=3, retry="all", dead_letters="graves")
    good, bad, after = (room.send("in", f"<m>{n}</m>", format="xml").key for n in (2, 0, 3))
    totals = work(room)
    assert bodies(room, "out") == ["<r>30</r>", "<r>20</r>"]
    (dead,) = room.peek("graves").messages
    assert dead.key == bad
    assert dead.properties["dead.queue"] == "in"
    assert dead.properties["dead.attempts"] == 3
    assert "FOAR0001" in str(dead.properties["dead.reason"])
    assert verbs(room, bad) == ["put", "lease", "fail", "lease", "fail", "lease", "dead-letter"]
    (error,) = room.peek("errors").messages
    assert f'key="{bad}"' in error.body, "the error message that the language promises, once"
    assert error.cause == bad
    assert totals.failures == 1, "it is told once"
    assert room.count("in").queues[0].processed == 2
    assert [verbs(room, key)[-1] for key in (good, after)] == ["take", "take"]
    sound(room)


def test_what_fails_the_same_way_each_time_is_a_dead_letter_at_once(load: Load) -> None:
    room = load(DIVIDE)
    room.consumers.set_policy("in", attempts=3, backoff=600)
    bad = room.send("in", "<m>0</m>", format="xml").key
    work(room)
    (dead,) = room.peek("in.dead").messages
    assert (dead.key, dead.properties["dead.attempts"]) == (bad, 1)
    assert len(bodies(room, "errors")) == 1
    sound(room)


def test_without_attempts_everything_is_as_the_language_says(load: Load) -> None:
    room = load(DIVIDE)
    room.consumers.set_policy("in", max_messages=100)
    bad = room.send("in", "<m>0</m>", format="xml").key
    work(room)
    assert verbs(room, bad) == ["put", "take"]
    assert len(bodies(room, "errors")) == 1


def test_a_message_waits_for_its_next_attempt_and_is_seen(load: Load) -> None:
    room = load(LATER)
    room.consumers.set_policy("in", attempts=100, backoff=0.2, backoff_max=0.2, retry="all")
    key = room.send("in", "<m>a</m>", format="xml").key
    seen: list[tuple[int, int, int]] = []

    def look(totals: Any) -> None:
        count = room.queues.accept("in").queues[0]
        seen.append((count.unprocessed, count.delayed, len(bodies(room, "errors"))))
        if len(seen) == 2:
            room.send("switch", "<on/>", format="xml")

    totals = room.engine.run_totals(until_idle=True, progress=look)
    assert seen[:2] == [(0, 1, 0), (0, 1, 0)], "it waits, and there is no error message yet"
    assert bodies(room, "out") == ["<r>a</r>"]
    assert totals.failures == 0
    assert verbs(room, key)[-1] == "take"
    assert bodies(room, "errors") == []
    sound(room)


def test_others_see_a_message_that_waits_in_its_slice(load: Load) -> None:
    queues = (
        QUEUES
        + """
create property id as xs:string fixed queue in value //id queue switch value //id
create slicing orders on id
"""
    )
    room = load(
        LATER.replace("/m)", "/m/id)"),
        "create rule count for orders if (qs:message()/go) then do enqueue <n>{count(qs:slice())}</n> into out",
        queues=queues,
    )
    room.consumers.set_policy("in", attempts=2, backoff=3600, retry="all", dead_letters="graves")
    key = room.send("in", "<m><id>7</id></m>", format="xml").key
    steps: list[int] = []

    def look(totals: Any) -> None:
        if not steps:
            room.send("switch", "<go><id>7</id></go>", format="xml")
        steps.append(totals.steps)
        if bodies(room, "out"):
            room.engine.stop()

    room.engine.run_totals(until_idle=True, progress=look)
    assert verbs(room, key)[-1] == "fail"
    assert bodies(room, "out") == ["<n>2</n>"], "the message that waits is in its slice"
    sound(room)


def test_an_attempt_that_is_undone_does_not_count(load: Load) -> None:
    room = load(DIVIDE)
    room.consumers.set_policy("in", attempts=2, retry="all")
    bad = room.send("in", "<m>0</m>", format="xml").key
    for moment in ("begun", "committing"):
        faults.arm(f"step.{moment}", "raise")
        with pytest.raises(FaultInjected):
            work(room)
        faults.disarm()
        assert verbs(room, bad) == ["put"]
    work(room)
    assert [message.properties["dead.attempts"] for message in room.peek("in.dead")] == [2]
    sound(room)


def test_a_dead_letter_goes_back_and_has_all_its_attempts_again(load: Load) -> None:
    room = load(LATER)
    room.consumers.set_policy("in", attempts=2, retry="all")
    key = room.send("in", "<m>a</m>", format="xml").key
    work(room)
    room.send("switch", "<on/>", format="xml")
    assert room.consumers.redrive("in.dead").moves == ((key, "in"),)
    work(room)
    assert bodies(room, "out") == ["<r>a</r>"]
    sound(room)


def test_a_message_whose_time_has_come_is_tried_again(load: Load) -> None:
    queues = QUEUES + "create queue echoes kind echo mode persistent\n"
    room = load(DIVIDE, queues=queues + "create queue gone kind basic mode persistent\n")
    room.consumers.set_policy("echoes", attempts=2, dead_letters="graves")
    properties: dict[str, Value] = {"target": "gone", "timeout": 0}
    key = room.send("echoes", "<m>1</m>", format="xml", properties=properties).key
    room.store.transact("remove-queue", lambda tx: tx.queues.retire(tx.queues.named("gone")))  # type: ignore[arg-type]
    work(room)
    assert verbs(room, key) == ["put", "lease", "fail", "lease", "dead-letter"]
    assert room.store.read(lambda tx: tx.timers.next_due()) is None
    sound(room)


# --- arcs ---

GRAPH = """domain d
space A : [n: int]
space B : [n: float]
space C : [n: int]
arc ab : A -> B transform [n: n] => [n: 60 / n]
arc ac : A -> C transform [n: n] => [n: n]
"""


def test_an_event_of_which_an_arc_makes_nothing_has_attempts(room: Postroom, tmp_path: Path) -> None:
    (tmp_path / "g.flow").write_text(GRAPH)
    room.load(tmp_path / "g.flow")
    evaluate_here(room)
    room.consumers.set_policy("A", attempts=2, retry="all")
    room.publish("A", "[2]")
    bad = room.publish("A", "[0]").key
    work(room)
    assert (bodies(room, "B"), bodies(room, "C")) == (['{"n":30.0}'], ['{"n":2}']), "all that its arcs make, or nothing"
    assert verbs(room, bad) == ["put", "lease", "fail", "lease", "dead-letter"]
    assert len(bodies(room, SYSTEM_ERRORS)) == 1
    sound(room)


# --- counters ---


def test_what_a_counter_cannot_take_has_attempts(room: Postroom, tmp_path: Path) -> None:
    load_counter(furnished(room, "control"), tmp_path, CLAIM + IN)
    room.consumers.set_policy("claims", attempts=2, retry="all", dead_letters="graves")
    good = room.send("claims", JSON, format="json").key
    bad = room.send("claims", "no claim", format="text").key
    work(room)
    assert verbs(room, good)[-1] == "take"
    assert verbs(room, bad) == ["put", "lease", "fail", "lease", "dead-letter"]
    assert len(bodies(room, SYSTEM_ERRORS)) == 1
    sound(room)


# --- what is refused ---


@pytest.mark.parametrize(
    ("policy", "argument"),
    [
        ({"order": "strict"}, "order"),
        ({"by": "customer"}, "by"),
        ({"backoff": 2.0}, "attempts"),
        ({"retry": "all"}, "attempts"),
        ({"dead_letters": "graves"}, "attempts"),
        ({"expired": "dead-letters"}, "expired"),
        ({"retry": "often"}, "retry"),
    ],
)
def test_a_policy_that_its_reader_would_ignore_is_refused(load: Load, policy: dict[str, Any], argument: str) -> None:
    room = load(DIVIDE)
    with pytest.raises(ArgumentInvalid) as refused:
        room.consumers.set_policy("in", **policy)
    assert refused.value.facts["argument"] == argument
    assert room.consumers.policy("in")["in"] == Policy()


def test_a_load_is_refused_that_would_ignore_a_policy(load: Load, room: Postroom) -> None:
    load(queues=QUEUES)
    room.consumers.set_policy("in", order="strict")
    with pytest.raises(ArgumentInvalid, match="read by rules"):
        load(DIVIDE)
    room.consumers.reset_policy("in")
    room.consumers.set_policy("in", attempts=2)
    load(DIVIDE)


def test_events_that_arcs_with_state_take_are_not_tried_again(room: Postroom, tmp_path: Path) -> None:
    text = "domain d\nspace A : [n: int]\nspace T : [t: int]\narc sum : A -> T collapse [n: n] => [t: sum(n)]\n"
    (tmp_path / "g.flow").write_text(text)
    room.load(tmp_path / "g.flow")
    with pytest.raises(ArgumentInvalid, match="arcs with state"):
        room.consumers.set_policy("A", attempts=2)


def test_dead_letters_do_not_go_where_messages_are_checked(load: Load) -> None:
    room = load(DIVIDE, queues=QUEUES + "create property id as xs:string fixed queue switch value //id\n")
    with pytest.raises(ArgumentInvalid, match="dead letters"):
        room.consumers.set_policy("in", attempts=2, dead_letters="switch")


# --- the parts ---


def _arrival(order: int, *granules: Granule) -> Arrival:
    return Arrival(order, "in", order + 1, "xml", None, "<m/>", "{}", 0, None, (granules,) if granules else ())


def _error(kind: str, queue: str = SYSTEM_ERRORS) -> Enqueue:
    return error_message(Failure(kind, "X1", "a < b", "r"), "in", 1, Document(1, "xml", None, "<m/>"))._replace(
        queue=queue
    )


def test_an_error_message_tells_its_class_and_reason() -> None:
    assert told(_error("system").body) == ("system", "X1: a < b")


def test_failures_that_may_pass_are_tried_again_until_the_last() -> None:
    tries = Tries({"in": Policy(attempts=3)}, {1: 1, 2: 2})
    assert tries.judged("in", 1, (_error("system"),)) == (Failed("X1: a < b", final=False),)
    assert failed(tries.judged("in", 2, (_error("network"),))) == Failed("X1: a < b", final=True)
    assert failed(tries.judged("in", 3, (_error("application"),))) == Failed("X1: a < b", final=True)
    made: Effects = (_error("system"),)
    assert tries.judged("other", 1, made) is made
    assert NO_TRIES.judged("in", 1, made) is made


def test_whoever_has_seen_the_error_of_one_that_is_tried_again_is_asked_again() -> None:
    tries = Tries({"in": Policy(attempts=3)}, {})
    errors = Granule("queue", "errors")
    arrivals = [_arrival(0), _arrival(1, errors), _arrival(2)]
    group: dict[int, Effects] = {0: (_error("system", "errors"),), 1: (), 2: ()}
    (judged,) = tries.each(iter([group]), arrivals)
    assert set(judged) == {0, 2}
    final: dict[int, Effects] = {0: (_error("application", "errors"),), 1: (), 2: ()}
    (judged,) = tries.each(iter([final]), arrivals)
    assert set(judged) == {0, 1, 2}

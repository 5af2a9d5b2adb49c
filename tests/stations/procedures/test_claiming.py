"""Which messages a step looks at, in which order, and which working sets they complete; without a store."""

from __future__ import annotations

from postroom.stations.forms.catalog import Edition
from postroom.stations.office import read
from postroom.stations.procedures.actions import SLOW, Outcome
from postroom.stations.procedures.catalog import KeptProcedure, desks
from postroom.stations.procedures.claiming import CHAIN, Arrival, Look, arrivals, look_dry, who_asks
from postroom.stations.procedures.plan import Desk

from .office import TYPES, forms, message, procedures

PAIR = "procedure pair at ann\n  precondition a : ORDER\n  precondition b : BILL\n    No: ?a.No\n"


def desk_of(text: str) -> Desk:
    editions = {name: Edition(form, 1) for name, form in forms().items()}
    (desk,) = desks([KeptProcedure(each, True, None, 1) for each in procedures(text)], editions).values()
    return desk


def looked(text: str, *some: Arrival) -> Look:
    return look_dry(desk_of(text), list(some))


def test_messages_of_two_queues_come_in_the_order_of_the_journal() -> None:
    own = [message(1, "ORDER", 10), message(2, "ORDER", 30)]
    mail = [message(3, "ORDER", 20), message(4, "ORDER", 40)]
    assert [each.stored.key for each in arrivals(own, mail, 9, apart=False)] == [1, 3, 2, 4]
    assert [each.stored.key for each in arrivals(own, mail, 9, apart=True)] == [1, 2, 3, 4], "mail comes last"
    assert [each.stored.key for each in arrivals(own, mail, 2, apart=False)] == [1, 3], "behind a full page is more"
    assert [each.mail for each in arrivals(own, mail, 9, apart=False)] == [False, True, False, True]


def test_a_set_is_complete_when_its_last_message_comes() -> None:
    look = looked(
        PAIR,
        Arrival(message(1, "ORDER", No=7), False),
        Arrival(message(2, "ORDER", No=8), False),
        Arrival(message(3, "BILL", No=8), True),
        Arrival(message(4, "BILL", No=7), False),
    )
    assert [(working.arrival, sorted(each.key for each in working.stored.values())) for working in look.sets] == [
        (2, [2, 3]),
        (3, [1, 4]),
    ]
    assert look.until == 4
    assert (look.progress.own, look.progress.mail) == (4, 3)


def test_a_message_of_a_long_chain_is_stopped() -> None:
    look = looked(
        "procedure p at ann\n  precondition a : ORDER\n",
        Arrival(message(1, "ORDER", properties='{"depth":100,"form":1}', No=1), False),
    )
    (working,) = look.sets
    assert working.outcome is not None
    assert (working.outcome.code, working.depth) == (CHAIN, 100)


def test_who_asks_depends_on_who_has_shipped_and_handled_a_message() -> None:
    desk = desk_of(PAIR)
    assert who_asks(desk, "ORDER", '{"form":1}', False)[1] == {"ann", "me"}
    assert who_asks(desk, "ORDER", '{"form":1,"from":"bob"}', True)[1] == {"bob"}
    assert [picked.name for _, _, picked in who_asks(desk, "ORDER", '{"form":1}', False)[0]] == ["a"]
    assert list(who_asks(desk, "ORDER", '{"form":1,"handled":"pair"}', False)[0]) == []
    assert who_asks(desk, "ORDER", "damaged", False) == ((), frozenset())


def test_a_step_ends_where_a_set_fails_or_takes_its_time() -> None:
    some = [Arrival(message(key, "ORDER", No=key), False) for key in (1, 2, 3)]
    text = "procedure p at ann\n  precondition a : ORDER\n"
    failing = looked(text, *some)
    for working in failing.sets:
        working.outcome = Outcome(code="x") if working.arrival == 1 else Outcome()
    failing.end_at_failure()
    assert (failing.until, len(failing.sets), [each.arrival for each in failing.fired]) == (1, 2, [0])
    slow = looked(text, *some)
    for working in slow.sets:
        working.outcome = Outcome(code=SLOW) if working.arrival == 2 else Outcome()
    waiting = slow.end_at_open()
    assert waiting is not None
    assert (waiting.arrival, slow.until, len(slow.sets)) == (2, 2, 2)
    assert read(TYPES, "f").forms, "the types of these messages are those of the office"

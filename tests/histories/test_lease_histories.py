"""Sixteen processes that send, lease and end leases in one queue, some of them killed: what they were told is so."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.histories.lease_work import run
from tests.histories.leases import PROCESS_ENDED, RAN_OUT, Line, Promise, Told, check
from tests.histories.record import FAIL, OK, UNKNOWN, Operation

POLICIES = pytest.mark.parametrize("policy", [{}, {"order": "strict"}, {"by": "k"}], ids=["free", "strict", "by a key"])


@POLICIES
def test_sixteen_processes_lease_and_nothing_is_lost_doubled_or_out_of_order(
    url: str, tmp_path: Path, policy: dict[str, Any]
) -> None:
    found = run(url, tmp_path, 16, calls=6, processes=16, kills=5, **policy)
    assert found.wrong[:10] == []
    assert len(found.killed) == 5
    assert {"send", "lease", "done"} <= {each.verb for each in found.history if each.happened}


@pytest.mark.slow
@POLICIES
@pytest.mark.parametrize("seed", range(3))
def test_long_histories_of_leases_lose_and_double_nothing(
    url: str, tmp_path: Path, policy: dict[str, Any], seed: int
) -> None:
    found = run(url, tmp_path, seed, calls=60, processes=16, kills=40, **policy)
    assert found.wrong[:10] == []
    assert len(found.killed) == 40
    done = Counter(each.verb for each in found.history if each.happened)
    assert min(done[verb] for verb in ("send", "lease", "done")) > 0
    late = sum(each.outcome == FAIL and each.answer == "lease-over" for each in found.history)
    assert sum(done[verb] for verb in ("release", "fail", "extend")) + late > 5, "which of them, chance decides"


# --- the checker: each of these histories it must reject ---


def told(
    verb: str, asked: Any, begun: float, ended: float, answer: Any = None, outcome: str = OK, by: str = "p"
) -> Operation:
    return Operation(by, verb, asked, begun, ended, outcome, answer)


def send(key: str, begun: float, ended: float) -> Operation:
    return told("send", {}, begun, ended, key)


def lease(begun: float, ended: float, *given: tuple[str, int, int], until: int = 10**12, **asked: Any) -> Operation:
    return told("lease", asked, begun, ended, [[*each, until] for each in given])


def lines(*said: tuple[Any, ...]) -> list[Line]:
    return [Line(number, *each) for number, each in enumerate(said, 1)]


SENT = [send("a", 0, 1), send("b", 2, 3)]
PUT = [("put", "a"), ("put", "b")]
LAPSED = ("lapse", "a", {"attempts": 1})
A, B = lease(4, 5, ("a", 3, 1)), lease(6, 7, ("b", 4, 1))
STRICT, BY, FREE = Promise("strict", None, 3), Promise("free", "k", 3), Promise("free", None, 3)
BAD: dict[str, tuple[list[Operation], list[Line], Promise, str]] = {
    "lost": (SENT, lines(PUT[0]), FREE, "b is lost"),
    "given to two": ([*SENT, A], lines(*PUT, ("lease", "a"), ("lease", "a")), FREE, "lease while it was leased"),
    "done twice": (
        [*SENT, A],
        lines(*PUT, ("lease", "a"), ("take", "a"), ("take", "a")),
        FREE,
        "take while it was done",
    ),
    "ended twice": (
        [*SENT, A, told("done", [3], 6, 7), told("done", [3], 8, 9)],
        lines(*PUT, ("lease", "a"), ("take", "a")),
        FREE,
        "lease 3 was ended 2 times",
    ),
    "a late done that was accepted": (
        [*SENT, A, told("done", [3], 8, 9)],
        lines(*PUT, ("lease", "a"), ("lapse", "a", {"attempts": 1, "why": PROCESS_ENDED})),
        FREE,
        "done was accepted, and the journal says lapse",
    ),
    "a done that was refused and happened": (
        [*SENT, A, told("done", [3], 8, 9, "lease-over", FAIL)],
        lines(*PUT, ("lease", "a"), ("take", "a")),
        FREE,
        "done was refused, and the journal says take",
    ),
    "given back too early": (
        [*SENT, A],
        lines(*PUT, ("lease", "a"), ("lapse", "a", {"attempts": 1, "why": RAN_OUT}, 10**11)),
        FREE,
        "before lease 3 ends",
    ),
    "taken from one who lives": (
        [*SENT, A],
        lines(*PUT, ("lease", "a"), ("lapse", "a", {"attempts": 1, "why": PROCESS_ENDED})),
        FREE,
        "and p lives",
    ),
    "an attempt that was not counted": (
        [*SENT, A],
        lines(*PUT, ("lease", "a"), ("fail", "a", {"attempts": 0})),
        FREE,
        "says 0 attempts, and there were 1",
    ),
    "an attempt told wrong": ([*SENT, lease(4, 5, ("a", 3, 2))], lines(*PUT, ("lease", "a")), FREE, "attempt 2"),
    "one attempt too many": (
        SENT,
        lines(*PUT, *[each for _ in range(4) for each in (("lease", "a"), ("fail", "a", {"attempts": 1}))]),
        FREE,
        "attempt 4 of 3",
    ),
    "dead too early": (
        [*SENT, A],
        lines(*PUT, ("lease", "a"), ("dead-letter", "a", {"attempts": 1})),
        FREE,
        "dead after attempt 1 of 3",
    ),
    "a lease of nobody": (SENT, lines(*PUT, ("lease", "a")), FREE, "1 leases were told to nobody, and 0 could"),
    "two at once in strict order": (
        [*SENT, A, B],
        lines(*PUT, ("lease", "a"), ("lease", "b")),
        STRICT,
        "leased while a is",
    ),
    "the second first in strict order": (SENT, lines(*PUT, ("lease", "b")), STRICT, "b: leased before a"),
    "past one that comes back": (
        SENT,
        lines(*PUT, ("lease", "a"), ("release", "a", {"due": 1}), ("lease", "b")),
        STRICT,
        "before a, which comes back",
    ),
    "two of a key": ([*SENT, A, B], lines(*PUT, ("lease", "a"), ("lease", "b")), BY, "leased while a of its key is"),
    "the second of a key first": (SENT, lines(*PUT, ("lease", "b")), BY, "leased before a of its key"),
    "passed over": ([*SENT, lease(4, 5, ("b", 3, 1))], lines(*PUT, ("lease", "b")), FREE, "at 2 before the one at 1"),
    "an urgent one passed over": (
        [*SENT, A],
        lines(PUT[0], ("put", "b", {"priority": 5}), ("lease", "a")),
        FREE,
        "at 1 before the one at 2",
    ),
    "nothing given": ([*SENT, lease(4, 5)], lines(*PUT), FREE, "was given 0 messages"),
    "given what nobody asked for": (
        [*SENT, lease(4, 5, ("a", 3, 1), where=7)],
        lines(*PUT, ("lease", "a")),
        FREE,
        "asked for 7 and was given 1",
    ),
    "passed over after it came back": (
        [*SENT, A, told("release", [3], 6, 7), lease(8, 9, ("b", 5, 1))],
        lines(*PUT, ("lease", "a"), ("release", "a"), ("lease", "b")),
        FREE,
        "at 2 before the one at 1",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_history_of_leases_is_rejected(name: str) -> None:
    history, journal, promise, why = BAD[name]
    found = check(Told(history), journal, {"a": 1, "b": 1}, promise)
    assert any(why in each for each in found), found


def test_good_histories_of_leases_pass() -> None:
    killed = Operation("k", "lease", {"count": 1}, 4, math.inf, UNKNOWN)
    fine: list[tuple[list[Operation], list[Line], Promise]] = [
        ([*SENT, A, B], lines(*PUT, ("lease", "a"), ("lease", "b"), ("take", "b")), FREE),
        ([*SENT, killed], lines(*PUT, ("lease", "a"), ("lapse", "a", {"attempts": 1, "why": PROCESS_ENDED})), STRICT),
        (
            [*SENT, A, told("done", [3], 8, 9, "lease-over", FAIL)],
            lines(*PUT, ("lease", "a"), ("lapse", "a", {"attempts": 1})),
            FREE,
        ),
        ([*SENT, A, told("done", [3], 8, math.inf, None, UNKNOWN)], lines(*PUT, ("lease", "a"), ("take", "a")), FREE),
        (
            [*SENT, lease(4, 9, ("b", 4, 1)), lease(5, 8, ("a", 3, 1))],
            lines(*PUT, ("lease", "a"), ("lease", "b")),
            FREE,
        ),
        ([*SENT, killed, lease(4, 5, ("b", 3, 1))], lines(*PUT, ("lease", "b")), FREE),
        ([*SENT, A], lines(*PUT, ("lease", "a"), ("fail", "a", {"attempts": 1, "due": 5}), ("due", "a")), STRICT),
        (  # it was not due when the other was leased
            [*SENT, A, told("release", [3], 6, 7), lease(8, 9, ("b", 5, 1), count=2)],
            lines(*PUT, ("lease", "a"), ("release", "a", {"due": 9}), ("lease", "b"), ("due", "a")),
            FREE,
        ),
        (  # it was leased again meanwhile, and that lease ran out after the other was leased
            [*SENT, A, told("release", [3], 6, 7), lease(7.1, 7.5, ("a", 5, 1)), lease(8, 9, ("b", 6, 1))],
            lines(
                *PUT, ("lease", "a"), ("release", "a"), ("lease", "a"), ("lease", "b"), ("lapse", "a", {"attempts": 1})
            ),
            FREE,
        ),
        (  # its lease ran out before it failed, and this was the last attempt
            [*SENT, A, told("fail", [3], 8, 9, "lease-over", FAIL)],
            lines(*PUT, ("lease", "a"), ("dead-letter", "a", {"attempts": 1, "reason": RAN_OUT})),
            FREE._replace(attempts=1),
        ),
    ]
    for history, journal, promise in fine:
        assert check(Told(history), journal, {"a": 1, "b": 2}, promise) == []

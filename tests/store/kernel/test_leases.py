"""One holder at a time, and a late one cannot commit: leases with fencing, on a clock that tests can move."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import postroom
from postroom.errors import LeaseHeld, LeaseLost
from postroom.room import Postroom
from postroom.store.kernel.owner import is_alive, process_token

SECOND = 1_000_000


class HandClock:
    def __init__(self) -> None:
        self.now = 1_000_000 * SECOND

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def timed(url: str, clock: HandClock) -> Iterator[Postroom]:
    with postroom.open(url, clock=clock) as room:
        yield room


def acquire(room: Postroom, owner: str) -> int:
    return room.store.transact("lease", lambda tx: tx.leases.acquire("engine", owner, 10))


def check(room: Postroom, fence: int) -> None:
    room.store.transact("lease", lambda tx: tx.leases.check("engine", fence))


def test_a_second_holder_is_refused_until_the_lease_runs_out(timed: Postroom, clock: HandClock) -> None:
    first = acquire(timed, "elsewhere/1/1")
    with pytest.raises(LeaseHeld) as caught:
        acquire(timed, "elsewhere/2/2")
    assert caught.value.facts["owner"] == "process 1 on elsewhere"
    clock.now += 11 * SECOND
    second = acquire(timed, "elsewhere/2/2")
    assert second == first + 1


def test_the_first_holder_is_fenced_off_after_a_takeover(timed: Postroom, clock: HandClock) -> None:
    first = acquire(timed, "elsewhere/1/1")
    check(timed, first)
    clock.now += 24 * 3600 * SECOND
    acquire(timed, "elsewhere/2/2")
    with pytest.raises(LeaseLost):
        check(timed, first)
    with pytest.raises(LeaseLost):
        timed.store.transact("lease", lambda tx: tx.leases.renew("engine", first, 10))


def test_a_clock_that_jumps_back_gives_nobody_two_holders(timed: Postroom, clock: HandClock) -> None:
    first = acquire(timed, "elsewhere/1/1")
    clock.now -= 24 * 3600 * SECOND
    with pytest.raises(LeaseHeld):
        acquire(timed, "elsewhere/2/2")
    check(timed, first)


def test_renewal_keeps_a_lease(timed: Postroom, clock: HandClock) -> None:
    first = acquire(timed, "elsewhere/1/1")
    for _ in range(5):
        clock.now += 8 * SECOND
        timed.store.transact("lease", lambda tx: tx.leases.renew("engine", first, 10))
    with pytest.raises(LeaseHeld):
        acquire(timed, "elsewhere/2/2")


def test_release_frees_at_once_and_only_ones_own(timed: Postroom) -> None:
    first = acquire(timed, "elsewhere/1/1")
    timed.store.transact("release-lease", lambda tx: tx.leases.release("engine", first))
    second = acquire(timed, "elsewhere/2/2")
    timed.store.transact("release-lease", lambda tx: tx.leases.release("engine", first))
    check(timed, second)


def test_a_dead_process_loses_its_lease_at_once(timed: Postroom) -> None:
    machine, _, _ = process_token().split("/")
    dead = f"{machine}/999999999/1"
    assert is_alive(dead) is False
    acquire(timed, dead)
    assert acquire(timed, process_token()) == 2


def test_liveness_is_known_here_and_unknown_elsewhere() -> None:
    assert is_alive(process_token()) is True
    assert is_alive("elsewhere/1/1") is None
    assert is_alive("") is None
    machine, pid, start = process_token().split("/")
    assert is_alive(f"{machine}/{pid}/{int(start) + 1}") is False
    assert is_alive(f"{machine}/{pid}/-") is True
    assert is_alive(f"{machine}/999999999/-") is False

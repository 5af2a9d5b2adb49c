"""The lease under which effects are tried: who has it, who makes way, and who has lost it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from postroom.engine import effects_lease
from postroom.engine.effects_lease import EFFECTS, SENDERS, EffectsLease
from postroom.errors import LeaseLost
from postroom.room import Postroom


def announce(room: Postroom, owner: str, seconds: float) -> int:
    return room.store.transact("lease", lambda tx: tx.leases.acquire(SENDERS, owner, seconds))


def test_one_has_it_at_a_time(room: Postroom) -> None:
    engine, senders = EffectsLease(room.store, "there/1/1"), EffectsLease(room.store, "there/2/2", alone=True)
    assert engine.take()
    assert engine.take(), "it has it"
    assert not senders.take()
    assert engine.is_sure(engine.fence)
    first = engine.fence
    engine.give_up()
    assert not engine.is_sure(first)
    assert senders.take()
    assert senders.fence == first + 1
    assert not engine.take()


def test_what_was_given_up_is_not_renewed(room: Postroom) -> None:
    engine = EffectsLease(room.store, "there/1/1")
    engine.take()
    engine.give_up()
    engine.renew()
    lease = room.store.read(lambda tx: tx.leases.named(EFFECTS))
    assert lease is not None
    assert lease.released


def test_one_of_a_process_that_has_ended_is_free(room: Postroom) -> None:
    said = "from postroom.store.kernel.owner import process_token; print(process_token())"
    gone = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True).stdout.strip()
    assert EffectsLease(room.store, f"{gone}/1/senders").take()
    assert EffectsLease(room.store, "there/2/2").take()


def test_who_lost_it_is_told_and_a_number_is_forgotten_once(room: Postroom) -> None:
    engine = EffectsLease(room.store, "there/1/1")
    engine.take()
    room.store.transact("lease", lambda tx: tx.leases.take(EFFECTS, "there/2/2", 0))
    with pytest.raises(LeaseLost):
        engine.renew()
    lost = engine.fence
    engine.forget(lost)
    assert (engine.fence, engine.take()) == (0, True)
    engine.forget(lost)
    assert engine.fence == lost + 2, "a late thread tells of the number before"


def test_after_a_long_standstill_nothing_is_sure(room: Postroom, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(effects_lease, "monotonic", lambda: now[0])
    engine = EffectsLease(room.store, "there/1/1")
    engine.take()
    now[0] += 14
    assert engine.is_sure(engine.fence)
    now[0] += 2
    assert not engine.is_sure(engine.fence)
    engine.renew()
    assert engine.is_sure(engine.fence)


def test_engines_make_way_for_living_senders(room: Postroom) -> None:
    engine, senders = EffectsLease(room.store, "there/1/1"), EffectsLease(room.store, "there/2/2", alone=True)
    assert not room.store.read(engine.makes_way)
    fence = announce(room, "there/2/2", 600)
    assert room.store.read(engine.makes_way)
    assert not room.store.read(senders.makes_way)
    room.store.transact("release-lease", lambda tx: tx.leases.release(SENDERS, fence))
    assert not room.store.read(engine.makes_way)
    announce(room, "there/2/2", 0)
    assert not room.store.read(engine.makes_way), "they are silent for too long"

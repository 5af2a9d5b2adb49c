"""Whether an engine runs, as its lease tells."""

from __future__ import annotations

import os
import subprocess
import sys

from postroom.engine.effects_lease import SENDERS
from postroom.engine.holding import LEASE
from postroom.engine.presence import EngineState, presence, senders
from postroom.room import Postroom
from postroom.store.kernel.owner import process_token


def test_an_engine_is_there_until_it_gives_its_lease_back(room: Postroom) -> None:
    assert room.store.read(presence).state is EngineState.FREE
    fence = room.store.transact("lease", lambda tx: tx.leases.acquire(LEASE, process_token(), 600))
    found = room.store.read(presence)
    assert (found.state, found.works, found.number) == (EngineState.RUNS, True, fence)
    assert str(os.getpid()) in found.owner
    room.store.transact("release-lease", lambda tx: tx.leases.release(LEASE, fence))
    assert not room.store.read(presence).works


def test_one_that_is_silent_may_live_and_one_whose_process_is_gone_has_ended(room: Postroom) -> None:
    room.store.transact("lease", lambda tx: tx.leases.acquire(LEASE, process_token(), 0))
    assert room.store.read(presence).state is EngineState.SILENT
    said = "from postroom.store.kernel.owner import process_token; print(process_token())"
    gone = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True).stdout.strip()
    room.store.transact("lease", lambda tx: tx.leases.acquire(LEASE, gone, 600))
    assert room.store.read(presence).state is EngineState.ENDED


def test_senders_are_told_apart_from_the_engine(room: Postroom) -> None:
    assert room.store.read(senders).state is EngineState.FREE
    room.store.transact("lease", lambda tx: tx.leases.acquire(SENDERS, "elsewhere/7/1/1/senders", 600))
    found = room.store.read(senders)
    assert (found.state, found.owner, found.number) == (EngineState.RUNS, "process 7 on elsewhere", 1)
    assert room.store.read(presence).state is EngineState.FREE

"""A room under a scheduler that does one thing at a time and draws every choice from one number.

Clients are threads of which one runs at a time. At each fault point of a transaction the running one stops, and the
scheduler draws who goes on, and whether that one goes on, is told of a failure, or is killed: its connection to the
real SQLite store is gone at that point. The clock is drawn, too. So a run is repeated by its number alone; what was
done is written down, and its hash tells whether two runs were the same.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import blake2b
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

import apsw
import pytest
from tests.simulation.model import DISCARDING, KEEPING, LABELS, QUEUES, Asked, Model

import postroom
from postroom import faults
from postroom.errors import PostroomError
from postroom.queues import verbs
from postroom.room import Postroom
from postroom.store.files import guard
from postroom.store.kernel.base import Waiter
from postroom.store.sqlite.store import SqliteStore

CLIENTS, CALLS, KILLS = 4, 12, 6


class Wrong(Exception):
    """The room is not as the model says."""


class Killed(BaseException):
    """The end of a client that is killed."""


class SimulatedStore(SqliteStore):
    """A real store that waits for nobody: who waits for messages is woken by the scheduler."""

    client: Client

    def waiter(self) -> Any:
        return self.client.waiting()

    def die(self) -> None:
        """Nothing more is written, and every lock is dropped, as when a process ends."""
        self._finalizer()

    def _wake_after_commit(self) -> None:
        self.client.world.wake()


class Client:
    """One process's work, as a thread that runs when it is told to."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number
        self.chance = Random(f"{world.seed}/{number}")
        self.turn = threading.Semaphore(0)
        self.order = "go"  # or fail, kill: what the scheduler says when it is this one's turn
        self.state = "ready"  # parked, ended
        self.woken = False
        self.asked: Asked | None = None
        self.applied = False
        self.expected: Any = None
        self.killed = False
        self.trouble: BaseException | None = None
        self.room: Postroom | None = None
        self.thread = threading.Thread(target=self._live, daemon=True, name=f"client {number}")
        self.thread.start()

    # --- in its own thread ---

    def _live(self) -> None:
        self.turn.acquire()
        try:
            calls = list(self._plan())
            while calls and not self.killed:
                calls = self._call(calls[0]) + calls[1:]
        except BaseException as error:
            self.trouble = error
        finally:
            self._leave()
            self.state = "ended"
            self.world.turn.release()

    def _plan(self) -> Iterator[Asked]:
        for number in range(CALLS):
            value, queue = f"{self.number}.{number}", self.chance.choice(QUEUES)
            kind = self.chance.randrange(12)
            if kind < 4:
                yield Asked("send", (queue,), (value,), value if kind < 2 else None)
            elif kind < 5:
                yield Asked("send-many", (queue,), (f"{value}x", f"{value}y"))
            elif kind < 6:
                yield Asked("distribute", tuple(self.chance.sample(QUEUES, 2)), (value,))
            elif kind < 9:
                yield Asked("receive", (queue,))
            elif kind < 10:
                yield Asked("wait", (queue,))
            else:
                yield Asked("look", (queue,))

    def _call(self, asked: Asked) -> list[Asked]:
        """Do one call, and judge its answer; answers with what is to be done again."""
        self.asked, self.applied, self.expected = asked, False, None
        self.world.say(self, f"{asked.verb} {asked.queues} {asked.values}")
        try:
            answer = self._do(self._opened(), asked)
        except (PostroomError, faults.FaultInjected) as error:
            if self.killed:
                return []
            return self._failed(asked, error)
        except BaseException:
            if self.killed:
                return []
            raise
        self.world.say(self, f"answer {answer}")
        if asked.verb == "look":
            self.expected = list(self.world.model.waiting[asked.queues[0]])
        elif not self.applied:
            raise Wrong(f"{asked} returned, and nothing was committed")
        if asked.verb in ("receive", "wait", "look") and answer != self.expected:
            raise Wrong(f"{asked} answered {answer!r}, and not {self.expected!r}")
        return []

    def _failed(self, asked: Asked, error: Exception) -> list[Asked]:
        happened = getattr(error, "happened", "no")
        self.world.say(self, f"{type(error).__name__} {happened}")
        if happened == "no" and self.applied and asked.verb != "wait":
            raise Wrong(f"{asked} was refused by {error}, and was committed")
        if self.room is not None and self.room.store.stopped:
            self._leave()
        self._pause()  # whoever was in the way goes on meanwhile
        return [asked] if asked.once is not None else []  # by its key, it is done once however often it is tried

    @staticmethod
    def _do(room: Postroom, asked: Asked) -> Any:
        queue = asked.queues[0]
        if asked.verb == "send":
            return room.send(queue, asked.values[0], idempotency_key=asked.once).key
        if asked.verb == "send-many":
            return list(room.send_many(queue, asked.values).keys)
        if asked.verb == "distribute":
            return [each.key for each in room.queues.distribute(asked.queues, asked.values[0]).deliveries]
        if asked.verb == "look":
            return [message.body for message in room.queues.info(queue)]
        received = room.receive(queue, wait=60.0 if asked.verb == "wait" else None)
        return received.message.body if received.message is not None else None

    def _opened(self) -> Postroom:
        if self.room is None:
            store = SimulatedStore(self.world.file, actor=f"client {self.number}", create=False, clock=self.world.clock)
            store.client = self
            store.session.connection.set_busy_timeout(0)  # who would wait for another is told that it is busy
            self.room = Postroom(store, str(self.world.file), f"client {self.number}", f"owner {self.number}", "here")
        return self.room

    def _leave(self) -> None:
        room, self.room = self.room, None
        if room is not None and not self.killed:
            room.store.close()

    def reach(self, point: str) -> None:
        """A fault point: what is committed is in the model at once; then it is someone's turn."""
        asked = self.asked
        if asked is not None and point == f"{LABELS.get(asked.verb)}.committed":
            self.applied, self.expected = True, self.world.model.commit(asked)
        self.world.say(self, point)
        self._pause()
        if self.order == "fail":
            self.world.wake()  # who sleeps looks again after a while: a commit that failed at its end wakes nobody
            raise faults.FaultInjected(point)
        if self.order == "kill":
            self.killed = True
            self.world.kills += 1
            assert self.room is not None
            self.room.store.die()  # type: ignore[attr-defined]  # it is a simulated one
            self.world.wake()  # who sleeps looks again after a while, also if nobody lives to wake it
            raise Killed

    def _pause(self) -> None:
        self.world.turn.release()
        self.turn.acquire()

    @contextmanager
    def waiting(self) -> Iterator[Waiter]:
        self.woken = False
        yield self

    def wait(self, seconds: float) -> bool:
        """As a waiter: sleep until someone wakes us, or the time is up."""
        if not self.woken:
            self.state = "parked"
            self.world.say(self, "parked")
            self._pause()
            self.state = "ready"
        woken, self.woken = self.woken, False
        return woken

    def wake(self) -> None:
        self.woken = True


class World:
    """The scheduler, the clock, the model and the record of one run."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed = seed
        self.chance = Random(seed)
        self.file = folder / f"room-{seed}.db"
        self.now = 1_700_000_000_000_000
        self.turn = threading.Semaphore(0)
        self.model = Model()
        self.log: list[str] = []
        self.kills = 0
        self.clients: list[Client] = []

    def clock(self) -> int:
        return self.now

    def seconds(self) -> float:
        return self.now / 1_000_000

    def say(self, client: Client, what: str) -> None:
        self.log.append(f"{client.number} {what}")

    def wake(self) -> None:
        for client in self.clients:
            client.woken = True

    @property
    def hash(self) -> str:
        return blake2b("\n".join(self.log).encode(), digest_size=16).hexdigest()

    def run(self) -> World:
        shutil.copyfile(_template(), self.file)
        with _simulated(self):
            self.clients = [Client(self, number) for number in range(CLIENTS)]
            try:
                while self._step():
                    pass
            finally:
                self._abandon()
            self._compare()
        return self

    def _step(self) -> bool:
        """Let one client go on to its next point; False when all have ended."""
        living = [each for each in self.clients if each.state != "ended"]
        ready = [each for each in living if each.state == "ready" or each.woken]
        if not living:
            return False
        self.now += self.chance.randrange(1, 2_000)
        if self.chance.random() < 0.01:
            self.now += self.chance.choice((-3_600, 3_600, 86_400)) * 1_000_000
        if not ready:
            self._all_parked(living)
            ready = living
        client = self.chance.choice(ready)
        client.order = self._order(client)
        client.turn.release()
        self.turn.acquire()
        if client.trouble is not None:
            raise client.trouble
        if client.killed and client.state == "ended":
            self.clients.append(Client(self, len(self.clients)))
        return True

    def _order(self, client: Client) -> str:
        if client.asked is None or client.state == "parked":
            return "go"
        drawn = self.chance.random()
        if drawn < 0.02 and self.kills < KILLS:
            return "kill"
        return "fail" if drawn < 0.05 else "go"

    def _all_parked(self, parked: list[Client]) -> None:
        """Nobody can go on: who waits for a message that is there was not woken. Then their time is up."""
        for client in parked:
            assert client.asked is not None
            if self.model.waiting[client.asked.queues[0]]:
                raise Wrong(f"client {client.number} waits for a message of {client.asked.queues[0]}, and one is there")
        self.now += 120 * 1_000_000

    def _abandon(self) -> None:
        """After a failure: the threads of others are left where they are, and their connections are closed."""
        for client in self.clients:
            if client.state != "ended" and client.room is not None:
                client.killed = True
                client.room.store.die()  # type: ignore[attr-defined]  # it is a simulated one

    def _compare(self) -> None:
        """The room as another process finds it, and the model."""
        with postroom.open(self.file, create=False) as room:
            found = {name: [message.body for message in room.queues.info(name)] for name in QUEUES}
            if found != self.model.waiting:
                raise Wrong(f"in the room wait {found}, and not {self.model.waiting}")
            past = {name: [message.body for message in room.queues.history(name)] for name in KEEPING}
            if past != self.model.done:
                raise Wrong(f"in the room are done {past}, and not {self.model.done}")
            counts = {count.queue: (count.unprocessed, count.processed) for count in room.queues.accept().queues}
            for name in KEEPING:
                if counts[name] != (len(found[name]), len(past[name])):
                    raise Wrong(f"{name} is counted as {counts[name]}")
            if differences := room.journal.verify().differences:
                raise Wrong(f"the journal differs: {differences}")


@cache
def _template() -> Path:
    """An empty room, made once: to make one takes longer than a run."""
    file = Path(mkdtemp(prefix="simulation")) / "room.db"
    with postroom.open(file) as room:
        for name in QUEUES:
            room.queues.create(name, keep_processed=name not in DISCARDING)
    with apsw.Connection(str(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return file


@contextmanager
def _simulated(world: World) -> Iterator[None]:
    """Time and fault points are the scheduler's."""

    def reach(point: str) -> None:
        client = next((each for each in world.clients if each.thread is threading.current_thread()), None)
        if client is not None:
            client.reach(point)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(faults, "armed", faults.Armed("", "", 0))
        patch.setattr(faults, "reach", reach)
        patch.setattr(verbs, "monotonic", world.seconds)
        patch.setattr(guard, "BUSY_SECONDS", 0)  # who has the turn of the writers may be one that sleeps
        yield


def run(seed: int, folder: Path) -> World:
    """One run; raises Wrong if the room is ever not as it must be."""
    return World(seed, folder).run()

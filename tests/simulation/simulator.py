"""A room under a scheduler that does one thing at a time and draws every choice from one number.

Clients are threads of which one runs at a time. At each fault point of a transaction the running one stops, and the
scheduler draws who goes on, and whether that one goes on, is told of a failure, or is killed: its connection to the
real SQLite store is gone at that point. The clock is drawn, too. So a run is repeated by its number alone; what was
done is written down, and its hash tells whether two runs were the same.
"""

from __future__ import annotations

import secrets
import shutil
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from hashlib import blake2b
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

import apsw
import pytest
from tests.simulation.leases import ATTEMPTS, BACKOFF, BLOCKED, LEASE, POLICIES, WAITING, Given, LeaseQueue, Wish
from tests.simulation.model import (
    DISCARDING,
    ENDS,
    EXTENSION,
    KEEPING,
    LABELS,
    LATE,
    MINUTE,
    QUEUES,
    SCHEDULED,
    Asked,
    Model,
    Seen,
)

import postroom
from postroom import faults
from postroom.errors import LeaseOver, PostroomError
from postroom.queues import receiving, sending
from postroom.queues.leases import leasing
from postroom.queues.leases.leased import LeasedMessage
from postroom.room import Postroom
from postroom.store.files import guard
from postroom.store.kernel.base import Lines, Waiter
from postroom.store.sqlite.store import SqliteStore

CLIENTS, CALLS, KILLS = 4, 16, 6
START = 1_700_000_000_000_000


class Wrong(Exception):
    """The room is not as the model says."""


class Killed(BaseException):
    """The end of a client that is killed."""


class SimulatedStore(SqliteStore):
    """A real store that waits for nobody: who waits for messages is woken by the scheduler."""

    client: Client

    def waiter(self, line: int | None = None) -> Any:
        return self.client.waiting(line)

    def die(self) -> None:
        """Nothing more is written, and every lock is dropped, as when a process ends."""
        self._finalizer()

    def _wake_after_commit(self, lines: Lines | None = None) -> None:
        self.client.world.wake(lines)


class Client:
    """One process's work, as a thread that runs when it is told to."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number
        self.chance = Random(f"{world.seed}/{number}")
        self.turn = threading.Semaphore(0)
        self.order = "go"  # or fail, kill: what the scheduler says when it is this one's turn
        self.state = "ready"  # parked, ended
        self.point = ""  # at which it stopped last
        self.woken = False
        self.line: int | None = None  # of a queue, in which it stands
        self.came = 0  # when it began to wait, among all who do
        self.passes = False
        self.deadline = 0
        self.seen = Seen(0, 0), Seen(0, 0)  # at its last looks at the clock
        self.held: list[tuple[LeasedMessage, str, int]] = []  # with its queue, and its number in the model
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
                asked = self._end(calls[0]) if calls[0].verb == "end" else calls[0]
                calls = self._call(asked) + calls[1:]
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
            if self.world.focus is not None or self.chance.random() < 0.3:
                yield self._planned(value, first=number < 2)
            elif kind < 4:
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

    def _planned(self, value: str, first: bool) -> Asked:
        """A call about queues that are leased from, or the schedule. At first there must be something to lease."""
        chance, queue = self.chance, self.world.focus or self.chance.choice(tuple(POLICIES))
        kind = 0 if first else chance.randrange(20)
        if kind < 4:
            delay = chance.choice((None, None, None, 15_000)) if queue == "free" else None
            expires = chance.choice((*[None] * 7, 25_000))
            key = chance.choice((1, 1, 2, None))
            return Asked("put", (queue,), (value,), wish=Wish(key, chance.choice((0, 0, 0, 5, 9)), delay, expires))
        if kind < 5 and self.world.focus in (None, "free"):
            return Asked("take", ("free",))
        if kind < 6:
            return Asked("fire", (SCHEDULED,))
        return Asked(
            "lease" if kind < 10 else "end", (queue,), many=chance.choice((1, 1, 3)), wait=chance.random() < 0.6
        )

    def _end(self, asked: Asked) -> Asked:
        """The end of one of the leases that this one has, or once had; else it asks for one."""
        if not self.held:
            return asked._replace(verb="lease")
        at = self.chance.randrange(len(self.held))
        message, queue, number = self.held[at]
        if self.chance.random() < 0.7:
            del self.held[at]  # else it is ended again, some time later
        verb, delay = self.chance.choice(("done", "done", *ENDS)), self.chance.choice((0, 20_000))
        self.ending = message
        return Asked(verb, (queue,), (message.body,), lease=number, delay=delay)

    def _call(self, asked: Asked) -> list[Asked]:
        """Do one call, and judge its answer; answers with what is to be done again."""
        self.asked, self.applied, self.expected = asked, False, None
        self.world.say(self, f"{asked.verb} {asked.queues} {asked.values}")
        try:
            answer = self._do(self._opened(), asked)
        except LeaseOver:
            if self.world.model.leased[asked.queues[0]].held(asked.lease) is not None:
                raise Wrong(f"{asked} was refused, and its lease is not over") from None
            self.world.say(self, "LeaseOver")
            return []
        except (PostroomError, faults.FaultInjected) as error:
            if self.killed:
                return []
            return self._failed(asked, error)
        except BaseException:
            if self.killed:
                return []
            raise
        return self._judge(asked, answer)

    def _judge(self, asked: Asked, answer: Any) -> list[Asked]:
        self.world.say(self, f"answer {answer}")
        if asked.verb == "look":
            self.expected = list(self.world.model.waiting[asked.queues[0]])
        elif asked.verb == "fire" and not self.applied:
            self.expected = 0
        elif not self.applied:
            raise Wrong(f"{asked} returned, and nothing was committed")
        if asked.verb == "lease":
            answer = self._remember(asked, answer)
        if asked.verb in ("receive", "wait", "look", "take", "lease", "fire") and answer != self.expected:
            raise Wrong(f"{asked} answered {answer!r}, and not {self.expected!r}")
        return []

    def _remember(self, asked: Asked, leased: list[LeasedMessage]) -> list[Given]:
        """What was given out, as the model tells it; and the leases themselves, to be ended."""
        given, self.expected = self.expected, [each for each, _ in self.expected]
        for message, (_, number) in zip(leased, given, strict=False):
            self.held.append((message, asked.queues[0], number))
        return [Given(each.body, each.attempts, each._until) for each in leased]

    def _failed(self, asked: Asked, error: Exception) -> list[Asked]:
        happened = getattr(error, "happened", "no")
        self.world.say(self, f"{type(error).__name__} {happened}")
        earlier = asked.verb == "wait" or (asked.wait and not self.expected)  # one of its looks, which found nothing
        if happened == "no" and self.applied and not earlier:
            raise Wrong(f"{asked} was refused by {error}, and was committed")
        if self.room is not None and self.room.store.stopped:
            self._leave()
        self._pause()  # whoever was in the way goes on meanwhile
        return [asked] if asked.once is not None else []  # by its key, it is done once however often it is tried

    def _do(self, room: Postroom, asked: Asked) -> Any:
        queue = asked.queues[0]
        if asked.verb in ENDS:
            return self._ended(room, asked)
        if asked.verb == "put":
            key, priority, delay, expires = asked.wish
            said = {} if key is None else {"k": key}
            times = {name: time / 1e6 for name, time in (("delay", delay), ("expires", expires)) if time is not None}
            return room.send(queue, asked.values[0], properties=said, priority=priority, **times).key  # type: ignore[arg-type]
        if asked.verb == "lease":
            seconds = 60.0 if asked.wait else None
            return room.receive_many(queue, count=asked.many, lease=LEASE / 1e6, wait=seconds)
        if asked.verb == "fire":
            return room.consumers.fire()
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

    def _ended(self, room: Postroom, asked: Asked) -> None:
        """By the number of the lease: the room that gave it out may have been closed since."""
        verbs, number = room._parts.leasing, self.ending.lease
        if asked.verb == "done":
            verbs.done(number)
        elif asked.verb == "release":
            verbs.release(number, asked.delay / 1e6)
        elif asked.verb == "fail":
            verbs.fail(number, "by chance")
        else:
            verbs.extend([number], EXTENSION / 1e6)

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
            self.applied, self.expected = True, self.world.model.commit(asked, self.seen[1].now, self.seen[0])
            if self.expected == LATE:
                raise Wrong(f"{asked} was committed, and its lease was over")
        self.world.say(self, point)
        self.point = point
        self._pause()
        self.point = ""
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
    def waiting(self, line: int | None) -> Iterator[Waiter]:
        """As a waiter of a store: in a line, which it leaves with what it was woken for and has not looked at."""
        self.woken, self.line, self.passes = False, line, False
        self.world.comings += 1
        self.came = self.world.comings
        try:
            yield self
        except BaseException:
            self.passes = True
            raise
        finally:
            self.came, passes = 0, self.passes or self.woken
            if passes and line is not None and not self.killed:
                self.world.wake({line: 1}, others=False)

    def wait(self, seconds: float) -> bool:
        """As a waiter: sleep until someone wakes us, or the time is up."""
        self.deadline = self.world.now + int(seconds * 1_000_000)
        if not self.woken:
            self.state = "parked"
            self.world.say(self, "parked")
            self._pause()
            self.state = "ready"
        woken, self.woken = self.woken, False
        return woken

    def wake(self) -> None:
        self.woken = True

    def pass_on(self) -> None:
        self.passes = True


class World:
    """The scheduler, the clock, the model and the record of one run."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed = seed
        self.chance = Random(seed)
        self.focus = (None, *POLICIES)[seed % 4]  # three runs of four are about one of the queues that are leased from
        self.file = folder / f"room-{seed}.db"
        self.now = START
        self.comings = 0
        self.turn = threading.Semaphore(0)
        self.model = Model(due=(START // MINUTE + 1) * MINUTE)
        self.log: list[str] = []
        self.kills = 0
        self.clients: list[Client] = []

    def clock(self) -> int:
        client = self._running()
        if client is not None:
            client.seen = client.seen[1], Seen(self.now, self.model.due)
        return self.now

    def _running(self) -> Client | None:
        return next((each for each in self.clients if each.thread is threading.current_thread()), None)

    def seconds(self) -> float:
        return self.now / 1_000_000

    def say(self, client: Client, what: str) -> None:
        self.log.append(f"{client.number} {what}")

    def wake(self, lines: Lines | None = None, *, others: bool = True) -> None:
        """All who wait; or of some lines so many, and of the others all."""
        left = dict(lines or {})
        for client in sorted(self.clients, key=lambda each: each.came):
            if lines is None or (client.line is None and others):
                client.woken = True
            elif client.came and client.line is not None and left.get(client.line, 0) > 0:
                client.woken = True
                left[client.line] -= 1

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
        ready = [each for each in living if each.state == "ready" or each.woken or each.deadline <= self.now]
        if not living:
            return False
        self.now += self.chance.randrange(1, 2_000)
        if self.chance.random() < 0.01:
            self.now += self.chance.choice((-3_600, 3_600, 86_400)) * 1_000_000
        if not ready:
            self._all_parked(living)
            ready = [each for each in living if each.deadline <= self.now]
        client = self.chance.choice(ready)
        client.order = self._order(client)
        client.turn.release()
        self.turn.acquire()
        if client.trouble is not None:
            raise client.trouble
        self._look_for_the_forgotten()
        if client.killed and client.state == "ended":
            self.clients.append(Client(self, len(self.clients)))
        return True

    def _look_for_the_forgotten(self) -> None:
        """A message can be leased, some wait for it, and nobody is awake who would: a wake-up is missing."""
        living = [each for each in self.clients if each.state != "ended" and each.asked is not None]
        if any(each.point.endswith(".committed") for each in living):
            return  # its wake-ups come with the next step
        for name, queue in self.model.leased.items():
            asking = [each for each in living if each.asked and each.asked.queues == (name,) and not _ends(each)]
            asleep = [each.state == "parked" and not each.woken and each.deadline > self.now for each in asking]
            if asleep and all(asleep) and queue.available():
                raise Wrong(f"{len(asleep)} wait for a message of {name}, one is there, and nobody was woken")

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
            queue = client.asked.queues[0]
            leased = self.model.leased.get(queue)
            if leased.available() if leased is not None else self.model.waiting[queue]:
                raise Wrong(f"client {client.number} waits for a message of {queue}, and one is there")
        self.now = max(self.now, min(client.deadline for client in parked))

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
            for name, queue in self.model.leased.items():
                self._compare_leased(room, name, queue)
            times = [message.properties["scheduled"] for message in room.queues.info(SCHEDULED)]
            if len(times) != self.model.fired or len(set(times)) != len(times):
                raise Wrong(f"the schedule has fired at {times}, and not {self.model.fired} times")
            if differences := room.journal.verify().differences:
                raise Wrong(f"the journal differs: {differences}")

    @staticmethod
    def _compare_leased(room: Postroom, name: str, queue: LeaseQueue) -> None:
        count = room.count(name).queues[0]
        found = (count.unprocessed, count.leased, count.delayed, count.blocked, count.processed)
        if found != queue.counts():
            raise Wrong(f"{name} is counted as {found}, and not {queue.counts()}")
        shown = sorted(
            (each for each in queue.entries if each.state in (WAITING, BLOCKED)), key=lambda each: each.place
        )
        waiting = [(each.value, each.state == BLOCKED) for each in shown]
        if (bodies := [(message.body, message.blocked) for message in room.peek(name, limit=100)]) != waiting:
            raise Wrong(f"in {name} wait {bodies}, and not {waiting}")
        if (done := [message.body for message in room.queues.history(name)]) != queue.done:
            raise Wrong(f"in {name} are done {done}, and not {queue.done}")
        dead = [message.body for message in room.peek(f"{name}.dead", limit=100)] if queue.dead else []
        if dead != queue.dead:
            raise Wrong(f"dead letters of {name} are {dead}, and not {queue.dead}")


def _ends(client: Client) -> bool:
    """Whether what it does now brings it no message."""
    return client.asked is not None and client.asked.verb not in ("lease", "take")


@cache
def _template() -> Path:
    """An empty room, made once: to make one takes longer than a run."""
    file = Path(mkdtemp(prefix="simulation")) / "room.db"
    store = SqliteStore(file, actor="template", clock=lambda: START)
    with closing(store), Postroom(store, str(file), "template", "template", "here") as room:
        for name in (*QUEUES, *POLICIES, SCHEDULED):
            room.queues.create(name, keep_processed=name not in DISCARDING)
        for name, policy in POLICIES.items():
            about = {"lease": LEASE / 1e6, "backoff": BACKOFF / 1e6, "attempts": ATTEMPTS}
            room.consumers.set_policy(name, **about, **policy)  # type: ignore[arg-type]
        room.consumers.schedule("minute", "* * * * *", SCHEDULED, body="tick")
    with apsw.Connection(str(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return file


@contextmanager
def _simulated(world: World) -> Iterator[None]:
    """Time and fault points are the scheduler's."""

    def reach(point: str) -> None:
        client = world._running()
        if client is not None:
            client.reach(point)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(faults, "armed", faults.Armed("", "", 0))
        patch.setattr(faults, "reach", reach)
        patch.setattr(sending, "monotonic", world.seconds)
        patch.setattr(receiving, "monotonic", world.seconds)
        patch.setattr(leasing, "monotonic", world.seconds)
        patch.setattr(secrets, "randbelow", lambda _: 0)
        patch.setattr(guard, "BUSY_SECONDS", 0)  # who has the turn of the writers may be one that sleeps
        yield


def run(seed: int, folder: Path) -> World:
    """One run; raises Wrong if the room is ever not as it must be."""
    return World(seed, folder).run()

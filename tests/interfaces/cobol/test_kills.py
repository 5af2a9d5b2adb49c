"""Order entries and tellers run against each other and are killed at random: no order is lost, doubled or in parts."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from tests.interfaces.cobol.conftest import EXAMPLES

import postroom

ANSWER = re.compile(r"(C\d{6}) {18} *(\d+) LINES +(\d+)")


class Hub:
    """A server that has the sessions of all programs, and is killed like them."""

    def __init__(self, url: str, folder: Path) -> None:
        self.session = folder / "session"
        self._words = ["serve", "--room", url, "--port", "0", "--session", str(self.session)]
        self._start()

    def _start(self) -> None:
        command = [sys.executable, "-m", "postroom", *self._words]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        assert any("unix:" in line for line in self._process.stdout)

    def kill(self) -> None:
        self.end()
        self._start()

    def end(self) -> None:
        with self._process:
            self._process.kill()


class Trial:
    """What was typed in, and what became of it."""

    def __init__(self, url: str, folder: Path, programs: dict[str, Path], seed: int) -> None:
        self._url, self._folder, self._programs = url, folder, programs
        self._seed = seed
        self.hub = Hub(url, folder)
        self.kills = 0
        self._over = Event()
        self._orders: dict[str, tuple[str, int, int]] = {}  # whether it was sent, its lines, their total

    def run(self, kills: int, server_kills: int) -> None:
        self._fill(kills)
        tellers = [Thread(target=self._tell, args=(random.Random(self._seed + number),)) for number in (1, 2)]
        for teller in tellers:
            teller.start()
        chance = random.Random(self._seed)
        try:
            while self.kills < kills:
                self._type(chance)
                if server_kills and self.kills > kills // (server_kills + 1):
                    server_kills -= 1
                    self.hub.kill()
                if chance.random() < 0.1:
                    self._hold(chance)
        finally:
            self._over.set()
            for teller in tellers:
                teller.join()

    @contextmanager
    def _started(self, name: str) -> Iterator[subprocess.Popen[str]]:
        environment = {"POSTROOM_SESSION": str(self.hub.session)}
        command, pipe = [str(self._programs[name])], subprocess.PIPE
        options = {"cwd": self._folder, "env": environment, "stderr": subprocess.DEVNULL, "text": True, "bufsize": 1}
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, **options) as started:  # type: ignore[call-overload]
            yield started
            started.kill()

    def _fill(self, many: int) -> None:
        """Orders from elsewhere, so that tellers always have work and are in each other's way."""
        with postroom.open(self._url) as room:
            for _ in range(many):
                name, quantities = f"C{len(self._orders):06}", [len(self._orders) % 900 + 1, 7]
                room.queues.send_segments("ORDERS", _segments(name, quantities))
                self._orders[name] = ("yes", len(quantities), sum(quantities))

    def _type(self, chance: random.Random) -> None:
        """An order entry that types orders until one of them is its last."""
        with self._started("entry") as entry:
            alive = True
            while alive and not self._over.is_set():
                name = f"C{len(self._orders):06}"
                lines = [chance.randrange(1, 999) for _ in range(chance.randrange(1, 5))]
                typed = [*_segments(name, lines), "END"]
                last = chance.randrange(len(typed)) if chance.random() < 0.5 else None
                sent = "no"
                for place, line in enumerate(typed):
                    sent = "perhaps" if line == "END" else "no"
                    try:
                        entry.stdin.write(f"{line}\n")  # type: ignore[union-attr]
                    except BrokenPipeError:
                        alive = False
                        break
                    if place == last:
                        time.sleep(chance.choice([0, chance.random() * 0.003]))
                        entry.kill()
                        self.kills += 1
                    heard = entry.stdout.readline().rstrip()  # type: ignore[union-attr]
                    alive = heard in ("KEPT", "SENT") and place != last
                    if heard == "SENT":
                        sent = "yes"
                    if not alive:
                        break
                self._orders[name] = (sent, len(lines), sum(lines))

    def _tell(self, chance: random.Random) -> None:
        """A teller after another, most of them killed at some moment."""
        while not self._over.is_set():
            with self._started("teller") as teller:
                if chance.random() < 0.8:
                    time.sleep(chance.random() * 0.1)
                    teller.kill()
                    self.kills += 1
                teller.stdout.read()  # type: ignore[union-attr]

    def _hold(self, chance: random.Random) -> None:
        """For a while the answers are refused: a teller whose SEND nobody took dies with its order."""
        with postroom.open(self._url) as room:
            room.queues.disable("COUNTER", password="COUNTER", input_only=True)
            time.sleep(chance.random() * 0.3)
            room.queues.enable("COUNTER", password="COUNTER")

    def check(self) -> None:
        """At rest a teller answers what is left; then each order has one answer, its own."""
        with postroom.open(self._url) as room:
            end = time.monotonic() + 30
            while [queue for queue in room.count().queues if queue.locked_by] and time.monotonic() < end:
                time.sleep(0.05)
        with self._started("teller") as teller:
            assert teller.stdout.read() == ""  # type: ignore[union-attr]
            assert teller.wait(60) == 0
        self.hub.end()
        with postroom.open(self._url) as room:
            assert [message.body for message in room.peek("ORDERS", limit=10_000)] == []
            answers = [message.body for message in room.peek("COUNTER", limit=10_000)]
            assert room.store.read(lambda tx: tx.handouts.all()) == []
            assert room.journal.verify().differences == ()
        answered: Counter[str] = Counter()
        for answer in answers:
            found = ANSWER.fullmatch(answer)
            assert found is not None, answer
            assert self._orders[found[1]][1:] == (int(found[2]), int(found[3]))
            answered[found[1]] += 1
        for name, (sent, *_) in self._orders.items():
            assert answered[name] in {"yes": (1,), "no": (0,), "perhaps": (0, 1)}[sent], (name, sent)


def _segments(name: str, quantities: list[int]) -> list[str]:
    return [name.ljust(25), *(f"{'NAILS':20}{quantity:05}" for quantity in quantities)]


@pytest.mark.parametrize(
    ("store", "kills", "server_kills"),
    [
        ("sqlite", 40, 0),
        pytest.param("sqlite", 400, 4, marks=pytest.mark.slow),
        pytest.param("postgres", 400, 4, marks=pytest.mark.slow),
    ],
)
def test_programs_that_are_killed_lose_no_order_and_answer_none_twice(
    store: str,
    kills: int,
    server_kills: int,
    program: Callable[[Path], Path],
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    url: str = request.getfixturevalue(f"{store}_url")
    with postroom.open(url) as room:
        room.load(EXAMPLES / "orders.qdl")
    trial = Trial(url, tmp_path, {name: program(EXAMPLES / f"{name}.cob") for name in ("entry", "teller")}, kills)
    try:
        trial.run(kills, server_kills)
        trial.check()
    finally:
        trial.hub.end()

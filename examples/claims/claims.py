"""An insurer's claims, from the line on a queue to the letter: every capability works on the same messages.

python examples/claims/claims.py [--room URL] [--master MASTER] [--south URL] [--claims N]

The room must be a new one: a SQLite path, or a PostgreSQL URL. With --south the desk of the south is on a node of its
own. Without --claims the claims are those of claims.txt. Ends with an error if anything is lost or doubled.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import postroom
from postroom import Message, Postroom, Station

HERE = Path(__file__).parent
FILES = ("claims.qdl", "claims.form", "claims.flow", "claims.demaq")
DESKS = ("North", "South", "Director")
PROCEDURES = ("settle_north", "settle_south", "settle_large")
LOGIN = "secret"  # of every desk
EXCESS = 50  # what the surveyors take off
CHECK = 2.0  # seconds between two looks at the heartbeats of cashiers


def say(text: str) -> None:
    print(f"- {text}", flush=True)


def of_file() -> list[str]:
    """The claims of claims.txt, each as it was written: lines."""
    return (HERE / "claims.txt").read_text().strip().split("\n\n")


def many(count: int) -> list[str]:
    """So many more, for a larger run."""
    regions = ("north", "south")
    return [
        f"No: {number}\nClaimant: Claimant {number}\nRegion: {regions[number % 2]}\n"
        f"Amount: {100 + number * 37 % 9000}.{number % 100:02d}\nLoss: number {number}"
        for number in range(1, count + 1)
    ]


class Office:
    """The scenario, step by step; each step checks what it has done."""

    def __init__(self, room: Postroom, master: str, south: str | None = None) -> None:
        self.room = room
        self.master = master
        if south is not None:
            room.stations.add_node("south", south)
        for name in (*DESKS, "Cashier", "Archive"):
            room.stations.add(name, LOGIN, "south" if name == "South" and south is not None else "control")
        room.load(*(HERE / name for name in FILES))
        self.keys: dict[int, str] = {}  # of the lines that came, by the number of the claim

    @property
    def numbers(self) -> list[int]:
        return sorted(self.keys)

    def station(self, name: str) -> Station:
        return self.room.station(name, LOGIN, master=self.master)

    def run(self) -> None:
        self.room.run_until_idle(master=self.master)

    # --- the way of a claim ---

    def arrive(self, claims: Sequence[str]) -> None:
        """Lines on the queues of their regions."""
        for lines in claims:
            region = "NORTH" if "Region: north" in lines else "SOUTH"
            key = self.room.send(("CLAIMS", region), lines, type="CLAIM").key
            self.keys[self.number(self.room.show(key))] = key
        assert len(self.keys) == len(claims), "each claim has a number of its own"
        say(f"{len(claims)} claims have come as lines on CLAIMS NORTH and CLAIMS SOUTH")

    def route(self) -> None:
        """Rules ask three departments, arcs find the desks, counters make forms of what comes to them."""
        for name in PROCEDURES:
            self.room.stations.disable_procedure(name)
        self.run()
        waiting = {name: len(self.station(name).mail()) for name in DESKS}
        assert sum(waiting.values()) == 3 * len(self.keys), waiting
        assert len(self.messages("ledger")) == len(self.keys)
        say(f"claims, reports and approvals wait in mailboxes: {waiting}")
        self.find_all("in the mailboxes")

    def settle(self) -> None:
        """A procedure joins claim, report and approval, and makes a payment of them."""
        for name in PROCEDURES:
            self.room.stations.enable_procedure(name)
        self.run()
        self.find_all("at the desks, approved", State="approved")
        assert sorted(map(self.number, self.messages("payments"))) == self.numbers
        say(f"{len(self.keys)} payments wait for a cashier")

    def lose_a_cashier(self) -> int:
        """A cashier is killed when the bank has its order. Answers with the number of the claim."""
        with cashier(self.room.url, "--hold") as program:
            assert program.stdout is not None
            say(f"a cashier's program: {program.stdout.readline().strip()}")
            order = self.take("bank")
            program.send_signal(signal.SIGKILL)
        say(f"the bank has taken order {order.key}, and the program is killed")
        while self.room.spheres.all("ACTIVE"):
            self.room.spheres.compensate(check=CHECK)
        back = self.take("returns")
        assert self.number(back) == self.number(order), "the order is compensated"
        assert sorted(map(self.number, self.messages("payments"))) == self.numbers, "and the payment is to be made"
        say(f"claim {self.number(order)}: the bank has it back, and its payment waits again")
        return self.number(order)

    def pay(self) -> None:
        """Another cashier makes all payments."""
        with cashier(self.room.url) as program:
            said, _ = program.communicate(timeout=600)
        say(f"another one: {said.strip()}")
        assert program.returncode == 0

    def archive(self) -> None:
        """Clerks send their claims to the archive, while someone asks for all of them again and again."""
        done = threading.Event()

        def ask() -> int:
            asked = 0
            while not (done.is_set() and asked):
                self.find_all()
                asked += 1
            return asked

        with ThreadPoolExecutor(1) as someone:
            asking = someone.submit(ask)
            try:
                for name in DESKS:
                    desk = self.station(name)
                    for claim in desk.query("CLAIM"):
                        desk.ship(claim.key, "Archive")
            finally:
                done.set()
            asked = asking.result()
        assert self.station("Archive").get()
        say(f"while the claims went to the archive, {asked} queries found all of them")
        self.find_all("in the archive")

    # --- looking ---

    def number(self, message: Message) -> int:
        found = self.room.journal.fields(message)["No"]
        assert isinstance(found, int)
        return found

    def messages(self, queue: str) -> list[Message]:
        """What waits in a queue."""
        return list(self.room.peek(queue))

    def take(self, queue: str) -> Message:
        found = self.room.receive(queue, wait=60.0).message
        assert found is not None, f"nothing in {queue}"
        return found

    def find_all(self, where: str = "", **fields: str) -> int:
        """A query by example over the whole network finds each claim once."""
        found = self.station("Archive").query("CLAIM", fields, scope="global")
        numbers = sorted(int(str(image.fields["No"])) for image in found)
        assert numbers == self.numbers, f"found {numbers}"
        if where:
            say(f"a global query finds all {len(found)} claims {where}")
        return len(found)

    def verify(self) -> dict[str, int]:
        """Nothing is lost, nothing is doubled; in every queue the same money."""
        room = self.room
        ordered = [*self.history("bank"), *self.messages("bank")]
        letters = self.messages("LETTERS")
        paid = Counter(map(self.number, ordered))
        paid.subtract(map(self.number, self.history("returns")))
        assert paid == dict.fromkeys(self.numbers, 1), "each claim is paid once"
        assert sorted(map(self.number, letters)) == self.numbers, "and has one letter"
        claimed = sum((self.amount(room.show(key)) for key in self.keys.values()), Decimal())
        written = sum(map(self.amount, letters), Decimal())
        assert written == claimed - EXCESS * len(self.keys), (written, claimed)
        assert not self.messages("payments")
        assert not self.messages("claimErrors")
        assert not self.messages("postroom-errors")
        states = Counter(sphere.state for sphere in room.spheres.all())
        assert states["COMMITTED"] == len(self.keys), states
        assert states["ACTIVE"] == states["COMMITTING"] == states["ABORTING"] == 0, states
        counts = {
            "claims": len(self.keys),
            "orders": len(ordered),
            "returned": len(self.history("returns")),
            "letters": len(letters),
            "aborted": states["ABORTED"],
        }
        say(f"nothing is lost, nothing is doubled: {counts}")
        return counts

    def history(self, queue: str) -> list[Message]:
        return list(self.room.queues.history(queue))

    def amount(self, message: Message) -> Decimal:
        found = self.room.journal.fields(message)["Amount"]
        assert isinstance(found, Decimal)
        return found


@contextmanager
def cashier(url: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A cashier's program as a process of its own."""
    command = [sys.executable, str(HERE / "cashier.py"), *options]
    environment = {**os.environ, "POSTROOM_URL": url}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as program:  # noqa: S603
        try:
            yield program
        finally:
            if program.poll() is None:
                program.kill()


def play(office: Office, claims: Sequence[str]) -> tuple[str, dict[str, int]]:
    """The whole scenario. Answers with the key of the claim whose payment was undone, and the final counts."""
    office.arrive(claims)
    office.route()
    office.settle()
    undone = office.lose_a_cashier()
    office.pay()
    office.archive()
    return office.keys[undone], office.verify()


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description="An insurer's claims, through every capability.")
    parser.add_argument("--room", default="claims.db", help="a new room: a SQLite path or a PostgreSQL URL")
    parser.add_argument("--master", default="local[*]", help="the Spark master")
    parser.add_argument("--south", help="a store of its own for the desk of the south")
    parser.add_argument("--claims", type=int, help="so many made-up claims instead of those of claims.txt")
    given = parser.parse_args(words)
    with postroom.open(given.room, actor="front office") as room:
        office = Office(room, given.master, given.south)
        key, _ = play(office, of_file() if given.claims is None else many(given.claims))
    say(f"the story of the claim whose payment was undone: postroom --room {given.room} trace {key} --causes")


if __name__ == "__main__":
    main(sys.argv[1:])

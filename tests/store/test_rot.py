"""Bits that flip in the file of a room: what is damaged is set aside and named, the rest goes on in its order."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.faults.here import evaluate_here
from tests.faults.station_workload import FORM
from tests.faults.workload import FLOW, PROGRAM

import postroom
from postroom.diagnosis.examination import examine
from postroom.diagnosis.finding import Case
from postroom.errors import PostroomError
from postroom.model.types import Field, MessageType
from postroom.room import Postroom

SENT = [f"message {number} é " + "x" * (number * 7 % 300) for number in range(40)]


def fill(room: Postroom, folder: Path) -> None:
    """Something in the tables of every capability; what is followed is in ``q``."""
    room.define_type(MessageType("Note", (Field("Text"),)))
    room.create_queue("q", password="pw")
    room.create_queue("drop", keep_processed=False)
    for number, body in enumerate(SENT):
        room.send("q", body, properties={"n": number}, idempotency_key=f"key {number}" if number % 9 == 0 else None)
        room.send("drop", {"Text": body}, type="Note")
    for name, text in (("program.demaq", PROGRAM), ("trade.flow", FLOW), ("note.form", FORM)):
        (folder / name).write_text(text)
        room.load(folder / name)
    for number in range(3):
        room.send("requests", f"<request><id>r{number}</id><n>{number}</n></request>", format="xml")
        room.publish("In", {"n": number})
    room.client("desk").subscribe("In", "[n: any]", durable=True)
    room.add_station("ann", "pw", "control")
    room.add_station("bob", "pw", "control")
    ann = room._station("ann")
    key = ann.create("NOTE", To="bob", Number=1, Text="first")
    ann.modify(key, Text="second")
    ann.ship(key, "bob")
    ann.create("NOTE", To="x", Number=2, Text="third")
    room.sphere("trip").send("drop", "book", compensation="cancel")
    evaluate_here(room).run_until_idle(step_messages=2)
    for _ in range(8):
        assert room.receive("q").message is not None
        assert room.receive("drop").message is not None


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rot")
    with postroom.open(folder / "original.db") as room:
        fill(room, folder)
        keys = [message.key for message in room.info("q")]
        assert room.verify().differences == ()
    (folder / "keys").write_text(" ".join(keys))
    return folder / "original.db"


class Look:
    """What someone comes to know of a room of which a bit has flipped."""

    def __init__(self, file: Path, keys: list[str]) -> None:
        self.got: list[str] = []
        self.said: list[str] = []  # errors, each typed
        self.named = False  # whether verify told of something
        with suppress(PostroomError), self._told(), postroom.open(file, create=False) as room:
            with self._told():
                self.named = bool(room.verify().differences)
            self._look(room, keys)
            self._drain(room)
            if self.said:
                with self._told():
                    room.mend()
                self._drain(room)

    def _told(self) -> Any:
        return _Told(self.said)

    def _look(self, room: Postroom, keys: list[str]) -> None:
        with self._told():
            for message in [*room.info("q"), *room.history("q"), *room.info("drop")]:
                message.as_dict()
        with self._told():
            room.accept()
        with self._told():
            [event.as_dict() for event in room.journal(30)]
        for key in keys[::10]:
            with self._told():
                [event.as_dict() for event in room.trace(key)]
                room.show(key).as_dict()
        with self._told():
            examine(Case(room, deep=True))
        with self._told():
            evaluate_here(room).run_until_idle(step_messages=2)

    def _drain(self, room: Postroom) -> None:
        for _ in range(2 * len(SENT)):
            told = len(self.said)
            with self._told():
                message = room.receive("q").message
                if message is None:
                    return
                self.got.append(message.body)
            if len(self.said) > told and "message-corrupt" not in self.said[-1]:
                return


class _Told:
    """Lets typed errors pass, and notes them; any other is a failure."""

    def __init__(self, said: list[str]) -> None:
        self._said = said

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, PostroomError):
            self._said.append(f"{error.code}: {error}")
            return True
        return False


def copied(original: Path, folder: Path) -> Path:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{folder / 'copy.db'}{suffix}").unlink(missing_ok=True)
    return Path(shutil.copy(original, folder / "copy.db"))


def flip(file: Path, position: int, bit: int) -> None:
    with file.open("r+b") as stream:
        stream.seek(position)
        (byte,) = stream.read(1)
        stream.seek(position)
        stream.write(bytes([byte ^ 1 << bit]))


def check(look: Look, about: str) -> None:
    expected = SENT[8:]
    assert set(look.got) <= set(expected), f"{about}: a changed message was delivered"
    assert len(set(look.got)) == len(look.got), f"{about}: a message was delivered twice"
    assert [body for body in expected if body in set(look.got)] == look.got, f"{about}: out of order"
    if look.got != expected:
        assert look.said, f"{about}: messages are missing, and nobody was told"
        assert look.named, f"{about}: messages are missing, and verify does not name it: {look.said}"


def places(original: Path, many: int) -> Iterator[tuple[int, int]]:
    """Every bit in turn, anywhere in the file."""
    chance = random.Random(many)
    size = original.stat().st_size
    for number in range(many):
        yield chance.randrange(size), number % 8


@pytest.mark.parametrize("many", [64, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_bit_that_flips_anywhere_delivers_nothing_false_and_loses_nothing_silently(
    original: Path, tmp_path: Path, many: int
) -> None:
    keys = (original.parent / "keys").read_text().split()
    for position, bit in places(original, many):
        copy = copied(original, tmp_path)
        flip(copy, position, bit)
        check(Look(copy, keys), f"bit {bit} of byte {position}")

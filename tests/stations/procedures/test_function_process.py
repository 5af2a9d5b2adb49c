"""A function that hangs, eats memory or ends its process fails its own set; other stations go on within a second."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import postroom
from postroom.errors import FunctionFailed
from postroom.room import Postroom

from .office import office
from .seals import sign

MASTER = "local[2]"
GUILTY = """\
procedure bad at ann
  precondition order : ORDER
  action mark on order
    Status: misbehaving(?order.Item)
procedure good at bob
  precondition order : ORDER
  action mark on order
    Status: behaving(?order.Item)
"""


@postroom.function
def misbehaving(how: str) -> str:
    if how == "loops":
        while True:
            pass
    if how == "loops in C":
        return str(sum(range(10**14)))
    if how == "sleeps":
        time.sleep(1_000)
    if how == "eats memory":
        return "x" * (1 << 40)
    if how == "dies":
        os._exit(3)
    if how == "is slow":
        time.sleep(1)
    return "done"


@postroom.function
def behaving(how: str) -> str:
    return "done"


def test_one_hanging_function_fails_its_own_set_while_other_stations_go_on(
    sqlite_url: str, tmp_path: Path, spark: SparkSession
) -> None:
    with office(sqlite_url, tmp_path, GUILTY) as room, office_of(sqlite_url) as other:
        room._parts.interpreter.evaluate = None
        bob, ann = other.stations._station("bob"), other.stations._station("ann")
        bob.create("ORDER", No=0, Item="quick")
        room.run_until_idle(master=MASTER)  # workers are there
        engine = threading.Thread(target=lambda: room.run(master=MASTER), daemon=True)
        engine.start()
        first = ann.create("ORDER", No=1, Item="loops in C")
        time.sleep(0.5)  # it has been taken
        number = 1
        while "errors" not in ann.dossiers():
            number += 1
            key = bob.create("ORDER", No=number, Item="quick")
            while bob.show(key).fields["Status"] != "done":
                assert number > 3 or "errors" not in ann.dossiers(), "it waits for the end of another station's"
                time.sleep(0.02)
        later = ann.create("ORDER", No=9, Item="quick")
        began = time.monotonic()
        while ann.show(later).fields["Status"] != "done":
            assert time.monotonic() - began < 60
            time.sleep(0.05)
        room.stop()
        engine.join(30)
        (error,) = ann.dossier("errors")
        assert error.fields["Code"] == "PP0001"
        assert error.fields["Messages"] == (first,)
        assert "a function exceeded the limit of 10 seconds" in str(error.fields["Description"])


def office_of(url: str) -> Postroom:
    return postroom.open(url)


@pytest.mark.parametrize("how", ["eats memory", "dies"])
def test_a_function_that_ends_its_process_fails_its_own_set_alone(
    sqlite_url: str, tmp_path: Path, spark: SparkSession, how: str
) -> None:
    with office(sqlite_url, tmp_path, GUILTY) as room:
        room._parts.interpreter.evaluate = None
        ann, bob = room.stations._station("ann"), room.stations._station("bob")
        keys = ann.create_many("ORDER", [{"No": n, "Item": how if n == 3 else "quick"} for n in range(6)])
        others = bob.create_many("ORDER", [{"No": n, "Item": "quick"} for n in range(6)])
        room.run_until_idle(master=MASTER)
        assert [ann.show(key).fields["Status"] for key in keys] == ["done"] * 3 + [None] + ["done"] * 2
        assert [bob.show(key).fields["Status"] for key in others] == ["done"] * 6
        (error,) = ann.dossier("errors")
        assert error.fields["Messages"] == (keys[3],)
        assert "exceeded the limit of" not in str(error.fields["Description"]), "nobody waits for one that has ended"


def test_a_function_that_takes_its_time_is_waited_for(sqlite_url: str, tmp_path: Path, spark: SparkSession) -> None:
    with office(sqlite_url, tmp_path, GUILTY) as room:
        room._parts.interpreter.evaluate = None
        ann = room.stations._station("ann")
        keys = ann.create_many("ORDER", [{"No": n, "Item": "is slow" if n == 1 else "quick"} for n in range(3)])
        room.run_until_idle(master=MASTER)
        assert [ann.show(key).fields["Status"] for key in keys] == ["done"] * 3
        assert ann.dossiers() == {}
        acted = [event.verb for key in keys for event in room.trace(key)]
        assert acted == ["create", "modify"] * 3


SIGNED = """\
type LETTER
| To: ________ Seal: __________ |
field To string required
field Seal string automatic seal
"""


@pytest.fixture
def misbehaves() -> Iterator[Callable[[], bool]]:
    """Waits until the function of a letter does."""
    file = sign(os.getpid())
    file.unlink(missing_ok=True)

    def waited() -> bool:
        end = time.monotonic() + 30
        while not file.exists() and time.monotonic() < end:
            time.sleep(0.02)
        return file.exists()

    yield waited
    file.unlink(missing_ok=True)


def _with_letters(room: Postroom, folder: Path, more: str = "") -> None:
    file = folder / "letter.form"
    file.write_text(SIGNED + more)
    room.load(file)


def test_a_hanging_function_of_a_form_keeps_nobody_from_writing(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, misbehaves: Callable[[], bool]
) -> None:
    with office(url, tmp_path, "") as room, office_of(url) as other:
        _with_letters(room, tmp_path)
        ann, bob = room.stations._station("ann"), other.stations._station("bob")
        kept = ann.create("LETTER", To="bob")
        monkeypatch.setattr("postroom.stations.forms.functions.EVALUATION_SECONDS", 2.0)
        failures: list[BaseException] = []

        def hang() -> None:
            try:
                with office_of(url) as own:
                    own.stations._station("ann").create("LETTER", To="sleeps")
            except FunctionFailed as error:
                failures.append(error)

        thread = threading.Thread(target=hang, daemon=True)
        thread.start()
        assert misbehaves()
        bob.create("ORDER", No=1)
        assert not failures, "another station waited for its end"
        thread.join(20)
        (failure,) = failures
        assert "exceeded the limit of 2 seconds" in str(failure)
        assert [each.key for each in ann.messages()] == [kept], "what was refused has changed nothing"
        assert ann.show(kept).fields["Seal"] == "sealed"


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("sleeps", "it exceeded the limit of 3 seconds"),
        ("dies", "it ended its process, or exceeded the memory limit"),
        ("eats", "MemoryError"),
    ],
)
def test_a_bad_function_at_a_counter_stops_only_its_message(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, misbehaves: Callable[[], bool], how: str, why: str
) -> None:
    monkeypatch.setattr("postroom.stations.forms.functions.EVALUATION_SECONDS", 3.0)
    with office(url, tmp_path, "") as room, office_of(url) as other:
        for name in ("letters", "orders"):
            room.queues.create(name)
        _with_letters(
            room,
            tmp_path,
            "counter one at ann takes LETTER from letters\ncounter two at bob takes ORDER from orders\n",
        )
        engine = threading.Thread(target=lambda: room.run(), daemon=True)
        keys = [room.queue("letters").send(f"To: {to}").key for to in ("bob", how, "cid")]
        engine.start()
        assert misbehaves()
        began = time.monotonic()
        room.queue("orders").send("No: 1")
        while not other.stations._station("bob").mail():
            assert time.monotonic() - began < 30
            time.sleep(0.02)
        assert how != "sleeps" or not list(other.queues.peek("postroom-errors")), "another counter waits for it"
        while len(other.stations._station("ann").mail()) < 2:
            assert time.monotonic() - began < 30
            time.sleep(0.05)
        room.stop()
        engine.join(20)
        error = other.receive("postroom-errors").message
        assert error is not None
        assert error.cause == keys[1]
        assert "<rule>one</rule>" in error.body
        assert f"LETTER, field Seal: the function seal failed: {why}" in error.body
        assert room.journal.verify().differences == ()


@pytest.mark.parametrize("letters", [("dies", "bob"), ("bob", "dies")], ids=["letter", "compensation"])
def test_a_letter_whose_function_ends_its_process_is_refused(
    url: str, tmp_path: Path, letters: tuple[str, str]
) -> None:
    """What undoes a letter is put into a mailbox by whoever finds that its sphere has no owner: the engine."""
    with office(url, tmp_path, "") as room:
        _with_letters(room, tmp_path)
        ann = room.stations._station("ann")
        first, second = letters
        with room.sphere() as sphere, pytest.raises(FunctionFailed, match="it ended its process"):
            sphere.mail(ann, "bob", "LETTER", {"To": first}, compensation={"To": second})
        with room.sphere() as sphere:
            sphere.mail(ann, "bob", "LETTER", {"To": "bob"}, compensation={"To": "cid"})
        assert len(room.stations._station("bob").mail()) == 1

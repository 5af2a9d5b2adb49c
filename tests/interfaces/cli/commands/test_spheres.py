"""Commands on spheres, as a person and as a program sees them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest

import postroom
from postroom.errors import SphereOver
from postroom.room import Postroom

from ...conftest import Run

PROGRAM = str(Path(sys.executable).parent / "postroom")
#: Someone who books a flight and a hotel, and is there until killed.
OWNER = """
import sys, time, postroom
room = postroom.open("postroom.db")
sphere = room.sphere(sys.argv[1], heartbeat=float(sys.argv[2]))
sphere.send("flights", "book a seat", compensation="cancel the seat")
sphere.send("hotels", "book a room", compensation="cancel the room")
print("booked", flush=True)
time.sleep(60)
"""


@pytest.fixture
def agency(run: Run, tmp_path: Path) -> Iterator[Postroom]:
    """A room with those who are booked with; commands act on it, too."""
    with postroom.open(str(tmp_path / "postroom.db")) as room:
        for name in ("flights", "hotels", "audit"):
            room.queues.create(name)
        yield room


def owner(folder: Path, id: str, heartbeat: float = 0.2) -> subprocess.Popen[str]:
    """A process that owns a sphere which has sent."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, id, str(heartbeat)], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "booked\n"
    return process


def killed(folder: Path, id: str, heartbeat: float = 0.2) -> int:
    """The process id of someone who owned a sphere."""
    with owner(folder, id, heartbeat) as process:
        process.kill()
    return process.pid


def held(run: Run, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTROOM_PASSWORD", "pw")
    assert run("queue", "password", queue).code == 0
    assert run("disable", queue).code == 0


def outcomes(run: Run, id: str) -> list[tuple[str, str]]:
    return [(each["recipient"], each["outcome"]) for each in run("sphere", "show", id, "--json").json["sends"]]


def test_spheres_are_listed(run: Run, agency: Postroom) -> None:
    assert run("spheres").err == "no sphere\n"
    assert run("spheres", "--json").json == {"status": "00", "spheres": []}
    with agency.sphere("trip-1") as sphere:
        sphere.send("flights", "book", compensation="cancel")
        assert run("spheres", "--state", "committed").err == "no sphere is COMMITTED\n"
        (listed,) = run("spheres", "--state", "ACTIVE", "--json").json["spheres"]
        assert list(listed) == ["id", "state", "owner", "started", "send_count", "reason"]
        assert (listed["id"], listed["state"], listed["send_count"], listed["reason"]) == ("trip-1", "ACTIVE", 1, None)
        assert re.fullmatch(r"process \d+", listed["owner"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT.*Z", listed["started"])
    agency.sphere("trip-2").abort("too dear")
    heading, first, second = run("spheres").out.splitlines()
    assert heading.split() == ["sphere", "state", "owner", "started", "sends", "reason"]
    assert re.split(" {2,}", first)[:2] == ["trip-1", "COMMITTED"]
    assert re.split(" {2,}", second)[:2] == ["trip-2", "ABORTED"]
    assert second.endswith("  too dear")


def test_an_unknown_state_is_refused(run: Run, agency: Postroom) -> None:
    refused = run("spheres", "--state", "gone", "--json")
    assert refused.code == 1
    assert refused.err == (
        "postroom: argument-invalid: state: 'GONE' is none of ACTIVE, COMMITTING, ABORTING, COMMITTED, ABORTED\n"
    )
    assert refused.json["error"]["code"] == "argument-invalid"


def test_show_tells_everything(run: Run, agency: Postroom) -> None:
    sphere = agency.sphere("trip-1")
    flight = sphere.send("flights", "book", compensation="cancel")
    note = sphere.send("audit", "booked", when="commit")
    sphere.require("flights", "hotels", processing_within=30, at_least=1)
    message = agency.receive("flights").message
    assert message is not None
    assert message.sphere is not None
    part = message.sphere.join()
    message.acknowledge()
    told = run("sphere", "show", "trip-1")
    state, who, requirement, takes_part, heading, first, second = told.out.splitlines()
    assert state == "sphere trip-1 is ACTIVE"
    token = re.fullmatch(r"  owner process \d+, started .*Z, token (.*)", who)
    assert token is not None
    assert agency.journal.locate(token[1]) == "ACTIVE"
    assert requirement == "  requires 1 of flights, hotels: processed within 30 s"
    assert re.fullmatch(rf"  process \d+ takes part by {flight.key}: not done", takes_part)
    assert heading.split() == ["when", "to", "key", "compensation", "for", "received", "processed", "at", "outcome"]
    assert re.fullmatch(rf"now +flights +{flight.key} +{flight.remembered} +flights +\S+Z +open", first)
    assert re.fullmatch(rf"commit +audit +{note.remembered} +open", second)

    part.done()
    message.acknowledge(processed=True)
    sphere.commit()
    shape = run("sphere", "show", "trip-1", "--json").json
    assert (shape["state"], shape["token"], shape["parts"][0]["done"]) == ("COMMITTED", token[1], True)
    assert [(each["when"], each["outcome"], each["why"]) for each in shape["sends"]] == [
        ("now", "discarded", None),
        ("commit", "delivered", None),
    ]
    assert shape["sends"][0]["received"] <= shape["sends"][0]["processed"]


def test_who_follows_a_state_is_told_what_is_in_it(run: Run, agency: Postroom) -> None:
    agency.sphere("trip-1")
    told = run("receive", "ACTIVE", "--follow", "--wait", "0", "--json").json
    assert told == {"status": "00", "entity": "trip-1", "state": "ACTIVE", "before": "", "reason": ""}


@pytest.mark.parametrize("words", [("show",), ("abort",), ("abort", "--reason", "late")])
def test_an_unknown_sphere_is_refused(run: Run, agency: Postroom, words: tuple[str, ...]) -> None:
    refused = run("sphere", words[0], "nowhere", *words[1:])
    assert refused.code == 1
    assert refused.err == "postroom: sphere-unknown: there is no sphere nowhere; list them with: postroom spheres\n"


@pytest.mark.parametrize(
    "words", [("sphere", "show"), ("sphere", "abort"), ("sphere", "acknowledge"), ("compensate", "--check", "often")]
)
def test_wrong_usage_exits_with_two(run: Run, agency: Postroom, words: tuple[str, ...]) -> None:
    assert run(*words).code == 2


def test_every_command_wants_a_room(run: Run) -> None:
    for words in (("spheres",), ("sphere", "show", "x"), ("sphere", "abort", "x"), ("compensate", "--once")):
        refused = run(*words)
        assert refused.code == 1
        assert refused.err.startswith("postroom: room-missing:")


def test_abort_undoes_and_tells_the_owner(run: Run, agency: Postroom) -> None:
    sphere = agency.sphere("trip-1")
    sphere.send("flights", "book a seat", compensation="cancel the seat")
    hotel = sphere.send("hotels", "book a room", compensation="cancel the room")
    assert run("receive", "flights").out == "book a seat\n"
    assert run("sphere", "abort", "trip-1", "--reason", "the customer has left").out == "trip-1 is ABORTED\n"
    assert run("receive", "flights").out == "cancel the seat\n"
    assert run("receive", "hotels").out == ""
    assert hotel.key is not None
    assert "withdraw" in run("trace", hotel.key).out
    assert outcomes(run, "trip-1") == [("flights", "compensated"), ("hotels", "withdrawn")]
    assert run("sphere", "show", "trip-1").out.startswith("sphere trip-1 is ABORTED: the customer has left\n")
    with pytest.raises(SphereOver, match="the customer has left"):
        sphere.send("audit", "too late")

    second = run("sphere", "abort", "trip-1", "--json")
    assert second.code == 1
    assert second.json["error"]["code"] == "sphere-over"
    assert second.err.startswith("postroom: sphere-over: sphere trip-1 is ABORTED")
    agency.sphere("trip-2").commit()
    assert run("sphere", "abort", "trip-2").err.startswith("postroom: sphere-over: sphere trip-2 is COMMITTED")
    agency.sphere("trip-3")
    refused = run("sphere", "abort", "trip-3", "--reason", "x" * 1001)
    assert refused.err == "postroom: argument-invalid: reason: text of at most 1000 characters\n"
    assert run("sphere", "abort", "trip-3", "--json").json == {"status": "00", "sphere": "trip-3", "state": "ABORTED"}


def test_what_a_queue_refuses_is_parked_and_follows_later(
    run: Run, agency: Postroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    sphere = agency.sphere("trip-1")
    sent = sphere.send("flights", "book a seat", compensation="cancel the seat")
    assert run("receive", "flights").out == "book a seat\n"
    held(run, "flights", monkeypatch)
    aborted = run("sphere", "abort", "trip-1")
    assert aborted.code == 0
    assert aborted.out == "trip-1 is ABORTING\n"
    why = f"{sent.remembered} is parked: flights is on hold (full) and does not accept messages; enable it with: "
    assert aborted.err.startswith(why)
    assert outcomes(run, "trip-1") == [("flights", "parked")]
    assert f"\n  {why}" in run("sphere", "show", "trip-1").out
    assert run("sphere", "show", "trip-1", "--json").json["sends"][0]["why"].startswith("flights is on hold")
    assert sent.remembered is not None
    assert run("locate", sent.remembered).out == "COMP.Q\n"

    looked = run("compensate", "--once")
    assert looked.code == 0
    assert looked.out == "0 sphere(s) at the last check, 0 aborted, 0 compensated\n"
    assert looked.err == "1 wait(s) for a queue that takes nothing now: see postroom spheres --state ABORTING\n"
    assert run("enable", "flights").code == 0
    assert run("compensate", "--once", "--json").json == {
        "status": "00",
        "sphere_count": 0,
        "aborted_count": 0,
        "compensated_count": 1,
        "parked_count": 0,
    }
    assert run("receive", "flights").out == "cancel the seat\n"
    assert outcomes(run, "trip-1") == [("flights", "compensated")]


def test_a_recipient_speaks_by_the_command_line(run: Run, agency: Postroom) -> None:
    sphere = agency.sphere("trip-1", commit_within=5)
    flight, hotel = (sphere.send(name, "book", compensation="cancel") for name in ("flights", "hotels"))
    assert flight.key is not None
    assert hotel.key is not None
    sphere.require("flights", receipt_within=5)
    sphere.require("hotels", processing_within=5)
    assert run("receive", "flights").code == 0
    assert run("receive", "hotels").code == 0
    assert run("sphere", "acknowledge", flight.key).out == f"{flight.key} was received\n"
    assert run("sphere", "acknowledge", hotel.key, "--processed", "--json").json == {
        "status": "00",
        "key": hotel.key,
        "said": "processed",
        "is_changed": True,
    }
    sphere.commit()
    assert outcomes(run, "trip-1") == [("flights", "discarded"), ("hotels", "discarded")]


def test_what_no_sphere_sent_is_not_acknowledged(run: Run, agency: Postroom) -> None:
    key = agency.send("flights", "no hurry").key
    for processed in ((), ("--processed",)):
        refused = run("sphere", "acknowledge", key, *processed)
        assert refused.code == 1
        assert refused.err == f"postroom: not-in-sphere: message {key} was not sent in a sphere\n"
    assert run("sphere", "acknowledge", "17").err.startswith("postroom: key-invalid:")


def test_compensate_leaves_those_who_live_alone(run: Run, agency: Postroom) -> None:
    with agency.sphere("trip-1", heartbeat=0.1):
        told = run("compensate", "--once", "--check", "0.6")
        assert told.out == "1 sphere(s) at the last check, 0 aborted, 0 compensated\n"
        assert agency.spheres.all()[0].state == "ACTIVE"


def test_compensate_undoes_what_a_killed_owner_did(run: Run, agency: Postroom, tmp_path: Path) -> None:
    pid = killed(tmp_path, "trip-1")
    assert run("receive", "flights").out == "book a seat\n"
    told = run("compensate", "--once", "--check", "0.5")
    assert told.code == 0
    assert told.out == "1 sphere(s) at the last check, 1 aborted, 1 compensated\n"
    assert run("receive", "flights").out == "cancel the seat\n"
    assert run("receive", "hotels").out == ""
    (listed,) = run("spheres", "--json").json["spheres"]
    assert (listed["state"], listed["reason"]) == ("ABORTED", f"its owner (process {pid}) has ended")
    assert run("compensate", "--once").out == "0 sphere(s) at the last check, 0 aborted, 0 compensated\n"


def test_a_check_must_be_longer_than_the_slowest_heartbeat(run: Run, agency: Postroom) -> None:
    with agency.sphere("trip-1", heartbeat=2.0):
        refused = run("compensate", "--once", "--check", "1.5", "--json")
        assert refused.code == 1
        assert refused.json["error"]["code"] == "check-too-short"
        assert refused.err == (
            "postroom: check-too-short: a check every 1.5 s is too short: sphere trip-1 sends a heartbeat every 2 s. "
            "Check less often than the slowest heartbeat\n"
        )
    for seconds in ("0", "-1", "0.05", "3601", "nan"):
        refused = run("compensate", "--once", "--check", seconds)
        assert refused.code == 1, seconds
        assert refused.err == "postroom: argument-invalid: check: seconds above 0.05 and up to 3600\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_engine_runs_until_it_is_told_to_stop(
    run: Run, agency: Postroom, tmp_path: Path, number: signal.Signals
) -> None:
    engine = subprocess.Popen(
        [PROGRAM, "compensate", "--check", "0.5", "--json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    killed(tmp_path, "trip-1")
    ends = monotonic() + 20
    while agency.spheres.all()[0].state != "ABORTED" and monotonic() < ends:
        sleep(0.05)
    assert agency.spheres.all()[0].state == "ABORTED"
    engine.send_signal(number)
    out, err = engine.communicate(timeout=20)
    assert engine.returncode == 0
    assert err == "stopping after the current work\n"
    told = json.loads(out)
    assert told.pop("sphere_count") in (0, 1), "as the last look found them"
    assert told == {"status": "00", "aborted_count": 1, "compensated_count": 1, "parked_count": 0}


def test_the_engine_of_the_room_compensates_beside_its_work(run: Run, agency: Postroom, tmp_path: Path) -> None:
    killed(tmp_path, "trip-1")
    engine = subprocess.Popen([PROGRAM, "run"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    ends = monotonic() + 20
    while agency.spheres.all()[0].state != "ABORTED" and monotonic() < ends:
        sleep(0.05)
    engine.send_signal(signal.SIGTERM)
    _, err = engine.communicate(timeout=20)
    assert engine.returncode == 0, err
    assert outcomes(run, "trip-1") == [("flights", "withdrawn"), ("hotels", "withdrawn")]


def test_what_a_sphere_has_received_is_shown_beside_what_it_has_sent(run: Run, agency: Postroom) -> None:
    """It was a row among the sends, to the queue that it came from, and nobody had received it."""
    agency.send("flights", "Oslo")
    with agency.sphere("trip") as sphere:
        received = sphere.receive("flights")
        assert received is not None
        lines = run("sphere", "show", "trip").out.splitlines()
        assert lines[2].split() == ["received", "from", "key", "received", "outcome"]
        queue, key, at, outcome = lines[3].split()
        assert (queue, key, outcome) == ("flights", received.key, "reserved")
        assert at <= run("journal", "--last", "1", "--json").json["events"][0]["time"]
        assert len(lines) == 4, "it has sent nothing"
        sphere.send("hotels", "a room")
    lines = run("sphere", "show", "trip").out.splitlines()
    assert lines[3].split()[-1] == "taken"
    assert lines[4].split()[:3] == ["when", "to", "key"]
    assert lines[5].split()[:2] == ["now", "hotels"]
    shape = run("sphere", "show", "trip", "--json").json["sends"]
    assert [(send["when"], send["received"] is not None) for send in shape] == [("return", True), ("now", False)]

"""Leases, their ends, policies and moves: killed or failed at every fault point, nothing is lost, doubled or stuck."""

from __future__ import annotations

import signal
from collections import Counter
from itertools import product
from pathlib import Path

import pytest
from tests.conftest import Rooms
from tests.faults import consumer_workload, forked

import postroom
from postroom import faults
from postroom.room import Postroom

TIMES = {"hand-out": (1, 2, 5, 8, 10, 11), "done": (1, 2, 4), "fail": (1, 2, 3), "release": (1, 2), "relocate": (1, 2)}
POINTS = [
    (f"{label}.{moment}", nth)
    for label in faults.CONSUMER_LABELS
    for nth in TIMES.get(label, (1,))
    for moment in faults.MOMENTS
]


def check(url: str, said: str) -> None:
    told = [line.split() for line in said.splitlines()]
    if ["ok", "ready"] not in told:
        return
    sent = [words[2] for words in told if words[:2] == ["ok", "send"]]
    done = [words[2] for words in told if words[:2] == ["ok", "done"]]
    with postroom.open(url) as room:
        assert room.journal.verify().differences == ()
        for key in done:
            assert room.trace(key)[-1].verb == "take", f"{key} was done, and is not"
        worked = drain(room)
        assert all(count == 1 for count in Counter(worked).values()), "given out twice"
        assert not set(worked) & set(done), "done, and given out again"
        everywhere = [message.key for name in ("q", "kept") for message in room.queues.history(name)]
        everywhere += [message.key for message in room.peek("q.dead")] if room_has(room, "q.dead") else []
        assert set(sent) <= set(everywhere), "lost"
        assert len(set(everywhere)) == len(everywhere), "doubled"
        assert all(count.leased == count.delayed == 0 for count in room.count().queues), "stuck"
        answers = [message.body for message in room.queues.history("kept") if message.body.startswith("answer to")]
        ended = [
            event.key for event in room.journal.last(1_000) if event.verb == "take" and event.key in told_of(answers)
        ]
        assert len(set(ended)) == len(answers), "answered, and not done"
        for key in everywhere:
            check_attempts(room, key)
        assert room.journal.verify().differences == ()


def told_of(answers: list[str]) -> list[str]:
    """The messages that were answered."""
    return [body.removeprefix("answer to ") for body in answers]


def drain(room: Postroom) -> list[str]:
    """What the process had is back at once: it has ended."""
    worked = []
    for queue in ("q", "kept"):
        while message := room.receive(queue, lease=60, wait=0.05).message:
            worked.append(message.key)
            message.done()
    return worked


def room_has(room: Postroom, name: str) -> bool:
    return any(count.queue == name for count in room.count().queues)


def check_attempts(room: Postroom, key: str) -> None:
    """Every attempt has one line at its beginning and one at its end, and no more than the policy allows were made."""
    verbs = [event.verb for event in room.trace(key)]
    leases, ends = verbs.count("lease"), sum(verbs.count(verb) for verb in ("release", "lapse", "fail", "dead-letter"))
    assert leases == ends + verbs.count("take"), verbs
    since = verbs[len(verbs) - verbs[::-1].index("redrive") :] if "redrive" in verbs else verbs
    assert since.count("lease") - since.count("release") <= 2, verbs


RUNS = list(product(["sqlite", "postgres"], ["kill", "raise"]))
SOME = [pytest.param(*run, POINTS[first::8], id="-".join(run)) for first, run in enumerate(RUNS)]
ALL = [pytest.param(*run, POINTS, id="-".join([*run, "all"]), marks=pytest.mark.slow) for run in RUNS]


@pytest.mark.parametrize(("kind", "action", "points"), [*SOME, *ALL])
def test_at_every_fault_point_leases_end_once(
    kind: str, action: str, points: list[tuple[str, int]], tmp_path: Path, rooms: Rooms
) -> None:
    urls = rooms(kind, len(points))

    def one(number: int, point: str, nth: int) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        child = forked.run(consumer_workload.work, urls[number], folder=folder, fault=f"{point}:{action}:{nth}")
        expected = -signal.SIGKILL if action == "kill" else 3
        assert child.code == expected, f"{point} was not reached: {child.said[-300:]}{child.complaints[-2000:]}"
        check(urls[number], child.said)

    forked.at_each(points, action, one)


def test_the_check_itself_can_fail(sqlite_url: str) -> None:
    with postroom.open(sqlite_url) as room:
        room.queues.create("q")
        room.queues.create("kept")
        key = room.send("q", "x").key
    with pytest.raises(AssertionError, match="was done"):
        check(sqlite_url, f"ok ready\nok send {key}\nok done {key}")
    with pytest.raises(AssertionError, match="lost"):
        check(sqlite_url, "ok ready\nok send 00077.00001")

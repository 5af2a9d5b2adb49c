"""Every sphere of up to four sends: each kind of send, taken or not, committed or aborted, with its exact outcome."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, product

import pytest

import postroom
from postroom.room import Postroom
from postroom.spheres.sending import Compensation

from .invariants import check

#: Now with a compensation, now without; each of them taken or not. On commit. On abort.
KINDS = ("undo taken", "undo waiting", "plain taken", "plain waiting", "commit", "abort")
Sends = tuple[str, ...]


def all_of(most: int) -> list[tuple[Sends, bool]]:
    sends: Iterable[Sends] = chain.from_iterable(product(KINDS, repeat=many) for many in range(most + 1))
    return [(kinds, commits) for kinds in sends for commits in (True, False)]


UP_TO_THREE, ALL = all_of(3), all_of(4)
OF_FOUR = ALL[len(UP_TO_THREE) :]


def expected(sends: Sends, commits: bool) -> dict[str, list[str]]:
    """What each queue holds afterwards, derived from the words of the specification."""
    numbered = list(enumerate(sends))
    if commits:
        waiting = [f"do {number}" for number, kind in numbered if kind.endswith("waiting")]
        return {"taken": [], "waiting": waiting, "late": [f"late {n}" for n, kind in numbered if kind == "commit"]}
    late = {"undo taken": "undo", "abort": "late"}
    undone = [f"{late[kind]} {number}" for number, kind in reversed(numbered) if kind in late]
    return {"taken": [], "waiting": [], "late": undone}


def one(room: Postroom, sends: Sends, commits: bool) -> None:
    sphere = room.sphere()
    for number, kind in enumerate(sends):
        if kind in ("commit", "abort"):
            sphere.send("late", f"late {number}", when=kind)
            continue
        moment, where = kind.split()
        undo = Compensation(f"undo {number}", queue="late") if moment == "undo" else None
        sphere.send(where, f"do {number}", compensation=undo)
        if where == "taken":
            assert room.receive(where)
    if commits:
        sphere.commit()
    else:
        sphere.abort("as planned")
    for queue, bodies in expected(sends, commits).items():
        found = []
        while message := room.receive(queue).message:
            found.append(message.body)
        assert found == bodies, f"{queue} after {'commit' if commits else 'abort'} of {sends}"


def enumerate_all(url: str, some: list[tuple[Sends, bool]]) -> None:
    with postroom.open(url) as room:
        for queue in ("taken", "waiting", "late"):
            room.queues.create(queue, keep_processed=False)
        for sends, commits in some:
            one(room, sends, commits)
        told = check(room, over=True)
        taken = sum(not commits and sends.count("undo taken") for sends, commits in some)
        assert len(told.compensated) == taken
        states = list(told.spheres.values())
        assert states.count("COMMITTED") == sum(commits for _, commits in some)
        assert len(states) == len(some)
        assert told.waiting == 0


def test_the_enumeration_is_complete() -> None:
    assert len(ALL) == len(set(ALL)) == 2 * (1 + 6 + 36 + 216 + 1296)


@pytest.mark.parametrize(
    "some",
    [
        pytest.param(UP_TO_THREE + OF_FOUR[::8], id="some"),
        pytest.param(OF_FOUR, id="of-four", marks=pytest.mark.slow),
    ],
)
def test_every_sphere_of_up_to_four_sends(sqlite_url: str, some: list[tuple[Sends, bool]]) -> None:
    enumerate_all(sqlite_url, some)


@pytest.mark.parametrize(
    "some", [pytest.param(ALL[::61], id="some"), pytest.param(ALL, id="all", marks=pytest.mark.slow)]
)
def test_every_sphere_of_up_to_four_sends_in_postgres(postgres_url: str, some: list[tuple[Sends, bool]]) -> None:
    enumerate_all(postgres_url, some)

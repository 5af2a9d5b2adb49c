"""Gateways killed or failed at every fault point: what was accepted is sent or an error, and comes in once."""

from __future__ import annotations

import re
import signal
from collections import Counter
from pathlib import Path

import pytest
from tests.conftest import Urls
from tests.faults import forked, gateway_workload

from postroom import faults

from .gateway_workload import TURNS, arrival, opened

TIMES = {
    "gateway": (1, 3),
    "gateway-in": (1, 3),
    "gateway-forget": (1,),
    "outbox-attempt": (1, 3),
    "outbox-result": (1, 2, 5),
}
POINTS = [(f"{label}.{moment}", nth) for label, times in TIMES.items() for moment in faults.MOMENTS for nth in times]
POINTS += [("gateway.ran", nth) for nth in (1, 2, 4)]


def check(url: str, said: str, folder: Path) -> None:
    """After a restart."""
    if "ok ready" not in said:
        return
    told = [line.split()[1:] for line in said.splitlines() if line.startswith("ok")]
    with opened(url) as room:
        for number in range(TURNS):  # a partner that got no answer sends again
            room._parts.incoming.accept(arrival(number))
        room.run_until_idle()
        assert room.engine.outbox() == []
        assert room.journal.verify().differences == ()
        assert Counter(message.body for message in room.queues.info("inbox")) == Counter(
            f"in {number}" for number in range(TURNS)
        )
        sent = (folder / "sent").read_text().splitlines() if (folder / "sent").exists() else []
        wanted = [f"{words[1]} {part}" for words in told if words[0] == "out" for part in "ab"]
        assert set(wanted) <= set(sent), "what was accepted is sent"
        assert list(dict.fromkeys(sent)) == sorted(set(sent)), "in its order"
        errors = Counter(re.findall(r'key="([\d.]+)"', "".join(each.body for each in room.queues.info("errs"))))
        assert set(errors.values()) <= {1}, "one error for one message"
        assert {words[1] for words in told if words[0] == "gone"} <= set(errors)


SOME = [pytest.param(*run, POINTS[at::8], id="-".join(run)) for at, run in enumerate(
    [(kind, action) for kind in ("sqlite", "postgres") for action in ("kill", "raise")]
)]  # fmt: skip
ALL = [
    pytest.param(kind, action, POINTS, id=f"{kind}-{action}-all", marks=pytest.mark.slow)
    for kind in ("sqlite", "postgres")
    for action in ("kill", "raise")
]


@pytest.mark.parametrize(("kind", "action", "points"), [*SOME, *ALL])
def test_at_every_fault_point_nothing_is_lost_and_nothing_comes_twice(
    kind: str, action: str, points: list[tuple[str, int]], tmp_path: Path, urls: Urls
) -> None:
    places = [str(tmp_path / f"{at}.db") if kind == "sqlite" else urls() for at in range(len(points))]

    def one(number: int, point: str, nth: int) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        fault = f"{point}:{action}:{nth}"
        child = forked.run(gateway_workload.work, folder, places[number], folder=folder, fault=fault, seconds=120)
        if action == "kill":
            assert child.code == -signal.SIGKILL, f"{point} was not reached: {child.complaints[-2000:]}"
        else:
            assert child.code == 3, f"{point}: {child.said[-300:]}{child.complaints[-2000:]}"
        check(places[number], child.said, folder)

    forked.at_each(points, action, one)


def test_every_commit_of_gateways_is_among_the_points() -> None:
    assert set(faults.GATEWAY_LABELS) <= set(TIMES)

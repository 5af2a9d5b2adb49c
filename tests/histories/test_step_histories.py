"""Engines, senders and receivers of the same queues on one server, some of them killed: what they did has an order."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.histories.record import OK, Operation
from tests.histories.step_work import check, run


def test_engines_beside_senders_and_receivers_lose_and_double_nothing(postgres_url: str, tmp_path: Path) -> None:
    found = run(postgres_url, tmp_path, 1, calls=60, clients=4, kills=3)
    assert found.wrong[:10] == []
    assert found.processed > 0
    assert found.kills == 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 5))
def test_long_histories_of_engines_beside_others(postgres_url: str, tmp_path: Path, seed: int) -> None:
    found = run(postgres_url, tmp_path, seed, calls=1_500, clients=8, kills=24)
    assert found.wrong[:10] == []
    assert found.processed > 1_000
    assert found.received > 50
    assert found.kills == 24


# --- the checker: each of these histories it must reject, and the good one not ---


def send(begun: float, ended: float, value: str, queue: str = "s0") -> Operation:
    return Operation("p", "send", [(queue, value)], begun, ended, OK)


GONE, WAITS = False, True
HISTORY = [send(0, 1, "a"), send(2, 3, "b"), send(0, 4, "c", "s1")]
FINAL = {
    "s0": [("<m>a</m>", GONE), ("<m>b</m>", GONE)],
    "s1": [("<m>c</m>", GONE)],
    "out": [("<m>r:a</m>", GONE), ("<m>r:c</m>", WAITS), ("<m>r:b</m>", WAITS)],
    "mirror": [("<m>r:a</m>", WAITS), ("<m>r:c</m>", WAITS), ("<m>r:b</m>", WAITS)],
}
PROCESSED = {"s0": ["a", "b"], "s1": ["c"]}
TAKEN = [*HISTORY, Operation("p", "take", "out", 5, 6, OK, "r:a")]
A, B, C = (("<m>r:a</m>", WAITS), ("<m>r:b</m>", WAITS), ("<m>r:c</m>", WAITS))


def test_the_checker_lets_a_good_history_pass() -> None:
    assert check(TAKEN, FINAL, PROCESSED) == []


@pytest.mark.parametrize(
    ("final", "processed", "why"),
    [
        ({"mirror": [A, B]}, PROCESSED, "mirror: r:c is lost"),
        ({"mirror": [A, C, B, B]}, PROCESSED, "r:b is there 2 times"),
        ({"mirror": [A, B, C]}, PROCESSED, "in different orders"),
        ({"out": [B, A, C], "mirror": [B, A, C]}, PROCESSED, "s0: processed: a stands behind b"),
        ({}, {"s0": ["a", "b"], "s1": []}, "out: r:c was never sent"),
        ({}, {"s0": ["a", "b", "b"], "s1": ["c"]}, "s0: b was taken 2 times"),
        ({"s1": [("<m>c</m>", WAITS)]}, PROCESSED, "c was taken and waits"),
    ],
)
def test_the_checker_rejects_a_bad_history(
    final: dict[str, list[tuple[str, bool]]], processed: dict[str, list[str]], why: str
) -> None:
    found = check(TAKEN, FINAL | final, processed)
    assert any(why in each for each in found), found

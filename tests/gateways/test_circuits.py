"""A host that does not answer is left alone, and then tried by one."""

from __future__ import annotations

from postroom.gateways.circuits import Circuits
from postroom.limits import CIRCUIT_FAILURES, CIRCUIT_SECONDS


def test_a_host_is_left_alone_after_failures_in_a_row_and_then_tried_once() -> None:
    now = [0.0]
    circuits = Circuits(lambda: now[0])
    for _ in range(CIRCUIT_FAILURES):
        assert circuits.wait_seconds("a") == 0
        circuits.note("a", answered=False)
    assert circuits.wait_seconds("a") == CIRCUIT_SECONDS
    assert circuits.wait_seconds("b") == 0
    now[0] = CIRCUIT_SECONDS + 1
    assert circuits.wait_seconds("a") == 0, "one tries"
    assert circuits.wait_seconds("a") > 0, "the others wait for what comes of it"
    circuits.note("a", answered=False)
    assert circuits.wait_seconds("a") == CIRCUIT_SECONDS
    now[0] *= 3
    assert circuits.wait_seconds("a") == 0
    circuits.note("a", answered=True)
    assert circuits.wait_seconds("a") == circuits.wait_seconds("a") == 0

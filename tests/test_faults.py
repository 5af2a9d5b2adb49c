"""Fault points: what may be armed, and when it trips."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from postroom import faults


def test_faults_refuse_what_does_not_exist() -> None:
    with pytest.raises(ValueError, match="no fault point"):
        faults.arm("nowhere", "kill")
    with pytest.raises(ValueError, match="no fault action"):
        faults.arm("send.begun", "explode")


def test_only_the_armed_point_trips_at_its_nth_passing_and_only_once() -> None:
    faults.arm("send.committing", "raise", nth=2)
    faults.reach("send.begun")
    faults.reach("send.committing")
    with pytest.raises(faults.FaultInjected, match=r"send\.committing"):
        faults.reach("send.committing")
    faults.reach("send.committing")


def test_a_disarmed_point_is_passed() -> None:
    faults.arm("send.committed", "raise")
    faults.disarm()
    faults.reach("send.committed")
    assert faults.armed is None


def test_every_label_has_the_three_moments_of_its_commit() -> None:
    assert {f"{label}.{moment}" for label in faults.LABELS for moment in faults.MOMENTS} < set(faults.POINTS)
    assert len(faults.POINTS) == len(set(faults.POINTS))


def test_a_point_of_the_environment_is_armed_in_a_new_process() -> None:
    script = "from postroom import faults; print(faults.armed)"
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "POSTROOM_FAULT": "claim.begun:raise:3"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "Armed(point='claim.begun', action='raise', countdown=3)\n"

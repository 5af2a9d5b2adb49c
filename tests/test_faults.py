"""Fault points: what may be armed, and when it trips."""

from __future__ import annotations

import pytest

from postroom import faults


def test_faults_refuse_what_does_not_exist() -> None:
    with pytest.raises(ValueError, match="no fault point"):
        faults.arm("nowhere", "kill")
    with pytest.raises(ValueError, match="no fault action"):
        faults.arm("send.begun", "explode")

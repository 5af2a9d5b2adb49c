"""What the engine and a capability tell each other."""

from __future__ import annotations

import pytest

from postroom.engine.steps.stage import ALONE, Entangled, Result, Watched, timed
from postroom.store.kernel.batch import Stale


def test_a_share_says_only_what_is_particular_about_its_queues() -> None:
    watched = Watched({"q": 1})
    assert (watched.windows, watched.echoes) == ({}, ())
    assert not watched.reading | watched.sliced | watched.staying


def test_time_is_noted_by_part() -> None:
    seconds: dict[str, float] = {}
    with timed(seconds, "claim"):
        pass
    with pytest.raises(ValueError), timed(seconds, "commit"):
        raise ValueError
    assert list(seconds) == ["claim"], "what was not done took no time"
    assert seconds["claim"] >= 0


def test_a_step_that_must_be_alone_is_done_again_like_any_other() -> None:
    assert issubclass(Entangled, Stale)
    assert (ALONE.queues, ALONE.seconds) == (frozenset(), None)
    assert not Result().busy

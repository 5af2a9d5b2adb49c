"""When several workers are idle together: never while one that was ended since, or still runs, may have sent."""

from __future__ import annotations

import threading
from collections import deque
from random import Random

import pytest

from postroom.queues.leases.idleness import Idleness


def test_one_worker_is_idle_when_it_finds_nothing() -> None:
    alone = Idleness(1)
    assert alone.found_none("a", alone.look())
    assert alone.is_over


def test_a_look_from_before_an_end_does_not_count() -> None:
    both = Idleness(2)
    early = both.look()
    both.ended()
    assert not both.found_none("a", early)
    assert not both.found_none("b", both.look())
    assert not both.is_over


def test_a_worker_that_looks_again_is_not_idle_meanwhile() -> None:
    both = Idleness(2)
    assert not both.found_none("a", both.look())  # it has waited in vain, and looks again now
    assert not both.found_none("b", both.look())
    assert not both.is_over


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_left_whoever_sends_to_whom(seed: int) -> None:
    """Workers in threads hand work to each other, before and after they tell that theirs has ended."""
    random, workers = Random(seed), 4
    queues = [deque([random.randrange(30)]) for _ in range(workers)]
    idleness, done = Idleness(workers), []

    def run(own: int) -> None:
        while True:
            turn = idleness.look()
            try:
                left = queues[own].popleft()
            except IndexError:
                if idleness.found_none(own, turn):
                    return
                continue
            if left:
                queues[(own + left) % workers].append(left - 1)
            done.append(left)
            idleness.ended()

    expected = sum(queue[0] + 1 for queue in queues)
    threads = [threading.Thread(target=run, args=(own,)) for own in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (len(done), [len(queue) for queue in queues]) == (expected, [0] * workers)

"""Steps that take long are left apart; what is ready is taken, and what may not be beside others is not."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from postroom.engine.steps.lanes import Lanes
from postroom.engine.steps.stage import Beside, Entangled, Result
from postroom.limits import LANES_MAX

BUSY = Result(busy=frozenset({"slow"}))


def chain(*results: Result) -> Generator[Result]:
    yield from results


class Chains:
    """Gives out chains in their order and remembers what each was to be beside."""

    def __init__(self, *chains: Generator[Result] | None) -> None:
        self._chains = list(chains)
        self.asked: list[Beside] = []

    def __call__(self, beside: Beside) -> Generator[Result] | None:
        self.asked.append(beside)
        return self._chains.pop(0) if self._chains else None


def test_one_chain_is_worked_off_before_the_next_begins() -> None:
    lanes, first, second, third = Lanes(), Result(messages=1), Result(messages=2), Result(messages=3)
    begin = Chains(chain(first, second), chain(third))
    assert [lanes.next(begin) for _ in range(5)] == [first, second, third, None, None]
    assert [beside.queues for beside in begin.asked] == [frozenset()] * 4
    assert not lanes.busy


def test_beside_a_step_that_takes_long_others_go_on() -> None:
    lanes, late, quick = Lanes(), Result(messages=1), Result(messages=2)
    begin = Chains(chain(BUSY, BUSY, BUSY, late), chain(quick))
    assert lanes.next(begin) is None  # it has begun
    assert lanes.busy
    assert lanes.next(begin) == quick
    assert [lanes.next(begin), lanes.next(begin)] == [None, late]
    assert [beside.queues for beside in begin.asked[:2]] == [frozenset(), {"slow"}]
    assert lanes.next(begin) is None
    assert not lanes.busy


def test_a_chain_with_much_to_do_does_not_keep_others_from_their_turn() -> None:
    lanes = Lanes()
    much, other = [Result(messages=1)] * 3, Result(messages=2)
    begin = Chains(chain(BUSY, *much), chain(BUSY, other))
    found = [lanes.next(begin) for _ in range(7)]
    assert found.index(other) < 5
    assert sum(result == much[0] for result in found) == 3


def test_so_many_may_be_apart_and_no_more() -> None:
    lanes = Lanes()
    begin = Chains(*(chain(*[BUSY] * 100) for _ in range(LANES_MAX + 2)))
    for _ in range(20):
        assert lanes.next(begin) is None
    assert len(begin.asked) == LANES_MAX


def test_what_those_apart_look_at_is_told() -> None:
    lanes = Lanes()
    begin = Chains(chain(*[Result(busy=frozenset({"a"}), reads=True)] * 3), chain(Result(messages=1)))
    lanes.next(begin)
    lanes.next(begin)
    assert begin.asked[1].reads
    assert begin.asked[1].seconds is not None


def test_one_that_is_entangled_is_done_again_alone() -> None:
    def entangled() -> Generator[Result]:
        yield BUSY
        raise Entangled

    lanes, slow, again = Lanes(), Result(messages=1), Result(messages=2)
    begin = Chains(chain(*[BUSY] * 5, slow), entangled(), chain(again))
    assert [lanes.next(begin), lanes.next(begin)] == [None, None]
    with pytest.raises(Entangled):
        lanes.next(begin)
    found = [lanes.next(begin) for _ in range(8)]
    assert [result.messages for result in found if result] == [1, 2]  # not before the other has ended
    assert [beside.queues for beside in begin.asked[:3]] == [frozenset(), {"slow"}, frozenset()]
    assert begin.asked[2].seconds is None


def test_closing_ends_what_is_under_way() -> None:
    ended = []

    def long() -> Generator[Result]:
        try:
            while True:
                yield BUSY
        finally:
            ended.append(True)

    lanes = Lanes()
    lanes.next(Chains(long()))
    lanes.close()
    assert ended == [True]
    assert not lanes.busy

"""The order of a sequence, against a plain model, in random order and with repetitions."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

import postroom
from postroom.errors import ArrivalTooEarly
from postroom.gateways.reliable.destination import Refusal
from postroom.gateways.reliable.ordering import Arrived, receipt_of, turned
from postroom.gateways.transport import Arrival
from postroom.limits import SEQUENCE_WINDOW


@pytest.mark.parametrize("seed", range(5))
def test_every_number_has_its_turn_once_and_in_order(url: str, seed: int) -> None:
    random = Random(seed)
    sent = [number for number in range(1, 31) for _ in range(random.randint(1, 3))]
    random.shuffle(sent)
    came: list[int] = []
    with postroom.open(url) as room:
        store = room._parts.store
        store.transact("sequence", lambda tx: tx.sequences.accept("s", "e"))
        while sent:
            some = [sent.pop() for _ in range(min(len(sent), random.randint(1, 6)))]
            arrived = {
                at: Arrived(n, Arrival("e", str(n).encode(), "", "", sequence=("s", n))) for at, n in enumerate(some)
            }
            turn = store.transact("sequence", partial(turned, endpoint="e", identifier="s", arrived=arrived))
            came += [int(arrival.body) for _, _, arrival in turn.due]
            assert {at for at, _, _ in turn.due if at >= 0} | set(turn.again) == set(arrived)
        assert came == list(range(1, 31))
        known = store.read(lambda tx: tx.sequences.incoming("s"))
        assert known is not None
        assert store.read(lambda tx: tx.sequences.ranges(known)) == [(1, 30)]
        with pytest.raises(Refusal, match="no such"):
            store.transact("sequence", lambda tx: turned(tx, "other", "s", {}))


def test_what_is_too_far_ahead_is_not_taken(url: str) -> None:
    number = SEQUENCE_WINDOW + 1
    with postroom.open(url) as room:
        store = room._parts.store
        store.transact("sequence", lambda tx: tx.sequences.accept("s", "e"))
        arrived = {0: Arrived(number, Arrival("e", b"x", "", "", sequence=("s", number)))}
        turn = store.transact("sequence", partial(turned, endpoint="e", identifier="s", arrived=arrived))
        assert isinstance(turn.refused[0], ArrivalTooEarly)
        assert turn.refused[0].code == "arrival-too-early"
        assert turn.due == []


def test_receipts_of_a_sequence_stand_together() -> None:
    assert receipt_of("s", 0) < receipt_of("s", 9) < receipt_of("s", 10) < receipt_of("s", None) < receipt_of("t", 0)

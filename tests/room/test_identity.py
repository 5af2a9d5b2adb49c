"""What an identity may do: its grants say so, and the token can only allow less."""

from __future__ import annotations

import pytest

from postroom.errors import RightMissing
from postroom.model.rights import EVERYTHING, OPERATE
from postroom.room import Postroom
from postroom.room.identity import Identity, identity_of

ANN = Identity("ann", frozenset({("send", "CLAIMS"), ("look", EVERYTHING)}))


def test_a_grant_is_for_an_object_and_for_all_below_it() -> None:
    assert ANN.why_not("send", "CLAIMS") is ANN.why_not("send", "CLAIMS/SOUTH") is None
    assert ANN.why_not("send", "INP_0001", "CLAIMS/SOUTH") is None, "by whichever of its names"
    assert ANN.why_not("look", "anything") is None
    assert ANN.why_not("send", "CLAIMSX") == "only CLAIMS"
    assert ANN.why_not("receive", "CLAIMS") == "there is no such grant"
    with pytest.raises(RightMissing, match="only CLAIMS"):
        ANN.require("send", "orders")


def test_operate_is_everything_but_what_the_token_leaves_out() -> None:
    anyone = frozenset({(OPERATE, EVERYTHING)})
    assert Identity("op", anyone).why_not("load", EVERYTHING) is None
    assert Identity("op", anyone, frozenset({"look"})).why_not("load", EVERYTHING) == "the token is limited to: look"


def test_some_right_of_a_kind_is_enough_for_what_is_of_ones_own() -> None:
    assert ANN.has_any("send")
    ANN.require_any("send")
    assert not ANN.has_any("work")
    with pytest.raises(RightMissing):
        ANN.require_any("work")


def test_grants_are_those_of_now(room: Postroom) -> None:
    room.flows.add_principal("ann", "secret")
    room.access.grant("ann", "send", "orders")
    identity = room.store.read(lambda tx: identity_of(tx, "ann", frozenset({"send"})))
    assert identity == Identity("ann", frozenset({("send", "orders")}), frozenset({"send"}))

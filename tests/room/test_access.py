"""Who may do what: deny by default, a level for all below it, tokens that end at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroom.errors import ArgumentInvalid, PrincipalRefused, RightMissing, TokenRefused
from postroom.room import Postroom

TREE = '01 INPUT-QUEUE (CLAIMS) PASSWORD IS "CLAIMS"\n02 SUB-QUEUE-1 (NORTH)\n02 SUB-QUEUE-1 (SOUTH)\n99\n'


@pytest.fixture
def ann(room: Postroom, tmp_path: Path) -> Postroom:
    (tmp_path / "tree.qdl").write_text(TREE)
    room.load(tmp_path / "tree.qdl")
    room.flows.add_principal("ann", "secret")
    return room


def test_nothing_is_allowed_that_no_grant_allows(ann: Postroom) -> None:
    assert ann.access.has_users() is False
    assert ann.access.why_not("ann", "send", "CLAIMS") == "there is no such grant"
    assert ann.access.grant("ann", "send", "CLAIMS/SOUTH") is True
    assert ann.access.grant("ann", "send", "CLAIMS/SOUTH") is False
    assert ann.access.why_not("ann", "send", "CLAIMS/SOUTH") is None
    assert ann.access.why_not("ann", "send", "INP_0001") is None, "the same queue by its other name"
    assert ann.access.why_not("ann", "send", "INP_0000") == "only CLAIMS/SOUTH"
    assert ann.access.why_not("ann", "send", "CLAIMS") == "only CLAIMS/SOUTH", "one of its queues is not allowed"
    assert ann.access.why_not("ann", "send", "CLAIMSX") == "only CLAIMS/SOUTH"
    ann.access.grant("ann", "send", "CLAIMS")
    assert ann.access.why_not("ann", "send", "CLAIMS/NORTH") is None
    assert [tuple(grant) for grant in ann.access.grants("ann")] == [
        ("ann", "send", "CLAIMS"),
        ("ann", "send", "CLAIMS/SOUTH"),
    ]
    assert ann.access.withdraw("ann", "send", "CLAIMS") is True
    assert ann.access.withdraw("ann", "send", "CLAIMS") is False
    assert ann.access.why_not("ann", "send", "CLAIMS/NORTH") == "only CLAIMS/SOUTH"
    ann.access.grant("ann", "operate")
    assert ann.access.why_not("ann", "load") is None


def test_a_token_stands_for_its_user_until_it_is_revoked_or_expires(ann: Postroom) -> None:
    ann.access.grant("ann", "send", "CLAIMS")
    token = ann.access.create_token("ann", "laptop", verbs=["send"], days=1)
    identity, expires = ann.access.identify(token)
    assert (identity.principal, expires is None) == ("ann", False)
    identity.require("send", "CLAIMS/SOUTH")
    with pytest.raises(RightMissing, match="limited to: send"):
        identity.require("look", "CLAIMS")
    (shown,) = ann.access.tokens()
    assert shown.as_dict()["verbs"] == ["send"]
    assert token.split("_", 2)[2] not in repr(ann.access.tokens())
    for wrong in ("", "x", token[:-1], token + "x", f"postroom_{shown.id}_", "postroom_\udcff_x"):
        with pytest.raises(TokenRefused, match="unknown"):
            ann.access.identify(wrong)
    before = ann.access.version()
    ann.access.revoke_token(shown.id)
    assert ann.access.version() > before
    with pytest.raises(TokenRefused):
        ann.access.identify(token)
    with pytest.raises(ArgumentInvalid):
        ann.access.revoke_token(shown.id)


def test_an_expired_token_and_one_of_a_removed_user_are_refused(ann: Postroom) -> None:
    short = ann.access.create_token("ann", "short", days=1e-9)
    with pytest.raises(TokenRefused, match="expired"):
        ann.access.identify(short)
    token = ann.access.create_token("ann", "long")
    ann.access.grant("ann", "operate")
    ann.flows.remove_principal("ann")
    with pytest.raises(TokenRefused):
        ann.access.identify(token)
    ann.flows.add_principal("ann", "another")
    assert ann.access.grants() == []
    with pytest.raises(TokenRefused):
        ann.access.identify(token)


def test_what_is_no_grant_or_token_is_refused(ann: Postroom) -> None:
    for wrong in (("ann", "dance", "*"), ("ann", "load", "x"), ("ann", "send", ""), ("ann", "send", "x" * 1001)):
        with pytest.raises(ArgumentInvalid):
            ann.access.grant(*wrong)
    with pytest.raises(PrincipalRefused):
        ann.access.grant("bob", "send", "*")
    with pytest.raises(PrincipalRefused):
        ann.access.create_token("bob", "laptop")
    for name, verbs, days in (("", None, None), ("x", ["dance"], None), ("x", None, 0), ("x", None, 1e9)):
        with pytest.raises(ArgumentInvalid):
            ann.access.create_token("ann", name, verbs=verbs, days=days)


def test_someone_acts_in_a_room_that_is_shared(ann: Postroom) -> None:
    seen = ann.seen_by("ann", "elsewhere/1")
    with ann.store.acting("ann"):
        sent = seen.send("INP_0001", "roof")
    assert ann.trace(sent.key)[0].by == "ann"
    assert seen._parts.by.proven


def test_why_not_of_an_unknown_user_says_that_there_is_none(room: Postroom) -> None:
    with pytest.raises(PrincipalRefused, match="there is no such user"):
        room.access.why_not("nobody", "send", "*")

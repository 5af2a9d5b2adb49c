"""What was made at a node of the messages of another node's sphere."""

from __future__ import annotations

from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.remote_spheres import MadeAfar


def test_what_was_made_is_known_until_it_is_forgotten(tx: Transaction) -> None:
    assert tx.afar.reach("s1") is False
    assert tx.afar.reach("s2") is False
    made = [MadeAfar("s1", 2, "q", "rule r"), MadeAfar("s1", 1, "q", "rule r")]
    tx.afar.note(made)
    assert tx.afar.made("s1") == made[::-1]
    assert tx.afar.settle(made[0], "withdrawn").outcome == "withdrawn"
    assert [each.outcome for each in tx.afar.made("s1")] == [None, "withdrawn"]
    tx.afar.fail("s1")
    tx.afar.fail("s3")
    assert (tx.afar.reach("s1"), tx.afar.reach("s2"), tx.afar.reach("s3")) == (True, False, True)
    assert tx.afar.spheres("s1", 10) == ["s2", "s3"]
    tx.afar.forget(["s1"])
    assert tx.afar.made("s1") == []
    assert tx.afar.reach("s1") is False

"""What an aborted sphere leaves behind is named, in its sends and in the queue for errors."""

from __future__ import annotations

from postroom.room import Postroom
from postroom.spheres.remains import name_remains
from postroom.store.kernel.queues import SYSTEM_ERRORS
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.spheres import NODE, STANDS, Send


def test_only_what_the_engine_made_and_nobody_undoes_is_named(room: Postroom) -> None:
    room.queues.create("work")
    sphere = room.sphere("s")
    sphere.send("work", "own", compensation="undo")
    key = int(room.send("work", "made").key.replace(".", ""))

    def work(tx: Transaction) -> None:
        made = Send("s", 1, "now", "work", key, None, None, None, None, tx.now, outcome=STANDS, maker="rule r")
        node = Send("s", 2, NODE, "branch", None, None, None, None, None, tx.now, outcome=STANDS)
        tx.spheres.remember(made, node)
        for send in (made, node):
            tx.spheres.settle(send, STANDS)
        name_remains(tx, "s", None)

    room.store.transact("compensate", work)
    bodies = [message.body for message in room.queues.info(SYSTEM_ERRORS)]
    assert len(bodies) == 2
    assert "rule r made it, someone has taken it, and nobody said what undoes it" in bodies[0]
    assert "at node branch, which was removed" in bodies[1]
    assert [send.why is not None for send in room.spheres.show("s").sends] == [False, True, True]
    sphere.abort()

"""What the room knows of a batch: pinned to a version before it is worked out, and done in one commit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from postroom.errors import StreamCheckpoint
from postroom.flows.evaluation.folding import NEVER, Row
from postroom.flows.evaluation.states import StoredStates, stateful_arcs
from postroom.flows.streams.ledger import Done, Ledger, Waits
from postroom.flows.streams.routing import Refused
from postroom.room import Postroom
from postroom.store.tables.streams import Stream

GRAPH = """domain d
space S : [k: string, n: int] from files "g/s" format json
space Sums : [k: string, n: int] retain
space End : [n: int]
space Out : [n: int] to files "g/t" format json
arc sums : S -> Sums collapse [k: k, n: n] by k => [k: k, n: sum(n)]
arc end : Sums -> End transform [n: n] => [n: n]
arc out : Sums -> Out transform [n: n] => [n: n]
"""
Load = Callable[[str], None]


@pytest.fixture
def load(room: Postroom, tmp_path: Path) -> Load:
    room.gateways.add("g", "files", folder=str(tmp_path))

    def load(text: str) -> None:
        (tmp_path / "g.flow").write_text(text)
        room.load(tmp_path / "g.flow")

    load(GRAPH)
    room.store.transact("stream-open", lambda tx: tx.streams.put(Stream("S", ("S",), "abc")))
    return load


def ledger(room: Postroom) -> Ledger:
    parts = room._parts
    return Ledger(room.store, parts.room_graphs, parts.admission, "S", lambda tx: None)


def test_a_batch_meets_the_version_that_it_was_pinned_to_and_is_done_once(room: Postroom, load: Load) -> None:
    first = ledger(room).pin(0)
    assert first is not None
    load(GRAPH.replace("n: n]\n", "n: n + 1]\n", 1))
    again = ledger(room).pin(0)
    assert again is not None
    assert again.stream.version == first.stream.version < room.store.read(lambda tx: tx.definitions.version())
    ledger(room).finish(again, Done(figures={"refused": 0}))
    assert ledger(room).pin(0) is None
    second = ledger(room).pin(1)
    assert second is not None
    assert second.stream.version > first.stream.version


@pytest.mark.parametrize("batch", [1, 5])
def test_a_checkpoint_that_is_ahead_of_the_room_is_refused(room: Postroom, load: Load, batch: int) -> None:
    with pytest.raises(StreamCheckpoint, match="one of them is an older copy"):
        ledger(room).pin(batch)


def test_messages_states_and_errors_are_one_commit(room: Postroom, load: Load) -> None:
    pinned = ledger(room).pin(0)
    assert pinned is not None
    (name,) = pinned.graph.state_names
    states = StoredStates(room.store._transaction.arc_states, name, stateful_arcs(pinned.graph, "S")[0].fold)

    def fold() -> Done:
        states.put("a", 0, Row(NEVER, []))
        refused = Refused("S", "no <event>", "a & b", "sums")
        return Done([states], {"Sums": ['{"k":"a","n":1}'], "End": ['{"n":1}']}, [refused], {"refused": 1})

    done = room.store.read(lambda tx: fold())
    room.queues.set_password("End", password="pw")
    room.queues.disable("End", password="pw")
    with pytest.raises(Waits, match="End"):
        ledger(room).finish(pinned, done)
    assert room.store.read(lambda tx: tx.arc_states.count(name)) == 0
    room.queues.enable("End", password="pw")
    ledger(room).finish(pinned, done)
    assert room.store.read(lambda tx: tx.arc_states.count(name)) == 1
    assert [json.loads(message.body) for message in room.peek("End")] == [{"n": 1}]
    assert room.queues.count("Sums").queues[0].unprocessed == 0, "the stream has led it on"
    assert [message.body for message in room.queues.history("Sums")] == ['{"k":"a","n":1}']
    (error,) = [message.body for message in room.queues.info("postroom-errors")]
    assert "no &lt;event&gt;" in error
    assert "a &amp; b" in error
    assert room.run_until_idle() == 0


def test_states_of_a_batch_that_will_run_again_outlive_a_change(room: Postroom, load: Load) -> None:
    pinned = ledger(room).pin(0)
    assert pinned is not None
    (name,) = pinned.graph.state_names
    room.store.transact("stream", lambda tx: tx.arc_states.write([(name, "a", 0, NEVER, "[]")], []))  # type: ignore[list-item]
    load(GRAPH.replace("sum(n)", "max(n)"))
    assert room.store.read(lambda tx: tx.arc_states.count(name)) == 1
    ledger(room).finish(pinned, Done())
    load(GRAPH.replace("sum(n)", "min(n)"))
    assert room.store.read(lambda tx: tx.arc_states.count(name)) == 0

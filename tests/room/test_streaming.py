"""Which streams are run, and what an operator may say: what is wrong is told before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroom.engine.spark.internals import has_session
from postroom.errors import ArgumentInvalid, GatewayUnknown, StreamUnknown
from postroom.room import Postroom
from postroom.room.streaming import _chosen, _kafka_options
from postroom.store.tables.endpoints import Endpoint

GRAPH = """domain d
space A : [n: int] from files "g/a" format json
space B : [n: int] from files "g/b" format json
space E : [n: int]
space O : [n: int] to files "g/o" format json
arc e : A -> E merge
arc o : B -> O merge
"""


@pytest.fixture
def loaded(room: Postroom, tmp_path: Path) -> Postroom:
    (tmp_path / "g.flow").write_text(GRAPH)
    room.gateways.add("g", "files", folder=str(tmp_path))
    room.gateways.add("bus", "kafka", brokers="127.0.0.1:9")
    room.load(tmp_path / "g.flow")
    return room


def test_streams_are_chosen_by_any_of_their_spaces(loaded: Postroom) -> None:
    def chosen(*spaces: str) -> list[tuple[str, ...]]:
        return loaded.store.read(lambda tx: _chosen(loaded._parts, tx, spaces))

    assert chosen() == [("A",), ("B",)]
    assert chosen("O") == [("B",)]
    assert chosen("E", "B") == [("A",), ("B",)]
    with pytest.raises(StreamUnknown, match="no stream comes to a space Q"):
        chosen("Q")


def test_what_is_wrong_is_told_without_spark(loaded: Postroom, tmp_path: Path) -> None:
    before, folder = has_session(), str(tmp_path)
    with pytest.raises(StreamUnknown):
        loaded.stream("Z", checkpoints=folder)
    with pytest.raises(ArgumentInvalid, match="from 0 seconds to a day"):
        loaded.stream(every=-1, checkpoints=folder)
    with pytest.raises(GatewayUnknown, match="no gateway h"):
        loaded.stream(refused="h/x", checkpoints=folder)
    with pytest.raises(ArgumentInvalid, match="the gateway bus has no folder"):
        loaded.stream(refused="bus/x", checkpoints=folder)
    with pytest.raises(ArgumentInvalid, match="leads nowhere"):
        loaded.stream(refused="g/../x", checkpoints=folder)
    if loaded.url.startswith("postgres"):
        with pytest.raises(ArgumentInvalid, match="a room on PostgreSQL needs a folder"):
            loaded.stream()
    assert has_session() == before


def test_a_room_without_streams_says_so(room: Postroom) -> None:
    with pytest.raises(StreamUnknown, match="this room has no space with events from outside"):
        room.stream()


def test_settings_of_kafka_are_read_from_where_they_are(tmp_path: Path) -> None:
    file = tmp_path / "kafka.options"
    file.write_text("# ours\nsecurity.protocol = SASL_SSL\nsasl.jaas.config=a b=c;\n\n")
    endpoint = Endpoint("bus", "kafka", frozenset(), {"brokers": "a:1", "options": f"file:{file}"}, "")
    assert _kafka_options(endpoint) == {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.jaas.config": "a b=c;"}
    assert _kafka_options(endpoint._replace(settings={})) == {}

"""An owner is killed between prepare and commit: what was prepared follows the sphere's token, nothing else does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
import sqlalchemy
from psycopg import sql
from sqlalchemy import orm

from postroom.room import Postroom

from .bank import Connection, paid, pay, prepared
from .invariants import check
from .payer import killed_at

BEFORE, WRITING, AFTER, PAID = (
    "sphere-committed.begun",
    "sphere-committed.committing",
    "sphere-committed.committed",
    "settle.begun",
)
#: Others' transactions: one of another program, one of another room.
FOREIGN = ["another program's", "postroom:of another room"]


@pytest.fixture
def connection(payments: str) -> Iterator[Connection]:
    """A connection to a bank where others have prepared something, too."""
    for name in FOREIGN:
        with closing(psycopg.connect(payments)) as other:
            other.tpc_begin(other.xid(1, name, ""))
            pay(other, name)
            other.tpc_prepare()
    with closing(psycopg.connect(payments)) as opened:
        yield opened


@pytest.fixture
def travel(room: Postroom) -> Postroom:
    room.queues.create("travel")
    return room


@pytest.mark.parametrize("kind", ["connection", pytest.param("session", marks=pytest.mark.slow)])
@pytest.mark.parametrize("point", [BEFORE, pytest.param(WRITING, marks=pytest.mark.slow)])
def test_killed_before_the_token_is_committed(
    travel: Postroom, payments: str, connection: Connection, point: str, kind: str
) -> None:
    killed_at(point, kind, travel.url, payments)
    assert len(prepared(payments)) == 3
    assert travel.spheres.show("booking").sphere.state == "COMMITTING"
    assert travel.spheres.settle(connection) == {}, "nobody knows yet"
    assert len(prepared(payments)) == 3
    travel.spheres.compensate(0.5)
    assert travel.spheres.settle(connection) == {"booking": "rolled back"}
    assert travel.spheres.settle(connection) == {}
    assert sorted(prepared(payments)) == sorted(FOREIGN)
    assert paid(payments) == set()
    assert travel.queues.info("travel").messages == []
    assert check(travel, over=True).spheres == {"booking": "ABORTED"}


@pytest.mark.parametrize("kind", ["connection", "session"])
def test_killed_after_the_token_is_committed(
    travel: Postroom, payments: str, connection: Connection, kind: str
) -> None:
    killed_at(AFTER, kind, travel.url, payments)
    assert len(prepared(payments)) == 3
    assert paid(payments) == set()
    travel.spheres.compensate(0.5)
    assert travel.spheres.settle(connection) == {"booking": "committed"}
    assert paid(payments) == {"booking"}
    assert sorted(prepared(payments)) == sorted(FOREIGN)
    assert [message.body for message in travel.queues.info("travel")] == ["book"]
    assert check(travel, over=True).spheres == {"booking": "COMMITTED"}


@pytest.mark.parametrize(
    ("point", "stands"),
    [
        (AFTER, {"booking"}),
        pytest.param(BEFORE, set(), marks=pytest.mark.slow),
        pytest.param(PAID, {"booking"}, marks=pytest.mark.slow),
    ],
)
def test_whoever_enlists_next_settles_first(
    travel: Postroom, payments: str, connection: Connection, point: str, stands: set[str]
) -> None:
    killed_at(point, "connection", travel.url, payments)
    travel.spheres.compensate(0.5)
    with travel.sphere("next", heartbeat=0.2) as sphere:
        sphere.enlist(connection)
        pay(connection, "next")
        assert paid(payments) == stands
        assert sorted(prepared(payments)) == sorted(FOREIGN)
    assert paid(payments) == {"next", *stands}
    check(travel, over=True)


def test_settled_through_sqlalchemy(travel: Postroom, payments: str, connection: Connection) -> None:
    killed_at(AFTER, "session", travel.url, payments)
    engine = sqlalchemy.create_engine(
        payments.replace("postgresql://", "postgresql+psycopg://"), poolclass=sqlalchemy.NullPool
    )
    with orm.Session(engine, twophase=True) as session:
        assert travel.spheres.settle(session) == {"booking": "committed"}
    assert travel.spheres.settle(engine) == {}
    assert paid(payments) == {"booking"}
    assert sorted(prepared(payments)) == sorted(FOREIGN)


def test_each_database_of_a_server_settles_its_own(travel: Postroom, payments: str, two_phase_server: str) -> None:
    name = "elsewhere"
    with psycopg.connect(two_phase_server, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        killed_at(AFTER, "connection", travel.url, payments)
        with closing(psycopg.connect(two_phase_server, dbname=name)) as other, travel.sphere() as sphere:
            sphere.enlist(other)
            assert travel.spheres.settle(other) == {}
        assert len(prepared(payments)) == 1
        with closing(psycopg.connect(payments)) as connection:
            assert travel.spheres.settle(connection) == {"booking": "committed"}
    finally:
        with psycopg.connect(two_phase_server, autocommit=True) as server:
            server.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)))

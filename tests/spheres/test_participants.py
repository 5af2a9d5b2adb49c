"""Databases and other objects share a sphere's outcome: SQLAlchemy sessions, data managers, DB-API connections."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy import orm
from transaction.interfaces import IDataManager
from zope.interface import implementer
from zope.interface.verify import verifyObject

import postroom
from postroom.errors import ArgumentInvalid, ParticipantInDoubt, SphereAborted, SphereOver
from postroom.room import Postroom
from postroom.spheres.participants import Participant

from .bank import paid, pay, prepared
from .invariants import check


class Planned(Exception):
    pass


class Base(orm.DeclarativeBase):
    pass


class Payment(Base):
    __tablename__ = "payments"
    booking: orm.Mapped[str] = orm.mapped_column(primary_key=True)
    amount: orm.Mapped[int]
    customer: orm.Mapped[int]


def engine(url: str) -> sqlalchemy.Engine:
    return sqlalchemy.create_engine(
        url.replace("postgresql://", "postgresql+psycopg://"), poolclass=sqlalchemy.NullPool
    )


def outcomes(room: Postroom, session: orm.Session, unfit: Payment) -> None:
    """One sphere that commits, one that fails, one whose session cannot be prepared."""
    room.queues.create("travel")
    with room.sphere("good") as sphere:
        sphere.enlist(session)
        sphere.send("travel", "book", compensation="cancel")
        session.add(Payment(booking="good", amount=1, customer=1))
    room.receive("travel")
    with pytest.raises(Planned), room.sphere("bad") as sphere:
        sphere.enlist(session)
        session.add(Payment(booking="bad", amount=1, customer=1))
        raise Planned
    with pytest.raises(SphereAborted, match="Session is not prepared"), room.sphere("unfit") as sphere:
        sphere.enlist(session)
        sphere.send("travel", "book", compensation="cancel")
        room.receive("travel")
        session.add(unfit)
    with room.sphere("again") as sphere:
        sphere.enlist(session)
        session.add(Payment(booking="again", amount=1, customer=1))
    assert [message.body for message in room.queues.info("travel")] == ["cancel"]
    check(room, over=True)


def test_a_session_in_two_phases(room: Postroom, payments: str) -> None:
    with orm.Session(engine(payments), twophase=True) as session:
        outcomes(room, session, Payment(booking="unfit", amount=1, customer=99))
    assert paid(payments) == {"good", "again"}
    assert prepared(payments) == []


def test_a_plain_session_on_sqlite(room: Postroom, tmp_path: Path) -> None:
    bank = engine(f"sqlite:///{tmp_path / 'bank.db'}")
    Base.metadata.create_all(bank)
    with orm.Session(bank) as session:
        outcomes(room, session, Payment(booking="good", amount=1, customer=1))  # its flush finds the key taken
        assert {payment.booking for payment in session.scalars(sqlalchemy.select(Payment))} == {"good", "again"}
    bank.dispose()


@implementer(IDataManager)
class Ledger:
    """A data manager as the transaction package wants it."""

    transaction_manager = None

    def __init__(self, fails: str = "") -> None:
        self.calls: list[str] = []
        self.fails = fails
        self.pending: list[str] = []
        self.stands: list[str] = []

    def _note(self, call: str) -> None:
        self.calls.append(call)
        if call == self.fails:
            raise Planned(call)

    def abort(self, transaction: object) -> None:
        self._note("abort")
        self.pending.clear()

    def tpc_begin(self, transaction: object) -> None:
        self._note("tpc_begin")

    def commit(self, transaction: object) -> None:
        self._note("commit")

    def tpc_vote(self, transaction: object) -> None:
        self._note("tpc_vote")

    def tpc_finish(self, transaction: object) -> None:
        self._note("tpc_finish")
        self.stands += self.pending
        self.pending.clear()

    def tpc_abort(self, transaction: object) -> None:
        self._note("tpc_abort")
        self.pending.clear()

    def sortKey(self) -> str:
        return "ledger"


def test_a_data_manager(room: Postroom) -> None:
    ledger = Ledger()
    assert verifyObject(IDataManager, ledger)
    with room.sphere() as sphere:
        assert sphere.enlist(ledger) is ledger
        ledger.pending.append("booked")
    assert ledger.calls == ["tpc_begin", "commit", "tpc_vote", "tpc_finish"]
    assert ledger.stands == ["booked"]


def test_a_data_manager_of_a_sphere_that_fails(room: Postroom) -> None:
    ledger = Ledger()
    with pytest.raises(Planned), room.sphere() as sphere:
        sphere.enlist(ledger)
        ledger.pending.append("booked")
        raise Planned
    assert (ledger.calls, ledger.stands, ledger.pending) == (["abort"], [], [])


@pytest.mark.parametrize("fails", ["tpc_begin", "commit", "tpc_vote"])
def test_a_data_manager_that_votes_no_takes_the_others_with_it(room: Postroom, fails: str) -> None:
    first, second = Ledger(), Ledger(fails)
    with pytest.raises(SphereAborted, match=fails), room.sphere("s") as sphere:
        sphere.enlist(first)
        sphere.enlist(second)
        first.pending.append("booked")
    assert first.calls == ["tpc_begin", "commit", "tpc_vote", "tpc_abort"]
    assert second.calls[-1] == "tpc_abort"
    assert room.spheres.show("s").sphere.state == "ABORTED"


def test_one_that_does_not_confirm_is_in_doubt_and_the_others_commit(room: Postroom) -> None:
    first, second = Ledger("tpc_finish"), Ledger()
    sphere = room.sphere("s")
    sphere.enlist(first)
    sphere.enlist(second)
    second.pending.append("booked")
    with pytest.raises(ParticipantInDoubt) as raised:
        sphere.commit()
    assert raised.value.happened == "yes"
    assert (sphere.state, second.stands) == ("COMMITTED", ["booked"])
    with pytest.raises(SphereOver):
        sphere.abort("too late")
    assert "tpc_abort" not in first.calls + second.calls, "its sphere is committed: nobody may roll back"


def test_a_committed_sphere_cannot_be_rolled_back_by_its_owner(room: Postroom, payments: str) -> None:
    with orm.Session(engine(payments), twophase=True) as session:
        sphere = room.sphere("s")
        sphere.enlist(session)
        session.add(Payment(booking="s", amount=1, customer=1))
        sphere.commit()
        session.add(Payment(booking="later, and another's business", amount=1, customer=1))
        for late in (sphere.abort, sphere.commit):
            with pytest.raises(SphereOver):
                late()
        session.commit()
    assert paid(payments) == {"s", "later, and another's business"}


def test_a_connection_with_work_on_it_is_refused_and_keeps_its_work(room: Postroom, payments: str) -> None:
    with psycopg.connect(payments) as connection:
        pay(connection, "before")
        with pytest.raises(ArgumentInvalid, match="participant"), room.sphere("s") as sphere:
            sphere.enlist(connection)
        assert room.spheres.settle(connection) == {}
        connection.commit()
    assert paid(payments) == {"before"}


def test_a_database_that_refuses_to_prepare_is_not_in_doubt(room: Postroom, payments: str) -> None:
    room.queues.create("q")
    with psycopg.connect(payments, autocommit=True) as database:
        database.execute("CREATE TABLE late (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    with closing(psycopg.connect(payments)) as connection:
        with pytest.raises(SphereAborted, match="not prepared: UniqueViolation"), room.sphere("s") as sphere:
            sphere.enlist(connection)
            sphere.send("q", "book")
            connection.execute("INSERT INTO late VALUES (1), (1)")
        assert prepared(payments) == []
        assert room.spheres.show("s").in_doubt == ()
        assert [finding.what for finding in room.operations.diagnose() if finding.check == "doubts"] == [
            "no database waits to hear how a sphere has ended"
        ]


def test_a_connection_that_is_lost_while_it_prepares_may_be_in_doubt(room: Postroom, payments: str) -> None:
    with (
        closing(psycopg.connect(payments)) as connection,
        psycopg.connect(payments, autocommit=True) as administrator,
    ):
        with pytest.raises(SphereAborted), room.sphere("s") as sphere:
            sphere.enlist(connection)
            pay(connection, "lost")
            administrator.execute("SELECT pg_terminate_backend(%s)", [connection.info.backend_pid])
        assert len(room.spheres.show("s").in_doubt) == 1
        assert room.spheres.settle(administrator) == {}
        assert room.spheres.show("s").in_doubt == ()


def test_a_connection_is_enlisted_once(room: Postroom, payments: str) -> None:
    with closing(psycopg.connect(payments)) as connection:
        with pytest.raises(ArgumentInvalid), room.sphere() as sphere:
            sphere.enlist(connection)
            pay(connection, "twice")
            sphere.enlist(connection)
        with room.sphere() as sphere:
            sphere.enlist(connection)
            pay(connection, "once")
    assert paid(payments) == {"once"}


class Both:
    """Nothing but the three verbs."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def prepare(self) -> None:
        self.calls.append("prepare")

    def commit(self) -> None:
        self.calls.append("commit")

    def rollback(self) -> None:
        self.calls.append("rollback")


def test_anything_with_the_three_verbs(room: Postroom) -> None:
    thing = Both()
    assert isinstance(thing, Participant)
    with room.sphere() as sphere:
        sphere.enlist(thing)
    other = Both()
    with pytest.raises(Planned), room.sphere() as sphere:
        sphere.enlist(other)
        raise Planned
    assert (thing.calls, other.calls) == (["prepare", "commit"], ["rollback"])


@pytest.mark.parametrize("thing", [None, 5, "bank", object(), [], Both])
def test_what_takes_no_part_is_refused(room: Postroom, thing: Any) -> None:
    with room.sphere() as sphere, pytest.raises(ArgumentInvalid, match="takes no part"):
        sphere.enlist(thing)


@pytest.mark.parametrize("thing", [None, 5, "bank", object(), Both()])
def test_what_cannot_tell_what_it_has_in_doubt_is_not_settled(room: Postroom, thing: Any) -> None:
    with pytest.raises(ArgumentInvalid, match="in doubt"):
        room.spheres.settle(thing)


class Meddler(Both):
    """Someone who settles what is in doubt while an owner is about to commit."""

    def __init__(self, url: str, bank: str) -> None:
        super().__init__()
        self.url, self.bank = url, bank

    def commit(self) -> None:
        super().commit()
        with postroom.open(self.url) as room, psycopg.connect(self.bank) as connection:
            assert list(room.spheres.settle(connection).values()) == ["committed"]


def test_what_another_has_settled_meanwhile_is_not_in_doubt(room: Postroom, payments: str) -> None:
    with closing(psycopg.connect(payments)) as connection, room.sphere("s") as sphere:
        sphere.enlist(Meddler(room.url, payments))
        sphere.enlist(connection)
        pay(connection, "s")
    assert paid(payments) == {"s"}
    assert prepared(payments) == []

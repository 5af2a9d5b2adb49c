"""Participants: databases and other objects that share the outcome of a sphere by two-phase commit.

A participant has ``prepare``, ``commit`` and ``rollback``. There are adapters for DB-API connections with two phases,
SQLAlchemy sessions, and data managers of the ``transaction`` package. A participant that names its share (a *branch*)
can be settled after a crash, from the state of the sphere's token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from secrets import token_hex
from typing import Any, NamedTuple, Protocol, runtime_checkable

from postroom.errors import ArgumentInvalid

#: What databases call their share begins so: one can see there whose it is. Which sphere's it is, the room knows.
_PREFIX = "postroom"
_FORMAT = 0x506F7374


#: A branch, and how to commit it and how to roll it back.
InDoubt = tuple[str, Callable[[], None], Callable[[], None]]


@runtime_checkable
class Participant(Protocol):
    def prepare(self) -> None:
        """Promise that commit and rollback will succeed; raises if that is not possible."""

    def commit(self) -> None: ...

    def rollback(self) -> None: ...


class Share(NamedTuple):
    """A database's branch of a sphere: its name, and its place without passwords."""

    branch: str
    place: str


class TwoPhaseConnection:
    """A DB-API connection with ``tpc_begin``, ``tpc_prepare``, ``tpc_commit``, ``tpc_rollback``."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.branch = f"{_PREFIX}:{token_hex(16)}"
        self.place = place_of(connection)
        try:
            connection.tpc_begin(connection.xid(_FORMAT, self.branch, ""))
        except Exception as refusal:  # whatever a driver may raise
            raise ArgumentInvalid(argument="participant", why=f"it cannot begin two phases now: {refusal}") from refusal
        self._refused = False

    def prepare(self) -> None:
        try:
            self._connection.tpc_prepare()
        except Exception:
            self._refused = _is_idle(self._connection)
            raise

    def commit(self) -> None:
        self._connection.tpc_commit()

    def rollback(self) -> None:
        try:
            self._connection.tpc_rollback()
        except Exception:
            if not self._refused:  # else there is nothing prepared that could be rolled back
                raise


def _is_idle(connection: Any) -> bool:
    """Whether a connection has no transaction: after an error, the database itself has ended it."""
    info = getattr(connection, "info", None)
    return bool(getattr(info, "transaction_status", None) == 0)  # as in libpq: 0 is idle


class Session:
    """A SQLAlchemy session. With ``twophase=True`` it is prepared; without, its flush is all it can promise."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._two_phase = bool(getattr(session, "twophase", False))
        self.branch = self._branch() if self._two_phase else None
        self.place = place_of(session)

    def _branch(self) -> str:
        self._session.connection()  # begins the transaction, which then has a name
        transaction = self._session.connection().get_transaction()
        return str(transaction.xid)

    def prepare(self) -> None:
        if self._two_phase:
            self._session.prepare()
        else:
            self._session.flush()

    def commit(self) -> None:
        self._session.commit()

    def rollback(self) -> None:
        self._session.rollback()


class DataManager:
    """A data manager of the ``transaction`` package (``tpc_begin``, ``commit``, ``tpc_vote``, ``tpc_finish`` …)."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager
        self._begun = False

    def prepare(self) -> None:
        self._begun = True
        self._manager.tpc_begin(self)
        self._manager.commit(self)
        self._manager.tpc_vote(self)

    def commit(self) -> None:
        self._manager.tpc_finish(self)

    def rollback(self) -> None:
        if self._begun:
            self._manager.tpc_abort(self)
        else:
            self._manager.abort(self)


def share_of(participant: Participant) -> Share | None:
    """The branch of a participant, if it has a name."""
    branch = getattr(participant, "branch", None)
    return (
        None if branch is None else Share(str(branch), str(getattr(participant, "place", type(participant).__name__)))
    )


def place_of(thing: Any) -> str:
    """The database of a connection, without a password."""
    engine = thing.get_bind() if hasattr(thing, "get_bind") else thing
    if hasattr(engine, "url"):
        return str(engine.url.render_as_string(hide_password=True)).partition("?")[0]
    info = getattr(thing, "info", None)
    if info is not None and hasattr(info, "dbname"):
        return f"{info.dbname} at {info.host or 'this machine'}:{info.port}"
    return type(thing).__name__


def adapted(thing: Any) -> Participant:
    """Wrap what was enlisted as a participant."""
    if hasattr(thing, "tpc_vote"):
        return DataManager(thing)
    if hasattr(thing, "tpc_begin"):
        return TwoPhaseConnection(thing)
    if hasattr(thing, "twophase") and hasattr(thing, "flush"):
        return Session(thing)
    if isinstance(thing, Participant) and not isinstance(thing, type):
        return thing
    why = (
        f"{type(thing).__name__} takes no part in two phases: give something with prepare, commit and rollback, "
        "a DB-API connection with tpc_begin, a SQLAlchemy session, or a data manager of the transaction package"
    )
    raise ArgumentInvalid(argument="participant", why=why)


def in_doubt(thing: Any) -> list[InDoubt]:
    """The prepared transactions of a database."""
    if hasattr(thing, "tpc_recover") and hasattr(thing, "tpc_commit"):
        return _of_connection(thing)
    if hasattr(thing, "connect") and hasattr(thing, "dialect"):
        return _of_engine(thing)
    if hasattr(thing, "get_bind") and hasattr(thing, "twophase"):
        return _of_engine(thing.get_bind())
    raise ArgumentInvalid(
        argument="participant",
        why=f"{type(thing).__name__} cannot list what it has in doubt; give a DB-API connection with tpc_recover, "
        "or a SQLAlchemy engine or session",
    )


def can_tell(thing: Any) -> bool:
    """Whether a connection can list its transactions in doubt."""
    return hasattr(thing, "tpc_recover") and hasattr(thing, "tpc_begin")


def _of_connection(connection: Any) -> list[InDoubt]:
    here = getattr(getattr(connection, "info", None), "dbname", None)
    return [
        (xid.gtrid, partial(connection.tpc_commit, xid), partial(connection.tpc_rollback, xid))
        for xid in connection.tpc_recover()
        # A server tells what it has in all its databases; each is ended where it is.
        if here is None or getattr(xid, "database", None) in (None, here)
    ]


def _of_engine(engine: Any) -> list[InDoubt]:
    def end(branch: str, verb: str) -> None:
        with engine.connect() as connection:
            getattr(connection, verb)(branch, recover=True)

    with engine.connect() as connection:
        branches: Sequence[str] = connection.recover_twophase()
    return [
        (str(branch), partial(end, branch, "commit_prepared"), partial(end, branch, "rollback_prepared"))
        for branch in branches
    ]

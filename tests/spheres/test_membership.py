"""A recipient that takes part can do what an owner can, and databases in doubt are seen and ended."""

from __future__ import annotations

import psycopg
import pytest

from postroom.errors import ArgumentInvalid, ParticipantInDoubt, SphereAborted, StoreUnavailable
from postroom.model.message import Message
from postroom.room import Postroom

from .bank import paid, pay, prepared
from .invariants import check
from .payer import killed_at


@pytest.fixture
def work(room: Postroom) -> Postroom:
    for queue in ("work", "goods", "carrier"):
        room.queues.create(queue)
    return room


def received(room: Postroom) -> Message:
    message = room.receive("work").message
    assert message is not None
    return message


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_a_joined_recipient_sends_receives_and_requires(work: Postroom, end: str) -> None:
    work.send("goods", "box 3")
    sphere = work.sphere("s")
    sphere.send("work", "order", compensation="forget it")
    with received(work).membership.join() as part:
        goods = part.receive("goods")
        assert goods is not None
        part.send("carrier", goods, compensation="bring it back")
        part.require("carrier", receipt_within=60)
    assert work.spheres.show("s").requires == ("1 of carrier: received within 60 s",)
    fetched = work.receive("carrier").message
    assert fetched is not None
    fetched.acknowledge()
    getattr(sphere, end)()
    left = {queue: [message.body for message in work.queues.info(queue)] for queue in ("goods", "carrier")}
    undone = {"goods": ["box 3"], "carrier": ["bring it back"]}
    assert left == ({"goods": [], "carrier": []} if end == "commit" else undone)
    check(work, over=True)


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_the_database_of_a_joined_recipient_follows_the_sphere(work: Postroom, payments: str, end: str) -> None:
    sphere = work.sphere("s")
    sphere.send("work", "order", compensation="forget it")
    with psycopg.connect(payments) as database:
        part = received(work).membership.join()
        part.enlist(database)
        pay(database, "s")
        part.done()
        assert len(prepared(payments)) == 1
        with pytest.raises(ParticipantInDoubt):
            part.follow(wait=0.1)
        getattr(sphere, end)()
        assert part.follow() == ("COMMITTED" if end == "commit" else "ABORTED")
    assert (paid(payments), prepared(payments)) == ({"s"} if end == "commit" else set(), [])
    assert work.spheres.show("s").in_doubt == ()


def test_a_joined_recipient_that_cannot_prepare_aborts(work: Postroom) -> None:
    class Unwilling:
        def prepare(self) -> None:
            raise ValueError("no room")

        def commit(self) -> None: ...

        def rollback(self) -> None: ...

    sphere = work.sphere("s")
    sphere.send("work", "order", compensation="forget it")
    with pytest.raises(SphereAborted, match="no room"), received(work).membership.join() as part:
        part.enlist(Unwilling())
    assert sphere.state == "ABORTED"
    check(work, over=True)


def test_databases_in_doubt_are_named_and_ended(work: Postroom, payments: str) -> None:
    """The owner is killed between the decision and its telling."""
    work.queues.create("travel")
    killed_at("sphere-committed.committed", "connection", work.url, payments)
    (named,) = work.spheres.show("booking").in_doubt
    assert named.startswith("postgres at ")
    assert "postroom:" in named
    assert work.operations.overview().in_doubt == [f"{named.partition(',')[0]}: sphere booking is COMMITTED"]
    (finding,) = [each for each in work.operations.diagnose() if each.check == "doubts"]
    assert "may be in doubt" in finding.what
    assert work.spheres.settle_database(payments) == {"booking": "committed"}
    assert (paid(payments), prepared(payments)) == ({"booking"}, [])
    assert work.spheres.show("booking").in_doubt == ()
    assert work.operations.overview().in_doubt == []


def test_what_was_never_prepared_is_in_doubt_no_more_once_the_database_was_asked(work: Postroom, payments: str) -> None:
    work.queues.create("travel")
    killed_at("sphere-committing.committed", "connection", work.url, payments)
    work.spheres.compensate(0.5)
    assert work.spheres.show("booking").sphere.state == "ABORTED"
    assert len(work.spheres.show("booking").in_doubt) == 1
    assert work.spheres.settle_database(payments) == {}
    assert work.spheres.show("booking").in_doubt == ()


def test_an_operator_ends_what_is_in_doubt_by_its_url(work: Postroom, payments: str) -> None:
    with pytest.raises(StoreUnavailable):
        work.spheres.settle_database("postgresql://nobody@127.0.0.1:1/nowhere")
    for words in ("", "host=/tmp dbname=postgres", "service=mine", "/tmp/room.db"):  # libpq would look into files
        with pytest.raises(ArgumentInvalid, match="postgresql://HOST/DATABASE"):
            work.spheres.settle_database(words)
    assert work.spheres.settle_database(payments) == {}

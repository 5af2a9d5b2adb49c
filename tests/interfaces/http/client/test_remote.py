"""One suite on a room of this machine and on the same through a server; and what cannot be done from afar."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import enumerate as enumerate_threads
from time import sleep

import pytest
from tests.interfaces.http.conftest import MEMO, TRADING, Served, serving

import postroom
from postroom import errors
from postroom.errors import NotRemote
from postroom.interfaces.http.client import remote
from postroom.interfaces.http.client import spheres as remote_spheres
from postroom.interfaces.http.client.remote import RemoteRoom
from postroom.queues.results import Received
from postroom.room import Postroom

TREE = '01 INPUT-QUEUE (CLAIMS) PASSWORD IS "CLAIMS"\n02 SUB-QUEUE-1 (NORTH)\n02 SUB-QUEUE-1 (SOUTH)\n99\n'


@pytest.fixture(params=["local", "served"])
def it(request: pytest.FixtureRequest, sqlite_url: str) -> Iterator[Postroom]:
    """The same program on both."""
    with postroom.open(sqlite_url, actor="boss") as room:
        if request.param == "local":
            yield room
            return
        with serving(room) as served, postroom.open(served.url, token=served.token) as far:
            assert isinstance(far, RemoteRoom)
            yield far


def test_send_receive_count_and_look(it: Postroom) -> None:
    queue = it.queues.create("orders")
    it.queues.create("orders", exist_ok=True)
    sent = it.send("orders", {"id": 17}, properties={"customer": "Oscar"}, idempotency_key="once")
    assert it.send("orders", {"id": 17}, properties={"customer": "Oscar"}, idempotency_key="once") == sent
    many = it.send_many("orders", ["a", "b"])
    assert len(many.keys) == 2
    assert queue.count().queues[0].unprocessed == 3
    assert [message.body for message in it.peek("orders")] == ['{"id":17}', "a", "b"]
    assert [message.body for message in it.peek("orders", limit=1)] == ['{"id":17}']
    received = queue.receive(wait=1.0)
    assert received.message is not None
    assert (received.message.key, received.message.value, received.end_of_message) == (sent.key, {"id": 17}, True)
    assert received.message.properties["customer"] == "Oscar"
    assert received.message.processed is not None
    passed_on = it.send("orders", received.message)
    assert it.show(passed_on.key).cause == sent.key
    assert [message.key for message in it.queues.history("orders")] == [sent.key]
    assert it.trace(sent.key)[0].verb == "put"
    assert [told.key for told in it.trace(sent.key, causes=True).messages] == [sent.key, passed_on.key]
    assert it.journal.locate(sent.key) == "orders"
    assert it.journal.last(3)[-1].by == "boss"
    assert it.journal.after(it.journal.last(2)[0].seq)[0].seq == it.journal.last(1)[0].seq
    shared = it.queues.distribute(["orders", "nowhere"], "to two")
    assert [one.reason for one in shared.deliveries] == [None, "queue-unknown"]


def test_what_is_not_delivered_goes_back_to_its_place(it: Postroom) -> None:
    queue = it.queues.create("letters")
    it.consumers.set_policy("letters", attempts=1)
    sent = list(it.send_many("letters", ["one", "two"]).keys)
    seen: list[str | None] = []

    def fail(received: Received) -> None:
        assert received.message is not None
        seen.append(received.message.body)
        raise OSError("no paper")

    for receive in (it.receive, it.queues.receive, lambda _, **given: queue.receive(**given)):
        with pytest.raises(OSError, match="no paper"):
            receive("letters", deliver=fail)
    assert seen == ["one"] * 3
    assert [message.key for message in it.peek("letters")] == sent
    received = it.receive("letters", deliver=lambda received: seen.append(received.message.body))  # type: ignore[union-attr]
    assert (seen[-1], received.end_of_message, it.count("letters").queues[0].processed) == ("one", True, 1)
    leased = it.receive("letters", lease=30).message
    assert leased is not None
    assert leased.attempts == 1
    assert it.receive("letters", deliver=fail) == Received(None, passed=("letters",))


def test_a_message_is_kept_while_it_is_delivered(here: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "LEASE_SECONDS", 0.5)
    here.room.queues.create("q")
    here.room.send("q", "x")

    def look(_: Received) -> None:
        sleep(1.5)
        assert not here.room.receive("q")

    with postroom.open(here.url, token=here.token) as it:
        assert it.receive("q", deliver=look)

        def lose(received: Received) -> None:
            (lease,) = here.room.consumers.leases()
            here.room.consumers.lease(lease.lease).release()

        here.room.send("q", "y")
        with pytest.raises(errors.OutputFailed, match="others can receive it again"):
            it.receive("q", deliver=lose)
    assert [message.body for message in here.room.peek("q")] == ["y"]


def test_what_could_not_go_back_is_not_taken(here: Served) -> None:
    here.room.queues.create("q")
    here.room.send("q", "one\ntwo")
    with postroom.open(here.url, token=here.token) as it:
        for options in ({"segment": True}, {"area": 10}):
            with pytest.raises(NotRemote, match="with deliver"):
                it.receive("q", deliver=print, **options)
        with pytest.raises(NotRemote, match="with deliver"):
            it.client("boss").receive(deliver=print)
    assert here.room.receive("q", segment=True).message.body == "one"  # type: ignore[union-attr]


def test_a_tree_is_loaded_held_and_read_by_segments(it: Postroom, tmp_path: Path) -> None:
    (tmp_path / "tree.qdl").write_text(TREE)
    assert it.definitions.check(tmp_path / "tree.qdl") == 3
    loaded = it.load(tmp_path / "tree.qdl")
    assert loaded.added == ("INP_0000", "INP_0001")
    it.send(["CLAIMS", "SOUTH"], "roof\ndamaged")
    received = it.receive("CLAIMS", segment=True)
    assert (received.passed, received.message and received.message.body) == (("INP_0000",), "roof")
    with pytest.raises(errors.QueueLocked):
        it.peek("CLAIMS", limit=1)
    assert it.receive("CLAIMS", segment=True).end_of_message
    assert it.queues.disable("CLAIMS", password="CLAIMS").changed == ("INP_0000", "INP_0001")
    assert it.count("CLAIMS").queues[0].hold.label == "full"
    assert it.queues.disable("CLAIMS", password="CLAIMS").status != "00"
    assert it.queues.enable("CLAIMS", password=lambda: "CLAIMS").changed == ("INP_0000", "INP_0001")
    assert "CLAIMS" in it.definitions.hierarchy()
    assert "INP_0000" in str(it.definitions.catalog()) or it.definitions.catalog() is not None
    assert it.queues.set_mode("CLAIMS", keep_processed=False) == ["INP_0000", "INP_0001"]


@pytest.mark.parametrize(
    ("verb", "error"),
    [
        (lambda it: it.send("nowhere", "x"), errors.QueueUnknown),
        (lambda it: it.send("q", "<a>", format="xml"), errors.XmlMalformed),
        (lambda it: it.send("q", "x", format="odd"), errors.TextInvalid),
        (lambda it: it.send("q", "x", cause="00001.99999"), errors.MessageUnknown),
        (lambda it: it.send("q", "x", idempotency_key=""), errors.ArgumentInvalid),
        (lambda it: it.send("q", "x", type="Odd"), errors.TypeUnknown),
        (lambda it: it.send_many("q", "abc"), errors.ArgumentInvalid),
        (lambda it: it.receive("q", wait=-1), errors.ArgumentInvalid),
        (lambda it: it.receive(), errors.ArgumentInvalid),
        (lambda it: it.peek("nowhere"), errors.QueueUnknown),
        (lambda it: it.show("odd"), errors.KeyInvalid),
        (lambda it: it.show("00001.99999"), errors.MessageUnknown),
        (lambda it: it.queues.create("q"), errors.NameTaken),
        (lambda it: it.queues.create(""), errors.NameInvalid),
        (lambda it: it.queues.disable("q", password="wrong"), errors.PasswordWrong),
        (lambda it: it.queues.remove("nowhere"), errors.QueueUnknown),
        (lambda it: it.load("/nowhere/x.qdl"), errors.FileUnreadable),
        (lambda it: it.publish("nowhere", "[1]"), errors.DefinitionUnknown),
        (lambda it: it.spheres.show("nowhere"), errors.SphereUnknown),
        (lambda it: it.access.grant("nobody", "send"), errors.PrincipalRefused),
    ],
)
def test_the_same_errors_with_the_same_words(it: Postroom, verb: object, error: type[errors.PostroomError]) -> None:
    it.queues.create("q", password="right")
    it.send("q", "there is one")
    with pytest.raises(error) as raised:
        verb(it)  # type: ignore[operator]
    assert raised.value.happened == "no"
    assert raised.value.advice
    assert it.count("q").queues[0].unprocessed == 1


def test_spaces_stations_and_looking_after_a_room(it: Postroom, tmp_path: Path) -> None:
    (tmp_path / "trading.flow").write_text(TRADING)
    (tmp_path / "memo.form").write_text(MEMO)
    it.load(tmp_path / "trading.flow", tmp_path / "memo.form")
    assert it.publish("Trades", {"issue": "IBM", "price": 80}).status == "00"
    assert len(it.flows.publish_many("Trades", [{"issue": "X", "price": 1}] * 3).keys) == 3
    assert it.client("boss").subscribe("Trades", "[price: p > 75]").space == "Trades"
    assert [each.client for each in it.flows.subscriptions()] == ["boss"]
    picture = it.operations.overview()
    assert {queue.name: queue.waiting for queue in picture.queues}["Trades"] == 4
    assert picture.as_dict()["queues"]
    assert it.operations.lag() == sum(it.operations.lags().values())
    assert it.spheres.all() == []
    assert it.engine.outbox() == []
    assert {finding.check for finding in it.operations.diagnose()}


def test_an_arc_is_explained_by_its_domain_and_its_name(it: Postroom, tmp_path: Path) -> None:
    (tmp_path / "domains.flow").write_text(
        "domain one space A : [n: int] space B : [n: int] arc x : A -> B merge "
        "domain two space C : [n: int] space D : [n: int] arc x : C -> D merge"
    )
    it.load(tmp_path / "domains.flow")
    with pytest.raises(errors.ArgumentInvalid, match="say one:x or two:x"):
        it.definitions.explain_arc("x")
    assert it.definitions.explain_arc("two:x").source == "C"


def test_rights_are_given_from_afar(it: Postroom) -> None:
    it.flows.add_principal("ann", "secret")
    assert it.access.grant("ann", "send", "q")


# --- only from afar ---


def test_what_cannot_be_done_from_afar_says_so(here: Served, tmp_path: Path) -> None:
    (tmp_path / "q.qdl").write_text("01 INPUT-QUEUE (A)\n99\n")
    with postroom.open(here.url, token=here.token) as it:
        for verb in (
            lambda: it.run_until_idle(),
            lambda: it.store,
            lambda: it.operations.restore("x.db"),
            lambda: it.queues.session(),
            lambda: it.definitions.spark_plan(),
            lambda: it.journal.archive(timedelta(days=1), "x"),
            lambda: it.stations.login("John", "secret"),
            lambda: it.stations.add_node("north", "north.db"),
            lambda: it.spheres.settle(None),
            lambda: it.client("boss").present(),
            lambda: it.station("John").forms,
            lambda: it.gateways.http_app(),
            lambda: it.gateways.mail_server("127.0.0.1", 0),
            lambda: it.spheres.machine(["A"], []),
            lambda: it.engine.stop(),
            lambda: it.definitions.define_type(None),  # type: ignore[arg-type]
            lambda: it.load(tmp_path / "q.qdl", agree=lambda loaded: None),
        ):
            with pytest.raises(NotRemote, match="not possible through a server"):
                verb()


def test_a_client_is_the_user_of_the_token_and_nobody_else(here: Served) -> None:
    here.user("pc")
    with postroom.open(here.url, token=here.token) as it:
        assert it.client("boss").name == "boss"
        with pytest.raises(errors.PrincipalRefused, match="that of boss: open the room with a token of pc"):
            it.client("pc")
        for name in ("boss", "pc"):
            with pytest.raises(errors.PrincipalRefused, match="no password is asked for"):
                it.client(name, "secret")
        with pytest.raises(NotRemote, match="broker"):
            it.client("boss", broker="another")
    with postroom.open(here.url, token="wrong") as stranger, pytest.raises(errors.TokenRefused):
        stranger.client("boss")


def test_a_station_is_worked_at_with_a_token(here: Served, tmp_path: Path) -> None:
    (tmp_path / "memo.form").write_text(MEMO)
    for name in ("John", "Jane"):
        here.room.stations.add(name, "secret")
    here.room.load(tmp_path / "memo.form")
    token = here.user("ann", ("work", "John"))
    with postroom.open(here.url, token=token) as it:
        key = it.station("John").create("MEMO", To="Jane")
        assert len(it.station("John").copy(key, 2)) == 2
        assert [each.key for each in it.station("John").ship(key, "Jane")] == [key]
        assert it.station("John").mail() == []
        with pytest.raises(errors.RightMissing):
            it.station("Jane").get()


def test_a_room_that_was_closed_says_so_from_afar(here: Served) -> None:
    before = enumerate_threads()
    with postroom.open(here.url, token=here.token) as room:
        sphere = room.sphere(heartbeat=0.3)
        here_and_there = [thread for thread in enumerate_threads() if thread.name == "postroom-heart"]
        hearts = [thread for thread in here_and_there if thread not in before]
        (heart,) = [thread for thread in hearts if getattr(thread, "_target", None) is remote_spheres._beat]
    with pytest.raises(errors.StoreStopped, match="it was closed"):
        room.count()
    with pytest.raises(errors.StoreStopped):
        sphere.send("q", "x")
    heart.join(20)
    assert not heart.is_alive()

"""The same program on a room of this machine and through a server: one suite, and no test knows which it has."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from tests.interfaces.http.conftest import MEMO, Served, Two, numbers

import postroom
from postroom import errors
from postroom.interfaces.http.client.remote import RemoteRoom
from postroom.interfaces.http.contract.objects import encoded
from postroom.interfaces.http.contract.operations import OPERATIONS
from postroom.room import Postroom

_READING = [
    each
    for each in OPERATIONS
    if each.method == "GET"
    and each.part not in ("client", "lease")
    and each.name not in ("spheres.show", "station.table")
]


@pytest.mark.parametrize("operation", _READING, ids=lambda each: f"{each.name} {each.path}")
def test_what_is_read_is_the_same_object(two: Two, operation: Any) -> None:
    """From the table: whatever can be asked is answered with the same object, by both."""
    if operation.name == "station.dossier":
        two.here.stations.admitted("John").add_to_dossier("lunch", two.known["FORM"])
    if operation.name == "operations.diagnose":
        pytest.skip("it looks at this machine, which changes meanwhile")
    said = {name: two.known.get(value, value) for name, value in operation.example.items()}
    if "queue" in said:
        said["queue"] = (said["queue"],)
    station = said.pop("station", None) if operation.part == "station" else None

    def asked(room: Postroom) -> Any:
        part = getattr(room, operation.part) if station is None else room.stations.admitted(station)
        return operation.call(part, dict(said))

    for _ in range(10):  # a lease may end, or a heart beat, between the two
        ours, theirs = encoded(asked(two.here)), encoded(asked(two.it))
        if operation.name == "operations.overview":
            ours["v"].pop("at"), theirs["v"].pop("at")
        if theirs == ours:
            break
    assert theirs == ours


# --- bodies ---


def test_long_lists_are_read_page_by_page(two: Two) -> None:
    name = f"pages{next(numbers)}"
    two.it.queues.create(name)
    two.it.send_many(name, [str(number) for number in range(7)])
    for verb in (two.it.queues.peek, two.it.queues.history):
        pages: list[list[str]] = []
        listing = verb(name, limit=3)
        pages.append([message.body for message in listing])
        while listing.next is not None:
            listing = verb(name, limit=3, after=listing.next)
            pages.append([message.body for message in listing])
        assert pages == [["0", "1", "2"], ["3", "4", "5"], ["6"]]
        with pytest.raises(errors.ArgumentInvalid, match="after"):
            verb(name, limit=3, after="12@elsewhere")
        for _ in range(7):
            two.it.receive(name)
    with pytest.raises(errors.ArgumentInvalid, match="after"):
        two.it.queues.peek(name, limit=3, where="a = 1", after=f"1@{name}")


def test_a_source_and_segments(two: Two) -> None:
    queue, source = two.queue(), f"T{next(numbers)}x"
    two.it.queues.create_source(source, password="secret")
    two.it.queues.send_segments(queue, ["first", "second\nline"], source=source)
    assert source in {each.name for each in two.it.queues.sources()}
    assert two.it.queues.find_source(source).name == source
    assert two.it.queues.disable_source(source, "secret").changed
    with pytest.raises(errors.SourceHeld):
        two.it.send(queue, "x", source=source)
    two.it.queues.enable_source(source, "secret")
    two.it.queues.remove_source(source)
    part = two.it.receive(queue, area=3)
    assert part.message is not None
    assert part.portion is not None
    assert (part.message.body, part.portion.current_char) == ("fir", 3)


def test_what_a_queue_has_as_a_table_and_as_a_file(two: Two, tmp_path: Path) -> None:
    queue = two.queue()
    two.it.send_many(queue, [{"id": 1}, {"id": 2}])
    assert two.it.frame(queue).arrow().column("id").to_pylist() == [1, 2]
    made = two.it.queues.export(queue, tmp_path / "out.jsonl")
    assert made.message_count == 2
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2


def test_passwords_modes_and_names_of_queues(two: Two) -> None:
    queue = two.queue(password="old")
    assert two.it.queues.has_password(queue)
    two.it.queues.set_password(queue, password="new", old="old")
    assert two.it.queues.disable(queue, password="new", input_only=True).changed == (queue,)
    with pytest.raises(errors.QueueHeld):
        two.it.send(queue, "x")
    assert two.it.queues.enable(queue, password=lambda: "new").changed == (queue,)
    assert two.it.queues.set_mode(queue, keep_processed=False) == [queue]
    two.it.queues.remove(queue)
    with pytest.raises(errors.QueueUnknown):
        two.it.count(queue)


# --- leases ---


# --- dead letters, policies, schedules ---


def test_policies_and_dead_letters(two: Two) -> None:
    queue, other = two.queue(), two.queue()
    assert two.it.consumers.set_policy(queue, attempts=1, lease=5.0, max_age=None) == [queue]
    assert two.it.consumers.policy(queue)[queue].attempts == 1
    two.it.send_many(queue, ["a", "b", "c"])
    for message in two.it.receive_many(queue, count=3):
        message.fail("no such address")
    dead = f"{queue}.dead"
    keys = [each.key for each in two.it.peek(dead)]
    dry = two.it.consumers.redrive(dead, dry=True)
    assert (dry.count, dry.dry, dry.moves[0]) == (3, True, (keys[0], queue))
    assert two.it.consumers.redrive(dead, keys=[keys[0]], edit=lambda message: f"{message.body}!").count == 1
    assert two.it.consumers.redrive(dead, keys=[keys[1]], edit={keys[1]: {"b": 1}}).count == 1
    assert two.it.consumers.redrive(dead, to=other).moves == ((keys[2], other),)
    assert [each.body for each in two.it.peek(queue)] == ["a!", '{"b":1}']
    assert two.it.peek(queue).messages[0].cause == keys[0]
    assert two.it.consumers.move(queue, to=other, limit=1).count == 1
    assert two.it.consumers.purge(queue, dry=True).count == 1
    assert two.it.consumers.purge(queue).count == 1
    assert two.it.consumers.reset_policy(queue) == [queue]
    assert [each.body for each in two.it.peek(other)] == ["c", "a!"]


def test_schedules(two: Two) -> None:
    queue, name = two.queue(), f"s{next(numbers)}"
    made = two.it.consumers.schedule(name, "0 7 * * 1-5", queue, body={"open": 1.5}, zone="Europe/Berlin")
    assert (made.queue, made.body, made.zone) == (queue, '{"open":1.5}', "Europe/Berlin")
    assert made in two.it.consumers.schedules()
    assert two.it.consumers.fire() == 0
    two.it.consumers.unschedule(name)
    with pytest.raises(errors.ArgumentInvalid):
        two.it.consumers.schedule(name, "0 7 *", queue, body="x")


# --- spheres ---


# --- definitions, flows, stations ---


def test_definitions_are_checked_loaded_tried_and_told(two: Two, tmp_path: Path) -> None:
    number = next(numbers)
    domain, flow = f"d{number}", tmp_path / f"places{number}.flow"
    (tmp_path / "cities.csv").write_text("broker,city\nA,Rome\n")
    flow.write_text(
        f"domain {domain}\nspace Seen{number} : [broker: string]\n"
        f'table cities{number} : [broker: string, city: string] from "cities.csv"\n'
    )
    assert two.it.definitions.check(flow) == 3
    assert two.it.load(flow).version > 0
    assert f"table cities{number}" in str(two.it.flows.graph()) or two.it.flows.graph().tables
    assert list(two.it.definitions.try_out(flow)) == []
    tried = two.it.definitions.try_message("customers", body="<customer><id>7</id></customer>", format="xml")
    assert tried is not None
    assert [each["action"] for each in tried.as_dict()["actions"]] == ["enqueue"]
    assert two.it.definitions.try_message("orders", body="x") is None
    flow.write_text("domain x\nspace : [\n")
    with pytest.raises(errors.FlowInvalid) as refused:
        two.it.load(flow)
    assert f"places{number}.flow:2" in refused.value.facts["where"]
    assert two.it.definitions.schema("MEMO")["title"] == "MEMO"
    assert two.it.definitions.explain("tell").target == "queue customers"


def test_a_file_of_the_servers_machine_is_never_read(two: Two, tmp_path: Path) -> None:
    if two.it is two.here:
        pytest.skip("here it may be")
    secret = tmp_path / "secret.csv"
    secret.write_text("broker,city\nA,Rome\n")
    flow = tmp_path / "steal.flow"
    flow.write_text(f'domain steal\ntable t : [broker: string, city: string] from "{secret}"\n')
    parts: Any = two.it._parts
    for beside in ({}, {"other.csv": "x"}):
        with pytest.raises(errors.FileUnreadable, match="not sent along"):
            parts.call("definitions.check", two.it.definitions, (flow,), {}, beside=beside)
    flow.write_text('domain steal\ntable t : [broker: string, city: string] from "/tmp/x.parquet"\n')
    with pytest.raises(errors.FileUnreadable, match="cannot be sent"):
        parts.call("definitions.check", two.it.definitions, (flow,), {}, beside={"/tmp/x.parquet": ""})


def test_a_client_publishes_subscribes_and_receives(two: Two) -> None:
    client = two.it.client("boss") if isinstance(two.it, RemoteRoom) else two.it.flows.client("boss", "secret")
    made = client.subscribe("Trades", "[price: p > 75]", durable=True)
    assert made.space == "Trades"
    assert client.publish("Trades", {"issue": "A", "price": 80}, idempotency_key=f"k{next(numbers)}").status == "00"
    assert len(client.publish_many("Trades", [{"issue": "B", "price": 90}]).keys) == 1
    assert [each.space for each in client.subscriptions()] == ["Trades"]
    assert len(client.disconnect()) == 1
    assert len(client.connect()) == 1
    assert client.receive().message is None
    assert len(client.unsubscribe("Trades")) == 1
    with pytest.raises(errors.EventInvalid):
        two.it.publish("Trades", {"issue": "A"})


def test_meta_events_change_the_graph_and_need_a_permission(two: Two) -> None:
    with pytest.raises(errors.PostroomError) as refused:
        two.it.publish("meta:trading", {"DisableArc": {"arcName": "big"}})
    assert refused.value.happened == "no"


def test_a_station_is_worked_at(two: Two) -> None:
    john = two.it.station("John", "secret")
    key = john.create("MEMO", To="Jane", Text="lunch?")
    assert john.show(key).fields["Text"] == "lunch?"
    assert john.modify(key, {"Text": "supper?"}).fields["Text"] == "supper?"
    assert two.it.journal.trace_values(key)[-1].values == {"Text": "supper?"}
    assert two.it.show(key, 1).body != two.it.show(key).body if not isinstance(two.it, RemoteRoom) else True
    copies = john.copy(key, 2)
    assert len(john.create_many("MEMO", [{"To": "Jim"}, {"To": "Joe"}])) == 2
    assert john.count("MEMO", To="Joe") >= 1
    found = john.query("MEMO", {"Text": "supper?"}, into="suppers")
    assert sorted(image.key for image in found) == sorted([key, *copies])
    assert found.table().columns[:2] == ["key", "place"]
    assert [each.name for each in john.tables()] == ["suppers"]
    assert len(john.table("suppers")) == 3
    john.drop_table("suppers")
    with pytest.raises(errors.TableUnknown):
        john.table("suppers")
    assert john.add_to_dossier("evening", key, *copies) == 3
    assert john.dossiers()["evening"] == 3
    assert john.remove_from_dossier("evening", key) == 1
    assert sorted(image.key for image in john.dossier("evening")) == sorted(copies)
    assert [each.delivered for each in john.ship(copies, "Jane")] == [True, True]
    assert john.take_back(copies) == copies
    john.ship(copies, "Jane")
    jane = two.it.station("Jane", "secret")
    assert set(copies) <= {each.key for each in jane.mail()}
    assert set(copies) <= set(jane.get())
    assert two.it.journal.locate(copies[0]) == "Jane"
    assert john.next(None, "MEMO") is not None
    with pytest.raises(errors.MessageElsewhere):
        john.show(copies[0])
    with pytest.raises(errors.TypeUnknown):
        john.create("MEMOO", To="x")
    message = two.it.show(key)
    assert two.it.journal.fields(message)["To"] == "Jane"
    edition = two.it.stations.form_of(message)
    assert edition is not None
    assert edition.form.name == "MEMO"
    assert two.it.stations.form("MEMO").version == edition.version


def test_procedures_counters_and_stations_are_looked_after(two: Two) -> None:
    assert two.it.stations.disable_procedure("answer")
    assert not two.it.stations.disable_procedure("answer")
    assert [each.enabled for each in two.it.stations.procedures()] == [False]
    assert two.it.stations.enable_procedure("answer")
    assert two.it.definitions.explain_procedure("answer").station == "Jane"
    assert [each.counter.queue for each in two.it.stations.counters()] == ["forms"]
    assert two.it.stations.waiting() == []
    name = f"S{next(numbers)}"
    assert two.it.stations.add(name, "secret").name == name
    assert name in two.it.stations.all()
    two.it.stations.remove(name)


# --- looking after a room ---


def test_a_room_is_looked_after(two: Two, tmp_path: Path) -> None:
    made = two.it.backup(tmp_path / "copy.db")
    assert made.messages > 0
    with pytest.raises(errors.BackupExists):
        two.it.backup(tmp_path / "copy.db")
    with postroom.open(tmp_path / "copy.db") as copy:
        assert copy.journal.verify().differences == ()
    assert two.it.journal.verify().differences == ()
    assert two.it.journal.mend().left == ()
    two.it.engine.set_retention("receipts", timedelta(days=3))
    assert two.it.engine.retentions()["receipts"] == timedelta(days=3)
    two.it.engine.set_retention("receipts", None)
    assert two.it.engine.retentions()["receipts"] is None
    assert set(two.it.engine.sweepable()) <= set(two.it.engine.sweep_by_kind())
    assert two.it.operations.lag() >= 0


def test_users_grants_and_tokens(two: Two) -> None:
    name = f"user{next(numbers)}"
    assert two.it.flows.add_principal(name, "secret") is None
    assert name in two.it.flows.principals()
    assert two.it.access.why_not(name, "send", "orders") == "there is no such grant"
    assert two.it.access.grant(name, "send", "orders")
    assert two.it.access.why_not(name, "send", "orders") is None
    token = two.it.access.create_token(name, "laptop", verbs=["send"], days=1)
    (shown,) = [each for each in two.it.access.tokens() if each.principal == name]
    assert (shown.verbs, token.split("_")[1]) == (("send",), shown.id)
    two.it.access.revoke_token(shown.id)
    assert two.it.access.withdraw(name, "send", "orders")
    two.it.flows.remove_principal(name)


def test_gateways_and_effects(two: Two) -> None:
    name = f"g{next(numbers)}"
    assert two.it.gateways.add(name, "http", address="https://partner.example/in").name == name
    assert name in {each["gateway"] for each in two.it.gateways.all()}
    two.it.gateways.remove(name)
    effect = two.here.store.transact("test", lambda tx: tx.outbox.add("command", {"queue": "orders"}, "orders"))
    assert effect is None or effect
    last = two.it.engine.outbox()[-1].id
    two.it.engine.drop_effect(last)
    with pytest.raises(errors.OutboxUnknown):
        two.it.engine.retry(last)


def test_what_is_seen_while_an_engine_runs_is_seen_through_a_server(two: Two) -> None:
    queue = two.queue()
    words = [sys.executable, "-m", "postroom", "run", "--spark", "auto", "--room", two.here.url]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as engine:
        try:
            for _ in range(600):
                if two.here.operations.overview().engines:
                    break
                sleep(0.05)
            (seen,) = two.it.operations.overview().engines
            assert seen == two.here.operations.overview().engines[0]
            assert f"process {engine.pid}" in seen.owner
            assert queue in [each.name for each in two.it.operations.overview().queues]
        finally:
            engine.terminate()
            engine.wait(60)


def test_the_journal_says_who_works_at_a_station(here: Served) -> None:
    """Two users of one station are told apart; a station that is its own user is named once."""
    room = here.room
    room.stations.add("John", "secret")
    room.stations.add("Jane", "secret")
    (Path(room.url).parent / "memo.form").write_text(MEMO)
    room.load(Path(room.url).parent / "memo.form")
    tokens = {name: here.user(name, ("work", "John")) for name in ("ann", "bob")}
    tokens["John"] = room.access.create_token("John", "its own")
    room.access.grant("John", "work", "John")
    for name, token in tokens.items():
        with postroom.open(here.url, token=token) as it:
            john = it.stations.admitted("John")
            key = john.create("MEMO", To="Jane")
            john.modify(key, Text="come")
            john.ship([key], "Jane")
            john.take_back([key])
        who = "John" if name == "John" else f"John ({name})"
        assert [(event.verb, event.by) for event in room.journal.trace(key)] == [
            ("create", who), ("modify", who), ("ship", who), ("get", who),
        ]  # fmt: skip
    key = room.stations.at("John", "secret").create("MEMO", To="Jane")
    assert [event.by for event in room.journal.trace(key)] == ["John"]

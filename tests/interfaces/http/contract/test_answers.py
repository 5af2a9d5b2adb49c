"""An operation and the command for the same thing answer with one document, in one vocabulary."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.interfaces import shapes
from tests.interfaces.conftest import Run
from tests.interfaces.http.conftest import furnish
from tests.interfaces.http.contract.test_operations import World, request

import postroom
from postroom.interfaces.http.contract.openapi import identifier
from postroom.interfaces.http.contract.operations import OPERATIONS
from postroom.room import Postroom
from postroom.spheres.sphere import Sphere

#: The command that does what an operation does, in the words of the operation's example.
COMMANDS = {
    "queues.count.all": "count",
    "queues.create": "queue create invoices",
    "queues.count.queue": "count orders",
    "queues.remove": "queue remove spare",
    "queues.send": "send orders --body 'order 17' --property customer=Oscar",
    "queues.send_segments": "send orders --segment 'the roof' --segment 'is damaged'",
    "queues.distribute": "send orders --also copies --body x",
    "queues.receive": "receive orders",
    "consumers.receive_many": "receive orders --count 2 --lease 30",
    "consumers.done_many": "done LEASE-1 LEASE-6",
    "lease.extend": "extend LEASE-2 60",
    "lease.release": "release LEASE-2 --delay 5",
    "lease.fail": "fail LEASE-3 'no such address'",
    "lease.done": "done LEASE-4",
    "queues.peek": "peek orders --limit 10",
    "queues.history": "history orders --limit 10",
    "queues.disable": "disable orders",
    "queues.enable": "enable orders",
    "queues.set_mode": "queue mode keep orders",
    "queues.set_password": "queue password copies",
    "consumers.policy": "queue policy orders",
    "consumers.set_policy": "queue policy orders --attempts 5",
    "consumers.reset_policy": "queue policy orders --reset",
    "consumers.purge": "purge orders --dry-run",
    "consumers.move": "move orders --to copies --limit 1 --dry-run",
    "consumers.redrive": "redrive orders.dead --to orders --dry-run",
    "queues.sources": "source list",
    "queues.create_source": "source create T9",
    "queues.disable_source": "source disable T1",
    "queues.enable_source": "source enable T1",
    "queues.remove_source": "source remove T1",
    "consumers.schedules": "schedule list",
    "consumers.schedule": "schedule add morning '0 7 * * 1-5' orders --body 'open the mail'",
    "consumers.unschedule": "schedule remove nightly",
    "journal.show": "show KEY",
    "journal.trace": "trace KEY",
    "journal.trace_values": "trace FORM --values",
    "journal.locate": "locate KEY",
    "journal.why": "why KEY",
    "journal.slice": "slice byCustomer 7",
    "spheres.acknowledge": "sphere acknowledge SENT",
    "definitions.load": "load memo.form",
    "definitions.check": "load tree.qdl --check",
    "definitions.try_out": "try memo.form",
    "definitions.catalog": "catalog",
    "definitions.explain": "explain tell --no-plan",
    "definitions.explain_arc": "explain big --no-plan",
    "definitions.explain_procedure": "explain answer",
    "definitions.load_collection": "collection load rates rates.xml",
    "definitions.hierarchy": "hierarchy",
    "definitions.levels": "hierarchy",
    "definitions.types": "type list",
    "definitions.schema": "type export MEMO",
    "flows.publish": 'publish Trades \'{"issue": "A", "price": 8}\'',
    "flows.graph": "graph",
    "flows.subscriptions": "subscriptions",
    "client.subscribe": "subscribe Trades '[price: p > 75]' --as boss",
    "client.disconnect": "disconnect --as boss",
    "client.connect": "connect --as boss",
    "client.unsubscribe.space": "unsubscribe Trades --as boss",
    "client.unsubscribe.all": "unsubscribe --as boss",
    "stations.all": "station list",
    "stations.add": "station add Jim",
    "stations.remove": "station remove Jack",
    "stations.form": "form MEMO",
    "stations.nodes": "node list",
    "stations.counters": "counter list",
    "stations.remove_counter": "counter remove desk",
    "stations.procedures": "procedure list",
    "stations.waiting.all": "waiting",
    "stations.disable_procedure": "procedure disable answer",
    "stations.enable_procedure": "procedure enable answer",
    "stations.remove_procedure": "procedure remove answer",
    "station.create": "create MEMO To=Jane --as John",
    "station.create_many": "create MEMO --file memos.jsonl --as John",
    "station.messages": "list MEMO --limit 10 --as John",
    "station.next": "next --as John",
    "station.modify": "modify FORM Text=lunch? --as John",
    "station.copy": "copy FORM 2 --as John",
    "station.add_to_dossier": "dossier add lunch FORM --as John",
    "station.dossiers": "dossier list --as John",
    "station.dossier": "dossier show lunch --as John",
    "station.remove_from_dossier": "dossier remove lunch FORM --as John",
    "station.query": "query MEMO --into memos --as John",
    "station.numbered_count": "query MEMO To=Jane --count --as John",
    "station.tables": "table list --as John",
    "station.table": "table show memos --as John",
    "station.drop_table": "table drop memos --as John",
    "station.ship": "ship FORM Jane --as John",
    "station.take_back": "take-back FORM --as John",
    "station.mail": "mail --as Jane",
    "station.get": "get --as Jane",
    "spheres.all": "spheres",
    "spheres.show": "sphere show SPHERE",
    "spheres.abort": "sphere abort SPHERE --reason 'a mistake'",
    "journal.last": "journal --last 5",
    "journal.verify": "verify",
    "journal.mend": "mend",
    "operations.overview": "top",
    "operations.diagnose": "doctor",
    "engine.outbox": "outbox list",
    "engine.retry": "outbox retry EFFECT",
    "engine.drop_effect": "outbox drop EFFECT",
    "engine.sweepable": "sweep --dry-run",
    "engine.sweep_by_kind": "sweep",
    "engine.retentions": "retention list",
    "engine.set_retention": "retention set receipts 10d",
    "gateways.all": "gateway list",
    "gateways.add": "gateway add partner http address=https://partner.example/orders",
    "gateways.remove": "gateway remove partner",
    "flows.principals": "principal list",
    "flows.add_principal": "principal add bob",
    "flows.remove_principal": "principal remove bob",
    "access.grants": "grant list",
    "access.grant": "grant add ann look orders",
    "access.why_not": "why-not ann send orders",
    "access.withdraw": "grant remove ann look orders",
    "access.tokens": "token list",
    "access.create_token": "token create ann laptop",
    "access.revoke_token": "token revoke TOKEN",
}
#: What no command does: for programs that page, or that hold a sphere, a lease or a client of flows.
NO_COMMAND = set(
    """
    queues.send_many queues.sent_parts queues.send_part consumers.lease queues.has_password queues.find_source
    consumers.fire definitions.try_message
    definitions.files definitions.versions flows.publish_many client.subscriptions client.receive station.show
    stations.waiting.station station.others spheres.open sphere.send sphere.mail sphere.receive sphere.require
    lease.fail_by_worker held.heartbeat held.commit journal.after journal.archives operations.lags consumers.leases
    stations.procedure_errors access.end_sessions
    """.split()
)
#: They take their time, or need another database. Their documents are compared by name; tests of their own run them.
LONG = {"station.sql": "sql", "spheres.compensate": "compensate", "spheres.settle_database": "sphere settle"}
#: Below them are names that users chose, or kinds and queues by their names.
FREE = {"fields", "values", "properties", "detail", "body", "definition", "settings", "policies", "kinds", "retentions"}
FILES = {
    "tree.qdl": '01 INPUT-QUEUE (CLAIMS) PASSWORD IS "CLAIMS"\n99\n',
    "rates.xml": "<rates/>",
    "memo.form": "type NOTE\n| To: ____ KEY: ___ |\nfield To string required\nfield KEY key automatic\n",
    "memos.jsonl": '{"To": "Jane"}\n{"To": "Jim"}\n',
}
_TYPES = {str: "text", bool: "flag", int: "number", float: "number"}


def shape(value: Any) -> Any:
    """The names of a document and the types of their values; of a list, those of all its members."""
    if isinstance(value, dict):
        return {name: "free" if name in FREE else shape(each) for name, each in value.items()}
    if isinstance(value, list):
        return ["list", *merged([shape(each) for each in value])]
    return None if value is None else _TYPES[type(value)]


def merged(shapes: list[Any]) -> list[Any]:
    names: dict[str, Any] = {}
    for each in shapes:
        if isinstance(each, dict):
            names |= {name: of for name, of in each.items() if of is not None or name not in names}
    return [names] if names else sorted({str(each) for each in shapes})


def differs(told: Any, said: Any) -> bool:
    """Whether two shapes cannot be one; what is null may have any type."""
    if told is None or said is None:
        return False
    if isinstance(told, dict) and isinstance(said, dict):
        return set(told) != set(said) or any(differs(told[name], said[name]) for name in told)
    if isinstance(told, list) and isinstance(said, list):
        return len(told) > 1 and len(said) > 1 and differs(told[1], said[1])
    return bool(told != said)


def test_a_difference_of_names_or_types_is_found() -> None:
    one = {"status": "00", "tables": [{"name": "a", "seq": None}, {"name": "b", "seq": 3}]}
    assert not differs(shape(one), shape({"status": "00", "tables": [{"name": "x", "seq": 1}]}))
    assert not differs(shape(one), shape({"status": "00", "tables": []}))
    for other in (
        {"status": "00", "tables": [{"name": "a"}]},
        {"status": "00", "tables": [{"name": "a", "seq": "3"}]},
        {"status": "00", "tables": [{"station": "a", "seq": 3}]},
        {"status": "00", "tables": ["a"]},
        {"status": "00", "images": []},
    ):
        assert differs(shape(one), shape(other)), other


def test_every_operation_has_its_command_or_has_none() -> None:
    every = {identifier(operation) for operation in OPERATIONS}
    assert set(COMMANDS) | NO_COMMAND | set(LONG) == every
    assert len(COMMANDS) + len(NO_COMMAND) + len(LONG) == len(every)
    for operation in OPERATIONS:
        if operation.name in LONG:
            (command,) = shapes.several(shapes.COMMANDS[LONG[operation.name]])
            assert {"status", *operation.answer.every} == set(command["required"]), operation.name


def test_a_command_and_its_operation_answer_with_one_document(
    world: World, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operations in one room, the commands in another that was made alike; each in the order of the table."""
    served, known = world
    monkeypatch.setenv("POSTROOM_PASSWORD", "secret")
    url = str(tmp_path / "twin.db")
    (tmp_path / "twin").mkdir()
    by_command: dict[str, dict[str, Any]] = {}
    said: dict[str, Any] = {}
    with postroom.open(url) as room, ExitStack() as stack:
        stands_for = _twin(room, tmp_path / "twin", stack)
        with served.client() as client:
            sent = client.post("/spheres/OTHER/messages", json={"queue": "errors", "body": "x"}).json()["key"]
            for name, text in FILES.items():
                Path(name).write_text(text)
            for operation in OPERATIONS:
                if operation.name in LONG:
                    continue
                line = COMMANDS.get(identifier(operation))
                named = {"KEY": sent} if operation.name == "spheres.acknowledge" else {}
                told = request(client, operation, lambda text, named=named: named.get(text) or known(text)).json()  # type: ignore[misc]
                assert "code" not in told, told
                if line is not None:
                    words = [str(stands_for.get(word, word)) for word in shlex.split(line)]
                    by_command.setdefault(line, {}).update(told)
                    if line not in said:
                        said[line] = run(*words, "--room", url, "--json").json
    different = [line for line, told in by_command.items() if differs(shape(told), shape(said[line]))]
    assert not different, "\n".join(f"{line}\n  HTTP {by_command[line]}\n  here {said[line]}" for line in different)


def _twin(room: Postroom, folder: Path, stack: ExitStack) -> dict[str, Any]:
    known = furnish(room, folder)
    room.flows.add_principal("boss", "secret")
    room.access.grant("boss", "operate")
    room.access.create_token("boss", "test")
    room.spheres.compensator(3600.0).announce()
    room.flows.client("boss", "secret").subscribe("Big")
    for id in ("SPHERE", "MINE", "OTHER"):
        sphere = room.sphere(id, heartbeat=600)
        stack.callback(_abort, sphere)
    room.send("copies", "y")
    (leased,) = room.receive_many("copies", count=1, lease=3600, detached=True)
    return {**known, "SENT": sphere.send("errors", "x").key, "LEASE-6": leased.lease}


def _abort(sphere: Sphere) -> None:
    if sphere.state == "ACTIVE":
        sphere.abort()

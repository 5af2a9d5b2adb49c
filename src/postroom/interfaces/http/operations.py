"""Every operation of a server, in one table: from it come the routes, OpenAPI, the remote client and the tests.

A row names a verb of a part of the room, its method and path, the rights that it needs, what its document says, and
an example. What it takes is what the verb takes. An operation that is added here is served, described, called by the
client and held against the rights of everyone.
"""

from __future__ import annotations

from typing import Any

from postroom.interfaces.http.answers import answer
from postroom.interfaces.http.held import HeldSphere
from postroom.interfaces.http.operation import Operation
from postroom.queues.leased import LeasedMessage
from postroom.room.access import RoomAccess
from postroom.room.client import Client
from postroom.room.consumers import RoomConsumers
from postroom.room.definitions import RoomDefinitions
from postroom.room.engine import RoomEngine
from postroom.room.flows import RoomFlows
from postroom.room.gateways import RoomGateways
from postroom.room.journal import RoomJournal
from postroom.room.operations import RoomOperations
from postroom.room.queues import RoomQueues
from postroom.room.spheres import RoomSpheres
from postroom.room.stations import RoomStations
from postroom.spheres.sphere import Sphere
from postroom.stations.station import Station

#: The parts of a room, and what a path names: a station, a lease, a sphere, the caller as a client of flows.
PARTS: dict[str, type] = {
    "queues": RoomQueues,
    "consumers": RoomConsumers,
    "lease": LeasedMessage,
    "journal": RoomJournal,
    "definitions": RoomDefinitions,
    "operations": RoomOperations,
    "flows": RoomFlows,
    "client": Client,
    "gateways": RoomGateways,
    "stations": RoomStations,
    "station": Station,
    "spheres": RoomSpheres,
    "sphere": Sphere,
    "held": HeldSphere,
    "engine": RoomEngine,
    "access": RoomAccess,
}


def operation(name: str, way: str, rights: str, answered: str = "", /, **example: Any) -> Operation:
    method, path = way.split(" ")
    return Operation(name, method, path, rights, answer(answered), PARTS[name.split(".")[0]], example)


o = operation
_QUEUES: tuple[Operation, ...] = (
    o("queues.count", "GET /queues", "look:*", "queues"),
    o("queues.create", "POST /queues", "manage", "queue", name="invoices"),
    o("queues.count", "GET /queues/{queue}/count", "look", "queues", queue="orders"),
    o("queues.remove", "DELETE /queues/{name}", "manage", "queue=name", name="spare"),
    o(
        "queues.send",
        "POST /queues/{queue}/messages",
        "send",
        "key",
        queue="orders",
        body="order 17",
        properties={"customer": "Oscar"},
    ),
    o("queues.send_many", "POST /queues/{queue}/batch", "send", "keys", queue="orders", bodies=["18", {"id": 19}]),
    o(
        "queues.send_segments",
        "POST /queues/{queue}/segments",
        "send",
        "key",
        queue="orders",
        segments=["the roof", "is damaged"],
    ),
    o("queues.distribute", "POST /distribute", "send:queues", "key deliveries", queues=["orders", "copies"], body="x"),
    o("queues.receive", "POST /queues/{queue}/receive", "receive", "message", queue="orders", wait=0.1),
    o(
        "consumers.receive_many",
        "POST /queues/{queue}/lease",
        "receive",
        "messages",
        queue="orders",
        count=2,
        lease=30,
    ),
    o("consumers.done_many", "POST /leases/done", "receive:messages", "leases=messages", messages=["LEASE-1"]),
    o("consumers.lease", "GET /leases/{number}", "receive:number", "key lease attempts until", number="LEASE-2"),
    o(
        "lease.extend",
        "POST /leases/{lease}/extend",
        "receive",
        "lease=lease until=until()",
        lease="LEASE-2",
        seconds=60,
    ),
    o("lease.release", "POST /leases/{lease}/release", "receive", "lease=lease", lease="LEASE-2", delay=5),
    o(
        "lease.fail",
        "POST /leases/{lease}/fail",
        "receive",
        "lease=lease dead_letters",
        lease="LEASE-3",
        reason="no such address",
    ),
    o("lease.done", "POST /leases/{lease}/done", "receive", "lease=lease", lease="LEASE-4"),
    o("queues.peek", "GET /queues/{queue}/messages", "look", "messages next", queue="orders", limit=10),
    o("queues.history", "GET /queues/{queue}/history", "look", "messages next", queue="orders", limit=10),
    o("queues.disable", "POST /queues/{queue}/disable", "manage", "changed", queue="orders", password="secret"),
    o("queues.enable", "POST /queues/{queue}/enable", "manage", "changed", queue="orders", password="secret"),
    o("queues.set_mode", "POST /queues/{queue}/mode", "manage", "changed", queue="orders", keep_processed=True),
    o("queues.set_password", "POST /queues/{queue}/password", "manage", queue="copies", password="new", old="secret"),
    o("queues.has_password", "GET /queues/{queue}/password", "look", "has_password", queue="orders"),
    o("consumers.policy", "GET /queues/{queue}/policy", "look", "policies", queue="orders"),
    o(
        "consumers.set_policy",
        "POST /queues/{queue}/policy",
        "manage send:dead_letters",
        "changed",
        queue="orders",
        attempts=5,
    ),
    o("consumers.reset_policy", "DELETE /queues/{queue}/policy", "manage", "changed", queue="orders"),
    o("consumers.purge", "POST /queues/{queue}/purge", "manage", "dry message_count moves", queue="orders", dry=True),
    o(
        "consumers.move",
        "POST /queues/{queue}/move",
        "manage send:to",
        "dry message_count moves",
        queue="orders",
        to="copies",
        limit=1,
        dry=True,
    ),
    o(
        "consumers.redrive",
        "POST /queues/{queue}/redrive",
        "manage send:to",
        "dry message_count moves",
        queue="orders.dead",
        to="orders",
        edit={"DEAD": "a better address"},
        dry=True,
    ),
    o("queues.sources", "GET /sources", "look", "sources"),
    o("queues.create_source", "POST /sources", "manage:*", "source=name", name="T9"),
    o("queues.find_source", "GET /sources/{name}", "look:*", "name enabled", name="T1"),
    o("queues.disable_source", "POST /sources/{name}/disable", "manage:*", "changed", name="T1", password="secret"),
    o("queues.enable_source", "POST /sources/{name}/enable", "manage:*", "changed", name="T1", password="secret"),
    o("queues.remove_source", "DELETE /sources/{name}", "manage:*", "source=name", name="T1"),
    o("consumers.schedules", "GET /schedules", "look:?", "schedules"),
    o(
        "consumers.schedule",
        "POST /schedules",
        "manage send",
        "name cron zone queue due",
        name="morning",
        cron="0 7 * * 1-5",
        queue="orders",
        body="open the mail",
    ),
    o("consumers.unschedule", "DELETE /schedules/{name}", "manage", "name=name", name="nightly"),
    o("consumers.fire", "POST /schedules/fire", "operate", "message_count"),
)
_MESSAGES: tuple[Operation, ...] = (
    o("journal.show", "GET /messages/{key}", "look", "key queue type format body properties created", key="KEY"),
    o("journal.trace", "GET /messages/{key}/trace", "look", "key=key events", key="KEY"),
    o("journal.trace_values", "GET /messages/{key}/values", "look", "key=key events", key="FORM"),
    o("journal.locate", "GET /messages/{key}/place", "look", "key=key place", key="KEY"),
    o("journal.why", "GET /messages/{key}/why", "look", "key held_by removable", key="KEY"),
    o("journal.slice", "GET /slices/{slicing}/{key}", "look:*", "messages", slicing="byCustomer", key="7"),
    o(
        "spheres.acknowledge",
        "POST /messages/{key}/acknowledge",
        "receive",
        "key=key said=said() is_changed",
        key="KEY",
    ),
)
_FORM = "type NOTE\n| To: ____ KEY: ___ |\nfield To string required\nfield KEY key automatic\n"
_TREE = '01 INPUT-QUEUE (CLAIMS) PASSWORD IS "CLAIMS"\n99\n'
_DEFINITIONS: tuple[Operation, ...] = (
    o(
        "definitions.load",
        "POST /definitions",
        "load",
        "version added kept removed changed passwords",
        files={"memo.form": _FORM},
    ),
    o("definitions.check", "POST /definitions/check", "load", "count", files={"tree.qdl": _TREE}),
    o("definitions.try_out", "POST /definitions/try", "load look:*", "tried", files={"memo.form": _FORM}),
    o(
        "definitions.try_message",
        "POST /queues/{queue}/try",
        "send look:*",
        "tried?",
        queue="customers",
        body="<customer><id>7</id></customer>",
    ),
    o("definitions.catalog", "GET /definitions", "look", "definitions"),
    o("definitions.files", "GET /definitions/files", "look:*", "definitions: file description"),
    o("definitions.versions", "GET /definitions/versions", "look:*", "versions"),
    o("definitions.explain", "GET /rules/{rule}", "look", "rule where target watches queries", rule="tell"),
    o("definitions.explain_arc", "GET /arcs/{arc}", "look", "arc where source target condition", arc="big"),
    o(
        "definitions.explain_procedure",
        "GET /procedures/{name}",
        "look:*",
        "procedure station state sketches",
        name="answer",
    ),
    o(
        "definitions.load_collection",
        "POST /collections/{name}",
        "load",
        "version document_count=files()",
        name="rates",
        files={"rates.xml": "<rates/>"},
    ),
    o("definitions.hierarchy", "GET /hierarchy", "look", "description"),
    o("definitions.levels", "GET /levels", "look", "levels"),
    o("definitions.types", "GET /types", "look", "types"),
    o("definitions.schema", "GET /types/{type}", "look", "definition", type="MEMO"),
)
_SPACES: tuple[Operation, ...] = (
    o(
        "flows.publish",
        "POST /spaces/{space}/events",
        "publish",
        "key",
        space="Trades",
        event={"issue": "A", "price": 8},
    ),
    o(
        "flows.publish_many",
        "POST /spaces/{space}/batch",
        "publish",
        "keys",
        space="Trades",
        events=[{"issue": "IBM", "price": 81}],
    ),
    o("flows.graph", "GET /graph", "look", "version domains spaces arcs tables"),
    o("flows.subscriptions", "GET /subscriptions", "look", "subscriptions"),
    o(
        "client.subscribe",
        "POST /spaces/{space}/subscriptions",
        "subscribe",
        "client arc space pattern",
        space="Trades",
        pattern="[price: p > 75]",
    ),
    o("client.disconnect", "POST /subscriptions/disconnect", "subscribe:?", "subscriptions"),
    o("client.connect", "POST /subscriptions/connect", "subscribe:?", "subscriptions"),
    o("client.subscriptions", "GET /subscriptions/mine", "subscribe:?", "subscriptions"),
    o("client.receive", "POST /subscriptions/receive", "subscribe:?", "message", wait=0.1),
    o("client.unsubscribe", "DELETE /spaces/{space}/subscriptions", "subscribe", "subscriptions", space="Trades"),
    o("client.unsubscribe", "DELETE /subscriptions", "subscribe:?", "subscriptions"),
)
_STATION = "/stations/{station}"
_STATIONS: tuple[Operation, ...] = (
    o("stations.all", "GET /stations", "look:*", "stations: name node"),
    o("stations.add", "POST /stations", "operate", "station=name node=node()", name="Jim", password="secret"),
    o("stations.remove", "DELETE /stations/{name}", "operate", "station=name", name="Jack"),
    o("stations.form", "GET /forms/{type}", "look", "type version form_fields indexes description", type="MEMO"),
    o("stations.nodes", "GET /nodes", "operate", "nodes"),
    o("stations.counters", "GET /counters", "look:*", "counters"),
    o("stations.remove_counter", "DELETE /counters/{name}", "load", "counter=name", name="desk"),
    o("stations.procedures", "GET /procedures", "look:*", "procedures"),
    o("stations.waiting", "GET /working-sets", "look:*", "waiting missing"),
    o("stations.waiting", f"GET {_STATION}/working-sets", "work", "waiting missing", station="John"),
    o(
        "stations.disable_procedure",
        "POST /procedures/{name}/disable",
        "load",
        "procedure=name is_changed",
        name="answer",
    ),
    o(
        "stations.enable_procedure",
        "POST /procedures/{name}/enable",
        "load",
        "procedure=name is_changed",
        name="answer",
    ),
    o("stations.remove_procedure", "DELETE /procedures/{name}", "load", "procedure=name", name="answer"),
    o(
        "station.create",
        f"POST {_STATION}/messages",
        "work",
        "key",
        station="John",
        type="MEMO",
        fields={"To": "Jane"},
    ),
    o(
        "station.create_many",
        f"POST {_STATION}/batch",
        "work",
        "keys",
        station="John",
        type="MEMO",
        several=[{"To": "Jane"}, {"To": "Jim"}],
    ),
    o("station.messages", f"GET {_STATION}/messages", "work", "messages", station="John", type="MEMO", limit=10),
    o("station.next", f"GET {_STATION}/next", "work", "message", station="John"),
    o("station.show", f"GET {_STATION}/messages/{{key}}", "work", "key type place fields", station="John", key="FORM"),
    o(
        "station.modify",
        f"POST {_STATION}/messages/{{key}}",
        "work",
        "key type place fields",
        station="John",
        key="FORM",
        fields={"Text": "lunch?"},
    ),
    o(
        "station.copy",
        f"POST {_STATION}/messages/{{key}}/copies",
        "work",
        "keys",
        station="John",
        key="FORM",
        count=2,
    ),
    o(
        "station.add_to_dossier",
        f"POST {_STATION}/dossiers/{{dossier}}",
        "work",
        "added_count",
        station="John",
        dossier="lunch",
        keys=["FORM"],
    ),
    o("station.dossiers", f"GET {_STATION}/dossiers", "work", "dossiers: name message_count", station="John"),
    o("station.dossier", f"GET {_STATION}/dossiers/{{name}}", "work", "messages", station="John", name="lunch"),
    o(
        "station.remove_from_dossier",
        f"POST {_STATION}/dossiers/{{dossier}}/remove",
        "work",
        "removed_count",
        station="John",
        dossier="lunch",
        keys=["FORM"],
    ),
    o("station.query", f"POST {_STATION}/query", "work", "seq images", station="John", type="MEMO", into="memos"),
    o(
        "station.numbered_count",
        f"POST {_STATION}/count",
        "work",
        "seq count",
        station="John",
        type="MEMO",
        fields={"To": "Jane"},
    ),
    o("station.tables", f"GET {_STATION}/tables", "work", "tables", station="John"),
    o("station.table", f"GET {_STATION}/tables/{{name}}", "work", "seq images", station="John", name="memos"),
    o(
        "station.sql",
        f"POST {_STATION}/sql",
        "work",
        "columns rows",
        station="John",
        statement="select count(*) from memos",
    ),
    o("station.drop_table", f"DELETE {_STATION}/tables/{{name}}", "work", "table=name", station="John", name="memos"),
    o("station.ship", f"POST {_STATION}/ship", "work", "shipped", station="John", keys=["FORM"], to="Jane"),
    o("station.others", f"GET {_STATION}/others", "work", "stations: name node", station="John"),
    o("station.mail", f"GET {_STATION}/mail", "work", "mail", station="Jane"),
    o("station.get", f"POST {_STATION}/get", "work", "keys", station="Jane"),
)
_SPHERES: tuple[Operation, ...] = (
    o("spheres.all", "GET /spheres", "look:*", "spheres"),
    o("spheres.open", "POST /spheres", "sphere", "id", id="tuesday", heartbeat=4),
    o("spheres.show", "GET /spheres/{id}", "look:*", "id state owner sends", id="SPHERE"),
    o(
        "sphere.send",
        "POST /spheres/{sphere}/messages",
        "sphere send send:on_commit send:compensation",
        "key compensation",
        sphere="MINE",
        queue="orders",
        body="two tickets",
        compensation={"body": "no tickets", "queue": "copies"},
    ),
    o(
        "sphere.mail",
        "POST /spheres/{sphere}/mail",
        "sphere work:writer",
        "key compensation",
        sphere="MINE",
        writer="John",
        to="Jane",
        type="MEMO",
        fields={"To": "Jane"},
    ),
    o("sphere.receive", "POST /spheres/{sphere}/receive", "sphere receive", "message", sphere="MINE", queue="copies"),
    o(
        "sphere.require",
        "POST /spheres/{sphere}/require",
        "sphere look:recipients",
        sphere="OTHER",
        recipients=["orders", "copies"],
        at_least=1,
        receipt_within=30,
    ),
    o("held.heartbeat", "POST /spheres/{sphere}/heartbeat", "sphere", "state", sphere="MINE"),
    o("held.commit", "POST /spheres/{sphere}/commit", "sphere", "state", sphere="MINE"),
    o("spheres.abort", "POST /spheres/{id}/abort", "sphere", "sphere=id state", id="SPHERE", reason="a mistake"),
    o(
        "spheres.compensate",
        "POST /spheres/compensate",
        "operate",
        "sphere_count aborted_count compensated_count parked_count",
        check=5,
    ),
)
_ROOM: tuple[Operation, ...] = (
    o("journal.last", "GET /journal/last", "look:*", "events", last=5),
    o("journal.after", "GET /journal", "look:*", "events next", seq=0, limit=10),
    o("journal.verify", "GET /verify", "operate", "lines message_count queue_count differences"),
    o("journal.mend", "POST /mend", "operate", "queue_count corrected_count set_aside left"),
    o("journal.archives", "GET /archives", "look:*", "archives"),
    o("operations.overview", "GET /top", "look:*", "at engine lags queues steps errors"),
    o("operations.diagnose", "GET /doctor", "operate", "findings"),
    o("operations.lags", "GET /lags", "look:*", "lags"),
    o("engine.outbox", "GET /outbox", "operate", "effects"),
    o("engine.retry", "POST /outbox/{effect}/retry", "operate", "effect=effect", effect="EFFECT"),
    o("engine.drop_effect", "DELETE /outbox/{effect}", "operate", "effect=effect", effect="EFFECT"),
    o("engine.sweepable", "GET /sweep", "operate", "would_remove=sum() kinds"),
    o("engine.sweep_by_kind", "POST /sweep", "operate", "removed_count=sum() kinds"),
    o("engine.retentions", "GET /retentions", "look:*", "retentions"),
    o("engine.set_retention", "POST /retentions/{kind}", "operate", "kind=kind age=age", kind="receipts", age=864000),
    o("gateways.all", "GET /gateways", "operate", "gateways"),
    o(
        "gateways.add",
        "POST /gateways",
        "operate",
        "gateway transport directions settings",
        name="partner",
        transport="http",
        settings={"address": "https://partner.example/orders"},
    ),
    o("gateways.remove", "DELETE /gateways/{name}", "operate", "gateway=name", name="partner"),
)
_ACCESS: tuple[Operation, ...] = (
    o("flows.principals", "GET /principals", "operate", "principals"),
    o("flows.add_principal", "POST /principals", "operate", "principal=name token", name="bob", password="secret"),
    o("flows.remove_principal", "DELETE /principals/{name}", "operate", name="bob"),
    o("access.grants", "GET /grants", "operate", "grants"),
    o(
        "access.grant",
        "POST /grants",
        "operate",
        "principal=principal verb=verb object=object is_changed",
        principal="ann",
        verb="look",
        object="orders",
    ),
    o(
        "access.why_not",
        "GET /why-not",
        "operate",
        "principal=principal verb=verb object=object is_allowed=none() why",
        principal="ann",
        verb="send",
        object="orders",
    ),
    o(
        "access.withdraw",
        "DELETE /grants/{principal}/{verb}/{object}",
        "operate",
        "principal=principal verb=verb object=object is_changed",
        principal="ann",
        verb="look",
        object="orders",
    ),
    o("access.tokens", "GET /tokens", "operate", "tokens"),
    o(
        "access.create_token",
        "POST /tokens",
        "operate",
        "principal=principal name=name token",
        principal="ann",
        name="laptop",
    ),
    o("access.revoke_token", "DELETE /tokens/{id}", "operate", "id=id", id="TOKEN"),
)
OPERATIONS = (*_QUEUES, *_MESSAGES, *_DEFINITIONS, *_SPACES, *_STATIONS, *_SPHERES, *_ROOM, *_ACCESS)
#: What gives something out, and is received for good when it was written.
TAKING = frozenset({"queues.receive", "consumers.receive_many", "client.receive", "sphere.receive"})

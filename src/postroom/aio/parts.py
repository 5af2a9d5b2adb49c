"""The parts of a room for asyncio that have the methods of the room, each awaited."""

from __future__ import annotations

from functools import partial
from typing import Literal, overload

from postroom.aio.calls import Part, call, long, made, stream
from postroom.aio.places import AsyncClient, AsyncMachine, AsyncSphere, AsyncStation
from postroom.room.access import RoomAccess
from postroom.room.definitions import RoomDefinitions
from postroom.room.engine import RoomEngine
from postroom.room.flows import RoomFlows
from postroom.room.gateways import RoomGateways
from postroom.room.journal import RoomJournal
from postroom.room.operations import RoomOperations
from postroom.room.spheres import RoomSpheres
from postroom.room.stations import RoomStations
from postroom.stations.mail.story import Story
from postroom.store.kernel.journal import Event


class AsyncDefinitions(Part):
    """Loading definitions, and what is defined."""

    catalog = call(RoomDefinitions.catalog)
    check = long(RoomDefinitions.check)
    define_type = call(RoomDefinitions.define_type)
    explain = long(RoomDefinitions.explain)
    explain_arc = long(RoomDefinitions.explain_arc)
    explain_procedure = long(RoomDefinitions.explain_procedure)
    files = call(RoomDefinitions.files)
    hierarchy = call(RoomDefinitions.hierarchy)
    levels = call(RoomDefinitions.levels)
    load = long(RoomDefinitions.load)
    load_collection = long(RoomDefinitions.load_collection)
    schema = call(RoomDefinitions.schema)
    spark_plan = long(RoomDefinitions.spark_plan)
    try_out = stream(RoomDefinitions.try_out)
    try_message = long(RoomDefinitions.try_message)
    types = call(RoomDefinitions.types)
    versions = call(RoomDefinitions.versions)


class AsyncFlows(Part):
    """Publishing and subscribing."""

    add_principal = call(RoomFlows.add_principal)
    client = made(RoomFlows.client, AsyncClient)
    graph = call(RoomFlows.graph)
    principals = call(RoomFlows.principals)
    publish = call(RoomFlows.publish)
    publish_many = call(RoomFlows.publish_many)
    remove_principal = call(RoomFlows.remove_principal)
    subscriptions = call(RoomFlows.subscriptions)


class AsyncGateways(Part):
    """Gateways to and from other systems."""

    add = call(RoomGateways.add)  # type: ignore[arg-type]  # its options could be called self
    all = call(RoomGateways.all)
    http_app = call(RoomGateways.http_app)
    mail_server = call(RoomGateways.mail_server)
    remove = call(RoomGateways.remove)
    test = long(RoomGateways.test)


class AsyncStations(Part):
    """Stations, nodes, forms and procedures."""

    add = made(RoomStations.add, AsyncStation)
    add_node = long(RoomStations.add_node)
    admitted = made(RoomStations.admitted, AsyncStation)
    all = call(RoomStations.all)
    at = made(RoomStations.at, AsyncStation)
    counters = call(RoomStations.counters)
    disable_procedure = call(RoomStations.disable_procedure)
    enable_procedure = call(RoomStations.enable_procedure)
    form = call(RoomStations.form)
    form_of = call(RoomStations.form_of)
    login = call(RoomStations.login)
    logout = call(RoomStations.logout)
    move_node = long(RoomStations.move_node)
    nodes = call(RoomStations.nodes)
    procedures = call(RoomStations.procedures)
    remove = call(RoomStations.remove)
    remove_counter = call(RoomStations.remove_counter)
    remove_node = call(RoomStations.remove_node)
    remove_procedure = call(RoomStations.remove_procedure)
    secure_nodes = call(RoomStations.secure_nodes)
    waiting = call(RoomStations.waiting)
    procedure_errors = call(RoomStations.procedure_errors)


class AsyncSpheres(Part):
    """Transactions over messages and databases."""

    abort = long(RoomSpheres.abort)
    acknowledge = call(RoomSpheres.acknowledge)
    all = call(RoomSpheres.all)
    compensate = long(RoomSpheres.compensate)
    compensator = call(RoomSpheres.compensator)
    follow_state = stream(RoomSpheres.follow_state)
    is_state = call(RoomSpheres.is_state)
    machine = made(RoomSpheres.machine, AsyncMachine)
    open = made(RoomSpheres.open, AsyncSphere)
    settle = long(RoomSpheres.settle)
    settle_database = long(RoomSpheres.settle_database)
    show = call(RoomSpheres.show)
    watch_state = call(RoomSpheres.watch_state)


class AsyncJournal(Part):
    """What happened."""

    after = call(RoomJournal.after)
    archive = long(RoomJournal.archive)
    archive_moved = long(RoomJournal.archive_moved)
    archives = call(RoomJournal.archives)
    export_ocel = long(RoomJournal.export_ocel)
    export_xes = long(RoomJournal.export_xes)
    fields = call(RoomJournal.fields)
    last = call(RoomJournal.last)
    locate = call(RoomJournal.locate)
    mend = long(RoomJournal.mend)
    show = call(RoomJournal.show)
    slice = call(RoomJournal.slice)
    trace_values = call(RoomJournal.trace_values)
    verify = long(RoomJournal.verify)
    why = call(RoomJournal.why)

    @overload
    async def trace(self, key: str, *, causes: Literal[False] = False) -> list[Event]: ...
    @overload
    async def trace(self, key: str, *, causes: Literal[True]) -> Story: ...
    async def trace(self, key: str, *, causes: bool = False) -> list[Event] | Story:
        """What happened to a message, oldest first; with ``causes`` also to what it came from and led to."""
        history: list[Event] | Story = await self._threads.run(partial(self._here.trace, key, causes=causes))
        return history


class AsyncEngine(Part):
    """The engine of rules, flows and procedures."""

    drop_effect = call(RoomEngine.drop_effect)
    outbox = call(RoomEngine.outbox)
    retentions = call(RoomEngine.retentions)
    retry = call(RoomEngine.retry)
    run = long(RoomEngine.run)
    run_senders = long(RoomEngine.run_senders)
    run_totals = long(RoomEngine.run_totals)  # type: ignore[arg-type]  # its options could be called self
    run_until_idle = long(RoomEngine.run_until_idle)  # type: ignore[arg-type]  # its options could be called self
    set_retention = call(RoomEngine.set_retention)
    stream = long(RoomEngine.stream)
    sweep = long(RoomEngine.sweep)
    sweep_by_kind = long(RoomEngine.sweep_by_kind)
    sweepable = call(RoomEngine.sweepable)

    def stop(self) -> None:
        """Let the engine end when its current work is done."""
        self._here.stop()


class AsyncAccess(Part):
    """Users, their tokens and their rights."""

    end_sessions = call(RoomAccess.end_sessions)
    identity = call(RoomAccess.identity)
    is_signed_in = call(RoomAccess.is_signed_in)
    note_refusals = call(RoomAccess.note_refusals)
    sign_in = call(RoomAccess.sign_in)
    sign_out = call(RoomAccess.sign_out)
    create_token = call(RoomAccess.create_token)
    grant = call(RoomAccess.grant)
    grants = call(RoomAccess.grants)
    has_users = call(RoomAccess.has_users)
    identify = call(RoomAccess.identify)
    names = call(RoomAccess.names)
    revoke_token = call(RoomAccess.revoke_token)
    tokens = call(RoomAccess.tokens)
    version = call(RoomAccess.version)
    why_not = call(RoomAccess.why_not)
    withdraw = call(RoomAccess.withdraw)


class AsyncOperations(Part):
    """Administration of a room."""

    ages = call(RoomOperations.ages)
    backup = long(RoomOperations.backup)
    diagnose = long(RoomOperations.diagnose)
    lag = call(RoomOperations.lag)
    lags = call(RoomOperations.lags)
    overview = call(RoomOperations.overview)
    restore = long(RoomOperations.restore)

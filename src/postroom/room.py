"""The room: one store and every capability on it, under one name.

>>> import postroom, tempfile, os
>>> with tempfile.TemporaryDirectory() as folder, postroom.open(os.path.join(folder, "room.db")) as room:
...     queue = room.create_queue("greetings")
...     sent = queue.send("hello")
...     room.receive("greetings").message.body
'hello'
"""

from __future__ import annotations

import getpass
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, overload

from postroom import loading
from postroom.client import Client
from postroom.doors import Doors
from postroom.engine.depot import exchange, settings_of_spark
from postroom.engine.runner import Report, Runner, Totals
from postroom.engine.stage import Stage
from postroom.engine.tryout import Tried
from postroom.entrance import Entrance
from postroom.errors import ArgumentInvalid, OutboxUnknown, PrincipalRefused, TypeUnknown
from postroom.flows import catalog as flow_catalog
from postroom.flows import inspection as flow_inspection
from postroom.flows import tryout as flow_tryout
from postroom.flows.chart import Charts
from postroom.flows.clients import Clients, Subscription
from postroom.flows.inspection import ArcExplained, GraphShown
from postroom.flows.meta import By, broker_name
from postroom.flows.shares import FlowStage
from postroom.gateways.command import CommandGateway
from postroom.limits import (
    ACTOR_CHARS_MAX,
    COMMIT_SECONDS,
    HEARTBEAT_SECONDS,
    JOURNAL_ROWS_MAX,
    WAITING_MAX,
)
from postroom.loading import File
from postroom.model.body import Format
from postroom.model.catalog import Loaded
from postroom.model.message import Draft, Message, Value, cause_number
from postroom.model.moment import Clock, system_clock
from postroom.model.types import FieldValue, MessageType
from postroom.model.views import record
from postroom.model.xml import check_xml
from postroom.queues import hierarchy
from postroom.queues.addressing import PRINCIPAL
from postroom.queues.administration import Administration
from postroom.queues.hierarchy import Level
from postroom.queues.locks import User
from postroom.queues.results import Accepted, Distributed, Held, Listing, Received, Sent, SentMany
from postroom.queues.verbs import Verbs
from postroom.rules import catalog, inspection, retention, tryout
from postroom.rules.catalog import Programs
from postroom.rules.inspection import CatalogEntry, Explanation
from postroom.rules.shares import RulesStage
from postroom.spheres import machine as machines
from postroom.spheres.compensation import Checked, Compensator
from postroom.spheres.machine import MachineHandle
from postroom.spheres.monitor import Monitor, SphereShown, SphereTold
from postroom.spheres.sphere import Sphere
from postroom.stations import tryout as counter_tryout
from postroom.stations import whereabouts
from postroom.stations.catalog import Edition, Forms
from postroom.stations.counters import Counters
from postroom.stations.counters import remove as remove_counter
from postroom.stations.handing import CounterShown, Handing
from postroom.stations.network import CONTROL, Network, NodeShown
from postroom.stations.procedures import tryout as procedure_tryout
from postroom.stations.procedures.catalog import Kept, Procedures, set_enabled
from postroom.stations.procedures.catalog import kept as kept_procedures
from postroom.stations.procedures.catalog import remove as remove_procedure
from postroom.stations.procedures.inspection import ProcedureExplained, Waiting, waiting_sets
from postroom.stations.procedures.inspection import explain as explain_procedure
from postroom.stations.procedures.interpreter import Interpreter
from postroom.stations.procedures.tryout import Handled
from postroom.stations.procedures.working import Evaluate
from postroom.stations.station import Station
from postroom.stations.story import Story, story
from postroom.store import absolute, open_store
from postroom.store.base import Store
from postroom.store.journal import Event
from postroom.store.outbox import Effect
from postroom.store.owner import process_token
from postroom.store.registry import Registry
from postroom.store.transaction import Transaction
from postroom.store.types import define_type, find_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_URL = "./postroom.db"
Password = str | Callable[[], str]

_serial = itertools.count(1)


def open(
    url: str | os.PathLike[str] | None = None,
    *,
    actor: str | None = None,
    owner: str | None = None,
    create: bool = True,
    clock: Clock = system_clock,
    broker: str | None = None,
) -> Postroom:
    """Open a room: a SQLite path or a PostgreSQL URL; else ``POSTROOM_URL``; else ``./postroom.db``.

    ``actor`` is the name that the journal shows (by default the login name). ``owner`` names the process that locks
    belong to, by default this one; such locks end with the room. ``create=False`` refuses to make a new room.
    ``broker`` is the name that meta-spaces tell of where a client is connected (by default the machine's).
    """
    where = os.fspath(url) if url is not None else os.environ.get("POSTROOM_URL") or DEFAULT_URL
    name = actor or _login_name()
    at = broker or broker_name()
    for argument, said in (("actor", name), ("broker", at)):
        if len(said) > ACTOR_CHARS_MAX or not said.isprintable():
            raise ArgumentInvalid(argument=argument, why=f"1 to {ACTOR_CHARS_MAX} printable characters")
    store = open_store(where, actor=name, create=create, clock=clock)
    return Postroom(store, where, name, owner, at)


class Postroom:
    """An open room. Use it as a context manager; threads may share it."""

    def __init__(self, store: Store, url: str, actor: str, owner: str | None = None, broker: str | None = None) -> None:
        self.store = store
        self.url = url
        here = f"{process_token()}/{next(_serial)}"
        self._own_locks = owner is None
        self._owner = owner or here
        self._programs = Programs()
        self._charts = Charts()
        self._by = By(actor, broker or broker_name())
        self._doors = Doors(self._programs, self._charts, self._by)
        self._verbs = Verbs(store, User(self._owner, actor), self._doors)
        self._registry = Registry(store)
        self._network = Network(store, url, Forms())
        again = partial(open_store, absolute(url), actor=actor, create=False, clock=store.session.clock)
        self._monitor = Monitor(store, again, Entrance(self._verbs, self._network.forms))
        self._administration = Administration(store)
        # An engine is this process, never a shell that may start two of them.
        gateways = [CommandGateway(absolute(url))]
        self._procedures = Procedures(self._network.forms)
        self._interpreter = Interpreter(self._network, self._procedures)
        self._handing = Handing(self._network, Counters())
        stages: list[Stage] = [RulesStage(self._programs), FlowStage(self._charts), self._interpreter, self._handing]
        self._runner = Runner(store, gateways, here, stages, self.sweep, self._doors)

    def __enter__(self) -> Postroom:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give back the locks of this room and close its store; closing again does nothing."""
        if not self.store.stopped:
            if self._own_locks:
                self._verbs.release_locks()
            self._monitor.close()
            self.store.close()
        self._network.close()

    # --- definitions ---

    def load(self, *files: File, progress: hierarchy.Progress | None = None, drop: bool = False) -> Loaded:
        """Load definition files, all or nothing; the suffix tells the language.

        The ``.qdl`` files of one load together are the room's queue description, in the place of the one before. A
        ``.demaq`` file is a module of rules, in the place of the module of its name. The domains of ``.flow`` files are
        replaced, but for what came at run time. A slicing that holds messages, and a space with messages that nobody
        has received, go only with ``drop``. ``progress(done, total)`` is called while passwords are hashed.
        """
        loaded = loading.load(self.store, files, self._by, progress, drop=drop)
        if any(str(file).endswith(".form") for file in files):
            self._network.align()
        return loaded

    def check(self, *files: File) -> int:
        """Read and check definition files without loading them; answers with the number of definitions."""
        return loading.check(self.store, files).count

    def load_collection(self, name: str, *files: File) -> int:
        """Replace the documents of a collection of master data; answers with the version of the definitions."""
        documents = loading.documents(files)
        for text in documents.values():
            check_xml(text)
        flow_catalog.check_collection(self.store.read(self._charts.now), name, list(documents.values()))
        return catalog.load_collection(self.store, name, documents)

    def hierarchy(self) -> str:
        """The tree of queues in its description language; what it prints loads to the same tree."""

        def work(tx: Transaction) -> str:
            levels = hierarchy.read(tx)
            return hierarchy.printed(levels, tx.principals.secrets(PRINCIPAL)) if levels else ""

        return self.store.read(work)

    def levels(self) -> list[Level]:
        """The tree of queues, entry by entry."""
        return self.store.read(hierarchy.read)

    def define_type(self, type: MessageType) -> int:
        """Define a message type, or a new version of one."""
        return self.store.transact("define-type", lambda tx: define_type(tx, type))

    # --- queues ---

    def queue(self, *names: str) -> QueueHandle:
        """One queue or level, with the verbs as methods."""
        return QueueHandle(self, names)

    def create_queue(
        self, name: str, *, keep_processed: bool = True, password: str | None = None, exist_ok: bool = False
    ) -> QueueHandle:
        """Make a queue without a description. With ``exist_ok`` one that is there already is fine."""
        self._administration.create(name, keep_processed=keep_processed, password=password, exist_ok=exist_ok)
        return QueueHandle(self, (name,))

    def remove_queue(self, name: str) -> None:
        """Remove a queue that was made by name and has no unprocessed messages; its history stays readable."""
        self._administration.remove(name)

    def set_mode(self, *queue: str, keep_processed: bool) -> list[str]:
        """Keep or discard processed messages; answers with the queues whose mode changed."""
        return self._administration.set_mode(queue, keep_processed=keep_processed)

    def set_password(self, *queue: str, password: str, old: str | None = None) -> None:
        """Set the password of a queue or level. ``old`` is the one it has, or else that of the nearest level above."""
        self._administration.set_password(queue, password, old=old)

    def has_password(self, *queue: str) -> bool:
        """Whether a queue or level, or one above it, has a password."""
        return self._administration.has_password(queue)

    # --- verbs ---

    def send(
        self,
        queue: str | Sequence[str],
        body: Any,
        *,
        format: str | Format | None = None,
        type: str | None = None,
        properties: Mapping[str, Value] | None = None,
        idempotency_key: str | None = None,
        cause: str | None = None,
    ) -> Sent:
        """Send one message. When this returns, the message is on disk.

        A string is text unless ``format`` says ``xml`` or ``json``; a dict or list becomes JSON. A repeated call with
        the same ``idempotency_key`` makes no second message and answers with the first one's key. ``cause`` is the key
        of the message that this one follows from, for ``trace``. A message of this room as the body says what it says
        once more, and is the cause unless another is named.
        """
        draft = Draft.of(body, format, type, properties)
        return self._verbs.send(_path(queue), draft, idempotency_key, cause_number(body, cause))

    def send_many(
        self,
        queue: str | Sequence[str],
        bodies: Iterable[Any],
        *,
        format: str | Format | None = None,
        type: str | None = None,
        properties: Mapping[str, Value] | None = None,
    ) -> SentMany:
        """Send many messages in one commit: all of them, in their order, or none."""
        if isinstance(bodies, (str, bytes)):
            raise ArgumentInvalid(argument="bodies", why="give a list of bodies, not one body")
        return self._verbs.send_many(_path(queue), Draft.many(bodies, format, type, properties))

    def distribute(
        self,
        queues: Sequence[str | Sequence[str]],
        body: Any,
        *,
        format: str | Format | None = None,
        type: str | None = None,
        properties: Mapping[str, Value] | None = None,
    ) -> Distributed:
        """Send one message to several queues; those that cannot take it are named in the answer."""
        draft = Draft.of(body, format, type, properties)
        return self._verbs.distribute([_path(queue) for queue in queues], draft)

    def receive(self, *queue: str, segment: bool = False, wait: float | None = None) -> Received:
        """Receive the next message of a queue, or of the first non-empty queue below a level.

        ``message`` of the answer is None if there was none; the answer itself is then false.
        """
        received = self._verbs.receive(queue, segment=segment, wait=wait)
        if received.message is not None:
            self._monitor.bind(received.message)
        return received

    def accept(self, *queue: str) -> Accepted:
        """Count messages; without a name, in every queue of the room."""
        return self._verbs.accept(queue)

    def info(self, *queue: str, limit: int | None = None) -> Listing:
        """Unprocessed messages, oldest first; nothing is released."""
        return self._verbs.info(queue, limit)

    def history(self, *queue: str, limit: int | None = None) -> Listing:
        """Processed messages, in the order of their processing."""
        return self._verbs.history(queue, limit)

    def disable(self, *queue: str, password: Password = "", input_only: bool = False) -> Held:
        """Put a queue, or all below a level, on hold with that level's password."""
        return self._verbs.disable(queue, _asking(password), input_only=input_only)

    def enable(self, *queue: str, password: Password = "") -> Held:
        """Take a queue, or all below a level, off hold with that level's password."""
        return self._verbs.enable(queue, _asking(password))

    # --- the journal ---

    def show(self, key: str) -> Message:
        """One message, wherever it is."""
        return whereabouts.show(self._network, key)

    def fields(self, message: Message) -> dict[str, FieldValue]:
        """What a typed message says, field by field, whatever it is written in."""
        name = message.type
        if name is None:
            raise ArgumentInvalid(argument="message", why=f"{message.key} has no type")
        return record(message.body, message.format, self.store.read(lambda tx: find_type(tx, name)))

    @overload
    def trace(self, key: str, *, causes: Literal[False] = False) -> list[Event]: ...
    @overload
    def trace(self, key: str, *, causes: Literal[True]) -> Story: ...
    def trace(self, key: str, *, causes: bool = False) -> list[Event] | Story:
        """Everything that happened to a message, oldest first; also after it is gone.

        With ``causes``, the same of all messages that it came from and that it led to, as a tree.
        """
        return story(self._network, key) if causes else whereabouts.trace(self._network, key)

    def locate(self, key: str) -> str | None:
        """The queue, station or mailbox a message is in, from its last journal entry; None if it was discarded."""
        return whereabouts.locate(self._network, key)

    def journal(self, last: int = 20) -> list[Event]:
        """The newest entries of the journal, oldest of them first."""
        if not 0 < last <= JOURNAL_ROWS_MAX:
            raise ArgumentInvalid(argument="last", why=f"1 to {JOURNAL_ROWS_MAX}")
        return self.store.read(lambda tx: list(tx.journal.tail(last)))

    def journal_after(self, seq: int) -> list[Event]:
        """The next entries after a number, a page at a time."""
        return self.store.read(lambda tx: tx.journal.after(seq))

    # --- rules ---

    def catalog(self) -> list[CatalogEntry]:
        """Everything that is defined: what it is, where it was written, since when."""
        return self.store.read(inspection.catalog)

    def explain(self, rule: str) -> Explanation:
        """What a rule became: what it watches, reads and writes, and its query."""
        return self.store.read(lambda tx: inspection.explain(self._programs.program(tx), self._programs.plan(tx), rule))

    def explain_arc(self, arc: str) -> ArcExplained:
        """What an arc became: its types, what its pattern binds, its condition and result in Spark SQL."""
        return self.store.read(lambda tx: flow_inspection.explain(self._charts.now(tx), arc))

    def spark_plan(
        self, space: str | None = None, master: str = "local[*]", conf: Mapping[str, str] | None = None
    ) -> str:
        """Spark's plan of a step of the rules, or of the arcs behind a space; starts Spark if it does not run yet."""
        if space is not None:
            from postroom.flows.stage import spark_plan as flow_plan

            return flow_plan(_session(master, conf or {}), self.store.read(self._charts.now), space)
        from postroom.rules.stage import spark_plan

        return spark_plan(_session(master, conf or {}), self.store.read(self._programs.plan))

    def lag(self) -> int:
        """How many messages wait in queues that rules watch, in spaces that arcs leave, for counters and procedures."""

        def work(tx: Transaction) -> int:
            watched = self._programs.plan(tx).queues
            flowing = sum(map(tx.epochs.count, tx.epochs.flowing()))
            ruled = sum(queue.unprocessed for queue in tx.queues.all() if queue.name in watched)
            return flowing + ruled + self._handing.lag(tx)

        return self.store.read(work) + self._interpreter.lag()

    def why(self, key: str) -> retention.Held:
        """Which slices hold a message, and whether it may go."""
        return retention.why(self.store, key)

    def slice(self, slicing: str, key: str) -> list[Message]:
        """The messages of a slice's current lifetime, in the order of their arrival."""
        return retention.slice(self.store, self._programs, slicing, key)

    def sweep(self) -> int:
        """Remove every message that is processed and that no slice holds; answers with how many went."""
        self._interpreter.tidy()
        return retention.sweep(self.store, self._programs)

    def try_out(
        self,
        *files: File,
        since: datetime | None = None,
        master: str = "local[*]",
        conf: Mapping[str, str] | None = None,
    ) -> Iterator[Tried | Handled]:
        """What proposed rules, arcs, procedures and counters would do with the messages that are stored.

        Nothing is changed. Arcs and procedures are tried on Spark, which is started if there is something to try them
        on.
        """
        sources = loading.read(files)
        spark = partial(_session, master, conf or {})
        if sources.program:
            yield from tryout.tried(self.store, sources.program, since)
        if sources.flow:
            yield from flow_tryout.tried(self.store, self._charts, sources.flow, sources.rows, since, spark)
        if sources.office.procedures:
            yield from procedure_tryout.tried(self._network, sources.office, since, self._evaluation(spark))
        if sources.office.counters:
            yield from counter_tryout.tried(self.store, sources.office, since, self._doors)

    def _evaluation(self, spark: Callable[[], SparkSession]) -> Evaluate:
        """How actions of procedures are worked out: on Spark."""
        if self._interpreter.evaluate is not None:
            return self._interpreter.evaluate
        from postroom.stations.procedures.stage import evaluate

        return lambda bench, sets: evaluate(spark(), bench, sets)

    # --- flows ---

    def client(self, name: str, password: str | None = None, *, broker: str | None = None) -> Client:
        """Someone who publishes and subscribes under a name of their own; a registered name needs its password."""
        for argument, said in (("name", name), ("broker", broker or self._by.broker)):
            if not isinstance(said, str) or not 0 < len(said) <= ACTOR_CHARS_MAX or not said.isprintable():
                raise ArgumentInvalid(argument=argument, why=f"1 to {ACTOR_CHARS_MAX} printable characters")
        if password is not None:
            self._registry.verify(name, password)
        elif self._registry.knows(name):
            raise PrincipalRefused(principal=name, why="this name is registered: give its password")
        by = By(name, broker or self._by.broker, proven=password is not None)
        return Client(self.store, self._programs, self._charts, by, self._owner)

    def publish(self, space: str, event: Any, *, idempotency_key: str | None = None) -> Sent:
        """Publish one event in the name of the room's user; ``client`` gives someone else's."""
        return self._user().publish(space, event, idempotency_key=idempotency_key)

    def publish_many(self, space: str, events: Iterable[Any]) -> SentMany:
        """Publish many events in one commit: all of them, in their order, or none."""
        return self._user().publish_many(space, events)

    def _user(self) -> Client:
        """The room's user as a client. Its name is not proven, so it may do what a domain allows to everyone."""
        return Client(self.store, self._programs, self._charts, self._by, self._owner)

    def graph(self) -> GraphShown:
        """The graph in force: domains and what they allow, spaces, arcs, tables."""
        return self.store.read(lambda tx: flow_inspection.shown(tx, self._charts.now(tx)))

    def subscriptions(self) -> list[Subscription]:
        """The subscriptions of all clients."""
        return Clients(self.store, self._charts).subscriptions()

    def add_principal(self, name: str, password: str | None = None) -> str | None:
        """Register a principal, or change its password. Without one a token is made, and answered with."""
        return self._registry.add(name, password)

    def remove_principal(self, name: str) -> None:
        self._registry.remove(name)

    def principals(self) -> list[str]:
        return self._registry.names()

    # --- stations ---

    def add_node(self, name: str, url: str) -> None:
        """Make a store (a new file, or a database without a room) a node of this room's network."""
        self._network.add(name, url)

    def move_node(self, name: str, url: str) -> None:
        """Say where the store of a node is now."""
        self._network.move(name, url)

    def remove_node(self, name: str, *, force: bool = False) -> None:
        """Take a node without stations out of the network; one that does not answer only by force."""
        self._network.remove(name, force=force)

    def nodes(self) -> list[NodeShown]:
        """The nodes of the network, and whether they answer; this room is the one named control."""
        return self._network.shown()

    def add_station(self, name: str, password: str, node: str = CONTROL) -> Station:
        """Make a station on a node. A name that is registered already must give its own password."""
        if self._registry.knows(name):
            self._registry.verify(name, password)
            self._network.add_station(name, node, None)
        else:
            self._network.add_station(name, node, self._registry.hashed(name, password))
        return self._station(name)

    def remove_station(self, name: str) -> None:
        """Remove a station that has neither messages nor mail."""
        self._network.remove_station(name)

    def stations(self) -> dict[str, str]:
        """Every station, with its node."""
        return self._network.stations()

    def station(
        self,
        name: str,
        password: str | None = None,
        *,
        token: str | None = None,
        master: str = "local[*]",
        conf: Mapping[str, str] | None = None,
    ) -> Station:
        """Someone's desk: ``create``, ``ship``, ``get``, ``query``. Proven by its password, or by a login's token.

        ``master`` and ``conf`` are for the queries that run on Spark.
        """
        if token is None:
            self._registry.verify(name, password or "")
        elif not self._registry.admits(name, token):
            raise PrincipalRefused(principal=name, why="this login has ended; log in again with: postroom login")
        return self._station(name, master, conf)

    def _station(self, name: str, master: str = "local[*]", conf: Mapping[str, str] | None = None) -> Station:
        return Station(self._network, name, partial(_session, master, conf or {}), self._owner)

    def login(self, name: str, password: str) -> str:
        """Prove a name once; answers with a token for ``station`` that lasts for some hours."""
        return self._registry.login(name, password)

    def logout(self, name: str, token: str) -> None:
        self._registry.logout(name, token)

    def procedures(self) -> list[Kept]:
        """Every procedure, and whether it is enabled."""
        return self.store.read(kept_procedures)

    def enable_procedure(self, name: str) -> bool:
        """Let a procedure run: all that its station holds is offered to it. False if it did already."""
        return self.store.transact("switch", lambda tx: set_enabled(tx, name, True))

    def disable_procedure(self, name: str) -> bool:
        """Keep a procedure from running. False if it was disabled already."""
        return self.store.transact("switch", lambda tx: set_enabled(tx, name, False))

    def remove_procedure(self, name: str) -> None:
        self.store.transact("switch", lambda tx: remove_procedure(tx, name))

    def explain_procedure(self, name: str) -> ProcedureExplained:
        """What a procedure became: its sketches, how they are joined, and the order of its actions."""
        return self.store.read(lambda tx: explain_procedure(tx, self._procedures, name))

    def waiting(self, procedure: str | None = None, limit: int = WAITING_MAX) -> list[Waiting]:
        """The working sets that are not complete: what they have, what they wait for, since when. Oldest first."""
        if limit < 1:
            raise ArgumentInvalid(argument="limit", why="at least 1")
        return waiting_sets(self._network, self._procedures, procedure, limit)

    def counters(self) -> list[CounterShown]:
        """Where queues and stations meet: every counter, how much waits before it, and why if it does nothing."""
        return self.store.read(self._handing.shown)

    def remove_counter(self, name: str) -> None:
        """Close a counter; messages stay where they are."""
        self.store.transact("switch", lambda tx: remove_counter(tx, name))

    def form(self, type: str) -> Edition:
        """A message type by its form, and the version since which it is so."""
        return self.store.read(lambda tx: self._network.forms.named(tx, type))

    def form_of(self, message: Message) -> Edition | None:
        """The form that a message was made with, if it was made with one."""
        version = message.properties.get("form")
        if message.type is None or not isinstance(version, int):
            return None
        name = message.type
        try:
            return self.store.read(lambda tx: self._network.forms.at(tx, name, version))
        except TypeUnknown:  # a property of another meaning
            return None

    # --- spheres ---

    def sphere(
        self, id: str | None = None, *, heartbeat: float = HEARTBEAT_SECONDS, commit_within: float = COMMIT_SECONDS
    ) -> Sphere:
        """Start a sphere: messages, databases and the answers of recipients with one outcome.

        Leaving its ``with`` block normally commits it, an exception aborts it, and so does the end of this thread or
        process: ``heartbeat`` is how often, in seconds, others are told that it lives. An ``id`` is used once.
        """
        return self._monitor.start(id, heartbeat=heartbeat, commit_within=commit_within)

    def spheres(self, state: str | None = None) -> list[SphereShown]:
        """All spheres, or those in a state."""
        return self._monitor.spheres(state)

    def show_sphere(self, id: str) -> SphereTold:
        """Everything about a sphere: what it sent, what became of it, what it waits for."""
        return self._monitor.show(id)

    def abort_sphere(self, id: str, reason: str = "an operator aborted it") -> str:
        """Let a sphere fail from outside; answers with its state: ABORTED, or ABORTING while something is left."""
        return self._monitor.abort(id, reason)

    def acknowledge(self, key: str, *, processed: bool = False) -> bool:
        """Say for a recipient that a message was received or processed; False if no sphere sent it."""
        return self._monitor.acknowledge(key, processed=processed)

    def settle(self, participant: Any) -> dict[str, str]:
        """After a crash: end what a database has prepared for spheres, by their state; tells what became of them."""
        return self._monitor.settle(participant)

    def compensator(self, check: float | None = None) -> Compensator:
        """The detached engine that finds spheres whose owner has ended; ``run``, ``once`` or ``stop`` it."""
        return self._monitor.compensator(check)

    def compensate(self, check: float | None = None) -> Checked:
        """One check of the compensation engine: undo what owners that have ended left behind."""
        return self._monitor.compensator(check).once()

    def machine(self, states: Sequence[str], transitions: Iterable[tuple[str, str]]) -> MachineHandle:
        """A state machine whose states are queues: an entity is a token in exactly one of them."""
        return MachineHandle(self.store, machines.made(states, transitions))

    # --- the engine ---

    def run(
        self,
        *,
        until_idle: bool = False,
        report: Report | None = None,
        progress: Callable[[Totals], None] | None = None,
        master: str = "local[*]",
        conf: Mapping[str, str] | None = None,
        step_messages: int | None = None,
    ) -> int:
        """Do what is to be done: rules, arcs, timers, command lines. One engine per room.

        Spark is started when there is a message to evaluate. Answers with the number of messages processed and effects
        tried; ``progress`` is told more after each step.
        """
        totals = self.engine_run(
            until_idle=until_idle,
            report=report,
            progress=progress,
            master=master,
            conf=conf,
            step_messages=step_messages,
        )
        return totals.messages + totals.effects

    def engine_run(self, *, master: str = "local[*]", conf: Mapping[str, str] | None = None, **options: Any) -> Totals:
        """As ``run``, and answers with everything that was done. Spheres are compensated beside it."""
        compensator = self._monitor.compensator()
        compensator.announce()
        compensator.check()
        with nullcontext() if options.get("until_idle") else compensator.beside():
            return self._runner.run(
                spark=lambda: _session(master, settings_of_spark(conf or {})),
                exchange=exchange(self.store, master, conf or {}),
                **options,
            )

    def run_until_idle(self, report: Report | None = None, **options: Any) -> int:
        """Run until nothing is left to do; takes what ``run`` takes."""
        return self.run(until_idle=True, report=report, **options)

    def stop(self) -> None:
        """Let ``run`` finish what it has in hand and return."""
        self._runner.stop()

    def outbox(self) -> list[Effect]:
        """Effects that are pending, or failed and kept."""
        return self.store.read(lambda tx: tx.outbox.all())

    def retry(self, effect: int) -> None:
        """Give a failed effect new attempts, with the command line that its queue has now."""

        def work(tx: Transaction) -> None:
            found = self._effect(tx, effect)
            queue = tx.queues.named_to_read(found.payload.get("queue", ""))
            command = queue.command if queue is not None and queue.command is not None else found.payload.get("command")
            tx.outbox.revive(found, {**found.payload, "command": command})
            tx.wake()

        self.store.transact("outbox-retry", work)

    def drop_effect(self, effect: int) -> None:
        """Take an effect out of the outbox without doing it; the journal keeps what it was."""

        def work(tx: Transaction) -> None:
            tx.outbox.drop(self._effect(tx, effect))

        self.store.transact("outbox-drop", work)

    @staticmethod
    def _effect(tx: Transaction, number: int) -> Effect:
        found = tx.outbox.find(number) if 0 < number < 2**63 else None
        if found is None:
            raise OutboxUnknown(row=number)
        return found


class QueueHandle:
    """A queue or a level of the tree, with the verbs as methods."""

    def __init__(self, room: Postroom, names: Sequence[str]) -> None:
        self._room = room
        self.names = tuple(names)

    def __repr__(self) -> str:
        return f"<queue {' '.join(self.names)}>"

    def send(self, body: Any, **options: Any) -> Sent:
        return self._room.send(self.names, body, **options)

    def receive(self, *, segment: bool = False, wait: float | None = None) -> Received:
        return self._room.receive(*self.names, segment=segment, wait=wait)

    def accept(self) -> Accepted:
        return self._room.accept(*self.names)

    def info(self, limit: int | None = None) -> Listing:
        return self._room.info(*self.names, limit=limit)

    def history(self, limit: int | None = None) -> Listing:
        return self._room.history(*self.names, limit=limit)

    def disable(self, password: Password = "", *, input_only: bool = False) -> Held:
        return self._room.disable(*self.names, password=password, input_only=input_only)

    def enable(self, password: Password = "") -> Held:
        return self._room.enable(*self.names, password=password)


def _path(queue: str | Sequence[str]) -> tuple[str, ...]:
    return (queue,) if isinstance(queue, str) else tuple(queue)


def _asking(password: Password) -> Callable[[], str]:
    return password if callable(password) else lambda: password


def _session(master: str, conf: Mapping[str, str]) -> SparkSession:
    from postroom.engine.spark import session  # seconds of start-up, only where something is to be evaluated

    return session(master, conf)


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container may have a user number without a name
        return f"uid {os.getuid()}"

"""Definitions of a room: loading, inspecting, and trying them out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from postroom.engine.language import CurrentPassword, Terms, Trial, TrialResult
from postroom.errors import ArgumentInvalid
from postroom.limits import PAGE_ROWS, TRY_SECONDS
from postroom.model.body import Format
from postroom.model.definitions import Loaded
from postroom.model.message import Draft, Value
from postroom.model.progress import OnProgress
from postroom.model.rights import EVERYTHING, OPERATE
from postroom.model.types import MessageType
from postroom.queues.tree.addressing import names_of, on_hold, one_to_read
from postroom.room.identity import Identity, whoever_acts
from postroom.room.parts import RoomPart, spark_session
from postroom.room.paths import File
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.types import TypeVersion, check_typed, define_type, every_type, find_type

if TYPE_CHECKING:
    from postroom.engine.steps.tryout import Tried
    from postroom.flows.graph.inspection import ArcExplained
    from postroom.queues.tree.hierarchy import Level
    from postroom.room.catalog import CatalogEntry, CatalogVersion
    from postroom.room.loading import Sources
    from postroom.room.reach import Loading
    from postroom.rules.inspection import Explanation
    from postroom.stations.procedures.inspection import ProcedureExplained


class RoomDefinitions(RoomPart):
    """Loading, checking, explaining and trying out definitions."""

    def load(
        self,
        *files: File,
        progress: OnProgress | None = None,
        drop: bool = False,
        old: CurrentPassword = None,
        change_passwords: bool = False,
        agree: Callable[[Loaded], None] | None = None,
    ) -> Loaded:
        """Load definition files, all or nothing; the suffix determines the language.

        The ``.qdl`` files of one load together replace the room's queue description. A ``.demaq`` file is a module of
        rules and replaces the module of its name. The domains of ``.flow`` files are replaced, except additions at run
        time. A slicing that has messages, and a space with unread messages, are removed only with ``drop``.
        ``progress(done, total)`` is called while passwords are hashed. ``agree`` is called with what is about to
        change; if it raises, nothing is loaded.

        A description that changes or removes the password of a level needs the current one: ``old`` is the password, or
        a function that is called with the level's name. Or the operator gives ``change_passwords``.
        """
        sources = self._read(files)
        by, alone = self._parts.by, sources.alone
        terms = Terms(sources.files, by.principal, by.broker, alone, drop, progress, old, change_passwords)
        identity = whoever_acts()
        if identity is not None and change_passwords:
            identity.require(OPERATE, EVERYTHING)
        return sources.load(self._parts.store, terms, lambda tx: self._reach(tx, identity, sources.files), agree)

    def _reach(self, tx: Transaction, identity: Identity | None, files: Sequence[str]) -> Loading | None:
        """What looks whether definitions may be loaded: who has the room itself may, and where nothing is bound to
        somebody, nothing changes hands."""
        if identity is None and not tx.bindings.all():
            return None
        from postroom.room.reach import Loading  # it knows every language

        return Loading(self._parts, identity, files)

    def check(self, *files: File) -> int:
        """Read and check definition files without loading them; returns the number of definitions."""
        sources = self._read(files)
        sources.check(self._parts.store)
        return sources.count

    def _read(self, files: Sequence[File]) -> Sources:
        from postroom.room import loading
        from postroom.room.languages import languages

        return loading.read(files, languages(lambda: (self._parts.network, self._parts.interpreter)))

    def load_collection(self, name: str, *files: File) -> int:
        """Replace the documents of a collection of master data; returns the version of the definitions."""
        from postroom.flows.graph import catalog as flow_catalog
        from postroom.model.xml import check_xml
        from postroom.room import loading
        from postroom.rules import catalog as rule_catalog

        documents = loading.documents(files)
        for text in documents.values():
            check_xml(text)
        flow_catalog.check_collection(
            self._parts.store.read(self._parts.room_graphs.now), name, list(documents.values())
        )
        identity = whoever_acts()

        def check(tx: Transaction) -> None:
            if identity is not None:
                from postroom.room.reach import refuse_others  # it knows every language

                refuse_others(tx, identity, "collection", name)

        return rule_catalog.load_collection(self._parts.store, name, documents, check)

    def hierarchy(self) -> str:
        """The tree of queues as a description, which can be loaded again."""
        from postroom.queues.tree.hierarchy import description

        return self._parts.store.read(description)

    def files(self, version: int | None = None) -> dict[str, bytes]:
        """The definitions in force as files, by name; loaded together into another room, they define the same.

        With ``version``, those that were in force at a version of the definitions.
        """

        from postroom.room.languages import languages

        def work(tx: Transaction) -> dict[str, bytes]:
            newest = tx.definitions.version()
            if version is not None and not 0 <= version <= newest:
                raise ArgumentInvalid(argument="version", why=f"the versions are 1 to {newest}")
            return {name: text for language in languages() for name, text in language.printed(tx, version).items()}

        return self._parts.store.read(work)

    def versions(self, last: int = 100) -> list[CatalogVersion]:
        """The newest versions of the definitions, newest first: when and by whom each was made, and of which files."""
        if not 0 < last <= PAGE_ROWS:
            raise ArgumentInvalid(argument="last", why=f"1 to {PAGE_ROWS}")
        from postroom.room.catalog import versions

        return self._parts.store.read(lambda tx: versions(tx, last))

    def levels(self) -> list[Level]:
        """The tree of queues, entry by entry."""
        from postroom.queues.tree.hierarchy import read

        return self._parts.store.read(read)

    def types(self, *, older: bool = False) -> list[TypeVersion]:
        """The message types of the room, by name; with ``older`` also the versions that they had before."""
        return self._parts.store.read(partial(every_type, older=older))

    def schema(self, type: str, *, avro: bool = False) -> dict[str, Any]:
        """A message type as a JSON Schema, or as a record of Avro."""
        from postroom.exchange.type_schemas import avro_schema, json_schema

        present = self._parts.store.read(lambda tx: find_type(tx, type))
        return avro_schema(present) if avro else json_schema(present)

    def define_type(self, type: MessageType) -> int:
        """Define a message type, or a new version of one."""
        return self._parts.store.transact("define-type", lambda tx: define_type(tx, type))

    def catalog(self) -> list[CatalogEntry]:
        """All definitions: what they are, where they are written, since when."""
        from postroom.room.catalog import catalog

        return self._parts.store.read(catalog)

    def explain(self, rule: str) -> Explanation:
        """How a rule is executed: what it watches, reads and writes, and its query."""
        from postroom.rules import inspection

        return self._parts.store.read(
            lambda tx: inspection.explain(self._parts.programs.program(tx), self._parts.programs.plan(tx), rule)
        )

    def explain_arc(self, arc: str) -> ArcExplained:
        """How an arc is executed: its types, the names its pattern binds, its condition and result in Spark SQL."""
        from postroom.flows.graph import inspection

        return self._parts.store.read(lambda tx: inspection.explain(self._parts.room_graphs.now(tx), arc))

    def explain_procedure(self, name: str) -> ProcedureExplained:
        """How a procedure is executed: its sketches, how they are joined, and the order of its actions."""
        from postroom.stations.procedures import inspection

        return self._parts.store.read(lambda tx: inspection.explain(tx, self._parts.procedures, name))

    def spark_plan(
        self, space: str | None = None, master: str = "local[*]", conf: Mapping[str, str] | None = None
    ) -> str:
        """Spark's plan of a step of the rules, or of the arcs from a space; starts Spark if it does not run yet."""
        if space is not None:
            from postroom.flows.evaluation.share import spark_plan as flow_plan

            graph = self._parts.store.read(self._parts.room_graphs.now)
            graph.space(space)  # it is there, before Spark is started
            return flow_plan(spark_session(master, conf), graph, space)
        from postroom.rules.evaluation.share import spark_plan

        return spark_plan(spark_session(master, conf), self._parts.store.read(self._parts.programs.plan))

    def try_out(
        self,
        *files: File,
        since: datetime | None = None,
        master: str = "local[*]",
        conf: Mapping[str, str] | None = None,
        timeout: float = TRY_SECONDS,
    ) -> Iterator[TrialResult]:
        """A dry run: what proposed rules, arcs, procedures and counters would do with the stored messages.

        ``timeout`` is the time limit for arcs, in seconds.
        Nothing is changed. Arcs and procedures are tried on Spark, which is started if there is something to try them
        on.
        """
        trial = Trial(self._parts.store, since, timeout, self._parts.admission, partial(spark_session, master, conf))
        return self._read(files).tried(trial)

    def try_message(
        self,
        *queue: str,
        body: Any,
        format: str | Format | None = None,
        type: str | None = None,
        properties: Mapping[str, Value] | None = None,
    ) -> Tried | None:
        """A dry run of one message: what the rules in force, or the counter in force, would do if it were sent now;
        None if no rule and no counter reads the queue.

        Raises like a send for an invalid body, or a queue that accepts no messages. Nothing is changed.
        """
        from postroom.rules import tryout as rule_tryout
        from postroom.stations.counters import tryout as counter_tryout

        draft = Draft.of(body, format, type, properties)

        def admitted(tx: Transaction) -> tuple[str, Draft, Tried | None]:
            target = one_to_read(tx, names_of(queue))
            if not target.accepts:
                raise on_hold(tx, target, "accept")
            if draft.type is not None:
                check_typed(tx, draft)
            put = self._parts.admission(tx, target, [draft])[0].draft if target.admission else draft
            forms, admit = self._parts.network.forms, self._parts.admission
            return target.name, put, counter_tryout.tried_alone(tx, forms, target.name, put, admit)

        name, as_admitted, by_counter = self._parts.store.read(admitted)
        if by_counter is not None:
            return by_counter
        return rule_tryout.tried_alone(self._parts.store, self._parts.programs, name, as_admitted)

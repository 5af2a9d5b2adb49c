"""What a room is told to do: definition files, what became of them, and what they would do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from postroom.engine.steps.tryout import Tried
from postroom.flows import tryout as flow_tryout
from postroom.flows.graph import catalog as flow_catalog
from postroom.flows.graph import inspection as flow_inspection
from postroom.flows.graph.inspection import ArcExplained
from postroom.limits import EVALUATION_SECONDS, TRY_SECONDS
from postroom.model.definitions import Loaded
from postroom.model.types import MessageType
from postroom.model.xml import check_xml
from postroom.queues import hierarchy
from postroom.queues.addressing import PRINCIPAL
from postroom.queues.hierarchy import Level
from postroom.room import catalog, loading
from postroom.room.catalog import CatalogEntry
from postroom.room.loading import File
from postroom.room.parts import Parts, spark_session
from postroom.rules import catalog as rule_catalog
from postroom.rules import inspection, tryout
from postroom.rules.inspection import Explanation
from postroom.stations.counters import tryout as counter_tryout
from postroom.stations.procedures import tryout as procedure_tryout
from postroom.stations.procedures.inspection import ProcedureExplained
from postroom.stations.procedures.inspection import explain as explain_procedure
from postroom.stations.procedures.tryout import Handled
from postroom.stations.procedures.working import Evaluate
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.types import define_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class DefinitionsFace(Parts):
    """Loading, checking, explaining and trying out definitions."""

    def load(
        self,
        *files: File,
        progress: hierarchy.Progress | None = None,
        drop: bool = False,
        old: hierarchy.Old = None,
        change_passwords: bool = False,
    ) -> Loaded:
        """Load definition files, all or nothing; the suffix determines the language.

        The ``.qdl`` files of one load together replace the room's queue description. A ``.demaq`` file is a module of
        rules and replaces the module of its name. The domains of ``.flow`` files are replaced, except additions at run
        time. A slicing that has messages, and a space with unread messages, are removed only with ``drop``.
        ``progress(done, total)`` is called while passwords are hashed.

        A description that changes or removes the password of a level needs the current one: ``old`` is the password, or
        a function that is called with the level's name. Or the operator gives ``change_passwords``.
        """
        proof = hierarchy.Proof(old, change_passwords)
        loaded = loading.load(self.store, files, self._by, progress, drop=drop, proof=proof)
        if any(str(file).endswith(".form") for file in files):
            self._network.align()
        return loaded

    def check(self, *files: File) -> int:
        """Read and check definition files without loading them; returns the number of definitions."""
        return loading.check(self.store, files).count

    def load_collection(self, name: str, *files: File) -> int:
        """Replace the documents of a collection of master data; returns the version of the definitions."""
        documents = loading.documents(files)
        for text in documents.values():
            check_xml(text)
        flow_catalog.check_collection(self.store.read(self._charts.now), name, list(documents.values()))
        return rule_catalog.load_collection(self.store, name, documents)

    def hierarchy(self) -> str:
        """The tree of queues as a description, which can be loaded again."""

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

    def catalog(self) -> list[CatalogEntry]:
        """All definitions: what they are, where they are written, since when."""
        return self.store.read(catalog.catalog)

    def explain(self, rule: str) -> Explanation:
        """How a rule is executed: what it watches, reads and writes, and its query."""
        return self.store.read(lambda tx: inspection.explain(self._programs.program(tx), self._programs.plan(tx), rule))

    def explain_arc(self, arc: str) -> ArcExplained:
        """How an arc is executed: its types, the names its pattern binds, its condition and result in Spark SQL."""
        return self.store.read(lambda tx: flow_inspection.explain(self._charts.now(tx), arc))

    def explain_procedure(self, name: str) -> ProcedureExplained:
        """How a procedure is executed: its sketches, how they are joined, and the order of its actions."""
        return self.store.read(lambda tx: explain_procedure(tx, self._procedures, name))

    def spark_plan(
        self, space: str | None = None, master: str = "local[*]", conf: Mapping[str, str] | None = None
    ) -> str:
        """Spark's plan of a step of the rules, or of the arcs from a space; starts Spark if it does not run yet."""
        if space is not None:
            from postroom.flows.evaluation.share import spark_plan as flow_plan

            return flow_plan(spark_session(master, conf), self.store.read(self._charts.now), space)
        from postroom.rules.evaluation.share import spark_plan

        return spark_plan(spark_session(master, conf), self.store.read(self._programs.plan))

    def try_out(
        self,
        *files: File,
        since: datetime | None = None,
        master: str = "local[*]",
        conf: Mapping[str, str] | None = None,
        timeout: float = TRY_SECONDS,
    ) -> Iterator[Tried | Handled]:
        """A dry run: what proposed rules, arcs, procedures and counters would do with the stored messages.

        ``seconds`` is the time limit for arcs.
        Nothing is changed. Arcs and procedures are tried on Spark, which is started if there is something to try them
        on.
        """
        sources = loading.read(files)
        spark = partial(spark_session, master, conf)
        if sources.program:
            yield from tryout.tried(self.store, sources.program, since)
        if sources.flow:
            yield from flow_tryout.tried(self.store, self._charts, sources.flow, sources.rows, since, spark, timeout)
        if sources.office.procedures:
            yield from procedure_tryout.tried(self._network, sources.office, since, self._evaluation(spark))
        if sources.office.counters:
            yield from counter_tryout.tried(self.store, sources.office, since, self._admission)

    def _evaluation(self, spark: Callable[[], SparkSession]) -> Evaluate:
        """How actions of procedures are worked out: on Spark."""
        if self._interpreter.evaluate is not None:
            return self._interpreter.evaluate
        from postroom.stations.procedures.evaluation import evaluate

        return lambda bench, sets: evaluate(spark(), bench, sets, seconds=EVALUATION_SECONDS)

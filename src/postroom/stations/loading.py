"""Message types, procedures and counters (.form) as a language of a room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from postroom.engine.evaluators import Evaluators
from postroom.engine.language import Load, Symbol, Terms, Trial, TrialResult
from postroom.limits import EVALUATION_SECONDS
from postroom.model.definitions import Loaded
from postroom.model.paths import printable, text_of
from postroom.stations import office as offices
from postroom.stations.office import Office
from postroom.stations.places.network import Network
from postroom.stations.procedures.interpreter import Interpreter
from postroom.stations.procedures.working import Evaluate
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction


class FormLanguage:
    """Forms as a language. Dry runs need the network and its interpreter; parsing and checking do not."""

    suffix = ".form"
    others = ()
    defines = "types, procedures, counters"

    def __init__(self, network: Network | None = None, interpreter: Interpreter | None = None) -> None:
        self._network = network
        self._interpreter = interpreter

    def read(self, files: Sequence[Path]) -> OfficeFiles:
        office = Office()
        for file in files:
            office = office.joined(offices.read(text_of(file), printable(file)))
        return OfficeFiles(office, self._network, self._interpreter)

    def printed(self, tx: Transaction, version: int | None = None) -> dict[str, bytes]:
        text = "\n".join(f"{part}\n" for part in offices.definitions(tx, version))
        return {f"office{self.suffix}": text.encode()} if text else {}


@dataclass(frozen=True)
class OfficeFiles:
    """The content of the files of one load, with the network, if there is one."""

    office: Office
    network: Network | None
    interpreter: Interpreter | None

    @property
    def count(self) -> int:
        return self.office.count

    def symbols(self) -> Iterator[Symbol]:
        for form in self.office.forms:
            yield Symbol("type", form.name, form.position)
            yield from (Symbol("field", field.name, field.position) for field in form.fields)
        yield from (Symbol("procedure", procedure.name, procedure.position) for procedure in self.office.procedures)
        yield from (Symbol("counter", counter.name, counter.position) for counter in self.office.counters)

    def check(self, store: Store | None, *, alone: bool) -> None:
        def work(tx: Transaction | None) -> None:
            offices.check(tx, self.office)
            offices.check_counters(tx, self.office, alone=alone)

        store.read(work) if store is not None else work(None)

    def prepare(self, store: Store, terms: Terms) -> Load:
        return _OfficeLoad(self.office, self.network, terms)

    def tried(self, trial: Trial) -> Iterator[TrialResult]:
        # They load what evaluates, and a load needs none of it.
        from postroom.stations.counters import tryout as counter_tryout
        from postroom.stations.procedures import tryout as procedure_tryout

        assert self.network is not None
        if self.office.procedures:
            forms = self.network.control.read(lambda tx: offices.proposed_forms(tx, self.office))
            evaluate = self._evaluation(trial)
            yield from procedure_tryout.tried(self.network, self.office.procedures, forms, trial.since, evaluate)
        if self.office.counters:
            kept, forms = trial.store.read(lambda tx: offices.proposed_counters(tx, self.office))
            yield from counter_tryout.tried(trial.store, kept, forms, trial.since, trial.admit)

    def _evaluation(self, trial: Trial) -> Evaluate:
        """How actions of procedures are evaluated: few in a worker, many on Spark."""
        if self.interpreter is not None and self.interpreter.evaluate is not None:
            return self.interpreter.evaluate
        from postroom.stations.procedures.evaluation import evaluate

        evaluators = Evaluators(trial.spark)
        return lambda bench, sets: evaluate(evaluators.way(len(sets)), bench, sets, seconds=EVALUATION_SECONDS)


class _OfficeLoad(Load):
    """Types and procedures first, counters last, because these may refer to any queue of the load."""

    def __init__(self, office: Office, network: Network | None, terms: Terms) -> None:
        self._office = office
        self._network = network
        self._files = terms.files

    def write(self, tx: Transaction) -> Loaded:
        return offices.load_within(tx, self._office, self._files)

    def finish(self, tx: Transaction) -> Loaded:
        return offices.load_counters(tx, self._office, self._files)

    def committed(self) -> None:
        if self._network is not None:
            self._network.align()

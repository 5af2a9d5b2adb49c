"""Rule programs in the store: loaded all or nothing, by module, while the engine runs."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence

from postroom.engine.language import Load, Terms
from postroom.engine.steps.attempts import check_entry, check_reader
from postroom.engine.steps.failures import error_queue
from postroom.errors import CollectionUnknown, NameTaken, QueueInUse, SlicingInUse
from postroom.model.definitions import Definition, Loaded, compared
from postroom.rules.compilation import checks
from postroom.rules.compilation.plan import Plan
from postroom.rules.compilation.ports import ports_of
from postroom.rules.compilation.translation import property_type
from postroom.rules.evaluation.indexing import Filling
from postroom.rules.evaluation.verification import Verified
from postroom.rules.language.definitions import KIND, AnyDefinition, Program, as_catalog
from postroom.rules.programs import masters, planned, read
from postroom.store.kernel.base import Store, Unprepared
from postroom.store.kernel.queues import CLOSED, Admission, Keep, Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.definitions import COLLECTION
from postroom.store.tables.endpoints import ANSWER, OUT

QUEUE_KIND = "rules"  # of the queues that programs define
_verified = Verified()


def surroundings(tx: Transaction) -> tuple[frozenset[str], frozenset[str]]:
    """The queues that no program defines, and the names of collections."""
    others = frozenset(queue.name for queue in tx.queues.all() if queue.kind not in (QUEUE_KIND, *CLOSED))
    return others, frozenset(master.name for master in tx.definitions.of_kind(COLLECTION))


def check(tx: Transaction, new: Sequence[AnyDefinition]) -> Program:
    """The program with these modules, checked in full."""
    program = read(tx).with_modules(new)
    queues, collections = surroundings(tx)
    verify = _verified.needs(checks.check(program, queues, collections, tx.endpoints.all()))
    if verify is not None:
        raise Unprepared(verify)
    return program


def check_queues(tx: Transaction) -> None:
    """Raise if the program names a queue that has been removed."""
    program = read(tx)
    if program.rules:
        checks.check(program, *surroundings(tx), tx.endpoints.all())


class ModuleLoad(Load):
    """Loads modules, replacing those of the same names."""

    def __init__(self, store: Store, new: Sequence[AnyDefinition], terms: Terms) -> None:
        self._store = store
        self._new = new
        self._terms = terms
        self._filling = Filling(store)
        self._checked: tuple[int, Program] | None = None
        if terms.alone:
            self._check()

    def _check(self) -> None:
        """Check before the transaction, because compiling is slow."""
        self._checked = self._store.read(lambda tx: (tx.definitions.version(), check(tx, self._new)))

    def write(self, tx: Transaction) -> Loaded:
        if self._checked is None:
            program = check(tx, self._new)
        else:
            version, program = self._checked
            if tx.definitions.version() != version:
                raise Unprepared(self._check)
        return _Writing(tx, read(tx), program, self._filling, self._terms.drop).write(self._terms.files)


class _Writing:
    def __init__(self, tx: Transaction, old: Program, new: Program, filling: Filling, drop: bool) -> None:
        self._tx = tx
        self._old = old
        self._new = new
        self._filling = filling
        self._drop = drop

    def write(self, files: Sequence[str]) -> Loaded:
        tx = self._tx
        mark = secrets.token_hex(4)
        before = planned(tx, self._old, 0, mark)
        self._remove_slicings()
        self._evolve_queues()
        wanted = [as_catalog(definition) for definition in self._new.definitions]
        was = {definition.name: definition.body for definition in tx.definitions.of_kind(KIND)}
        version = tx.definitions.replace(KIND, wanted, {"files": list(files)})
        after = planned(tx, self._new, version, mark)
        self._set_admission(after)
        self._leave_removed(before)
        self._set_ports()
        for name in self._new.slicings:
            tx.slices.slicing(name)
        self._filling.fill(tx, before, after, self._new)
        tx.wake()
        return compared(version, was, {definition.name: definition.body for definition in wanted})

    def _evolve_queues(self) -> None:
        tx = self._tx
        error_queue(tx)
        for name in self._new.queues:
            present = tx.queues.named(name)
            if present is None:
                tx.queues.create(name, QUEUE_KIND, path=name, keep=Keep.SLICED)
            elif present.kind != QUEUE_KIND:
                raise NameTaken(name=name, owner=f"a queue of kind {present.kind}")
            elif present.retired:
                tx.queues.evolve(present, path=name, ordinal=0, command=None)
        for name, definition in self._old.queues.items():
            if name not in self._new.queues:
                queue = tx.queues.named(name)
                if queue is not None:
                    self._retire(queue, str(definition.position))

    def _retire(self, queue: Queue, position: str) -> None:
        count = self._tx.deliveries.inside(queue) or self._tx.slices.held_in(queue)
        if count:
            raise QueueInUse(queue=queue.name, count=count, where=f" (it is defined at {position})")
        self._tx.queues.retire(queue)

    def _remove_slicings(self) -> None:
        """Empty slicings that were removed or have a new property."""
        for name in self._old.slicings:
            if name not in self._new.slicings or _sliced_by(self._new, name) != _sliced_by(self._old, name):
                number = self._tx.slices.slicing(name)
                value = self._tx.slices.used(number)
                if value is not None and not self._drop:
                    raise SlicingInUse(
                        slicing=name, value=value, how="change" if name in self._new.slicings else "be removed"
                    )
                self._tx.slices.empty_slicing(number)

    def _set_admission(self, plan: Plan) -> None:
        for queue in self._tx.queues.all():
            watched = plan.queues.get(queue.name)
            # Only admission notes the sender and refuses what it may not claim: a queue whose rules ask has one.
            asked = watched is not None and not {"sender", "rule", "connection"}.isdisjoint(watched.system)
            admits = asked or not plan.target(queue.name).plain
            reads = watched is not None or queue.name in plan.echoes
            if reads:
                check_reader(self._tx, queue, "rules")
            self._tx.queues.set_watcher(queue, "rules", reads)
            if admits and not queue.admission & Admission.RULES:
                check_entry(self._tx, queue)
            if admits or queue.admission & Admission.RULES:
                queue = self._tx.queues.locked(queue.id)  # whoever is sending to it finishes first
                self._tx.queues.set_admission(queue, Admission.RULES, admits)
            was = {slicing for slicing in self._old.slicings if queue.name in self._sliced(self._old, slicing)}
            now = {slicing for slicing in self._new.slicings if queue.name in self._sliced(self._new, slicing)}
            if now and not was and queue.keep == Keep.SLICED:
                # Until now a sweep took every processed message of this queue; from now on only those noted.
                self._tx.slices.spend(self._tx.retention.processed(queue))

    def _leave_removed(self, before: Plan) -> None:
        """Queues that the same load has removed are watched no more."""
        for name in (*before.queues, *before.echoes):
            queue = self._tx.queues.named(name)
            if queue is not None and queue.retired:
                self._tx.queues.set_watcher(queue, "rules", wanted=False)

    def _set_ports(self) -> None:
        """Have messages of gateway queues sent, including those that waited already."""
        tx = self._tx
        ports = ports_of(self._new.queues.values(), tx.endpoints.all())
        tx.endpoints.set_ports(ports)
        sending = {port.queue for port in ports if port.direction in (OUT, ANSWER)}
        for name in {**self._old.queues, **self._new.queues}:
            queue = tx.queues.named(name)
            if queue is not None and (name in sending) != bool(queue.admission & Admission.SENDING):
                tx.queues.set_admission(queue, Admission.SENDING, name in sending)
                if name in sending:
                    tx.outbox.add_waiting(queue)

    @staticmethod
    def _sliced(program: Program, slicing: str) -> tuple[str, ...]:
        return program.sliced(program.slicings[slicing])


def _sliced_by(program: Program, slicing: str) -> tuple[str, str]:
    """The property of a slicing and its type, which determine its keys."""
    name = program.slicings[slicing].property
    return name, property_type(program, name)


def load_collection(
    store: Store, name: str, documents: Mapping[str, str], check: Callable[[Transaction], None] = lambda _: None
) -> int:
    """Replace the documents of a collection, unless ``check`` raises; returns the version of the definitions."""

    def work(tx: Transaction) -> int:
        tx.definitions.lock()
        if name not in read(tx).collections and name not in masters(tx):
            raise CollectionUnknown(name=name)
        check(tx)
        body = {"documents": list(documents.values()), "files": list(documents)}
        version = tx.definitions.define(Definition(COLLECTION, name, body), {"collection": name})
        tx.wake()
        return version

    return store.transact("load-collection", work)

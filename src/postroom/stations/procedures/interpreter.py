"""The interpreter of procedures: it runs for every station with procedures, even if no user is logged on.

A step takes the new messages of the stations of one node, finds complete working sets, has workers evaluate their
actions, and commits all in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from postroom.engine.holding import LEASE
from postroom.engine.spark.executor_store import Bay, Damaged, misread
from postroom.engine.steps.pipeline import Pipeline
from postroom.engine.steps.stage import Result, Turn
from postroom.engine.steps.step import ENGINE
from postroom.errors import NodeDown, StationUnknown
from postroom.limits import EVALUATION_SECONDS, NODE_PAUSE_SECONDS
from postroom.model.key import key_text
from postroom.model.message import Stored
from postroom.stations.forms.catalog import Edition
from postroom.stations.mail import mail
from postroom.stations.places.desk import database_of
from postroom.stations.places.names import database, mailbox
from postroom.stations.places.network import CONTROL, Network
from postroom.stations.places.postmarks import postmarks, sent
from postroom.stations.procedures.actions import Bench, Complete, Outcome
from postroom.stations.procedures.catalog import Procedures
from postroom.stations.procedures.claiming import DAMAGED, Look, WorkingSet, arrivals, look
from postroom.stations.procedures.committing import TIMER, commit, tell
from postroom.stations.procedures.errors import ERROR
from postroom.stations.procedures.patience import Patience
from postroom.stations.procedures.plan import Desk
from postroom.stations.procedures.ties import announce, forget, processed
from postroom.stations.procedures.working import Evaluate, conclude, forms_of, prepared, unknown_station
from postroom.store.kernel.base import Store
from postroom.store.kernel.batch import Stale
from postroom.store.kernel.timers import Timer
from postroom.store.kernel.transaction import Transaction
from postroom.store.kernel.transfers import Parcel
from postroom.store.tables.working_sets import Reached

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DUE = 100  # messages that are shipped when their time has come, in one commit
_KEYS = 10_000  # taken at once
_STEPS = 100  # one after another, before other nodes have their turn


class Interpreter:
    """A stage of the engine."""

    evaluate: Evaluate | None = None  # in this process, for tests

    def __init__(self, network: Network, procedures: Procedures) -> None:
        self.network = network
        self.procedures = procedures
        self._paused: dict[str, float] = {}  # nodes that did not answer, and when to ask again
        self._untidy: set[str] = set()  # nodes where candidates may be left of messages that have moved
        self.patience = Patience()

    def steps(self, turn: Turn) -> Generator[Result] | None:
        known = turn.store.read(lambda tx: (tx.definitions.version(), self.procedures.now(tx), self.procedures.any(tx)))
        return self._run(turn, *known)

    def lag(self) -> int:
        """The number of messages at stations with procedures that were not examined."""
        homes, control = self.network.stations(), self.network.control
        count = 0
        for station, desk in control.read(self.procedures.now).items():
            if station in homes:
                with suppress(NodeDown):  # what is there is not known
                    own, after = self.network.look(homes[station], partial(_unseen, desk))
                    count += own + control.read(partial(_behind, mailbox(station), after))
        return count

    def tidy(self) -> None:
        """Remove candidates whose messages have moved on; searches skip them until then."""
        for node in sorted(self._untidy):
            with suppress(NodeDown):
                store = self.network.store(node)
                store.transact("sweep", lambda tx: sum(map(tx.working_sets.tidy, tx.working_sets.all())))
                if node != CONTROL:
                    forget(self.network.control, store)
        self._untidy.clear()

    def worker_module(self, store: Store) -> str:
        known = self.evaluate is None and store.read(self.procedures.now)
        return "postroom.stations.procedures.evaluation" if known else ""

    def keep_warm(self, store: Store, spark: Callable[[], SparkSession]) -> None:
        if store.read(self.procedures.now) and self.evaluate is None:
            from postroom.stations.procedures.evaluation import keep_warm  # pyarrow, only when it is needed

            keep_warm(spark())

    def _run(self, turn: Turn, version: int, desks: Mapping[str, Desk], known: bool) -> Generator[Result]:
        homes = self.network.stations()
        # A node where nothing is enabled may have messages that are to be shipped later.
        by_node: dict[str, list[Desk]] = {CONTROL: [], **{node: [] for node in homes.values() if known}}
        for station, desk in desks.items():
            if station in homes:
                by_node.setdefault(homes[station], []).append(desk)
        self.patience.forget({desk.station: node for node, some in by_node.items() for desk in some})
        for node, some in by_node.items():
            if self._paused.get(node, 0) > monotonic():
                continue
            try:
                for result in _Steps(self, turn, version, node, homes).run(some):
                    self._untidy.add(node)
                    yield result
            except NodeDown:
                self._paused[node] = monotonic() + NODE_PAUSE_SECONDS
        if self.patience.pause():
            raise Stale  # there is more to do, soon


@dataclass
class _Claim:
    """The stations that a step has examined, and the sets to evaluate."""

    looks: list[Look]
    more: bool  # whether there was more than it takes
    sets: list[WorkingSet]
    work: tuple[Bench, list[Complete]] | None  # what these are worked on with, and they as they travel
    bay: Bay | None  # where executors leave what sets lead to
    evaluated: str = ""  # by which way


class _Steps:
    """Steps over the stations of a node; several may run, for different stations."""

    def __init__(self, interpreter: Interpreter, turn: Turn, version: int, node: str, homes: Mapping[str, str]) -> None:
        self._network = interpreter.network
        self._procedures = interpreter.procedures
        self._evaluate, self._patience = interpreter.evaluate, interpreter.patience
        self._turn = turn
        self._version = version
        self._node = node
        self._homes = homes
        self._store = self._network.control if node == CONTROL else self._network.indexed_store(node)
        self._desks: Sequence[Desk] = ()
        self._left = _STEPS

    @property
    def _apart(self) -> bool:
        """Whether mail is in another store than the stations."""
        return self._node != CONTROL

    def run(self, desks: Sequence[Desk]) -> Generator[Result]:
        """The results of steps, while there is something to do, up to a limit: there are other nodes."""
        if self._apart:
            brought = mail.recover(self._network, self._node)
            brought += mail.recover(self._network, CONTROL)  # what was being fetched for a working set
            if brought:  # it may lie at a node that was looked at before: there is more to do
                yield Result()
        late = self._ship_late()
        if late:
            yield Result(messages=late)
        self._desks = desks
        yield from Pipeline(self).run()

    def claim(self, under_way: Sequence[_Claim]) -> _Claim | None:
        """The next messages of idle stations, and the sets that they complete."""
        if not self._left:
            return None
        busy = self._patience.busy.union(seen.desk.station for claim in under_way for seen in claim.looks)
        kept = self._opened(self._desks)
        looks, more = self._looks([desk for desk in self._desks if desk.station not in busy], kept)
        if not looks:
            return None
        self._patience.give(looks)
        self._left -= 1
        sets = [working for seen in looks for working in seen.sets if working.outcome is None]
        self._give_keys(sets)
        # Executors know the room's own store; messages of another node go by the driver.
        answer_store = None if self._apart else self._turn.answer_store
        work = self._prepared(sets, bodies=answer_store is None) if sets else None
        return _Claim(looks, more, sets, work, None if answer_store is None else answer_store.bay())

    def evaluate(self, claimed: _Claim) -> Mapping[int, Outcome]:
        if claimed.work is None:
            return {}
        if self._evaluate is not None:
            return self._evaluate(*claimed.work)
        from postroom.stations.procedures.evaluation import evaluate  # pyarrow, only when it is needed

        try:
            way = self._turn.evaluators.way(len(claimed.sets))
            claimed.evaluated = way.name
            return evaluate(way, *claimed.work, claimed.bay)
        except Damaged as damaged:  # since the claim, which has read it
            assert claimed.bay is not None
            if all(stored.sound for stored in claimed.bay.fetched(damaged.keys).values()):
                raise misread(damaged.keys[0]) from damaged
            raise Stale from damaged

    def commit(self, claimed: _Claim, evaluated: Mapping[int, Outcome]) -> Result:
        """Commit, and deliver to other nodes."""
        conclude(claimed.sets, evaluated, self._homes)
        for seen in claimed.looks:
            slow = seen.end_at_open()
            if slow is not None:
                self._patience.begin(seen, slow, self._worked_out_alone(slow))
            seen.end_at_failure()
        result, parcels = self._commit(claimed.looks, claimed.bay)
        self._deliver(parcels)
        self._fetch(claimed.looks)
        return replace(result, more=claimed.more, evaluated=claimed.evaluated)

    # --- what there is ---

    def _opened(self, desks: Sequence[Desk]) -> dict[str, Reached]:
        """The position of each station; a station whose procedures have changed starts again."""
        wanted = {desk.station: desk.edition for desk in desks}

        def differs(known: Mapping[str, Reached]) -> bool:
            return {name: reached.edition for name, reached in known.items()} != wanted

        def work(tx: Transaction) -> dict[str, Reached]:
            self._fence(tx)
            known = {reached.station: reached for reached in tx.working_sets.all()}
            for station in known.keys() - wanted.keys():
                tx.working_sets.close(known.pop(station))
            for station, edition in wanted.items():
                if station not in known:
                    known[station] = tx.working_sets.open(station, edition)
                elif known[station].edition != edition:
                    known[station] = tx.working_sets.begin(known[station], edition)
            return known

        known = {reached.station: reached for reached in self._store.read(lambda tx: tx.working_sets.all())}
        return self._store.transact("desks", work) if differs(known) else known

    def _looks(self, desks: Sequence[Desk], kept: Mapping[str, Reached]) -> tuple[list[Look], bool]:
        """The examined stations with new messages; and whether there are more."""
        own = self._store.read(lambda tx: tx.working_sets.with_news(database("")))
        if self._apart:
            boxes = {desk.station: kept[desk.station].mail for desk in desks}
            news = self._network.control.read(
                lambda tx: {name for name, after in boxes.items() if tx.working_sets.count_news(mailbox(name), after)}
            )
        else:
            ids = self._store.read(lambda tx: tx.working_sets.with_mail(mailbox("")))
            news = {desk.station for desk in desks if kept[desk.station].id in ids}
        awake = [desk for desk in desks if desk.station in news or kept[desk.station].id in own]
        # Few stations at a time, each with all that it has: then most partners meet without having waited.
        awake.sort(key=lambda desk: kept[desk.station].turn)
        looks: list[Look] = []
        room = self._turn.size()
        for desk in awake:
            looks += self._look(desk, kept[desk.station], room, desk.station in news)
            room = self._turn.size() - sum(len(seen.arrivals) for seen in looks)
            if room <= 0:
                return looks, True
        return looks, False

    def _look(self, desk: Desk, kept: Reached, size: int, has_mail: bool) -> list[Look]:
        queue, box = database(desk.station), mailbox(desk.station)

        def work(tx: Transaction) -> list[Look]:
            own = tx.messages.next_of(queue, kept.own, size)
            here = tx.messages.next_of(box, kept.mail, size) if has_mail and not self._apart else there
            some = arrivals(own, here, size, apart=self._apart)
            return [look(tx, desk, kept, some, apart=self._apart)] if some else []

        there: list[Stored] = []
        if has_mail and self._apart:
            there = self._network.control.read(lambda tx: tx.messages.next_of(box, kept.mail, size))
        return self._store.read(work)

    # --- what follows ---

    def _prepared(self, sets: Sequence[WorkingSet], *, bodies: bool = True) -> tuple[Bench, list[Complete]]:
        forms = self._network.control.read(partial(forms_of, self._procedures.forms, sets))
        return prepared(sets, forms, self._store.session.clock(), bodies=bodies)

    def _give_keys(self, sets: Sequence[WorkingSet]) -> None:
        """Reserve keys for the new messages of these sets."""
        keys: list[int] = []
        while (count := sum(working.plan.new_messages for working in sets) - len(keys)) > 0:
            take = partial(self._store.transact, "claim", partial(_take_keys, min(count, _KEYS)))
            keys += self._network.with_keys(self._node, take)
        new = iter(keys)
        for working in sets:
            working.keys = tuple(next(new) for _ in range(working.plan.new_messages))

    def _worked_out_alone(self, slow: WorkingSet) -> Callable[[], Mapping[int, Outcome]]:
        """A function that evaluates a slow set with the longest time limit, without a bay: the step has ended by
        then."""
        bench, pieces = self._prepared([slow])

        def work() -> Mapping[int, Outcome]:
            from postroom.stations.procedures.evaluation import evaluate

            outcomes = evaluate(self._turn.evaluators.way(1), bench, pieces, seconds=EVALUATION_SECONDS)
            conclude([slow], outcomes, self._homes)
            assert slow.outcome is not None
            return {0: slow.outcome}

        return work

    # --- the commit ---

    def _fence(self, tx: Transaction) -> None:
        if self._node == CONTROL:
            tx.leases.check(LEASE, self._turn.fence)
        else:
            tx.leases.follow(LEASE, self._turn.fence)

    def _commit(self, looks: Sequence[Look], bay: Bay | None) -> tuple[Result, list[Parcel]]:
        form = self._network.control.read(lambda tx: self._procedures.forms.now(tx).get(ERROR.name))
        ties = None
        if self._apart:
            self._network.control.read(self._unchanged)
            ties = announce(self._network.control, self._node, looks)

        def work(tx: Transaction) -> tuple[Result, list[Parcel]]:
            self._fence(tx)
            if not self._apart:
                tx.definitions.lock()  # a load comes before this step or after it, never in between
                tx.nodes.lock()  # and so does a station that comes or goes
                self._unchanged(tx)
            if bay is not None:
                bay.clear(tx)
            return commit(tx, looks, self._node, form, ties)

        def attempt() -> tuple[Result, list[Parcel]]:
            with self._store.acting(ENGINE):
                return self._store.transact("procedure", work)

        done = self._network.with_keys(self._node, attempt)
        if ties is not None:
            processed(self._network.control, ties)
        return done

    def _unchanged(self, tx: Transaction) -> None:
        if tx.definitions.version() != self._version or tx.nodes.stations() != self._homes:
            raise Stale

    def _deliver(self, parcels: Sequence[Parcel]) -> None:
        """Deliver what has left this node; what cannot be delivered now is retried later."""
        for some in mail.by_target(parcels):
            mail.deliver(self._network, self._store, some)

    def _fetch(self, looks: Iterable[Look]) -> None:
        """Fetch mail that completes working sets here; then the stations are examined again."""
        for seen in looks:
            if not seen.fetch:
                continue
            mail.fetch(self._network, seen.desk.station, self._node, seen.fetch, f"procedure {seen.fetcher}")
            self._store.transact("desks", partial(_forget_remote, seen.kept.id, list(seen.fetch)))

    # --- later ---

    def _ship_late(self) -> int:
        """Ship messages that were scheduled; those that someone moved or changed meanwhile are left alone."""
        due = self._store.read(lambda tx: tx.timers.next_due(TIMER))
        if due is None or due > self._store.session.clock():
            return 0
        form = self._network.control.read(lambda tx: self._procedures.forms.now(tx).get(ERROR.name))

        def work(tx: Transaction) -> tuple[int, list[Parcel]]:
            self._fence(tx)
            timers = tx.timers.due(TIMER, _DUE)
            parcels = [self._ship_one_late(tx, timer, form) for timer in timers]
            return len(timers), [parcel for parcel in parcels if parcel is not None]

        with self._store.acting(ENGINE):
            count, parcels = self._store.transact("procedure", work)
        if self._apart:
            self._deliver(parcels)
        return count

    def _ship_one_late(self, tx: Transaction, timer: Timer, form: Edition | None) -> Parcel | None:
        """Ship a scheduled message; None if it should not be shipped any more, or if that fails, which puts an error
        message."""
        tx.timers.remove(timer)
        station, to, procedure = (timer.payload[name] for name in ("station", "to", "procedure"))
        stored = tx.messages.find(timer.payload["message"])
        if stored is None or stored.queue != database(station):
            return None
        keys = [key_text(stored.key)]
        if not stored.sound:
            why = f"message {keys[0]} does not match its hash"
            tell(tx, station, procedure, DAMAGED, why, keys, form, 1)
            return None
        known = postmarks(stored.properties)
        if not known.due or known.due != timer.due:  # someone has moved it, or written on it
            return None
        if to not in self._homes:
            tell(tx, station, procedure, StationUnknown.code, unknown_station(to, self._homes), keys, form, 1)
            return None
        queue = database_of(tx, station)
        tx.journal.actor = f"procedure {procedure}"
        marked = sent(stored.properties, station, known.depth)
        parcel = mail.ship_one(tx, queue, stored, station, self._node, to, marked)
        tx.journal.actor = ENGINE
        return parcel


def _unseen(desk: Desk, tx: Transaction) -> tuple[int, int]:
    """How many messages of a station were not examined, and the position in its mail."""
    kept = tx.working_sets.named(desk.station)
    own, mail = (0, 0) if kept is None or kept.edition != desk.edition else (kept.own, kept.mail)
    return _behind(database(desk.station), own, tx), mail


def _behind(queue: str, after: int, tx: Transaction) -> int:
    return tx.working_sets.count_news(queue, after)


def _take_keys(count: int, tx: Transaction) -> Sequence[int]:
    return tx.keys.take(count)


def _forget_remote(desk: int, messages: Sequence[int], tx: Transaction) -> None:
    tx.working_sets.remove_remote(desk, messages)

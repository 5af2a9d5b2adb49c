"""One transaction: every table, on one session, with one time and one commit."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from postroom.store.kernel.counts import Counts
from postroom.store.kernel.deliveries import Deliveries
from postroom.store.kernel.journal import Journal
from postroom.store.kernel.keys import Keys
from postroom.store.kernel.messages import Messages
from postroom.store.kernel.outbox import Outbox
from postroom.store.kernel.policies import Policies
from postroom.store.kernel.queues import Queues
from postroom.store.kernel.session import Session
from postroom.store.kernel.slices import Slices
from postroom.store.tables.handouts import Handouts

if TYPE_CHECKING:
    from postroom.store.kernel.causes import Causes
    from postroom.store.kernel.leases import Leases
    from postroom.store.kernel.receipts import Receipts
    from postroom.store.kernel.selections import Selections
    from postroom.store.kernel.timers import Timers
    from postroom.store.kernel.transfers import Transfers
    from postroom.store.kernel.weights import Weights
    from postroom.store.proof.soundness import Soundness
    from postroom.store.tables.access import AccessRights
    from postroom.store.tables.arc_states import ArcStates
    from postroom.store.tables.bindings import Bindings
    from postroom.store.tables.definitions import Definitions
    from postroom.store.tables.dossiers import Dossiers
    from postroom.store.tables.endpoints import Endpoints
    from postroom.store.tables.epochs import Epochs
    from postroom.store.tables.field_index import FieldIndex
    from postroom.store.tables.images import ImageTables
    from postroom.store.tables.nodes import Nodes
    from postroom.store.tables.principals import Principals
    from postroom.store.tables.remote_spheres import Afar
    from postroom.store.tables.requests import Requests
    from postroom.store.tables.scans import Scans
    from postroom.store.tables.schedules import Schedules
    from postroom.store.tables.sequences import Sequences
    from postroom.store.tables.sources import Sources
    from postroom.store.tables.spheres import Spheres
    from postroom.store.tables.staging import Staging
    from postroom.store.tables.streams import Streams
    from postroom.store.tables.tokens import Tokens
    from postroom.store.tables.tracking import Tracking
    from postroom.store.tables.working_sets import WorkingSetTable
    from postroom.store.upkeep.kinds import Upkeep
    from postroom.store.upkeep.retention import Retention


class Transaction:
    """The view of the store for a piece of work. Created once per store and reused.

    A command needs few of its tables, so most of them are imported and made when one is asked for. The others are
    those that every send and receive uses.
    """

    def __init__(self, session: Session, actor: str) -> None:
        self.session = session
        self.journal = Journal(session, actor)
        self.queues = Queues(session, self.journal)
        self.outbox = Outbox(session, self.journal)
        self.counts = Counts(session, self.queues, self.outbox)
        self.keys = Keys(session)
        self.slices = Slices(session)
        self.messages = Messages(session, self.journal, self.keys, self.counts, self.slices)
        self.policies = Policies(session, self.journal)
        self.deliveries = Deliveries(
            session, self.journal, self.queues, self.counts, self.messages, self.slices, self.policies
        )
        self.handouts = Handouts(session, self.queues, self.messages)
        self._wake = False
        self.lines: dict[int, int] = {}  # of queues: how many of those who wait in their lines are to be woken

    @property
    def now(self) -> int:
        return self.session.now

    def wake(self) -> None:
        """Wake all waiters after the commit; arrivals in an empty queue do so anyway."""
        self._wake = True

    def wake_next(self, queue: int) -> None:
        """Wake the first waiters in a queue's line after the commit, and all without a line."""
        self.lines[queue] = self.lines.get(queue, 0) + 1

    def settle(self) -> bool:
        """Run the last statements before the commit; True if all waiters are to be woken."""
        return self.counts.settle(self.lines) or self._wake

    def ended(self) -> None:
        """A new version of definitions is either committed by now, or never will be."""
        if "definitions" in vars(self):
            self.definitions.changing = False

    def clear(self) -> None:
        self.counts.clear()
        self.queues.clear()
        self.ended()
        self._wake = False
        self.lines = {}

    @cached_property
    def selections(self) -> Selections:
        from postroom.store.kernel.selections import Selections

        return Selections(self.session)

    @cached_property
    def weights(self) -> Weights:
        from postroom.store.kernel.weights import Weights

        return Weights(self.session)

    @cached_property
    def causes(self) -> Causes:
        from postroom.store.kernel.causes import Causes

        return Causes(self.session, self.journal.archives)

    @cached_property
    def definitions(self) -> Definitions:
        from postroom.store.tables.definitions import Definitions

        return Definitions(self.session, self.journal)

    @cached_property
    def epochs(self) -> Epochs:
        from postroom.store.tables.epochs import Epochs

        return Epochs(self.session)

    @cached_property
    def arc_states(self) -> ArcStates:
        from postroom.store.tables.arc_states import ArcStates

        return ArcStates(self.session)

    @cached_property
    def streams(self) -> Streams:
        from postroom.store.tables.streams import Streams

        return Streams(self.session, self.journal)

    @cached_property
    def principals(self) -> Principals:
        from postroom.store.tables.principals import Principals

        return Principals(self.session, self.journal)

    @cached_property
    def access(self) -> AccessRights:
        from postroom.store.tables.access import AccessRights

        return AccessRights(self.session, self.journal)

    @cached_property
    def bindings(self) -> Bindings:
        from postroom.store.tables.bindings import Bindings

        return Bindings(self.session)

    @cached_property
    def receipts(self) -> Receipts:
        from postroom.store.kernel.receipts import Receipts

        return Receipts(self.session)

    @cached_property
    def leases(self) -> Leases:
        from postroom.store.kernel.leases import Leases

        return Leases(self.session, self.journal)

    @cached_property
    def timers(self) -> Timers:
        from postroom.store.kernel.timers import Timers

        return Timers(self.session, self.journal)

    @cached_property
    def scans(self) -> Scans:
        from postroom.store.tables.scans import Scans

        return Scans(self.session, self.journal.archives)

    @cached_property
    def soundness(self) -> Soundness:
        from postroom.store.proof.soundness import Soundness

        return Soundness(self.session)

    @cached_property
    def retention(self) -> Retention:
        from postroom.store.upkeep.retention import Retention

        return Retention(self.session, self.journal, self.queues, self.counts, self.messages)

    @cached_property
    def upkeep(self) -> Upkeep:
        from postroom.store.upkeep.kinds import Upkeep

        return Upkeep(self.session, self.journal, self.queues, self.messages, self.retention)

    @cached_property
    def nodes(self) -> Nodes:
        from postroom.store.tables.nodes import Nodes

        return Nodes(self.session, self.journal)

    @cached_property
    def endpoints(self) -> Endpoints:
        from postroom.store.tables.endpoints import Endpoints

        return Endpoints(self.session, self.journal)

    @cached_property
    def requests(self) -> Requests:
        from postroom.store.tables.requests import Requests

        return Requests(self.session)

    @cached_property
    def sequences(self) -> Sequences:
        from postroom.store.tables.sequences import Sequences

        return Sequences(self.session)

    @cached_property
    def field_index(self) -> FieldIndex:
        from postroom.store.tables.field_index import FieldIndex

        return FieldIndex(self.session)

    @cached_property
    def transfers(self) -> Transfers:
        from postroom.store.kernel.transfers import Transfers

        return Transfers(self.session, self.queues, self.messages)

    @cached_property
    def tracking(self) -> Tracking:
        from postroom.store.tables.tracking import Tracking

        return Tracking(self.session, self.journal)

    @cached_property
    def dossiers(self) -> Dossiers:
        from postroom.store.tables.dossiers import Dossiers

        return Dossiers(self.session, self.journal)

    @cached_property
    def image_tables(self) -> ImageTables:
        from postroom.store.tables.images import ImageTables

        return ImageTables(self.session)

    @cached_property
    def working_sets(self) -> WorkingSetTable:
        from postroom.store.tables.working_sets import WorkingSetTable

        return WorkingSetTable(self.session)

    @cached_property
    def tokens(self) -> Tokens:
        from postroom.store.tables.tokens import Tokens

        return Tokens(self.session)

    @cached_property
    def spheres(self) -> Spheres:
        from postroom.store.tables.spheres import Spheres

        return Spheres(self.session)

    @cached_property
    def afar(self) -> Afar:
        from postroom.store.tables.remote_spheres import Afar

        return Afar(self.session)

    @cached_property
    def staging(self) -> Staging:
        from postroom.store.tables.staging import Staging

        return Staging(self.session)

    @cached_property
    def sources(self) -> Sources:
        from postroom.store.tables.sources import Sources

        return Sources(self.session, self.journal)

    @cached_property
    def schedules(self) -> Schedules:
        from postroom.store.tables.schedules import Schedules

        return Schedules(self.session, self.journal)

"""One transaction: every table, on one session, with one time and one commit."""

from __future__ import annotations

from postroom.store.kernel.causes import Causes
from postroom.store.kernel.counts import Counts
from postroom.store.kernel.deliveries import Deliveries
from postroom.store.kernel.journal import Journal
from postroom.store.kernel.keys import Keys
from postroom.store.kernel.leases import Leases
from postroom.store.kernel.messages import Messages
from postroom.store.kernel.outbox import Outbox
from postroom.store.kernel.policies import Policies
from postroom.store.kernel.queues import Queues
from postroom.store.kernel.receipts import Receipts
from postroom.store.kernel.selections import Selections
from postroom.store.kernel.session import Session
from postroom.store.kernel.slices import Slices
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
from postroom.store.tables.handouts import Handouts
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
    """The view of the store for a piece of work. Created once per store and reused."""

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
        self.selections = Selections(session)
        self.weights = Weights(session)
        self.deliveries = Deliveries(
            session, self.journal, self.queues, self.counts, self.messages, self.slices, self.policies
        )
        self.causes = Causes(session, self.journal.archives)
        self.definitions = Definitions(session, self.journal)
        self.epochs = Epochs(session)
        self.arc_states = ArcStates(session)
        self.streams = Streams(session, self.journal)
        self.principals = Principals(session, self.journal)
        self.access = AccessRights(session, self.journal)
        self.bindings = Bindings(session)
        self.receipts = Receipts(session)
        self.leases = Leases(session, self.journal)
        self.timers = Timers(session, self.journal)
        self.scans = Scans(session, self.journal.archives)
        self.soundness = Soundness(session)
        self.retention = Retention(session, self.journal, self.queues, self.counts, self.messages)
        self.upkeep = Upkeep(session, self.journal, self.queues, self.messages, self.retention)
        self.nodes = Nodes(session, self.journal)
        self.endpoints = Endpoints(session, self.journal)
        self.requests = Requests(session)
        self.sequences = Sequences(session)
        self.field_index = FieldIndex(session)
        self.transfers = Transfers(session, self.queues, self.messages)
        self.tracking = Tracking(session, self.journal)
        self.dossiers = Dossiers(session, self.journal)
        self.image_tables = ImageTables(session)
        self.working_sets = WorkingSetTable(session)
        self.tokens = Tokens(session)
        self.spheres = Spheres(session)
        self.afar = Afar(session)
        self.staging = Staging(session)
        self.sources = Sources(session, self.journal)
        self.schedules = Schedules(session, self.journal)
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

    def clear(self) -> None:
        self.counts.clear()
        self.queues.clear()
        self.definitions.changing = False
        self._wake = False
        self.lines = {}

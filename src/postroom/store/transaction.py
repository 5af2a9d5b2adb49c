"""One transaction: every table, on one session, with one time and one commit."""

from __future__ import annotations

from postroom.store.afar import Afar
from postroom.store.albums import Albums
from postroom.store.causes import Causes
from postroom.store.counts import Counts
from postroom.store.definitions import Definitions
from postroom.store.desks import Desks
from postroom.store.dossiers import Dossiers
from postroom.store.epochs import Epochs
from postroom.store.filings import Filings
from postroom.store.handling import Handling
from postroom.store.handouts import Handouts
from postroom.store.journal import Journal
from postroom.store.keys import Keys
from postroom.store.leases import Leases
from postroom.store.messages import Messages
from postroom.store.nodes import Nodes
from postroom.store.outbox import Outbox
from postroom.store.principals import Principals
from postroom.store.queues import Queues
from postroom.store.receipts import Receipts
from postroom.store.retention import Retention
from postroom.store.scans import Scans
from postroom.store.session import Session
from postroom.store.slices import Slices
from postroom.store.soundness import Soundness
from postroom.store.spheres import Spheres
from postroom.store.staging import Staging
from postroom.store.timers import Timers
from postroom.store.tokens import Tokens
from postroom.store.tracking import Tracking
from postroom.store.transfers import Transfers
from postroom.store.upkeep import Upkeep


class Transaction:
    """What a piece of work sees of the store. Made once per store and used for one transaction after another."""

    def __init__(self, session: Session, actor: str) -> None:
        self.session = session
        self.journal = Journal(session, actor)
        self.queues = Queues(session, self.journal)
        self.outbox = Outbox(session, self.journal)
        self.counts = Counts(self.queues, self.outbox)
        self.keys = Keys(session)
        self.slices = Slices(session)
        self.messages = Messages(session, self.journal, self.keys, self.counts, self.slices)
        self.causes = Causes(session, self.journal.archives)
        self.definitions = Definitions(session, self.journal)
        self.epochs = Epochs(session)
        self.principals = Principals(session, self.journal)
        self.receipts = Receipts(session)
        self.leases = Leases(session, self.journal)
        self.timers = Timers(session, self.journal)
        self.scans = Scans(session, self.journal.archives)
        self.soundness = Soundness(session)
        self.retention = Retention(session, self.journal, self.queues, self.counts)
        self.upkeep = Upkeep(session, self.journal, self.queues, self.messages, self.retention)
        self.nodes = Nodes(session, self.journal)
        self.filings = Filings(session)
        self.transfers = Transfers(session, self.journal, self.queues, self.counts)
        self.tracking = Tracking(session, self.journal)
        self.dossiers = Dossiers(session, self.journal)
        self.albums = Albums(session)
        self.desks = Desks(session)
        self.tokens = Tokens(session)
        self.spheres = Spheres(session)
        self.afar = Afar(session)
        self.staging = Staging(session)
        self.handling = Handling(session, self.counts, self.spheres)
        self.handouts = Handouts(session, self.journal, self.queues, self.counts)
        self._wake = False

    @property
    def now(self) -> int:
        return self.session.now

    def wake(self) -> None:
        """Wake whoever waits once this is committed; arrivals in an empty queue do so by themselves."""
        self._wake = True

    def settle(self) -> bool:
        """The last statements before the commit; True if someone is to be woken by it."""
        return self.counts.settle() or self._wake

    def clear(self) -> None:
        self.counts.clear()
        self.definitions.changing = False
        self._wake = False

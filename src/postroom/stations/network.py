"""The nodes of a network and their stores: which there are, and the way to each."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from postroom.errors import (
    ArgumentInvalid,
    KeysExhausted,
    NodeDown,
    NodeUnfit,
    NodeUnknown,
    RoomMissing,
    StationInUse,
    StationTaken,
    StationUnknown,
    StoreError,
)
from postroom.limits import KEY_TAIL, NODE_SECONDS
from postroom.model.body import is_text
from postroom.model.definitions import nearest
from postroom.stations import counters, filing
from postroom.stations.catalog import Forms
from postroom.stations.names import database, mailbox
from postroom.store import absolute, open_store
from postroom.store.base import Store
from postroom.store.nodes import Node
from postroom.store.registry import KIND as PRINCIPAL
from postroom.store.transaction import Transaction

CONTROL = "control"  # the name of the node that every room is by itself
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NodeShown:
    """A node as it was found when it was asked."""

    name: str
    url: str
    stations: int
    answers: bool
    why: str = ""

    def as_dict(self) -> dict[str, object]:
        shape = {"name": self.name, "url": self.url, "station_count": self.stations, "answers": self.answers}
        return shape if self.answers else {**shape, "why": self.why}


class Network:
    """The control node's store, and its satellites' as they are needed."""

    def __init__(self, control: Store, url: str, forms: Forms) -> None:
        self.control = control
        self.url = absolute(url)
        self.forms = forms
        self._open: dict[str, tuple[str, Store]] = {}
        self._aligned: dict[str, int] = {}  # up to which version of the definitions a node files its messages

    def close(self) -> None:
        for _, store in self._open.values():
            store.close()
        self._open.clear()

    # --- nodes ---

    def nodes(self) -> dict[str, str]:
        """Every node with the URL of its store, the control node first."""
        known = self.control.read(lambda tx: tx.nodes.all())
        return {CONTROL: self.url, **{name: node.url for name, node in known.items()}}

    def add(self, name: str, url: str) -> None:
        """Make a store a node of this network. It must be new, or empty: its keys are this network's."""
        if not name.isidentifier() or name == CONTROL:
            raise ArgumentInvalid(
                argument="node", why=f"{name!r} cannot be a name: letters, digits and _, not {CONTROL}"
            )
        where = absolute(url)
        mark = secrets.token_hex(16)
        with_store = open_store(where, actor="control", clock=self.control.session.clock)
        try:
            head, latest = self.control.transact("node", lambda tx: self._list(tx, Node(name, where, mark)))
            try:
                with_store.transact("node", lambda tx: _join(tx, where, mark, name, head, latest))
            except Exception:
                self.control.transact("node", lambda tx: tx.nodes.remove(name))
                raise
        finally:
            with_store.close()

    def _list(self, tx: Transaction, node: Node) -> tuple[int, int]:
        """Enter a node in the list, and give it its first block of keys; queries of before do not know of it."""
        tx.nodes.lock()
        if tx.nodes.membership() is not None:
            raise NodeUnfit(url=node.url, why="this room is a node itself; add it to its control node's room")
        present = tx.nodes.all()
        if node.name in present:
            raise NodeUnfit(url=node.url, why=f"there is a node {node.name} already")
        if os.path.realpath(node.url) == os.path.realpath(self.url):
            raise NodeUnfit(url=node.url, why="it is this room, which is the control node")
        tx.nodes.add(node)
        return tx.keys.give_block(), tx.tracking.latest()

    def remove(self, name: str, *, force: bool = False) -> None:
        """Take a node without stations out of the network; one that does not answer only by force."""

        def work(tx: Transaction) -> None:
            tx.nodes.lock()
            self._known(tx, name)
            stations = [station for station, node in tx.nodes.stations().items() if node == name]
            if stations:
                why = f"{len(stations)} station(s) are on it, such as {stations[0]}"
                raise StationInUse(name=f"node {name}", why=why)
            tx.nodes.remove(name)

        self.control.read(lambda tx: self._known(tx, name))
        try:
            leaving = self.store(name).read(lambda tx: tx.transfers.pending())
            if leaving:
                raise StationInUse(name=f"node {name}", why=f"{len(leaving)} message(s) are on their way out of it")
        except NodeDown:
            if not force:
                raise
        self.control.transact("node", work)
        present = self._open.get(name)
        if present is not None:
            present[1].transact("node", lambda tx: tx.nodes.leave())
        self._forget(name)

    def move(self, name: str, url: str) -> None:
        """The store of a node is elsewhere now."""
        where = absolute(url)

        def work(tx: Transaction) -> None:
            mark = self._known(tx, name).mark
            self._checked(name, where, mark).close()
            tx.nodes.set_url(name, where)

        self.control.transact("node", work)
        self._forget(name)

    def shown(self) -> list[NodeShown]:
        """Every node, and whether it answers."""
        stations = list(self.control.read(lambda tx: tx.nodes.stations()).values())
        found = []
        for name, url in self.nodes().items():
            count = stations.count(name)
            try:
                self.look(name, lambda tx: tx.now)
                found.append(NodeShown(name, url, count, True))
            except NodeDown as down:
                found.append(NodeShown(name, url, count, False, str(down.facts["why"])))
        return found

    @staticmethod
    def _known(tx: Transaction, name: str) -> Node:
        known = tx.nodes.all()
        if name not in known:
            raise NodeUnknown(node=name, nearest=nearest(name, [CONTROL, *known]))
        return known[name]

    # --- stores ---

    def store(self, node: str) -> Store:
        """The store of a node; raises if it does not answer, or is not that node's."""
        if node == CONTROL:
            return self.control
        known = self.control.read(lambda tx: self._known(tx, node))
        present = self._open.get(node)
        if present is not None and present[0] == known.url and not present[1].stopped:
            return present[1]
        self._open[node] = (known.url, self._checked(node, known.url, known.mark))
        return self._open[node][1]

    def _checked(self, name: str, url: str, mark: str) -> Store:
        try:
            store = open_store(url, actor=self.control.actor, create=False, clock=self.control.session.clock)
        except RoomMissing:
            raise NodeDown(node=name, why=f"there is no store at {url}") from None
        except StoreError as error:
            raise NodeDown(node=name, why=str(error)) from error
        if store.read(lambda tx: tx.nodes.membership()) != (mark, name):
            store.close()
            raise NodeDown(node=name, why=f"{url} is not the store that was added as {name}")
        return store

    def _forget(self, node: str) -> None:
        present = self._open.pop(node, None)
        if present is not None:
            present[1].close()

    def ask(self, node: str, seconds: float, work: Callable[[], T]) -> T:
        """Do something at a node that may never answer; then the next call goes to a new connection."""
        if node == CONTROL:
            return work()
        known = self._open.get(node)
        try:
            return within(seconds, node, work, late=lambda: known[1].close() if known else None)
        except NodeDown:
            self._open.pop(node, None)
            raise

    def filing_store(self, node: str) -> Store:
        """A node's store, which files its messages as the forms of now say."""
        store = self.store(node)
        version = self.control.read(lambda tx: tx.definitions.version())
        if self._aligned.get(node) != version:
            forms = self.control.read(lambda tx: [each.form for each in self.forms.now(tx).values()])
            filing.align(store, forms)
            self._aligned[node] = version
        return store

    def align(self) -> None:
        """Have every node that answers file its messages as the forms of now say; others do so when they are back."""
        for node in self.nodes():
            with suppress(NodeDown):
                self.filing_store(node)

    def look(self, node: str, work: Callable[[Transaction], T], seconds: float = NODE_SECONDS) -> T:
        """Read at a node that may not answer."""
        return self.ask(node, seconds, lambda: self.store(node).read(work))

    # --- stations ---

    def home(self, station: str) -> str:
        """The node of a station."""

        def work(tx: Transaction) -> str:
            node = tx.nodes.home(station) if is_text(station) else None
            if node is None:
                raise StationUnknown(station=station, nearest=nearest(station, tx.nodes.stations()))
            return node

        return self.control.read(work)

    def stations(self) -> dict[str, str]:
        return self.control.read(lambda tx: tx.nodes.stations())

    def add_station(self, name: str, node: str, secret: str | None) -> None:
        """A new station; its secret is a hashed password, or it is a principal that has one."""
        self.store(node)  # a node that does not answer cannot be given a station

        def work(tx: Transaction) -> None:
            tx.nodes.lock()
            if tx.nodes.membership() is not None:
                raise NodeUnfit(url=self.url, why="this room is a node itself; add stations in its control node's room")
            present = tx.nodes.home(name)
            if present is not None:
                raise StationTaken(station=name, node=present)
            if node != CONTROL:
                self._known(tx, node)
            box = tx.queues.named(mailbox(name))
            if box is not None and box.unprocessed:
                raise StationInUse(name=name, why="mail for a former station of this name is there; choose another")
            tx.nodes.add_station(name, node)
            if secret is not None:
                tx.principals.set_secret(PRINCIPAL, name, secret)

        self.control.transact("station", work)

    def remove_station(self, name: str) -> None:
        """Take a station out that has neither messages nor mail."""
        home = self.store(self.home(name))
        held = home.read(lambda tx: tx.queues.named_to_read(database(name)))
        if held is not None and held.unprocessed:
            raise StationInUse(name=name, why=f"it has {held.unprocessed} message(s); ship them first")
        for node in self.nodes():
            on_way = self.store(node).read(lambda tx: tx.transfers.pending())
            if any(name in (parcel.source, parcel.target) for parcel in on_way):
                raise StationInUse(name=name, why="mail is on its way from or to it; let it come, and get it first")

        def work(tx: Transaction) -> None:
            tx.nodes.lock()
            at = [each.counter.name for each in counters.kept(tx) if each.counter.station == name]
            if at:
                raise StationInUse(name=name, why=f"counter {at[0]} is there; postroom counter remove {at[0]}")
            box = tx.queues.named(mailbox(name))
            if box is not None and box.unprocessed:
                raise StationInUse(name=name, why=f"{box.unprocessed} message(s) are in its mailbox; get them first")
            tx.nodes.remove_station(name)

        self.control.transact("station", work)
        if held is not None:
            home.transact("station", lambda tx: tx.albums.forget(held.id))

    def with_keys(self, node: str, work: Callable[[], T]) -> T:
        """Do what needs keys at a node; when its block is used up, it gets the next one."""
        while True:
            try:
                return work()
            except KeysExhausted as exhausted:
                needed = int(exhausted.facts["count"])
                if node == CONTROL or needed >= KEY_TAIL:
                    raise
                head = self.control.transact("key-block", lambda tx: tx.keys.give_block())
                self.store(node).transact("key-block", partial(_renew, head, needed))


def _renew(head: int, needed: int, tx: Transaction) -> None:
    tx.keys.use_block(head, needed)


def _join(tx: Transaction, url: str, mark: str, name: str, head: int, latest: int) -> None:
    present = tx.nodes.membership()
    if present is not None:
        raise NodeUnfit(url=url, why=f"it is a node already, named {present[1]}")
    if (tx.keys.used and not tx.keys.lent) or tx.messages.any() or tx.nodes.all() or tx.nodes.stations():
        raise NodeUnfit(url=url, why="it is a room with messages or stations of its own; give a new file or database")
    tx.nodes.join(mark, name)
    tx.keys.use_block(head)
    tx.tracking.begin_behind(latest)


def within(seconds: float, node: str, work: Callable[[], T], late: Callable[[], None] | None = None) -> T:
    """Do something at a node; one that does not answer in time is down, and its call is left behind.

    ``late`` is done if the answer comes after all, and nobody waits for it.
    """
    answer: list[T] = []
    gone = threading.Event()
    failure: list[BaseException] = []

    def call() -> None:
        try:
            answer.append(work())
        except BaseException as error:
            failure.append(error)
        if gone.is_set() and late is not None:
            late()

    thread = threading.Thread(target=call, daemon=True, name=f"node {node}")
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        gone.set()
        raise NodeDown(node=node, why=f"no answer for {seconds:g} s")
    if failure:
        if isinstance(failure[0], StoreError):
            raise NodeDown(node=node, why=str(failure[0])) from failure[0]
        raise failure[0]
    return answer[0]

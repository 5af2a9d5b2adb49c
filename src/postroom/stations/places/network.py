"""The nodes of a network and the connections to their stores."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
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
from postroom.stations.forms.catalog import Forms
from postroom.stations.places import indexing
from postroom.stations.places.names import database, mailbox
from postroom.store import absolute, discard, exists, file_of, open_store, passfile, shown
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.nodes import Node
from postroom.store.tables.registry import KIND as PRINCIPAL
from postroom.store.urls import parted, variable, with_password

CONTROL = "control"  # the name of the node that every room is by itself
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NodeShown:
    """A node, and whether it responds."""

    name: str
    url: str  # as it may be shown
    stations: int
    answers: bool
    why: str = ""

    def as_dict(self) -> dict[str, object]:
        shape = {"name": self.name, "url": self.url, "station_count": self.stations, "answers": self.answers}
        return shape if self.answers else {**shape, "why": self.why}


class Network:
    """The control node's store, and those of other nodes on demand."""

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

    def acting(self, store: Store, station: str) -> AbstractContextManager[None]:
        """Act for a station: the journal names it, and the user of a server who works there."""
        user = self.control.user
        known = user is None or user == station or user.startswith(f"{station} (")
        return store.acting(station if known else f"{station} ({user})")

    # --- nodes ---

    def nodes(self) -> list[str]:
        """Every node, the control node first."""
        return [CONTROL, *self.control.read(lambda tx: tx.nodes.all())]

    def ways(self) -> dict[str, str]:
        """Every node with the URL of its store, including a password from the environment."""
        known = self.control.read(lambda tx: tx.nodes.all())
        return {CONTROL: self.url, **{name: self._way(node) for name, node in known.items()}}

    @staticmethod
    def _way(node: Node) -> str:
        if parted(node.url).secrets:
            advice = "postroom node secure moves it to the password file of PostgreSQL"
            raise NodeDown(node=node.name, why=f"an earlier version has stored its password in clear; {advice}")
        return with_password(node.name, node.url)

    def add(self, name: str, url: str) -> None:
        """Add a store as a node. It must be new or empty, because keys are unique in the network."""
        check_node(name, url, self.url)
        node = Node(name, absolute(url), secrets.token_hex(16))
        self.control.read(lambda tx: self._refuse(tx, node))  # before there is a file
        self._enter(node, with_password(name, node.url))

    def _enter(self, node: Node, way: str) -> None:
        """Enter a node in the list and mark its store; if it is refused, a new file is removed."""
        present, store = exists(way), None
        try:
            store = open_store(way, actor="control", clock=self.control.session.clock)
            head, latest = self.control.transact("node", lambda tx: self._list(tx, node))
            try:
                store.transact("node", lambda tx: _join(tx, node, head, latest))
            except Exception:
                self.control.transact("node", lambda tx: tx.nodes.remove(node.name))
                raise
        except Exception:
            unused = not present and (store is None or store.read(_is_unused))
            if store is not None:
                store.close()
            if unused:
                discard(way)
            raise
        store.close()

    def _list(self, tx: Transaction, node: Node) -> tuple[int, int]:
        """Enter a node in the list with its first block of keys; earlier queries do not include it."""
        tx.nodes.lock()
        self._refuse(tx, node)
        tx.nodes.add(node)
        return tx.keys.give_block(), tx.tracking.latest()

    @staticmethod
    def _refuse(tx: Transaction, node: Node) -> None:
        if tx.nodes.membership() is not None:
            why = "this room is a node itself; add it to its control node's room"
            raise NodeUnfit(url=shown(node.url), why=why)
        if node.name in tx.nodes.all():
            raise NodeUnfit(url=shown(node.url), why=f"there is a node {node.name} already")

    def remove(self, name: str, *, force: bool = False) -> None:
        """Remove a node without stations from the network; one that does not respond only with ``force``."""

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
        """Change the URL of a node's store."""
        check_url(name, url)
        self._place(name, absolute(url))

    def _place(self, name: str, where: str) -> None:
        def work(tx: Transaction) -> None:
            mark = self._known(tx, name).mark
            self._checked(name, with_password(name, where), mark).close()
            tx.nodes.set_url(name, where)

        self.control.transact("node", work)
        self._forget(name)

    def secure(self) -> list[str]:
        """Move passwords that an earlier version stored to PostgreSQL's password file; returns the nodes."""
        urls = {name: parted(node.url) for name, node in self.control.read(lambda tx: tx.nodes.all()).items()}
        urls = {name: url for name, url in urls.items() if url.secrets}
        for name, url in urls.items():
            others = sorted(url.secrets.keys() - {"password"})
            if others:
                why = (
                    f"its URL has a {others[0]}, for which a password file has no place; say postroom node move {name}"
                )
                raise NodeUnfit(url=shown(url.url), why=why)
        for name, url in urls.items():
            passfile.add(url)
            self._place(name, url.url)
        if urls:
            self.control.scrub()
        return list(urls)

    def shown(self) -> list[NodeShown]:
        """Every node, and whether it responds."""
        stations = list(self.control.read(lambda tx: tx.nodes.stations()).values())
        nodes = []
        known = self.control.read(lambda tx: tx.nodes.all())
        for name, url in {CONTROL: self.url, **{name: node.url for name, node in known.items()}}.items():
            why = ""
            try:
                self.look(name, lambda tx: tx.now)
            except NodeDown as down:
                why = str(down.facts["why"])
            nodes.append(NodeShown(name, shown(url), stations.count(name), not why, why))
        return nodes

    @staticmethod
    def _known(tx: Transaction, name: str) -> Node:
        known = tx.nodes.all()
        if name not in known:
            raise NodeUnknown(node=name, nearest=nearest(name, [CONTROL, *known]))
        return known[name]

    # --- stores ---

    def store(self, node: str) -> Store:
        """The store of a node; raises if it does not respond, or is another store."""
        if node == CONTROL:
            return self.control
        known = self.control.read(lambda tx: self._known(tx, node))
        present = self._open.get(node)
        way = self._way(known)
        if present is not None and present[0] == way and not present[1].stopped:
            return present[1]
        self._forget(node)
        opened = self._checked(node, way, known.mark)
        kept = self._open.setdefault(node, (way, opened))[1]
        if kept is not opened:  # another thread was first
            opened.close()
        return kept

    def _checked(self, name: str, url: str, mark: str) -> Store:
        try:
            store = open_store(url, actor=self.control.actor, create=False, clock=self.control.session.clock)
        except RoomMissing:
            raise NodeDown(node=name, why=f"there is no store at {shown(url)}") from None
        except StoreError as error:
            raise NodeDown(node=name, why=str(error)) from error
        if store.read(lambda tx: tx.nodes.membership()) != (mark, name):
            store.close()
            raise NodeDown(node=name, why=f"{shown(url)} is not the store that was added as {name}")
        return store

    def _forget(self, node: str) -> None:
        present = self._open.pop(node, None)
        if present is not None:
            present[1].close()

    def ask(self, node: str, seconds: float, work: Callable[[], T]) -> T:
        """Run ``work`` at a node with a time limit; after a timeout the next call uses a new connection."""
        if node == CONTROL:
            return work()

        def drop() -> Callable[[], None]:
            present = self._open.pop(node, None)  # it may have been opened by this very call
            return lambda: None if present is None else present[1].close()

        try:
            return within(seconds, node, work, drop)
        except NodeDown:
            self._open.pop(node, None)
            raise

    def indexed_store(self, node: str) -> Store:
        """A node's store with up-to-date indexes."""
        store = self.store(node)
        version = self.control.read(lambda tx: tx.definitions.version())
        if self._aligned.get(node) != version:
            forms = self.control.read(lambda tx: [edition.form for edition in self.forms.now(tx).values()])
            indexing.align(store, forms)
            self._aligned[node] = version
        return store

    def align(self) -> None:
        """Update the indexes of every node that responds; others follow when they are back."""
        for node in self.nodes():
            with suppress(NodeDown):
                self.indexed_store(node)

    def look(self, node: str, work: Callable[[Transaction], T], seconds: float = NODE_SECONDS) -> T:
        """Read at a node that may not respond."""
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
        """Add a station; its secret is a hashed password, or that of a registered principal."""
        self.store(node)  # a node that does not answer cannot be given a station

        def work(tx: Transaction) -> None:
            tx.nodes.lock()
            if tx.nodes.membership() is not None:
                raise NodeUnfit(
                    url=shown(self.url), why="this room is a node itself; add stations in its control node's room"
                )
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

    def remove_station(self, name: str, check_unused: Callable[[Transaction, str], None]) -> None:
        """Remove a station without messages and mail; ``check_unused`` raises if something else uses it."""
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
            check_unused(tx, name)
            box = tx.queues.named(mailbox(name))
            if box is not None and box.unprocessed:
                raise StationInUse(name=name, why=f"{box.unprocessed} message(s) are in its mailbox; get them first")
            tx.nodes.remove_station(name)

        self.control.transact("station", work)
        if held is not None:
            home.transact("station", lambda tx: tx.image_tables.forget(held.id))

    def with_keys(self, node: str, work: Callable[[], T]) -> T:
        """Do work that needs keys at a node; when its block of keys is used up, it gets another."""
        while True:
            try:
                return work()
            except KeysExhausted as exhausted:
                needed = int(exhausted.facts["count"])
                if node == CONTROL or needed >= KEY_TAIL:
                    raise
                head = self.control.transact("key-block", lambda tx: tx.keys.give_block())
                self.store(node).transact("key-block", partial(_renew, head, needed))


def check_node(name: str, url: str, room: str) -> None:
    """Raise for what cannot be a node of a room, before anything is opened or created."""
    if not name.isidentifier() or name == CONTROL:
        raise ArgumentInvalid(argument="node", why=f"{name!r} cannot be a name: letters, digits and _, not {CONTROL}")
    check_url(name, url)
    if os.path.realpath(absolute(url)) == os.path.realpath(absolute(room)):
        raise NodeUnfit(url=shown(absolute(url)), why="it is this room, which is the control node")


def check_url(name: str, url: str) -> None:
    """Raise for a URL with a secret: it would be stored in the room."""
    if file_of(url) is None and (told := parted(url).secrets):
        where = f"give it in the password file of PostgreSQL (~/.pgpass), or in ${variable(name)}"
        raise NodeUnfit(url=shown(url), why=f"its {min(told)} would be stored; leave it out of the URL, and {where}")


def _renew(head: int, needed: int, tx: Transaction) -> None:
    tx.keys.use_block(head, needed)


def _is_unused(tx: Transaction) -> bool:
    """Whether a store is no node, and has no messages and no network; it may have been a node before."""
    own_keys = tx.keys.used and not tx.keys.lent
    return not (tx.nodes.membership() or own_keys or tx.messages.any() or tx.nodes.all() or tx.nodes.stations())


def _join(tx: Transaction, node: Node, head: int, latest: int) -> None:
    present, url = tx.nodes.membership(), shown(node.url)
    if present is not None:
        raise NodeUnfit(url=url, why=f"it is a node already, named {present[1]}")
    if not _is_unused(tx):
        raise NodeUnfit(url=url, why="it is a room with messages or stations of its own; give a new file or database")
    tx.nodes.join(node.mark, node.name)
    tx.keys.use_block(head)
    tx.tracking.begin_behind(latest)


def within(seconds: float, node: str, work: Callable[[], T], drop: Callable[[], Callable[[], None]] | None = None) -> T:
    """Call a node with a time limit; after a timeout it counts as down, and the call is abandoned.

    ``drop`` is then called to give up what the call uses; the function that it returns runs when the call has ended.
    """
    answer: list[T] = []
    failure: list[BaseException] = []
    dropped: list[Callable[[], None]] = []
    deciding = threading.Lock()  # a call has ended in time, or it is dropped: never neither

    def call() -> None:
        try:
            answer.append(work())
        except BaseException as error:
            failure.append(error)
        with deciding:
            ended.set()
        for end in dropped:
            end()

    ended = threading.Event()
    threading.Thread(target=call, daemon=True, name=f"node {node}").start()
    ended.wait(seconds)
    with deciding:
        is_late = not ended.is_set()
        if is_late and drop is not None:
            dropped.append(drop())
    if is_late:
        raise NodeDown(node=node, why=f"no answer for {seconds:g} s")
    if failure:
        if isinstance(failure[0], StoreError):
            raise NodeDown(node=node, why=str(failure[0])) from failure[0]
        raise failure[0]
    return answer[0]

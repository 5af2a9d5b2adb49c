"""Mail: ship takes a message out of a station's database into a mailbox, get brings it in.

Mailboxes are at the control node. Where the station is on another node, the message is handed over between two stores,
in three commits (``postroom.store.kernel.transfers``); whoever comes by next finishes what a crash has left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from postroom.engine.spheres import Fates, Made, sphere_of
from postroom.errors import MessageElsewhere, NameTaken, NodeDown, StationUnknown, StoreCorrupt, StoreError
from postroom.limits import MAIL_MESSAGES, NODE_SECONDS
from postroom.model.key import key_text
from postroom.model.message import IN_SPHERE, Stored
from postroom.stations.places import indexing as filing
from postroom.stations.places.names import database, mailbox
from postroom.stations.places.network import CONTROL, Network
from postroom.stations.places.postmarks import fetched, sent
from postroom.store.kernel.base import Store
from postroom.store.kernel.messages import State
from postroom.store.kernel.queues import MAILBOX, STATION, Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.kernel.transfers import Parcel
from postroom.store.tables.tracking import MAILBOXES, STATIONS

SHIP, GET = "ship", "get"
PROCEDURE = "procedure "  # so begins the name of one who acts in the journal


class Shipped(NamedTuple):
    """A message that was shipped, and whether it has arrived."""

    key: str
    to: str
    delivered: bool  # it is in the mailbox; else it has left and will be put there

    def as_dict(self) -> dict[str, object]:
        return {"key": self.key, "station": self.to, "delivered": self.delivered}


def ship(network: Network, station: str, node: str, keys: Sequence[int], to: str) -> list[Shipped]:
    """Ship messages of a station to another, all or none of them."""
    network.home(to)
    store = network.filing_store(node)
    recover(network, node)

    def leave(tx: Transaction) -> list[Parcel]:
        tx.tracking.enter(STATIONS)
        queue = queue_of(tx, database(station), STATION)
        found = [own(tx, queue, station, key) for key in dict.fromkeys(keys)]
        return [ship_one(tx, queue, each, station, node, to, sent(each.properties, station)) for each in found]

    with store.acting(station):
        parcels = store.transact("ship", leave)
    delivered = node == CONTROL
    if not delivered:
        try:
            deliver(network, store, parcels)
            delivered = True
        except (NodeDown, StoreError) as error:
            if isinstance(error, StoreError) and error.happened == "unknown":
                raise
    return [Shipped(key_text(parcel.stored.key), to, delivered) for parcel in parcels]


def ship_one(tx: Transaction, queue: Queue, stored: Stored, station: str, node: str, to: str, marks: str) -> Parcel:
    """Take a message out of a station's database, with other marks; it is in the mailbox, or on its way."""
    filing.unfile(tx, queue, [stored])
    tx.dossiers.leave(stored.key)
    if node != CONTROL:
        parcel = tx.transfers.depart(stored, queue, SHIP, station, to, 0, marks)
        seen = tx.tracking.leave(STATIONS, stored, queue.id, parcel.stored.position)
        return tx.transfers.noted(parcel, seen)
    target = queue_of(tx, mailbox(to), MAILBOX)
    tx.tracking.enter(MAILBOXES)
    there = tx.transfers.move(stored, queue, target, SHIP, {"from": station, "to": to}, marks)
    seen = tx.tracking.leave(STATIONS, stored, queue.id, there.position)
    tx.tracking.come(MAILBOXES, stored.key, seen)
    filing.file(tx, target, [stored])
    tx.wake()
    return Parcel(0, SHIP, station, to, seen, 0, there)


def get(network: Network, station: str, node: str, limit: int | None = None) -> list[int]:
    """Bring a station's mail in, oldest first; answers with the keys."""
    network.filing_store(node)  # before anything leaves the mailbox
    recover(network, node)
    got = recover(network, CONTROL, station)
    while limit is None or len(got) < limit:
        size = MAIL_MESSAGES if limit is None else min(limit - len(got), MAIL_MESSAGES)
        with network.control.acting(station):
            parcels, looked = network.control.transact("get", partial(_get_some, station, node, size))
        if node != CONTROL:
            deliver(network, network.control, parcels)
        got += [parcel.stored.key for parcel in parcels]
        if looked < size:
            break
    return got


def _get_some(station: str, node: str, size: int, tx: Transaction) -> tuple[list[Parcel], int]:
    """Take the oldest mail; answers also with how much was looked at, as what is damaged is set aside."""
    tx.tracking.enter(MAILBOXES)
    box = queue_of(tx, mailbox(station), MAILBOX)
    parcels = []
    page = tx.messages.page(box, State.UNPROCESSED, 0, size)
    for stored in page:
        if not stored.sound:
            tx.messages.set_aside(box, stored)  # what it said is not known, so it stays in the files, where none look
            continue
        parcels.append(_get_one(tx, box, stored, station, node))
    return parcels, len(page)


def _get_one(tx: Transaction, box: Queue, stored: Stored, station: str, node: str, marks: str | None = None) -> Parcel:
    filing.unfile(tx, box, [stored])
    if node != CONTROL:
        parcel = tx.transfers.depart(stored, box, GET, mailbox(station), station, 0, marks)
        seen = tx.tracking.leave(MAILBOXES, stored, box.id, parcel.stored.position)
        return tx.transfers.noted(parcel, seen)
    target = queue_of(tx, database(station), STATION)
    tx.tracking.enter(STATIONS)
    there = tx.transfers.move(stored, box, target, GET, {"from": mailbox(station), "to": station})
    seen = tx.tracking.leave(MAILBOXES, stored, box.id, there.position)
    done = tx.tracking.come(STATIONS, stored.key, seen)
    tx.tracking.show(stored, station, seen, done, there.position)
    filing.file(tx, target, [stored])
    return Parcel(0, GET, station, station, seen, 0, there)


def fetch(network: Network, station: str, node: str, wanted: Mapping[int, int], actor: str) -> None:
    """Bring some mail in for someone, by key and position; what is not there any more is left out."""

    def work(tx: Transaction) -> list[Parcel]:
        tx.tracking.enter(MAILBOXES)
        box = queue_of(tx, mailbox(station), MAILBOX)
        found = tx.messages.find_many(list(wanted))
        here = [each for key, each in found.items() if each.queue == box.name and each.position == wanted[key]]
        return [_get_one(tx, box, each, station, node, fetched(each.properties)) for each in here if each.sound]

    with network.control.acting(actor):
        parcels = network.control.transact("get", work)
    if node != CONTROL:
        deliver(network, network.control, parcels)


def take_back(tx: Transaction, source: Queue, stored: Stored) -> None:
    """Let a letter disappear that nobody has fetched, or what was made at a station and nobody has touched."""
    place = MAILBOXES if source.kind == MAILBOX else STATIONS
    tx.tracking.enter(place)
    filing.unfile(tx, source, [stored])
    tx.messages.remove(source, stored, "withdraw")
    tx.dossiers.leave_many([stored.key])
    tx.tracking.leave(place, stored, source.id, tx.journal.newest())


# --- between two stores ---


def deliver(network: Network, source: Store, parcels: Sequence[Parcel]) -> dict[int, int]:
    """The second and third commit for messages that are leaving; answers with the last query at each one's new place.

    Parcels of one call have one store to go to. Doing it again changes nothing. One that is damaged stays where it is.
    """
    parcels = [parcel for parcel in parcels if parcel.stored.sound]
    if not parcels:
        return {}
    verb, to = parcels[0].verb, parcels[0].target
    node = CONTROL if verb == SHIP else network.home(to)
    target = network.filing_store(node)
    whose = parcels[0].source if verb == SHIP else to
    actors = source.read(lambda tx: {each.stored.key: tx.journal.actor_of(each.stored.position) for each in parcels})

    def arrive() -> dict[int, int]:
        with target.acting(whose):
            return _at(node, lambda: target.transact("arrive", lambda tx: _arrive(tx, parcels, actors)))

    done = network.ask(node, NODE_SECONDS, arrive)
    with source.acting(whose):
        source.transact("conclude", lambda tx: _conclude(tx, parcels, done, actors))
    return done


#: By message, whoever has sent it on its way: a station, or a procedure there.
_Actors = Mapping[int, str | None]


def _arrive(tx: Transaction, parcels: Sequence[Parcel], actors: _Actors) -> dict[int, int]:
    found: dict[int, int] = {}
    whose = tx.journal.actor
    made = _made_afar(tx, parcels, actors)
    fates = Fates(tx, made.values())  # spheres are locked before queues
    for parcel in parcels:
        tx.journal.actor = actors[parcel.stored.key] or whose
        ship = parcel.verb == SHIP
        key = parcel.stored.key
        done = tx.transfers.arrived(parcel)
        if done is None:
            place = MAILBOXES if ship else STATIONS
            name, kind = (mailbox, MAILBOX) if ship else (database, STATION)
            done = tx.tracking.come(place, key, parcel.seen)
            stale = tx.transfers.still_leaving(key)
            if stale is not None:
                _let_go(tx, stale, parcel.came)
            queue = queue_of(tx, name(parcel.target), kind)
            filing.file(tx, queue, [tx.transfers.arrive(parcel, queue, done)])
            if key in made:
                fates.bind([Made(made[key], key, queue, tx.journal.actor)], take_back)
            tx.wake()
        found[key] = done
    return found


def _made_afar(tx: Transaction, parcels: Sequence[Parcel], actors: _Actors) -> dict[int, str]:
    """What procedures have made at other nodes of messages of a sphere, and shipped, with the sphere of each."""
    found: dict[int, str] = {}
    for parcel in parcels:
        stored = parcel.stored
        by_procedure = (actors[stored.key] or "").startswith(PROCEDURE)
        if IN_SPHERE in stored.properties and parcel.verb == SHIP and parcel.hop == 1 and by_procedure:
            sphere = sphere_of(stored)
            if sphere is not None and tx.spheres.sent(stored.key) is None:
                found[stored.key] = sphere
    return found


def _conclude(tx: Transaction, parcels: Sequence[Parcel], done: dict[int, int], actors: _Actors) -> None:
    whose = tx.journal.actor
    for parcel in parcels:
        tx.journal.actor = actors[parcel.stored.key] or whose
        _let_go(tx, parcel, done[parcel.stored.key])


def _let_go(tx: Transaction, parcel: Parcel, done: int) -> None:
    """A message is where it was to go, and ``done`` was the last query there."""
    if parcel.verb == GET:
        tx.tracking.enter(MAILBOXES)
    seq = tx.transfers.conclude(parcel)
    if seq is not None and parcel.verb == GET:
        tx.tracking.show(parcel.stored, parcel.target, parcel.seen, done, seq)


def recover(network: Network, node: str, station: str | None = None) -> list[int]:
    """Finish what a crash has left on its way out of a node, to one station or any; answers with the keys.

    What cannot go now stays where it is.
    """
    store = network.store(node)
    parcels = store.read(lambda tx: tx.transfers.pending())
    finished: list[int] = []
    for some in by_target([parcel for parcel in parcels if station in (None, parcel.target)]):
        try:
            finished += deliver(network, store, some)
        except (NodeDown, StationUnknown):  # its messages wait for it
            continue
    return finished


def by_target(parcels: Sequence[Parcel]) -> list[list[Parcel]]:
    """Parcels that have one way and one sender, in their order."""
    found: dict[tuple[str, str, str], list[Parcel]] = {}
    for parcel in parcels:
        found.setdefault((parcel.verb, parcel.source, parcel.target), []).append(parcel)
    return list(found.values())


def _at(node: str, work: Callable[[], dict[int, int]]) -> dict[int, int]:
    try:
        return work()
    except StoreError as error:
        if error.happened == "unknown" or isinstance(error, StoreCorrupt):
            raise
        raise NodeDown(node=node, why=str(error)) from error


# --- what is whose ---


def queue_of(tx: Transaction, name: str, kind: str) -> Queue:
    """A station's queue in this store, made when it is first needed."""
    found = tx.queues.made(name, kind)
    if found.kind != kind:
        raise NameTaken(name=name, owner=f"a queue of kind {found.kind}")
    return found


def own(tx: Transaction, queue: Queue, station: str, key: int) -> Stored:
    """A message of a station's own database; every other one is out of its reach."""
    stored = tx.messages.find(key)
    if stored is None or stored.queue != queue.name:
        raise MessageElsewhere(
            key=key_text(key), station=station, where="find it with: postroom locate " + key_text(key)
        )
    if not stored.sound:
        raise StoreCorrupt(why=f"message {key_text(key)} does not match its hash")
    return stored

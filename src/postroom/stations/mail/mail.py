"""Mail: ``ship`` moves a message from a station's database into a mailbox, ``get`` from there into the database.

Mailboxes are at the control node. For a station of another node, the message goes from one store to another in three
commits (``postroom.store.kernel.transfers``). After a crash, the next call finishes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from postroom.engine.spheres import Fates, Made, sphere_of
from postroom.errors import MessageElsewhere, NodeDown, StationUnknown, StoreCorrupt, StoreError
from postroom.limits import MAIL_MESSAGES, NODE_SECONDS
from postroom.model.key import key_text
from postroom.model.message import IN_SPHERE, Stored
from postroom.stations.places import desk
from postroom.stations.places.desk import GET, SHIP
from postroom.stations.places.names import is_mailbox, station_of
from postroom.stations.places.network import CONTROL, Network
from postroom.stations.places.postmarks import fetched, sent
from postroom.store.kernel.base import Store
from postroom.store.kernel.message_rows import State
from postroom.store.kernel.queues import Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.kernel.transfers import Parcel

PROCEDURE = "procedure "  # so begins the name of one who acts in the journal


class Shipped(NamedTuple):
    """A shipped message, and whether it has arrived."""

    key: str
    to: str
    delivered: bool  # it is in the mailbox; else it has left and will be put there

    def as_dict(self) -> dict[str, object]:
        return {"key": self.key, "station": self.to, "delivered": self.delivered}


def ship(network: Network, station: str, node: str, keys: Sequence[int], to: str) -> list[Shipped]:
    """Ship messages of a station to another, all or none."""
    network.home(to)
    store = network.indexed_store(node)
    recover(network, node)

    def leave(tx: Transaction) -> list[Parcel]:
        queue = desk.database_of(tx, station)
        messages = [own(tx, queue, key, f"the database of {station}") for key in dict.fromkeys(keys)]
        return [ship_one(tx, queue, stored, station, node, to, sent(stored.properties, station)) for stored in messages]

    with network.acting(store, station):
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


def ship_one(
    tx: Transaction, queue: Queue, stored: Stored, station: str, node: str, to: str, properties: str
) -> Parcel:
    """Ship a message out of a station's database; then it is in the mailbox, or in transit."""
    if node != CONTROL:
        return desk.depart(tx, stored, queue, to, properties)
    moved = desk.move(tx, stored, queue, desk.mailbox_of(tx, to), properties)
    tx.wake()
    return Parcel(0, SHIP, station, to, 0, 0, moved)


def get(network: Network, station: str, node: str, limit: int | None = None) -> list[int]:
    """Move a station's mail into its database, oldest first; returns the keys."""
    network.indexed_store(node)  # before anything leaves the mailbox
    recover(network, node)
    got = recover(network, CONTROL, station)
    while limit is None or len(got) < limit:
        size = MAIL_MESSAGES if limit is None else min(limit - len(got), MAIL_MESSAGES)
        with network.acting(network.control, station):
            parcels, looked = network.control.transact("get", partial(_get_some, station, node, size))
        if node != CONTROL:
            deliver(network, network.control, parcels)
        got += [parcel.stored.key for parcel in parcels]
        if looked < size:
            break
    return got


def get_these(network: Network, station: str, node: str, keys: Sequence[int]) -> list[int]:
    """Move mail with these keys, all or none."""
    network.indexed_store(node)
    recover(network, node)

    def work(tx: Transaction) -> list[Parcel]:
        box = desk.mailbox_of(tx, station)
        mail = [own(tx, box, key, f"the mailbox of {station}") for key in dict.fromkeys(keys)]
        return [_get_one(tx, box, stored, station, node) for stored in mail]

    with network.acting(network.control, station):
        parcels = network.control.transact("get", work)
    if node != CONTROL:
        deliver(network, network.control, parcels)
    return [parcel.stored.key for parcel in parcels]


def take_back(network: Network, station: str, node: str, keys: Sequence[int]) -> list[int]:
    """Bring back what a station has shipped and nobody has got, all or none; returns the keys."""
    network.indexed_store(node)  # before anything leaves a mailbox
    recover(network, node)  # what has left and not arrived is in its mailbox then
    wanted = list(dict.fromkeys(keys))

    def work(tx: Transaction) -> list[Parcel]:
        if node == CONTROL:
            desk.database_of(tx, station)  # locked before the mailboxes, as when it was shipped
        places = {stored.queue for stored in tx.messages.find_many(wanted).values()}
        boxes = {name: desk.mailbox_of(tx, station_of(name)) for name in sorted(filter(is_mailbox, places))}
        mail = [_shipped_by(tx, boxes, station, key) for key in wanted]
        return [_get_one(tx, boxes[stored.queue], stored, station, node) for stored in mail]

    with network.acting(network.control, station):
        parcels = network.control.transact("get", work)
    if node != CONTROL:
        deliver(network, network.control, parcels)
    return [parcel.stored.key for parcel in parcels]


def _shipped_by(tx: Transaction, boxes: Mapping[str, Queue], station: str, key: int) -> Stored:
    """A message that is in a mailbox because a station, or a procedure there, has shipped it.

    What a rule or a counter has put there in the station's name was never the station's.
    """
    stored, place = tx.messages.find(key), f"a mailbox to which {station} has shipped it"
    how = None if stored is None or stored.queue not in boxes else tx.journal.last(key)
    if stored is None or how is None or how.verb != SHIP or (how.detail or {}).get("from") != station:
        raise MessageElsewhere(key=key_text(key), place=place)
    return own(tx, boxes[stored.queue], key, place)


def _get_some(station: str, node: str, size: int, tx: Transaction) -> tuple[list[Parcel], int]:
    """Take the oldest mail; also returns how much was examined, because damaged mail is set aside."""
    box = desk.mailbox_of(tx, station)
    parcels = []
    page = tx.messages.page(box, State.UNPROCESSED, 0, size)
    for stored in page:
        if not stored.sound:
            tx.messages.set_aside(box, stored)  # what it said is not known, so it stays in the files, where none look
            continue
        parcels.append(_get_one(tx, box, stored, station, node))
    return parcels, len(page)


def _get_one(
    tx: Transaction, box: Queue, stored: Stored, station: str, node: str, properties: str | None = None
) -> Parcel:
    if node != CONTROL:
        return desk.depart(tx, stored, box, station, properties)
    moved = desk.move(tx, stored, box, desk.database_of(tx, station), properties)
    return Parcel(0, GET, box.name, station, 0, 0, moved)


def fetch(network: Network, station: str, node: str, wanted: Mapping[int, int], actor: str) -> None:
    """Move mail for someone, by key and position; what is no longer there is skipped."""

    def work(tx: Transaction) -> list[Parcel]:
        box = desk.mailbox_of(tx, station)
        mail = tx.messages.find_many(list(wanted)).values()
        here = [stored for stored in mail if stored.queue == box.name and stored.position == wanted[stored.key]]
        return [_get_one(tx, box, stored, station, node, fetched(stored.properties)) for stored in here if stored.sound]

    with network.control.acting(actor):
        parcels = network.control.transact("get", work)
    if node != CONTROL:
        deliver(network, network.control, parcels)


# --- between two stores ---


def deliver(network: Network, source: Store, parcels: Sequence[Parcel]) -> dict[int, int]:
    """The second and third commit for messages in transit; returns the last query at each one's new place.

    All parcels of a call have the same target store. Idempotent. A damaged message stays where it is.
    """
    parcels = [parcel for parcel in parcels if parcel.stored.sound]
    if not parcels:
        return {}
    verb, to = parcels[0].verb, parcels[0].target
    node = CONTROL if verb == SHIP else network.home(to)
    target = network.indexed_store(node)
    whose = parcels[0].source if verb == SHIP else to
    actors = source.read(lambda tx: {p.stored.key: tx.journal.actor_of(p.stored.position) for p in parcels})

    def arrive() -> dict[int, int]:
        try:
            with target.acting(whose):
                return target.transact("arrive", lambda tx: _arrive(tx, parcels, actors))
        except StoreError as error:
            if error.happened == "unknown" or isinstance(error, StoreCorrupt):
                raise
            raise NodeDown(node=node, why=str(error)) from error

    done = network.ask(node, NODE_SECONDS, arrive)
    with source.acting(whose):
        source.transact("conclude", lambda tx: _conclude(tx, parcels, done, actors))
    return done


#: By message, whoever has sent it on its way: a station, or a procedure there.
_Actors = Mapping[int, str | None]


def _arrive(tx: Transaction, parcels: Sequence[Parcel], actors: _Actors) -> dict[int, int]:
    last_queries: dict[int, int] = {}
    whose = tx.journal.actor
    made = _made_afar(tx, parcels, actors)
    fates = Fates(tx, made.values())  # spheres are locked before queues
    for parcel in parcels:
        tx.journal.actor = actors[parcel.stored.key] or whose
        key = parcel.stored.key
        last_query = tx.transfers.arrived(parcel)
        if last_query is None:
            queue = (desk.mailbox_of if parcel.verb == SHIP else desk.database_of)(tx, parcel.target)
            last_query = desk.arrive(tx, parcel, queue)
            if key in made:
                fates.bind([Made(made[key], key, queue, tx.journal.actor)], desk.remove)
        last_queries[key] = last_query
    return last_queries


def _made_afar(tx: Transaction, parcels: Sequence[Parcel], actors: _Actors) -> dict[int, str]:
    """The messages of a sphere that procedures made and shipped at other nodes, with their spheres."""
    spheres: dict[int, str] = {}
    for parcel in parcels:
        stored = parcel.stored
        by_procedure = (actors[stored.key] or "").startswith(PROCEDURE)
        if IN_SPHERE in stored.properties and parcel.verb == SHIP and parcel.hop == 1 and by_procedure:
            sphere = sphere_of(stored)
            if sphere is not None and tx.spheres.sent(stored.key) is None:
                spheres[stored.key] = sphere
    return spheres


def _conclude(tx: Transaction, parcels: Sequence[Parcel], done: dict[int, int], actors: _Actors) -> None:
    whose = tx.journal.actor
    for parcel in parcels:
        tx.journal.actor = actors[parcel.stored.key] or whose
        desk.conclude(tx, parcel, done[parcel.stored.key])


def recover(network: Network, node: str, station: str | None = None) -> list[int]:
    """Finish transfers out of a node that a crash interrupted, to one station or any; returns the keys.

    What cannot be delivered now stays.
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
    """Parcels grouped by target and sender, in order."""
    groups: dict[tuple[str, str, str], list[Parcel]] = {}
    for parcel in parcels:
        groups.setdefault((parcel.verb, parcel.source, parcel.target), []).append(parcel)
    return list(groups.values())


# --- what is whose ---


def own(tx: Transaction, queue: Queue, key: int, place: str) -> Stored:
    """A message in a station's own database or mailbox, which ``place`` describes; raises for any other."""
    stored = tx.messages.find(key)
    if stored is None or stored.queue != queue.name:
        raise MessageElsewhere(key=key_text(key), place=place)
    if not stored.sound:
        raise StoreCorrupt(why=f"message {key_text(key)} does not match its hash")
    return stored

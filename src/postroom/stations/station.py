"""A station: a database of messages, a mailbox, dossiers, and queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from postroom.errors import ArgumentInvalid, DossierUnknown, MessageElsewhere, TableUnknown
from postroom.limits import BATCH_MESSAGES_MAX, COPIES_MAX, DOSSIER_CHARS_MAX, KEY_TAIL, QUERY_SECONDS, SQL_SECONDS
from postroom.model.arguments import check_methods
from postroom.model.body import check_text
from postroom.model.definitions import nearest
from postroom.model.key import key_number, key_text
from postroom.model.message import Stored
from postroom.model.moment import to_datetime
from postroom.model.place import place_of
from postroom.model.progress import OnProgress
from postroom.stations.forms.catalog import Edition, Forms
from postroom.stations.forms.filling import Given, asks_functions, copied, created, modified
from postroom.stations.mail import mail
from postroom.stations.mail.mail import Shipped, own
from postroom.stations.places import desk
from postroom.stations.places.names import database, is_dossier, mailbox
from postroom.stations.places.network import CONTROL, Network
from postroom.stations.places.postmarks import Postmarks, postmarks, touched
from postroom.stations.places.postmarks import properties as properties_of
from postroom.stations.queries.conditions import sketch
from postroom.stations.queries.images import Answer, Image
from postroom.stations.queries.planning import planned
from postroom.stations.queries.reading import Plan, find, form_version, kept
from postroom.store.kernel.base import Store
from postroom.store.kernel.queues import STATION, Queue
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.field_index import Span, key_value
from postroom.store.tables.images import ImageTable, KeptImage
from postroom.store.tables.scans import END

if TYPE_CHECKING:
    from postroom.stations.queries.query import Question, Spark
    from postroom.stations.queries.sql import SqlResult

T = TypeVar("T")
_AS_OF = "as-of="


@dataclass(frozen=True, slots=True)
class WaitingMail:
    """Mail waiting in the mailbox."""

    key: str
    type: str


@dataclass(frozen=True, slots=True)
class InventoryItem:
    """A message at a station or in its mailbox: since when, and who shipped it last."""

    image: Image
    sender: str | None
    since: datetime


@check_methods
class Station:
    """Created by ``room.station``. It can access the messages of its own database, and images of all others."""

    name: str
    node: str  # whose store has its messages

    def __init__(self, network: Network, name: str, spark: Spark, owner: str) -> None:
        self.name = name
        self.node = network.home(name)
        self._network = network
        self._spark = spark
        self._owner = owner

    def __repr__(self) -> str:
        return f"<station {self.name} on {self.node}>"

    # --- messages ---

    def create(self, type: str, fields: Given | None = None, **more: Any) -> str:
        """Create a message by filling in a form; returns its key. Use ``fields`` for names with blanks in them."""
        return self.create_many(type, [{**(fields or {}), **more}])[0]

    def create_many(self, type: str, several: Sequence[Given]) -> list[str]:
        """Create many messages in one commit, all or none."""
        most = BATCH_MESSAGES_MAX if self.node == CONTROL else KEY_TAIL - 2  # a node has its keys in blocks
        if len(several) > most:
            raise ArgumentInvalid(argument="messages", why=f"at most {most} at once")
        edition = self._edition(type)
        if asks_functions(edition.form):
            return self._create_apart(edition, several)

        return self._with_keys(
            lambda tx: self._put(tx, edition, [partial(self._created, edition, given, tx.now) for given in several])
        )

    def _create_apart(self, edition: Edition, several: Sequence[Given]) -> list[str]:
        """Fill in forms before the transaction: others may write while a function runs."""
        store = self._store()
        take = partial(store.transact, "claim", lambda tx: list(tx.keys.take(len(several))))
        keys: list[int] = self._network.with_keys(self.node, take) if several else []
        now = store.session.clock()
        made = [self._created(edition, given, now, key) for given, key in zip(several, keys, strict=True)]

        return self._with_keys(lambda tx: self._put_made(tx, edition, keys, made))

    def _created(self, edition: Edition, given: Given, now: int, key: int) -> str:
        return created(edition, given, key, self.name, now)

    def copy(self, key: str, count: int = 1) -> list[str]:
        """Make copies of a message, each with a key of its own."""
        if not 0 < count <= COPIES_MAX:
            raise ArgumentInvalid(argument="copies", why=f"1 to {COPIES_MAX}")

        def work(tx: Transaction) -> list[str]:
            stored = self._own(tx, key)
            edition = self._made_with(stored, tx)
            return self._put(tx, edition, [lambda new: copied(edition.form, stored.body, new)] * count, stored.key)

        return self._with_keys(work)

    def _put(
        self, tx: Transaction, edition: Edition, bodies: Sequence[Callable[[int], str]], cause: int | None = None
    ) -> list[str]:
        keys = tx.keys.take(len(bodies)) if bodies else []
        return self._put_made(tx, edition, keys, [body(key) for key, body in zip(keys, bodies, strict=True)], cause)

    def _put_made(
        self, tx: Transaction, edition: Edition, keys: Sequence[int], bodies: Sequence[str], cause: int | None = None
    ) -> list[str]:
        properties = properties_of(Postmarks(edition.version))
        for body in bodies:
            check_text(body)
        made = [(key, edition.form.name, properties, body) for key, body in zip(keys, bodies, strict=True)]
        desk.put(tx, desk.database_of(tx, self.name), made, cause)
        return [key_text(key) for key in keys]

    def _with_keys(self, work: Callable[[Transaction], list[str]]) -> list[str]:
        return self._network.with_keys(self.node, lambda: self._transact("create", work))

    def modify(self, key: str, fields: Given | None = None, **more: Any) -> Image:
        """Change fields of a message; the old values are kept as an earlier edition."""
        given = {**(fields or {}), **more}
        store = self._store()
        while True:
            # What functions say is worked out before anything is locked; if someone writes meanwhile, once more.
            before = store.read(lambda tx: self._own(tx, key))
            form = self._made_with(before).form
            ready = modified(form, before.body, given) if asks_functions(form) else None
            with self._network.acting(store, self.name):
                after = store.transact("modify", partial(self._write, key, given, before, ready))
            if after is not None:
                return self._image(after)

    def _write(
        self, key: str, given: Given, before: Stored, ready: tuple[str, list[str]] | None, tx: Transaction
    ) -> Stored | None:
        """Write a message; None if it has changed since the new content was computed."""
        queue, stored = desk.database_of(tx, self.name), self._own(tx, key)
        if ready is not None and stored.position != before.position:
            return None
        body, changed = ready or modified(self._made_with(stored, tx).form, stored.body, given)
        check_text(body)
        if not changed:
            return stored
        return desk.edit(tx, queue, stored, body, touched(stored.properties), changed)

    def show(self, key: str) -> Image:
        """A message of this station."""
        return self._image(self._store().read(lambda tx: self._own(tx, key)))

    def messages(self, type: str | None = None, *, after: str | None = None, limit: int | None = None) -> Answer:
        """The messages of this station in the order of their keys, of one type or all."""
        if limit is not None and limit < 1:
            raise ArgumentInvalid(argument="limit", why="at least 1")
        if type is not None:
            self._edition(type)
        start = 0 if after is None else key_number(after) + 1

        def work(tx: Transaction) -> list[Stored]:
            messages = _held(tx, database(self.name), type, start, limit)
            return sorted(messages, key=lambda stored: stored.key)[:limit]

        return self._answer(self._store().read(work))

    def next(self, after: str | None = None, type: str | None = None) -> Image | None:
        """The message after a key, or the first."""
        while True:
            answer = self.messages(type, after=after, limit=1)
            if not answer.damaged:
                return answer[0] if answer else None
            after = answer.damaged[0]

    # --- mail ---

    def ship(self, keys: str | Sequence[str], to: str) -> list[Shipped]:
        """Move messages from this station's database to another's mailbox, all or none."""
        numbers = [key_number(key) for key in ([keys] if isinstance(keys, str) else keys)]
        return mail.ship(self._network, self.name, self.node, numbers, to)

    def get(self, limit: int | None = None, *, keys: Sequence[str] | None = None) -> list[str]:
        """Move waiting mail to this station, oldest first, or those of some keys; returns its keys."""
        if keys is not None:
            numbers = [key_number(key) for key in keys]
            return [key_text(key) for key in mail.get_these(self._network, self.name, self.node, numbers)]
        if limit is not None and limit < 1:
            raise ArgumentInvalid(argument="limit", why="at least 1")
        return [key_text(key) for key in mail.get(self._network, self.name, self.node, limit)]

    def take_back(self, keys: str | Sequence[str]) -> list[str]:
        """Move what this station has shipped and nobody has got back to it, all or none; returns the keys."""
        numbers = [key_number(key) for key in ([keys] if isinstance(keys, str) else keys)]
        return [key_text(key) for key in mail.take_back(self._network, self.name, self.node, numbers)]

    def mail(self) -> list[WaitingMail]:
        """The mail in the mailbox."""

        def work(tx: Transaction) -> list[WaitingMail]:
            messages = sorted(_held(tx, mailbox(self.name)), key=lambda stored: stored.position)
            return [WaitingMail(key_text(stored.key), stored.type or "") for stored in messages]

        return self._network.control.read(work)

    def inventory(
        self, *, mail: bool = False, type: str | None = None, limit: int | None = None
    ) -> list[InventoryItem]:
        """The messages of this station, or its mail, newest first."""
        if limit is not None and limit < 1:
            raise ArgumentInvalid(argument="limit", why="at least 1")
        queue = mailbox(self.name) if mail else database(self.name)

        def work(tx: Transaction) -> list[tuple[Stored, int | None]]:
            messages = sorted(_held(tx, queue, type), key=lambda stored: -stored.position)[:limit]
            return [(stored, tx.journal.time_of(stored.position)) for stored in messages if stored.sound]

        held = (self._network.control if mail else self._store()).read(work)
        images = self._answer([stored for stored, _ in held])
        return [
            InventoryItem(image, postmarks(stored.properties).sender, to_datetime(stored.created if at is None else at))
            for image, (stored, at) in zip(images, held, strict=True)
        ]

    # --- dossiers ---

    def add_to_dossier(self, dossier: str, *keys: str) -> int:
        """Put messages of this station into a dossier; returns how many were not in it."""
        if not is_dossier(dossier):
            raise ArgumentInvalid(argument="dossier", why=f"1 to {DOSSIER_CHARS_MAX} printable characters")

        def work(tx: Transaction) -> int:
            queue = self._queue(tx)
            return sum(tx.dossiers.add(queue, dossier, self._own(tx, key).key) for key in keys)

        return self._transact("dossier", work)

    def remove_from_dossier(self, dossier: str, *keys: str) -> int:
        """Remove messages from a dossier; returns how many were in it."""

        def work(tx: Transaction) -> int:
            queue = self._queue(tx)
            self._dossier(tx, queue, dossier)
            return sum(tx.dossiers.remove(queue, dossier, key_number(key)) for key in keys)

        return self._transact("dossier", work)

    def dossiers(self) -> dict[str, int]:
        """The dossiers of this station, with the number of messages in each."""
        return self._read(lambda tx, queue: tx.dossiers.counts(queue), {})

    def dossier(self, name: str) -> Answer:
        """The messages of a dossier, in the order in which they were put there."""

        def work(tx: Transaction) -> list[Stored]:
            queue = tx.queues.named_to_read(database(self.name))
            self._dossier(tx, queue, name)
            messages = [tx.messages.find(key) for key in tx.dossiers.messages(queue, name)] if queue else []
            return [stored for stored in messages if stored is not None]

        return self._answer(self._store().read(work))

    def _dossier(self, tx: Transaction, queue: Queue | None, name: str) -> None:
        known = {} if queue is None else tx.dossiers.counts(queue)
        if name not in known:
            raise DossierUnknown(station=self.name, name=name, nearest=nearest(name, known))

    # --- queries ---

    def query(
        self,
        type: str,
        fields: Mapping[str, str] | None = None,
        *,
        scope: str = "local",
        into: str | None = None,
        timeout: float = QUERY_SECONDS,
        progress: OnProgress | None = None,
        **more: str,
    ) -> Answer:
        """Find messages by example: conditions by field. ``scope`` is local, group, global, or stations=A,B.

        With ``into`` the images are saved as a temporary table of this station, for ``sql``. The scope as-of=17
        searches the saved result of query 17, and as-of=NAME a saved table.
        """
        if into is not None:
            _check_table(into)
        edition = self._edition(type)
        plan = self._planned(edition, {**(fields or {}), **more})
        if scope == "local":
            answer = self._answer(self._found(plan))
        elif scope.startswith(_AS_OF):
            answer = self._found_then(plan, scope.removeprefix(_AS_OF))
        else:
            seq, images, damaged = self._question(plan, scope, timeout, progress).images()
            answer = self._images(seq, images, damaged)
        if into is not None:
            self._keep(into, edition, answer)
        return answer

    def count(
        self,
        type: str,
        fields: Mapping[str, str] | None = None,
        *,
        scope: str = "local",
        timeout: float = QUERY_SECONDS,
        progress: OnProgress | None = None,
        **more: str,
    ) -> int:
        """How many messages a query finds."""
        return self.numbered_count(type, fields, scope=scope, timeout=timeout, progress=progress, **more)[1]

    def numbered_count(
        self,
        type: str,
        fields: Mapping[str, str] | None = None,
        *,
        scope: str = "local",
        timeout: float = QUERY_SECONDS,
        progress: OnProgress | None = None,
        **more: str,
    ) -> tuple[int | None, int]:
        """The number of the query, and the count; a local query has no number."""
        plan = self._planned(self._edition(type), {**(fields or {}), **more})
        if scope == "local":
            return None, sum(stored.sound for stored in self._found(plan))
        if scope.startswith(_AS_OF):
            then = self._found_then(plan, scope.removeprefix(_AS_OF))
            return then.seq, len(then)
        return self._question(plan, scope, timeout, progress).count()

    def _question(self, plan: Plan, scope: str, timeout: float, progress: OnProgress | None) -> Question:
        from postroom.stations.queries.query import Question  # imports Spark

        return Question(self._network, self.node, plan, scope, self._spark, self._owner, timeout, progress)

    def _planned(self, edition: Edition, given: Mapping[str, str]) -> Plan:
        return self._network.control.read(lambda tx: planned(tx, edition, sketch(edition.form, given)))

    def _found(self, plan: Plan) -> list[Stored]:
        found: list[Stored] = self._read(lambda tx, queue: list(find(tx, plan, [queue])), [])
        return sorted(found, key=lambda stored: stored.key)

    def _found_then(self, plan: Plan, number: str) -> Answer:
        """The matches in the saved result of an earlier query."""
        tables = [table for table in self.tables() if table.type == plan.type]
        numbers = {str(table.query): table.name for table in tables if table.query}
        kept = {table.name: table.name for table in tables} | numbers
        if number not in kept:
            known = f"saved are {', '.join([*sorted(numbers, key=int), *sorted(set(kept) - set(numbers))])}"
            known = known if kept else "save one with into"
            why = f"{self.name} has no table of what query {number[:20]!r} found of {plan.type}; {known}"
            raise ArgumentInvalid(argument="scope", why=why)
        then = self.table(kept[number])
        fitting = [image for image in then.kept if plan.matches(image.body)]
        return self._images(then.seq, fitting, (), is_part=True)

    def _answer(self, messages: Sequence[Stored]) -> Answer:
        """Images of this station's messages; damaged ones are listed and left out."""
        sound = [stored for stored in messages if stored.sound]
        bad = [key_text(stored.key) for stored in messages if not stored.sound]
        images = [kept(stored) for stored in sound]
        return Answer(None, images, self._editions(images), bad)

    def _images(
        self, seq: int | None, images: Sequence[KeptImage], damaged: Sequence[str], *, is_part: bool = False
    ) -> Answer:
        """Images by key, with their forms."""
        return Answer(seq, sorted(images, key=itemgetter(0)), self._editions(images), damaged, is_part=is_part)

    def _editions(self, images: Sequence[KeptImage]) -> dict[tuple[str, int], Edition]:
        versions = {(image.type, image.form) for image in images}
        return self._network.control.read(lambda tx: {version: self.forms.at(tx, *version) for version in versions})

    def others(self) -> dict[str, str]:
        """The stations that a message can be shipped to, with their nodes."""
        return {name: node for name, node in self._network.stations().items() if name != self.name}

    # --- temporary tables ---

    def save_table(self, name: str, type: str, answer: Answer) -> None:
        """Save the result of a query of a type as a temporary table, as ``query`` does with ``into``."""
        _check_table(name)
        self._keep(name, self._edition(type), answer)

    def _keep(self, name: str, edition: Edition, answer: Answer) -> None:
        """Save a table. It gets the query's number only if it has the whole result."""
        number = 0 if answer.is_part else answer.seq or 0

        def work(tx: Transaction) -> None:
            queue = self._queue(tx)
            tx.image_tables.keep(queue.id, name, edition.form.name, edition.version, number, answer.kept)

        self._store().transact("image-table", work)

    def tables(self) -> list[ImageTable]:
        """The temporary tables of this station."""
        return self._read(lambda tx, queue: tx.image_tables.all(queue.id), [])

    def table(self, name: str) -> Answer:
        """The images of a temporary table."""
        table = self._table(name)
        images: list[KeptImage] = self._read(
            lambda tx, queue: list(tx.image_tables.images(queue.id, table.type, name)), []
        )
        return self._images(table.query or None, images, ())

    def drop_table(self, name: str) -> None:
        """Drop a temporary table."""
        self._table(name)
        self._store().transact("image-table", lambda tx: tx.image_tables.drop(self._queue(tx).id, name))

    def sql(self, statement: str, *, timeout: float = SQL_SECONDS, progress: OnProgress | None = None) -> SqlResult:
        """Query the temporary tables of this station in Spark SQL, in a separate process on this machine, with a time
        limit."""
        from postroom.stations.queries.sql import ask  # it needs Spark's types

        editions = {table.name: self._edition_at(table.type, table.form) for table in self.tables()}
        return ask(statement, editions, lambda name: self.table(name).kept, timeout, progress)

    def _table(self, name: str) -> ImageTable:
        known = {table.name: table for table in self.tables()}
        if name not in known:
            raise TableUnknown(station=self.name, name=name, nearest=nearest(name, known))
        return known[name]

    # --- where things are ---

    @property
    def forms(self) -> Forms:
        """The forms of the room."""
        return self._network.forms

    def _store(self) -> Store:
        return self._network.indexed_store(self.node)

    def _read(self, work: Callable[[Transaction, Queue], T], nothing: T) -> T:
        """Read this station's queue; ``nothing`` is returned if it does not exist yet."""

        def look(tx: Transaction) -> T:
            queue = tx.queues.named_to_read(database(self.name))
            return nothing if queue is None else work(tx, queue)

        return self._store().read(look)

    def _transact(self, label: str, work: Callable[[Transaction], T]) -> T:
        store = self._store()
        with self._network.acting(store, self.name):
            return store.transact(label, work)

    def _queue(self, tx: Transaction) -> Queue:
        return desk.queue_of(tx, database(self.name), STATION)

    def _own(self, tx: Transaction, key: str) -> Stored:
        queue = tx.queues.named_to_read(database(self.name))
        if queue is None:
            raise MessageElsewhere(key=key, place=f"the database of {self.name}")
        return own(tx, queue, key_number(key), f"the database of {self.name}")

    def _edition(self, type: str) -> Edition:
        return self._network.control.read(lambda tx: self.forms.named(tx, type))

    def _edition_at(self, type: str, version: int) -> Edition:
        return self._network.control.read(lambda tx: self.forms.at(tx, type, version))

    def _made_with(self, stored: Stored, tx: Transaction | None = None) -> Edition:
        """The form of a message; inside a transaction at this station's node, pass that."""
        type, version = stored.type or "", form_version(stored.properties)
        if tx is not None and self.node == CONTROL:
            return self.forms.at(tx, type, version)
        return self._edition_at(type, version)

    def _image(self, stored: Stored) -> Image:
        return Image(key_text(stored.key), place_of(stored.queue), self._made_with(stored).form, stored.body)


def _check_table(name: str) -> None:
    if not name.isidentifier():
        raise ArgumentInvalid(argument="into", why=f"{name!r} is not a name: letters, digits and _")


def _held(
    tx: Transaction, name: str, type: str | None = None, start: int = 0, limit: int | None = None
) -> list[Stored]:
    """The first messages of each type in a queue, by key."""
    queue = tx.queues.named_to_read(name)
    if queue is None:
        return []
    indexes = [index for index in tx.field_index.all() if not index.field and type in (None, index.type)]
    spans = [Span(index.id, key_value(start), "9" * 18) for index in indexes]
    pages = [page for span in spans for page in tx.field_index.search(queue[:2], span, END, limit=limit)]
    return [stored for page in pages for stored in page]


def dossiers_of(station: Station, key: str) -> list[str]:
    """The dossiers of a station that a message is in."""
    return station._read(lambda tx, _: tx.dossiers.of_message(key_number(key)), [])

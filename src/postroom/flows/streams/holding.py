"""Ownership of a stream: a lease, and a checkpoint that the room knows by its identifier."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from postroom.engine.beating import beating
from postroom.errors import PostroomError, StreamCheckpoint
from postroom.flows.graph.streamed import behind
from postroom.flows.graph.versions import RoomGraphs
from postroom.flows.language.definitions import Stateful
from postroom.limits import ENGINE_LEASE_SECONDS
from postroom.store.files.disk import write_whole
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction
from postroom.store.tables.streams import Stream

_FILE = "stream.json"  # in the folder of a checkpoint: whose it is


class StreamHold:
    """A stream of some sources, run by one process at a time."""

    def __init__(self, store: Store, room_graphs: RoomGraphs, owner: str, sources: Sequence[str], folder: Path) -> None:
        self._store = store
        self._room_graphs = room_graphs
        self._owner = owner
        self._number = 0  # of the lease
        self.sources = tuple(sources)
        self.name = self._known()
        self.folder = folder / "".join(
            character if character.isalnum() else f"%{ord(character):x}" for character in self.name
        )

    def _known(self) -> str:
        """The name under which the stream last ran, or that of its first source."""
        streams = self._store.read(lambda tx: tx.streams.all())
        before = [stream.name for stream in streams if set(stream.sources) & set(self.sources)]
        if len(before) > 1:
            why = f"{' and '.join(before)} were streams of their own, and their events meet now"
            raise StreamCheckpoint(
                stream=self.sources[0], why=f"{why}; put the graph back, or begin anew in a new room"
            )
        return before[0] if before else self.sources[0]

    # --- the lease ---

    @property
    def _lease(self) -> str:
        return f"stream:{self.name}"

    def check(self, tx: Transaction) -> None:
        """Raise unless this process still has the stream."""
        tx.leases.check(self._lease, self._number)

    @contextmanager
    def held(self, lost: Callable[[PostroomError], None]) -> Iterator[None]:
        """Hold the stream; ``lost`` is called if another process has taken it."""
        transact = self._store.transact
        self._number = transact("lease", lambda tx: tx.leases.acquire(self._lease, self._owner, ENGINE_LEASE_SECONDS))
        try:
            with beating(self._store, self._renew, lost):
                yield
        finally:
            if not self._store.stopped:
                transact("release-lease", lambda tx: tx.leases.release(self._lease, self._number))

    def _renew(self) -> None:
        self._store.transact("lease", lambda tx: tx.leases.renew(self._lease, self._number, ENGINE_LEASE_SECONDS))

    # --- the checkpoint ---

    def open(self, *, restart: bool) -> None:
        """Raise unless the checkpoint and the room know each other, or both are new."""
        if restart:
            self._forget()
        place = self.folder / _FILE
        self.folder.mkdir(parents=True, exist_ok=True)
        known = self._written(place)

        def work(tx: Transaction) -> str:
            self.check(tx)
            stream = tx.streams.find(self.name)
            if stream is None:
                if known is not None:
                    raise self._mismatch("of another room")
                stream = Stream(self.name, self.sources, secrets.token_hex(16))
            elif known != stream.checkpoint and (known is not None or stream.batch >= 0):
                raise self._mismatch("not the one that it was run with" if known else "missing")
            tx.streams.put(stream._replace(sources=self.sources))
            return stream.checkpoint

        checkpoint = self._store.transact("stream-open", work)
        if checkpoint != known:
            write_whole(place, json.dumps({"checkpoint": checkpoint}))

    def _written(self, place: Path) -> str | None:
        """The identifier in the checkpoint folder."""
        try:
            return str(json.loads(place.read_text(encoding="utf-8"))["checkpoint"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise self._mismatch(f"damaged: {_FILE} cannot be read") from error

    def follow(self, sources: Sequence[str]) -> None:
        """Note that the graph has given the stream other sources."""
        self.sources = tuple(sources)

        def work(tx: Transaction) -> None:
            self.check(tx)
            stream = tx.streams.find(self.name)
            if stream is not None and stream.sources != self.sources:
                tx.streams.put(stream._replace(sources=self.sources))

        self._store.transact("stream-open", work)

    def _mismatch(self, whose: str) -> StreamCheckpoint:
        return StreamCheckpoint(stream=self.name, why=f"the checkpoint in {self.folder} is {whose}")

    def _forget(self) -> None:
        """Forget offsets and states: everything that the source still has is read again."""

        def work(tx: Transaction) -> None:
            self.check(tx)
            graph = self._room_graphs.now(tx)
            reached = behind(graph.running, self.sources)
            for arc, *_ in graph.running.arcs.values():
                if isinstance(arc.does, Stateful) and arc.source in reached:
                    tx.arc_states.forget(graph.state_name(arc))
            if tx.streams.find(self.name) is not None:
                tx.streams.remove(self.name)

        self._store.transact("stream-open", work)
        shutil.rmtree(self.folder, ignore_errors=True)

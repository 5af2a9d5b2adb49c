"""Spheres held for clients: each has a thread, which lives while the client sends heartbeats."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from time import monotonic
from typing import Any

from postroom.errors import PostroomError, SphereOver, TooManyRequests
from postroom.limits import HEARTBEAT_SECONDS, SPHERES_HELD_MAX
from postroom.room import Postroom
from postroom.spheres.sphere import Sphere
from postroom.store.tables.spheres import ACTIVE, COMMITTED

_Work = tuple[Callable[[Sphere], Any], "Future[Any]"]


class HeldSphere:
    """A client's sphere. All its operations run in its thread, which also keeps its heartbeat."""

    def __init__(self, room: Postroom, by: str, options: dict[str, Any]) -> None:
        self.by = by
        self.opened: Future[HeldSphere] = Future()
        self._room = room
        self._options = options
        self._work: queue.Queue[_Work | None] = queue.Queue()
        self._seen = monotonic()
        self._silence = "the server was stopped"
        self.ended = False
        threading.Thread(target=self._live, name="postroom-sphere", daemon=True).start()

    @property
    def id(self) -> str:
        return self._sphere.id

    @property
    def seconds(self) -> float:
        """The longest allowed time between two requests of the client."""
        return float(self._options.get("heartbeat", HEARTBEAT_SECONDS))

    def do(self, work: Callable[[Sphere], Any]) -> Future[Any]:
        """Run work in its thread; counts as a heartbeat."""
        future: Future[Any] = Future()
        self._seen = monotonic()
        self._work.put((work, future))
        if self.ended:
            self._refuse_left()
        return future

    def heartbeat(self) -> str:
        """A heartbeat of the client; returns the state of the sphere."""
        self._seen = monotonic()
        return self._sphere.state

    def commit(self) -> str:
        """Commit when the conditions hold, else abort; returns the state."""
        self._sphere.commit()
        return COMMITTED

    def let_go(self, why: str) -> None:
        """The client has gone: abort, unless the sphere has ended."""
        self._silence = why
        self._work.put(None)

    # --- its thread ---

    def _live(self) -> None:
        with self._room.store.acting(self.by):
            try:
                self._sphere = self._room.spheres.open(**self._options)
            except BaseException as error:
                self.ended = True
                self.opened.set_exception(error)
                return
            self.opened.set_result(self)
            try:
                while not self.ended and self._next(self.seconds):
                    pass
            finally:
                self._end()

    def _next(self, seconds: float) -> bool:
        """Run the next operation; False if the client was silent for too long, or has gone."""
        left = self._seen + seconds - monotonic()
        if left <= 0:
            self._silence = f"its owner gave no sign of life for {seconds:g} s"
            return False
        try:
            asked = self._work.get(timeout=left)
        except queue.Empty:
            return True
        if asked is None:
            return False
        work, future = asked
        try:
            future.set_result(work(self._sphere))
        except BaseException as error:
            future.set_exception(error)
        self._seen = monotonic()
        self.ended = self._sphere.ended
        return True

    def _end(self) -> None:
        self.ended = True
        if not self._sphere.ended:
            with suppress(PostroomError):  # it has ended otherwise, or the compensation engine finds it
                self._sphere.abort(self._silence)
        self._refuse_left()

    def _refuse_left(self) -> None:
        while True:
            try:
                asked = self._work.get_nowait()
            except queue.Empty:
                return
            if asked is not None:
                state = self._room.spheres.show(self._sphere.id).sphere.state
                asked[1].set_exception(SphereOver(sphere=self._sphere.id, state=state, reason=""))


class HeldSpheres:
    """All spheres that a server holds, by id."""

    def __init__(self) -> None:
        self._held: dict[str, HeldSphere] = {}
        self._lock = threading.Lock()

    def open(self, room: Postroom, by: str, options: dict[str, Any]) -> HeldSphere:
        """Open a sphere for a client."""
        with self._lock:
            self._held = {id: sphere for id, sphere in self._held.items() if not sphere.ended}
            if len(self._held) >= SPHERES_HELD_MAX:
                raise TooManyRequests(who="the server", seconds=5)
        held = HeldSphere(room, by, options).opened.result()
        with self._lock:
            self._held[held.id] = held
        return held

    def find(self, room: Postroom, by: str, id: str) -> HeldSphere:
        """The sphere of a client; raises if it has ended, or belongs to another."""
        held = self._held.get(id)
        if held is not None and held.by == by and not held.ended:
            return held
        shown = room.spheres.show(id).sphere
        why = "another owns it" if shown.state == ACTIVE else shown.reason or ""
        raise SphereOver(sphere=id, state=shown.state, reason=f" ({why})" if why else "")

    def let_go(self, id: str) -> None:
        """End the thread of a sphere that was aborted from outside."""
        held = self._held.pop(id, None)  # whoever asks for it now is told why
        if held is not None:
            held.let_go("it was aborted")

    def close(self) -> None:
        for held in list(self._held.values()):
            held.let_go("the server was stopped")

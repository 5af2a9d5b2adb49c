"""Spheres of a room behind a server: a thread here sends heartbeats while the owner lives."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from postroom.errors import AnswerLost, NotRemote, PostroomError, SphereOver, StoreStopped
from postroom.interfaces.http.client.bodies import as_sent
from postroom.interfaces.http.client.link import RemoteVerbs
from postroom.limits import HEARTBEAT_SECONDS
from postroom.model.arguments import check_call
from postroom.model.message import SPHERE, Draft, Message
from postroom.spheres.sending import SphereSent, mail_order, order, path
from postroom.spheres.sphere import Sphere
from postroom.store.tables.spheres import COMMITTED

_BEATS = 3  # in the longest time that may be between two signs of life


class RemoteSphere(Sphere):
    """A sphere held by a server. It aborts if this thread or process ends, or the server gets no heartbeats."""

    def __init__(self, parts: RemoteVerbs, id: str, heartbeat: float, commit_within: float) -> None:
        self.id = id
        self._parts = parts
        self._within = commit_within
        self._over = False
        self._stop = threading.Event()
        weakref.finalize(self, self._stop.set)
        beat = (self._stop, parts, id, heartbeat / _BEATS, threading.current_thread())
        threading.Thread(target=_beat, args=beat, name="postroom-heart", daemon=True).start()

    @property
    def state(self) -> str:
        """The state of its token."""
        state: str = self._parts.verb("spheres.show", id=self.id).sphere.state
        return state

    def send(self, *given: Any, **options: Any) -> SphereSent:
        """Like the method of a local sphere."""
        sent: SphereSent = self._parts.call("sphere.send", self, given, options, sphere=self.id)
        return sent

    def mail(self, *given: Any, **options: Any) -> SphereSent:
        """Like the method of a local sphere."""
        sent: SphereSent = self._parts.call("sphere.mail", self, given, options, sphere=self.id)
        return sent

    def receive(self, *queue: str, wait: float | None = None) -> Message | None:
        """Like the method of a local sphere."""
        check_call(Sphere.receive, queue, {"wait": wait})
        asked = {"sphere": self.id, "queue": path(queue)}
        message: Message | None = self._parts.waiting("sphere.receive", asked, wait)
        return message

    def require(self, *recipients: str | Sequence[str], **options: Any) -> None:
        """Like the method of a local sphere."""
        self._parts.call("sphere.require", self, recipients, options, sphere=self.id)

    def enlist(self, participant: Any) -> NoReturn:
        """Raises: a local database cannot take part in a remote sphere."""
        raise NotRemote(what="enlist")

    def commit(self) -> None:
        """Commit; if the response is lost, the request is repeated."""
        try:
            self._commit()
        except PostroomError:
            with suppress(PostroomError):
                self._over = self.state != COMMITTED or self._over
            raise
        finally:
            self._stop.set()
        self._over = True

    def _commit(self) -> None:
        try:
            self._parts.verb("held.commit", self._within, sphere=self.id)
        except AnswerLost:
            try:
                self._parts.verb("held.commit", self._within, sphere=self.id)
            except SphereOver as over:
                if over.facts["state"] != COMMITTED:
                    raise

    def abort(self, reason: str = "its owner aborted it") -> None:
        """Abort: undo everything that was sent."""
        self._stop.set()
        self._parts.verb("spheres.abort", id=self.id, reason=reason)
        self._over = True

    def _abort_for(self, error: BaseException, reason: str) -> None:
        try:
            self.abort(reason)
        except PostroomError as failure:  # no more signs of life: the server aborts it
            error.add_note(f"sphere {self.id} could not be aborted at once ({failure}); it will be")


def as_sent_within(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a send in a sphere, checked as without a server."""
    draft = Draft.of(given["body"], given.get("format"), given.get("type"), given.get("properties"))
    undo = given.get("compensation")
    order(given["queue"], draft, given.get("when", "now"), undo, given.get("on_commit"), given.get("format"))
    return as_sent({**given, "compensation": undo.decode() if isinstance(undo, (bytes, bytearray)) else undo})


def as_mailed_within(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a form that is mailed in a sphere, checked as without a server."""
    fields, undo = given.get("fields") or {}, given.get("compensation")
    mail_order(given["writer"], given["to"], given["type"], fields, undo, given.get("when", "now"))
    return {**given, "fields": fields}


def _beat(stop: threading.Event, parts: RemoteVerbs, id: str, pause: float, owner: threading.Thread) -> None:
    """Send heartbeats until the sphere or its owner has ended."""
    while not stop.wait(pause) and owner.is_alive():
        try:
            parts.verb("held.heartbeat", sphere=id)
        except (SphereOver, StoreStopped):
            return
        except PostroomError:  # gone for a moment: there are more beats before it is aborted
            continue


class RemoteMembership:
    """The sphere of a received message, for its recipient."""

    def __init__(self, parts: RemoteVerbs, id: str, key: str) -> None:
        self.id = id
        self._parts = parts
        self._key = key

    def acknowledge(self, *, processed: bool = False) -> None:
        """Acknowledge that the message was received, or that the work on it is done."""
        self._parts.verb("spheres.acknowledge", key=self._key, processed=processed)

    def abort(self, reason: str) -> None:
        """Vote against the sphere: it is aborted."""
        self._parts.verb("spheres.abort", id=self.id, reason=reason)

    def join(self, heartbeat: float = HEARTBEAT_SECONDS) -> NoReturn:
        """Raises: only a recipient in the room itself can join."""
        raise NotRemote(what="join")


def bind(parts: RemoteVerbs, message: Message) -> Message:
    """Bind a received message to the sphere that sent it."""
    id = message.properties.get(SPHERE) if SPHERE in message._stored.properties else None
    if isinstance(id, str):
        message.sphere = RemoteMembership(parts, id, message.key)
    return message

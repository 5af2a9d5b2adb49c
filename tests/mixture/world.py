"""A room and its model, side by side: one step changes both, and after each they must agree.

A step is a name and three small numbers, so a run can be written down, replayed and shrunk.
"""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults import forked, station_workload
from tests.mixture import office
from tests.mixture.model import Model, Note, Sphere, id_of
from tests.mixture.office import ACTS, ASKED, HEARTBEAT, MAIL, QUEUES, Planned
from tests.spheres import invariants

from postroom.errors import QueueHeld, QueueLocked
from postroom.model.key import key_text
from postroom.room import Postroom
from postroom.spheres.sphere import Sphere as Owned
from postroom.stations.places.names import database, mailbox
from postroom.store.kernel.base import Store
from postroom.store.proof.verification import verified

Step = tuple[str, int, int, int]
MOMENTS = ("begun", "committing", "committed")
#: The commits of what may be killed; an engine has many, of which one is chosen.
LABELS: dict[str, tuple[str, ...]] = {
    "send": ("send",),
    "receive": ("receive",),
    "hold": ("hold",),
    "release": ("hold",),
    "mode": ("mode",),
    "ask": ("send-many",),
    "publish": ("publish",),
    "create": ("create",),
    "modify": ("modify",),
    "ship": ("ship", "arrive", "conclude"),
    "get": ("get", "arrive", "conclude"),
    "switch": ("switch",),
    "load_rules": ("load",),
    "load_flow": ("load",),
    "engine": ("claim", "step", "desks", "procedure", "lease", "release-lease"),
    "sweep": ("sweep",),
    "compensate": ("sphere-aborting", "compensate", "heartbeat"),
    "orphan": ("sphere", "sphere-send"),
}
#: What gives them something to do.
BEFORE = {
    "receive": ("send",),
    "release": ("hold",),
    "modify": ("create",),
    "ship": ("create",),
    "get": ("create", "ship"),
    "engine": ("ask", "finish", "publish", "pair", "pair"),
    "sweep": ("engine",),
    "compensate": ("orphan",),
}
_STORED = """
SELECT q.name, m.state, m.body, m.key FROM messages m JOIN queues q ON q.id = m.queue ORDER BY m.position
"""


class World:
    def __init__(self, url: str, folder: Path, *, here: bool = True) -> None:
        self.url, self.folder, self._here = url, folder, here
        office.furnish(url, folder)
        self.room = self._opened()
        self.model = Model()
        self._owned: dict[str, Owned] = {}
        self._serial = 0
        self._fault: tuple[str, str] | None = None  # for the next act: label and moment
        self._versions = 1
        self.killed: Counter[str] = Counter()

    def _opened(self) -> Postroom:
        return office.opened(self.url, here=self._here)

    def close(self) -> None:
        self._end_spheres(0)
        self.room.close()

    def step(self, name: str, a: int = 0, b: int = 0, c: int = 0) -> None:
        self._do(name, a, b, c)
        self._fault = None
        self.check()

    def _do(self, name: str, a: int, b: int, c: int) -> None:
        getattr(self, f"do_{name}")(a, b, c)

    def fresh(self, word: str = "m") -> str:
        self._serial += 1
        return f"{word}{self._serial}"

    # --- acting, here or in a process that is killed ---

    def act(self, name: str, *arguments: Any, refused: type[Exception] | None = None) -> bool:
        """Do something; answers whether it happened. ``refused`` is the error that it must lead to."""
        if self._fault is not None:
            return self._act_alone(name, arguments, refused)
        return self._allowed(lambda: ACTS[name](self.room, *arguments), refused)

    def _allowed(self, work: Callable[[], Any], refused: type[Exception] | None) -> bool:
        try:
            self.answer = work()
        except (QueueHeld, QueueLocked) as error:
            if refused is None or not isinstance(error, refused):
                raise
            return False
        assert refused is None, f"it should have been refused: {refused}"
        return True

    def _act_alone(self, name: str, arguments: tuple[Any, ...], refused: type[Exception] | None) -> bool:
        assert self._fault is not None
        label, moment = self._fault
        self._fault = None
        fault = f"{label}.{moment}:kill:1"
        ended = forked.run(office.alone, self.url, name, arguments, folder=self.folder, fault=fault)
        if refused is not None:
            assert ended.code in (3, -signal.SIGKILL), ended
            return False
        self.answer = None
        assert ended.code in (0, 7, -signal.SIGKILL), ended.complaints[-2000:]
        self.killed[f"{label}.{moment}"] += ended.code == -signal.SIGKILL
        return ended.code == 0 or moment == "committed"

    def do_kill(self, a: int, b: int, c: int) -> None:
        """Another step, by a process that is killed at one of the moments around a commit."""
        names = sorted(LABELS)
        name = names[a % len(names)]
        labels = LABELS[name]
        for before in BEFORE.get(name, ()):
            self._do(before, b, c, a)
        self._fault = (labels[b % len(labels)], MOMENTS[c % 3])
        self._do(name, b, c, a)

    def do_restart(self, a: int, b: int, c: int) -> None:
        self._end_spheres(a)
        self.room.close()
        for place in self.model.queues.values():
            place.read = None  # its lock went with the room, and it starts again
        self.room = self._opened()

    # --- queues ---

    def _queue(self, number: int) -> str:
        return QUEUES[number % len(QUEUES)]

    def _filled(self, number: int) -> str:
        """A queue with something to take, if there is one."""
        places = self.model.queues
        some = [name for name in QUEUES if places[name].waiting and places[name].hold != "full"]
        return some[number % len(some)] if some else self._queue(number)

    def do_send(self, a: int, b: int, c: int) -> None:
        queue, bodies = self._queue(a), [f"{self.fresh()}\nsecond" for _ in range(1 + b % 3 * (self._fault is None))]
        place = self.model.queues[queue]
        if self.act("send", queue, *bodies, refused=_refusal(place.hold, place.read)):
            place.waiting += bodies

    def do_receive(self, a: int, b: int, c: int) -> None:
        queue = self._filled(a)
        place = self.model.queues[queue]
        killed = self._fault is not None
        if killed and (place.read is not None or not place.waiting):
            return  # a lock of ours is another's there; and without a message there is no commit
        if self.act("receive", queue, refused=QueueHeld if place.hold == "full" else None):
            body = place.take() if place.waiting else None
            assert killed or self.answer == body, "not the first"

    def do_drain(self, a: int, b: int, c: int) -> None:
        """Take all of a queue, oldest first."""
        queue = self._filled(a)
        place = self.model.queues[queue]
        while place.waiting and place.hold != "full":
            assert office.receive(self.room, queue) == place.take()

    def do_segment(self, a: int, b: int, c: int) -> None:
        self._read(self._filled(a))

    def _read(self, queue: str) -> None:
        place = self.model.queues[queue]
        if place.hold == "full" or not place.waiting:
            return
        received = self.room.receive(queue, segment=True)
        assert received.message is not None
        lines = place.waiting[0].split("\n")
        if place.read is None and len(lines) > 1:
            assert (received.message.body, received.end_of_message) == (lines[0], False)
            place.read = place.waiting[0]
        else:
            assert (received.message.body, received.end_of_message) == (lines[-1], True)
            place.take()

    def do_begin_reading(self, a: int, b: int, c: int) -> None:
        """Someone has read the first segment and ended: the message is there as if nobody had."""
        queue = self._filled(a) if a % 4 else ASKED
        place = self.model.queues.get(queue)
        if place is not None and (place.hold == "full" or place.read is not None or not place.waiting):
            return
        ended = forked.run(office.alone, self.url, "begin_reading", (queue,), folder=self.folder)
        assert ended.code == 7, ended.complaints[-2000:]
        if place is not None and "\n" not in place.waiting[0]:
            place.take()

    def do_hold(self, a: int, b: int, c: int) -> None:
        queue = self._queue(a)
        place, wanted = self.model.queues[queue], ("input", "full")[b % 2]
        if place.hold == wanted:
            return
        if self.act("hold", queue, wanted == "input", refused=_refusal("", place.read)):
            place.hold = wanted

    def do_release(self, a: int, b: int, c: int) -> None:
        queue = self._queue(a)
        place = self.model.queues[queue]
        if place.hold and self.act("release", queue, refused=_refusal("", place.read)):
            place.hold = ""

    def do_mode(self, a: int, b: int, c: int) -> None:
        queue, keep = self._queue(a), bool(b % 2)
        place = self.model.queues[queue]
        if self.act("mode", queue, keep, refused=_refusal("", place.read)):
            place.keep = keep
            if not keep:
                place.done.clear()

    # --- rules ---

    def do_ask(self, a: int, b: int, c: int) -> None:
        """One or more requests; some of them no rule can answer."""
        some = [(self.fresh("id"), (b + number) % 4 != 3) for number in range(1 + a % 3)]
        bodies = [_request(id, "7" if good else "x") for id, good in some]
        if self.act("ask", *bodies):
            self.model.asked += some

    def do_finish(self, a: int, b: int, c: int) -> None:
        """The other half of a slice; sometimes it comes first, and its request never."""
        bound = {id_of(each[2]) for sphere in self.model.spheres.values() for each in sphere.sends if each[1] == ASKED}
        answerable = [id for id, good in self.model.asked if good and id not in self.model.finished | bound]
        id = answerable[a % len(answerable)] if answerable and b % 4 else self.fresh("id")
        if self.act("ask", f"<fin><id>{id}</id>\n</fin>"):
            self.model.finished.add(id)

    def do_load_rules(self, a: int, b: int, c: int) -> None:
        self._versions += 1
        self.act("load_rules", self.folder, self._versions)

    def do_hold_answers(self, a: int, b: int, c: int) -> None:
        """What rules write to takes nothing: their messages wait."""
        if self.model.answers_hold:
            office.release(self.room, "answered")
            self.model.answers_hold = ""
        else:
            self.model.answers_hold = ("input", "full")[a % 2]
            office.hold(self.room, "answered", a % 2 == 0)

    def do_receive_answer(self, a: int, b: int, c: int) -> None:
        if self.model.answers_hold != "full":
            found = self.room.receive("answered").message
            if found is not None:
                assert id_of(found.body) == self.model.answers[self.model.answers_taken]
                self.model.answers_taken += 1

    # --- flows ---

    def do_publish(self, a: int, b: int, c: int) -> None:
        events = []
        for number in range(1 + a % 3):
            self._serial += 1
            events.append((self._serial, (b + 3 * number) % 10))
        if self.act("publish", *events):
            self.model.published += [n for n, _ in events]
            self.model.passed += [n for n, w in events if w >= self.model.bound]

    def do_load_flow(self, a: int, b: int, c: int) -> None:
        bound = (a + b) % 10
        if self.act("load_flow", self.folder, bound):
            self.model.bound = bound

    def do_subscribe(self, a: int, b: int, c: int) -> None:
        client = f"client{a % 2}"
        if client not in {each.client for each in self.room.flows.subscriptions()}:
            self.act("subscribe", client, bool(b % 2))

    def do_unsubscribe(self, a: int, b: int, c: int) -> None:
        client = f"client{a % 2}"
        if client in {each.client for each in self.room.flows.subscriptions()}:
            self.act("unsubscribe", client)

    # --- stations ---

    def _note(self, number: int) -> str:
        """A message at a station."""
        here = [key for key, note in self.model.notes.items() if not note.mail]
        if not here:
            fault, self._fault = self._fault, None
            self.do_create(number, 0, 0)
            self._fault = fault
            return self._note(number)
        return here[number % len(here)]

    def _desk(self, number: int) -> str:
        return ("ann", "bob", "cid")[number % 3]

    def do_create(self, a: int, b: int, c: int) -> None:
        desk = self._desk(a)
        self._serial += 1
        if self.act("create", desk, self._serial):
            found = [each.key for each in self.room.stations._station(desk).query("NOTE", No=str(self._serial))]
            assert len(found) == 1
            assert self.answer in (None, found[0])
            self.model.notes[found[0]] = Note(self._serial, desk)

    def do_modify(self, a: int, b: int, c: int) -> None:
        key = self._note(a)
        if self.act("modify", self.model.notes[key].at, key, f"t{b}"):
            self.model.notes[key].text = f"t{b}"

    def do_ship(self, a: int, b: int, c: int) -> None:
        key = self._note(a)
        note, to, fault = self.model.notes[key], self._desk(b), self._fault
        afar = fault is not None and fault[0] != "ship"  # the first of three commits was made
        if self.act("ship", note.at, key, to) or afar:
            note.at, note.mail, note.kept = to, True, False
        if fault is not None:
            self._get("cid")  # whoever comes by finishes what is on its way

    def do_get(self, a: int, b: int, c: int) -> None:
        mail = sorted({note.at for note in self.model.notes.values() if note.mail})
        desk = mail[a % len(mail)] if mail else self._desk(a)
        if self._fault is not None:
            self.act("get", desk)  # as far as it comes
        self._get(desk)

    def _get(self, desk: str) -> None:
        office.get(self.room, desk)
        for note in self.model.notes.values():
            if note.at == desk:
                note.mail, note.fetched = False, True

    def do_dossier(self, a: int, b: int, c: int) -> None:
        key = self._note(a)
        if self.model.notes[key].kept or b % 2:
            self.act("dossier", self.model.notes[key].at, key, bool(b % 2))
            self.model.notes[key].kept = bool(b % 2)

    def do_query(self, a: int, b: int, c: int) -> None:
        desk, text = self._desk(a), f"t{b}" if c % 2 else "first"
        found = {image.key for image in self.room.stations._station(desk).query("NOTE", Text=text)}
        known = self.model.notes
        assert found == {key for key in self.model.keys_at(desk, mail=False) if known[key].text == text}

    def do_query_all(self, a: int, b: int, c: int) -> None:
        """A query over all nodes finds each message once, wherever it is."""
        assert sorted(station_workload.query(self.room, "NOTE")) == sorted(self.model.notes)

    # --- procedures ---

    def do_pair(self, a: int, b: int, c: int) -> None:
        type = ("ORDER", "BILL")[a % 2]
        self._serial += 1
        if self.act("pair", type, self._serial, b % 3):
            self.model.pairs[type].append(b % 3)

    def do_switch(self, a: int, b: int, c: int) -> None:
        if self.act("switch", bool(a % 2)):
            self.model.joins = bool(a % 2)

    def do_load_procedure(self, a: int, b: int, c: int) -> None:
        self.act("load_procedure", self.folder, f"paid{a % 3}")

    # --- spheres ---

    def _planned(self, a: int, b: int, c: int) -> Planned:
        when = ("now", "now", "now", "commit", "abort")[c % 5]
        if a % 5 == 4:  # a request, which a rule may have answered before the sphere fails
            body, undo = (_request(self.fresh("id"), "7") for _ in range(2))
            return (when, ASKED, body, undo if when == "now" and b % 5 else None, None, None)
        if a % 5 == 3:  # a letter, which its station may have fetched
            body, undo = (self.fresh("") for _ in range(2))
            return (when, f"{MAIL}{self._desk(b)}", body, undo if when == "now" and b % 5 else None, None, None)
        queue, body = self._queue(a), f"{self.fresh('do')}\nmore"
        if when != "now" or b % 5 == 0:
            return when, queue, body, None, None, None
        target = None if b % 2 else self._queue(b)
        kept = self._queue(c) if (a + b) % 3 == 0 else None
        return when, queue, body, f"un{body}", target, kept

    def _unasked(self) -> set[str]:
        """Requests that wait for a rule."""
        return {id_of(body) for queue, state, body, _ in self.stored(self.room.store) if (queue, state) == (ASKED, 1)}

    def do_sphere(self, a: int, b: int, c: int) -> None:
        id = self.fresh("sphere")
        self._owned[id] = self.room.sphere(id, heartbeat=HEARTBEAT)
        self.model.spheres[id] = Sphere()
        for number in range(1 + c % 3):
            self._sphere_send(id, a, b + 2 * number, c)

    def do_sphere_send(self, a: int, b: int, c: int) -> None:
        if not self._owned:
            self.do_sphere(a, b, c)
        self._sphere_send(list(self._owned)[-1 if b % 2 else 0], a, b, c)

    def _sphere_send(self, id: str, a: int, b: int, c: int) -> None:
        planned = self._planned(a, b, c)
        place = self.model.queues.get(planned[1])
        refused = _refusal(place.hold, place.read) if planned[0] == "now" and place is not None else None
        if self._allowed(lambda: office.sphere_send(self._owned[id], planned), refused):
            self.model.sent(id, planned)

    def do_sphere_end(self, a: int, b: int, c: int) -> None:
        if self._owned:
            self._end(list(self._owned)[a % len(self._owned)], commit=b % 3 == 0)

    def _end(self, id: str, commit: bool) -> None:
        sphere = self._owned.pop(id)
        if commit and self.model.can_commit(id):
            sphere.commit()
            self.model.commit(id)
        else:
            unasked = self._unasked()
            sphere.abort("as planned")
            self.model.abort(id, unasked)

    def _end_spheres(self, coin: int) -> None:
        for number, id in enumerate(list(self._owned)):
            self._end(id, commit=bool((coin + number) % 2))

    def do_orphan(self, a: int, b: int, c: int) -> None:
        """An owner in a process of its own, which ends without a word or is killed; how far it came is seen."""
        if self._fault is None:
            self._fault = ("sphere-send", "committed" if c % 3 else "begun")
        self.do_compensate(0, 0, 0, fault=self._fault)
        id = self.fresh("sphere")
        sends = [self._planned(a + number, b + 2 * number, c + number) for number in range(3)]
        open = [each for each in sends if self.model.accepts(each[1]) or each[0] != "now"]
        self.act("orphan", id, open)
        if id not in {each.id for each in self.room.spheres.all()}:
            return
        told = self.room.spheres.show(id)
        self.model.spheres[id] = Sphere()
        self.model.orphan = id
        for planned in open[: told.sphere.sends]:
            self.model.sent(id, planned)

    def do_compensate(self, a: int, b: int, c: int, fault: tuple[str, str] | None = None) -> None:
        unasked = self._unasked()
        self._fault, kept = (None, fault) if fault is not None else (self._fault, None)
        if self._fault is not None:
            self.act("compensate")  # as far as it comes
        self._fault = kept
        office.compensate(self.room)
        self.model.compensate(unasked)

    def do_acknowledge(self, a: int, b: int, c: int) -> None:
        """Someone says that a primary was received or processed; nothing moves by that."""
        rows = [row for row in self.stored(self.room.store) if row[0] in QUEUES]
        if rows:
            self.room.acknowledge(key_text(rows[a % len(rows)][3]), processed=bool(b % 2))

    # --- the engine ---

    def do_engine(self, a: int, b: int, c: int) -> None:
        killed, unasked = self._fault is not None, self._unasked()
        self.act("engine", 1 + b % 5)
        if not killed and not self._here:
            self.model.compensate(unasked)  # before it begins, an engine looks after spheres
        if not killed:
            self.check_at_rest()

    def do_sweep(self, a: int, b: int, c: int) -> None:
        self.act("sweep")

    def do_load_tree(self, a: int, b: int, c: int) -> None:
        if all(place.read is None for place in self.model.queues.values()):
            self.act("load_tree", self.folder, "X" if a % 2 else "")

    # --- what must hold ---

    def stored(self, store: Store) -> list[tuple[Any, ...]]:
        return store.read(lambda tx: tx.session.rows(_STORED))

    def check(self) -> None:
        """After each step: every message of the model is in its one place, in its order, and no other is there."""
        found: dict[tuple[str, int], list[str]] = {}
        for queue, state, body, _ in self.stored(self.room.store):
            found.setdefault((queue, state), []).append(body)
        for name, place in self.model.queues.items():
            assert found.get((name, 1), []) == place.waiting, name
            assert found.get((name, 0), []) == place.done, name
        spheres = {each.id: each.state for each in self.room.spheres.all()}
        assert spheres == {id: sphere.state for id, sphere in self.model.spheres.items()}
        remembered = [
            planned for sphere in self.model.spheres.values() for planned in sphere.sends if _remembers(planned)
        ]
        said = Counter(body if when != "now" else undo for when, _, body, undo, *_ in remembered)
        assert Counter(map(_said, found.get(("COMP.Q", 1), []))) == said
        self._check_stations()

    def _check_stations(self) -> None:
        north = self.room._parts.network.store("north")
        at = {(row[0], key_text(row[3])): row[2] for store in (self.room.store, north) for row in self.stored(store)}
        for to, number in self.model.letters:
            keys = [
                key for (place, key), body in at.items() if place == mailbox(to) and json.loads(body)["No"] == number
            ]
            assert len(keys) == 1, "a letter is in its mailbox, once"
            self.model.notes[keys[0]] = Note(number, to, mail=True, fetched=False)
        self.model.letters.clear()
        for key, note in self.model.notes.items():
            place = mailbox(note.at) if note.mail else database(note.at)
            body = json.loads(at[place, key])
            assert (body["No"], body.get("Text")) == (note.number, note.text)
        for desk in ("ann", "bob", "cid"):
            kept = {key for key, note in self.model.notes.items() if note.at == desk and note.kept}
            assert self.room.stations._station(desk).dossiers().get("kept", 0) == len(kept)

    def verify(self) -> None:
        """The journals of both nodes come to what is stored; the one of the room tells of sound spheres."""
        for found in (self.room.journal.verify(), self.room._parts.network.store("north").read(verified)):
            assert not found.differences, found.differences
        told = invariants.check(self.room)
        assert told.spheres == {id: sphere.state for id, sphere in self.model.spheres.items()}

    def check_at_rest(self) -> None:
        """When an engine has nothing left to do."""
        model, rows = self.model, self.stored(self.room.store)
        if model.answers_hold:
            return
        bodies = {(name, state): [row[2] for row in rows if row[:2] == (name, state)] for name, state, *_ in rows}
        answers = [id_of(body) for body in bodies.get(("answered", 1), [])]
        assert answers == model.answers[model.answers_taken :], "one answer for each request, in their order"
        assert Counter(map(id_of, bodies.get(("echoed", 1), []))) == Counter(model.answers)
        assert not self.room.engine.outbox()
        assert [id_of(body) for body in bodies.get(("broken", 1), [])] == model.errors
        assert ("asked", 1) not in bodies, "all were processed"
        flowed = [json.loads(body)["n"] for body in bodies.get(("Out", 1), [])]
        assert flowed == model.passed, "each event met the graph of its moment, once"
        halves = [json.loads(body)["n"] for body in bodies.get(("Half", 1), [])]
        assert halves == model.published
        if model.joins:
            joined = [body for name, state, body, _ in rows if name == mailbox("eve")]
            assert len(joined) == model.joined
            assert len(self.room.stations._station("dan").dossiers()) <= 1
            assert self.room.stations._station("dan").dossiers().get("joined", 0) == model.joined

    def finish(self) -> None:
        """Let everything come to its end, and check everything."""
        self._end_spheres(1)
        for queue in QUEUES:
            while self.model.queues[queue].read is not None:
                self._read(queue)
            self.do_release(QUEUES.index(queue), 0, 0)
        if self.model.answers_hold:
            self.do_hold_answers(0, 0, 0)
        self.do_compensate(0, 0, 0)
        self.do_switch(1, 0, 0)
        self.do_engine(0, 4, 0)
        assert not [id for id, sphere in self.model.spheres.items() if sphere.state not in ("COMMITTED", "ABORTED")]
        self.room.engine.sweep()
        held = {id_of(row[2]) for row in self.stored(self.room.store) if row[0] == "asked"}
        assert held == self.model.retained, "what no slice holds is gone, and what one holds is there"
        self.check()
        self.verify()


STEPS = sorted(name.removeprefix("do_") for name in dir(World) if name.startswith("do_"))


def _refusal(hold: str, read: str | None) -> type[Exception] | None:
    return QueueHeld if hold else QueueLocked if read is not None else None


def _said(body: str) -> str:
    """What a remembered message says that no other does."""
    return str(json.loads(body)["No"]) if body.startswith("{") else body


def _request(id: str, number: str) -> str:
    return f"<ask><id>{id}</id>\n<n>{number}</n></ask>"


def _remembers(planned: Planned) -> bool:
    return planned[0] != "now" or planned[3] is not None

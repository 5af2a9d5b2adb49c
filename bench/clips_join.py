"""The contender of procedures: a three-way join in CLIPS, by clipspy's own face, its working memory durable in SQLite.

A message is a fact with a slot for each of its fields, and for all that an engine knows of it besides: key, place, who
sent it, the version of its form, when it was made, how deep in a chain it is, and whether it is dealt with. It is read
from the file, as the engine reads it from its store; what the rule changes is written back with an event for each
message, in one commit per step.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from time import time_ns
from typing import Any

import apsw

from postroom.engine.spark.garbage_collection import rarely_collecting

#: Key, station, type and what it says.
Message = tuple[int, str, str, dict[str, Any]]

_TEMPLATES = {
    "ORDER": ("order", "(slot customer (type STRING)) (slot amount (type FLOAT)) (slot approved (type STRING))"),
    "DELIVERY NOTE": ("note", "(slot goods (type STRING)) (slot quantity (type INTEGER))"),
    "INVOICE": ("invoice", "(slot amount (type FLOAT)) (slot terms (type STRING))"),
}
_COMMON = (
    "(slot key (type INTEGER)) (slot place (type SYMBOL)) (slot sender (type SYMBOL)) (slot form (type INTEGER))"
    " (slot created (type INTEGER)) (slot depth (type INTEGER)) (slot done (type SYMBOL)) (slot number (type INTEGER))"
)
_RULE = """
(defrule approve
  ?order <- (order (done no) (key ?ordered) (place ?place) (number ?number) (amount ?amount) (depth ?first))
  ?note <- (note (done no) (key ?noted) (place ?place) (number ?number) (depth ?second))
  ?invoice <- (invoice (done no) (key ?invoiced) (place ?place) (number ?number) (amount ?amount) (depth ?third))
  (test (< (min ?first ?second ?third) 100))
  =>
  (bind ?depth (+ 1 (min ?first ?second ?third)))
  (approved ?ordered ?noted ?invoiced ?depth)
  (modify ?order (approved "yes") (place accounts) (sender ?place) (depth ?depth))
  (modify ?note (done yes) (depth ?depth))
  (modify ?invoice (done yes) (depth ?depth)))
"""
_SETTINGS = ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA cache_size = -32768")
_TABLES = """
CREATE TABLE messages (
    key INTEGER PRIMARY KEY, type TEXT NOT NULL, place TEXT NOT NULL, sender TEXT, form INTEGER NOT NULL,
    created INTEGER NOT NULL, depth INTEGER NOT NULL, done INTEGER NOT NULL, body TEXT NOT NULL
);
CREATE TABLE journal (
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, verb TEXT NOT NULL, message INTEGER, target TEXT, actor TEXT NOT NULL
);
"""
_INSERT = """
INSERT INTO messages (key, type, place, sender, form, created, depth, done, body) VALUES (?, ?, ?, NULL, 1, ?, 0, 0, ?)
"""
_NEXT = """
SELECT key, type, place, coalesce(sender, place), form, created, depth, body FROM messages
WHERE key > ? AND done = 0 ORDER BY key LIMIT ?
"""
_APPROVE = "UPDATE messages SET body = ?, sender = place, place = 'accounts', depth = ? WHERE key = ?"
_DONE = "UPDATE messages SET done = 1, depth = ? WHERE key = ?"
_JOURNAL = "INSERT INTO journal (at, verb, message, target, actor) VALUES (?, ?, ?, ?, 'approve')"


class ClipsJoin:
    def __init__(self, file: Path) -> None:
        self._clips = import_module("clips")
        self._environment = self._clips.Environment()
        self._approved: list[tuple[int, int, int, int]] = []  # three keys, and how deep they are now
        self._environment.define_function(lambda *keys: self._approved.append(keys), "approved")
        for name, slots in _TEMPLATES.values():
            self._environment.build(f"(deftemplate {name} {_COMMON} {slots})")
        self._environment.build(_RULE)
        self._templates = {type: self._environment.find_template(name) for type, (name, _) in _TEMPLATES.items()}
        self._bodies: dict[int, dict[str, Any]] = {}  # of orders that wait
        self._last = 0
        self._connection = apsw.Connection(str(file))
        for setting in _SETTINGS:
            self._connection.execute(setting)
        self._connection.execute(_TABLES)

    def fill(self, messages: Sequence[Message]) -> None:
        """Messages that have come and were not looked at."""
        now = time_ns() // 1_000
        rows = [(key, type, station, now, json.dumps(said)) for key, station, type, said in messages]
        with self._connection:
            self._connection.executemany(_INSERT, rows)

    def step(self, size: int) -> int:
        """Look at the next messages, all in one commit; answers with how many there were."""
        with rarely_collecting(), self._connection:
            found = self._rows(_NEXT, (self._last, size))
            for row in found:
                self._assert(*row)
            self._environment.run()
            self._write()
        self._last = found[-1][0] if found else self._last
        return len(found)

    def _assert(
        self, key: int, type: str, place: str, sender: str, form: int, created: int, depth: int, body: str
    ) -> None:
        said, symbol, template = json.loads(body), self._clips.Symbol, self._templates[type]
        about = {
            "key": key,
            "place": symbol(place),
            "sender": symbol(sender),
            "form": form,
            "created": created,
            "depth": depth,
            "done": symbol("no"),
            "number": said["Order No"],
        }
        if type == "ORDER":
            self._bodies[key] = said
            template.assert_fact(**about, customer=said["Customer"], amount=float(said["Amount"]), approved="")
        elif type == "INVOICE":
            template.assert_fact(**about, amount=float(said["Amount"]), terms=said["Terms"])
        else:
            template.assert_fact(**about, goods=said["Goods"], quantity=said["Quantity"])

    def _write(self) -> None:
        now, done = time_ns() // 1_000, self._approved
        bodies = [
            (json.dumps({**self._bodies.pop(order), "Approved": "yes"}), depth, order) for order, *_, depth in done
        ]
        self._connection.executemany(_APPROVE, bodies)
        self._connection.executemany(_DONE, [(depth, key) for _, *others, depth in done for key in others])
        events = [
            (now, "leave" if place else "ship", key, None if place else "accounts")
            for *keys, _ in done
            for place, key in enumerate(keys)
        ]
        self._connection.executemany(_JOURNAL, events)
        done.clear()

    def count(self) -> tuple[int, int]:
        """Orders at accounts, and messages that are dealt with where they are."""
        row = self._rows("SELECT sum(place = 'accounts'), sum(done) FROM messages")[0]
        return row[0], row[1]

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._connection.execute(statement, values).fetchall()

    def close(self) -> None:
        self._connection.close()

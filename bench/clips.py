"""A three-way join by CLIPS, its working memory durable in SQLite: the contender of a step that approves orders.

An order is approved when its delivery note and its invoice have come to the same station and the invoice has the
order's amount. One CLIPS environment holds all stations. ``python bench/clips.py`` checks that all orders are approved,
that working memory comes back from the file in the middle of the work, and says how fast it was.

What is written here in an unusual way was measured, each for 99,999 messages: a fact by clipspy's own ``assert_fact``
costs three times one by a builder of CLIPS, and one from text twenty times; a Python function called by the rule
costs nearly twice what a fact costs that says what was done and is read after the run.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, time_ns
from typing import Any, TypeVar

import apsw

from postroom.engine.garbage import collector_off

ORDER, NOTE, INVOICE = "ORDER", "DELIVERY NOTE", "INVOICE"
ACCOUNTS = "accounts"
STATIONS = 100
MESSAGES = 99_999
STEPS = (1_000, 8_000, 40_000)
ROUNDS = 3

#: Key, station, type and body. Keys grow from step to step, as they are given on arrival.
Message = tuple[int, str, str, str]
#: The keys of order, note and invoice, and the station where they met.
Approval = tuple[int, int, int, str]
_T = TypeVar("_T")

# Slots for what the rule reads or sets; the rest of a form is in its body. Two amounts of at most 15 digits are equal
# as floats when they are equal as decimals.
_CONSTRUCTS = (
    """(deftemplate order (slot key (type INTEGER)) (slot station (type STRING)) (slot number (type INTEGER))
                          (slot amount (type FLOAT)) (slot approved (type STRING)))""",
    "(deftemplate note (slot key (type INTEGER)) (slot station (type STRING)) (slot number (type INTEGER)))",
    """(deftemplate invoice (slot key (type INTEGER)) (slot station (type STRING)) (slot number (type INTEGER))
                            (slot amount (type FLOAT)))""",
    "(deftemplate place (slot name (type STRING)))",
    f"""(defrule approve
          ?order <- (order (key ?ordered) (number ?number) (station ?station) (amount ?amount))
          ?note <- (note (key ?noted) (number ?number) (station ?station))
          ?invoice <- (invoice (key ?invoiced) (number ?number) (station ?station) (amount ?amount))
          =>
          (modify ?order (station "{ACCOUNTS}") (approved "yes"))
          (retract ?note ?invoice)
          (assert (approval ?ordered ?noted ?invoiced ?station)))""",
)
_SETTINGS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA wal_autocheckpoint = 4000",  # this and the cache as Postroom has them
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA cache_size = -32768",
)
_TABLES = """
CREATE TABLE IF NOT EXISTS messages (
  key INTEGER PRIMARY KEY, station TEXT NOT NULL, type TEXT NOT NULL, body TEXT NOT NULL, done INT NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS journal (
  seq INTEGER PRIMARY KEY, time INT NOT NULL, verb TEXT NOT NULL, key INT NOT NULL, source TEXT, target TEXT,
  actor TEXT NOT NULL);
"""
_ARRIVE = "INSERT INTO messages (key, station, type, body) VALUES (?, ?, ?, ?)"
_JOURNAL_ARRIVALS = """INSERT INTO journal (time, verb, key, target, actor)
SELECT ?, 'arrive', key, station, 'sender' FROM messages WHERE key >= ?"""
_APPROVE = f"UPDATE messages SET body = json_set(body, '$.Approved', 'yes'), station = '{ACCOUNTS}' WHERE key = ?"
_DONE = "UPDATE messages SET done = 1 WHERE key IN (?, ?)"
_JOURNAL_CHANGES = f"""INSERT INTO journal (time, verb, key, source, target, actor) VALUES
(?1, 'change', ?2, ?5, '{ACCOUNTS}', 'approve'),
(?1, 'done', ?3, ?5, ?5, 'approve'),
(?1, 'done', ?4, ?5, ?5, 'approve')"""
_STATE = "SELECT key, station, type, body, done FROM messages ORDER BY key"


def _clipspy() -> tuple[Any, Any, Any]:
    """The package, its C library and that one's types.

    The package has the name of this file and imports itself by it: while it loads, the name is the package's.
    """
    here, path, ours = Path(__file__).resolve().parent, sys.path[:], sys.modules.pop("clips", None)
    sys.path[:] = [each for each in path if Path(each).resolve() != here]
    try:
        package, c = import_module("clips"), import_module("clips._clips")
    finally:
        sys.path[:] = path
        if ours is not None:
            sys.modules["clips"] = ours
    return package, c.lib, c.ffi


_package, _lib, _ffi = _clipspy()


class Memory:
    """One CLIPS environment with the facts of all stations."""

    def __init__(self) -> None:
        self._environment = _package.Environment()
        for construct in _CONSTRUCTS:
            self._environment.build(construct)
        self._raw = self._environment._env
        names = {ORDER: b"order", NOTE: b"note", INVOICE: b"invoice"}
        self._builders = {type: _lib.CreateFactBuilder(self._raw, name) for type, name in names.items()}
        self._place_builder = _lib.CreateFactBuilder(self._raw, b"place")
        self._stations: dict[str, Any] = {}

    def close(self) -> None:
        for builder in (*self._builders.values(), self._place_builder):
            _lib.FBDispose(builder)
        self._builders.clear()  # what is freed is not used again

    def take(self, messages: Sequence[Message], bodies: Sequence[dict[str, Any]]) -> None:
        """By the builders of CLIPS and one value for all slots: so nothing of Python is left of a fact."""
        raw, builders, stations = self._raw, self._builders, self._stations
        put, make_fact, integer, real = _lib.FBPutSlot, _lib.FBAssert, _lib.CreateInteger, _lib.CreateFloat
        value = _ffi.new("CLIPSValue *")
        for (key, station, type, _), body in zip(messages, bodies, strict=True):
            builder = builders[type]
            value.value = integer(raw, key)
            put(builder, b"key", value)
            put(builder, b"station", stations.get(station) or self._station(station))
            value.value = integer(raw, body["Order No"])
            put(builder, b"number", value)
            if type != NOTE:
                value.value = real(raw, float(body["Amount"]))
                put(builder, b"amount", value)
                if type == ORDER and body["Approved"]:
                    value.value = _lib.CreateString(raw, body["Approved"].encode())
                    put(builder, b"approved", value)
            if not make_fact(builder):
                raise ValueError(f"CLIPS does not take message {key}")

    def _station(self, name: str) -> Any:
        """Its name as CLIPS has it, made once; a fact keeps it from being thrown away when no message is there."""
        value = self._stations[name] = _ffi.new("CLIPSValue *")
        value.value = _lib.CreateString(self._raw, name.encode())
        _lib.FBPutSlot(self._place_builder, b"name", value)
        _lib.FBAssert(self._place_builder)
        return value

    def run(self) -> int:
        return int(self._environment.run())

    def approvals(self) -> list[Approval]:
        """What the rule has done since this was asked last."""
        found: list[Approval] = []
        value, nothing, text = _ffi.new("CLIPSValue *"), _ffi.NULL, _ffi.string
        get, retract, after = _lib.GetFactSlot, _lib.Retract, _lib.GetNextFactInTemplate
        template = _lib.FindDeftemplate(self._raw, b"approval")
        fact = after(template, nothing)
        while fact:
            get(fact, nothing, value)
            said = value.multifieldValue.contents + 0  # a pointer: as an array it has a length of one
            order, note, invoice = said[0].integerValue, said[1].integerValue, said[2].integerValue
            station = text(said[3].lexemeValue.contents).decode()
            found.append((order.contents, note.contents, invoice.contents, station))
            told, fact = fact, after(template, fact)
            retract(told)
        return found

    def facts(self) -> list[str]:
        """All about messages, as text without the number that CLIPS gives to each."""
        templates = (self._environment.find_template(name) for name in ("order", "note", "invoice"))
        return sorted(str(fact) for template in templates for fact in template.facts())


class ClipsJoin:
    """A step is one commit. If one fails, working memory is ahead of the file: go on with ``restored``."""

    def __init__(self, file: Path) -> None:
        self.connection = apsw.Connection(str(file))
        for setting in _SETTINGS:
            self.connection.execute(setting)
        assert self.connection.pragma("synchronous") == 2
        assert self.connection.pragma("journal_mode") == "wal"
        self.connection.execute(_TABLES)
        self.memory = Memory()
        self.spent = dict.fromkeys(("SQLite", "read JSON", "assert", "run", "effects", "commit"), 0.0)

    def close(self) -> None:
        self.memory.close()
        self.connection.close()

    def give(self, messages: Sequence[Message]) -> int:
        """Process a step; answers how many orders it has approved."""
        if not messages:
            return 0
        with collector_off():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                approved = self._step(messages)
                self._timed("commit", lambda: self.connection.execute("COMMIT"))
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise
        return approved

    def _step(self, messages: Sequence[Message]) -> int:
        now = time_ns()
        self._timed("SQLite", lambda: self._arrive(now, messages))
        bodies = self._timed("read JSON", lambda: read([message[3] for message in messages]))
        self._timed("assert", lambda: self.memory.take(messages, bodies))
        self._timed("run", self.memory.run)
        approvals = self._timed("effects", self.memory.approvals)
        self._timed("SQLite", lambda: self._change(now, approvals))
        return len(approvals)

    def _arrive(self, now: int, messages: Sequence[Message]) -> None:
        self.connection.executemany(_ARRIVE, messages)
        self.connection.execute(_JOURNAL_ARRIVALS, (now, min(messages)[0]))
        assert self.connection.changes() == len(messages), "keys must grow from step to step"

    def _change(self, now: int, approvals: Sequence[Approval]) -> None:
        many = self.connection.executemany
        many(_APPROVE, [(order,) for order, _, _, _ in approvals])
        many(_DONE, [(note, invoice) for _, note, invoice, _ in approvals])
        many(_JOURNAL_CHANGES, [(now, *approval) for approval in approvals])

    def _timed(self, what: str, action: Callable[[], _T]) -> _T:
        start = perf_counter()
        answer = action()
        self.spent[what] += perf_counter() - start
        return answer


def restored(file: Path) -> ClipsJoin:
    """Working memory made again from the file: a fact for every message that is not done."""
    join = ClipsJoin(file)
    found = list(join.connection.execute("SELECT key, station, type, body FROM messages WHERE NOT done ORDER BY key"))
    with collector_off():
        join.memory.take(found, read([message[3] for message in found]))
    assert not join.memory.run(), "a step had not been finished"
    return join


def read(bodies: Sequence[str]) -> list[dict[str, Any]]:
    """All in one call, which takes less than one for each."""
    found: list[dict[str, Any]] = json.loads(f"[{','.join(bodies)}]")
    return found


# --- the work, and its check ---


def made(count: int, stations: int = STATIONS, seed: int = 1) -> list[Message]:
    """Orders, notes and invoices, a third each, in a random order."""
    chance, found = random.Random(seed), []
    for number in range(count // 3):
        station, amount = f"station {chance.randrange(stations)}", f"{chance.randrange(100, 1_000_000) / 100:.2f}"
        forms: dict[str, dict[str, object]] = {
            ORDER: {"Order No": number, "Customer": f"customer {number % 997}", "Amount": amount, "Approved": ""},
            NOTE: {"Order No": number, "Goods": f"goods {number % 89}", "Quantity": chance.randrange(1, 100)},
            INVOICE: {"Order No": number, "Amount": amount, "Terms": "30 days net"},
        }
        found += [(station, type, json.dumps(form)) for type, form in forms.items()]
    chance.shuffle(found)
    return [(key, *message) for key, message in enumerate(found, 1)]


def steps(messages: Sequence[Message], size: int) -> Iterator[Sequence[Message]]:
    for first in range(0, len(messages), size):
        yield messages[first : first + size]


def check_final(join: ClipsJoin, messages: Sequence[Message]) -> None:
    orders = len(messages) // 3
    found = dict(join.connection.execute("SELECT type || ' ' || done, count(*) FROM messages GROUP BY type, done"))
    assert found == {f"{ORDER} 0": orders, f"{NOTE} 1": orders, f"{INVOICE} 1": orders}, found
    approved = "SELECT count(*) FROM messages WHERE station = ? AND type = ? AND body ->> '$.Approved' = 'yes'"
    assert join.connection.execute(approved, (ACCOUNTS, ORDER)).get == orders
    verbs = dict(join.connection.execute("SELECT verb, count(*) FROM journal GROUP BY verb"))
    assert verbs == {"arrive": len(messages), "change": orders, "done": 2 * orders}, verbs
    facts = join.memory.facts()
    assert len(facts) == orders
    assert all(f'(station "{ACCOUNTS}")' in fact and '(approved "yes")' in fact for fact in facts)


def check_restored(folder: Path, messages: Sequence[Message], size: int) -> None:
    """Left after half of the steps and made again from the file, it ends as one that was never left."""
    whole, halved = ClipsJoin(folder / "whole.db"), ClipsJoin(folder / "halved.db")
    parts = list(steps(messages, size))
    for number, part in enumerate(parts):
        whole.give(part)
        if number == len(parts) // 2:
            before = halved.memory.facts()
            halved.close()
            halved = restored(folder / "halved.db")
            assert halved.memory.facts() == before
        halved.give(part)
    for join in (whole, halved):
        check_final(join, messages)
    assert list(whole.connection.execute(_STATE)) == list(halved.connection.execute(_STATE))
    assert whole.memory.facts() == halved.memory.facts()
    whole.close()
    halved.close()


def check_refused(folder: Path) -> None:
    """Another amount, another station and another number do not match; and what is done does not match again."""
    join = ClipsJoin(folder / "refused.db")
    order = '{"Order No": %d, "Customer": "c", "Amount": "%s", "Approved": ""}'
    note = '{"Order No": %d, "Goods": "g", "Quantity": 1}'
    invoice = '{"Order No": %d, "Amount": "%s", "Terms": "t"}'
    assert not join.give([(1, "a", ORDER, order % (1, "1.50")), (2, "a", NOTE, note % 1)])
    assert not join.give([(3, "a", INVOICE, invoice % (1, "1.51")), (4, "b", INVOICE, invoice % (1, "1.50"))])
    assert not join.give([(5, "a", INVOICE, invoice % (2, "1.50"))])
    assert join.give([(6, "a", INVOICE, invoice % (1, "1.5"))]) == 1
    assert not join.give([(7, "a", ORDER, order % (1, "1.50"))])
    matched = join.connection.execute("SELECT station, done FROM messages WHERE key IN (1, 2, 6) ORDER BY key")
    assert list(matched) == [(ACCOUNTS, 0), ("a", 1), ("a", 1)]
    join.close()


def measure(file: Path, messages: Sequence[Message], size: int) -> tuple[float, dict[str, float]]:
    """The seconds of all steps, and what took them."""
    join = ClipsJoin(file)
    start = perf_counter()
    for part in steps(messages, size):
        join.give(part)
    seconds = perf_counter() - start
    check_final(join, messages)
    join.close()
    return seconds, join.spent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    messages = made(parser.parse_args().messages)
    with TemporaryDirectory() as name:
        folder = Path(name)
        check_refused(folder)
        check_restored(folder, messages, max(len(messages) // 13, 1))
        taken: dict[int, list[tuple[float, dict[str, float]]]] = {size: [] for size in STEPS}
        for number in range(ROUNDS):
            for size, rounds in taken.items():
                rounds.append(measure(folder / f"{size}-{number}.db", messages, size))
    for size, rounds in taken.items():
        rates = [len(messages) / seconds for seconds, _ in rounds]
        print(f"steps of {size:,}: {median(rates):,.0f} messages/s ({min(rates):,.0f} to {max(rates):,.0f})")
        shares = {what: median(spent[what] / seconds for seconds, spent in rounds) for what in rounds[0][1]}
        print("  " + ", ".join(f"{what} {share:.0%}" for what, share in shares.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

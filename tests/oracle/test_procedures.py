"""Steps of procedures must end as one message at a time does: random offices, run by the engine and by the oracle."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import postroom
from postroom.engine.runner import Totals
from postroom.errors import FieldRefused, FunctionFailed
from postroom.model.key import key_text
from postroom.model.message import Stored
from postroom.model.moment import to_datetime
from postroom.model.types import plain
from postroom.room import Postroom
from postroom.stations.forms import functions
from postroom.stations.places.names import database, mailbox
from postroom.stations.places.postmarks import postmarks
from postroom.stations.procedures import claiming, interpreter
from postroom.stations.procedures.errors import ERROR
from postroom.stations.procedures.evaluation import evaluate_here
from postroom.store.kernel.transaction import Transaction

from .procedures import NEW, Case, Deed, Message, Oracle, Refused, cases

NOW = 1_000_000_000_000_000
STEPS_MAX = 80  # of one run; what is not at rest then is compared where it stands
_ALL = 1_000_000
_SETTINGS = settings(deadline=None, suppress_health_check=list(HealthCheck))
_schemas = count(1)

Looks = list[list[tuple[str, int]]]  # by step: stations, and how many messages were looked at there


# --- both of them ----------------------------------------------------------------------------------------------------


class Pair:
    """A room and an oracle with one office, and what happens in both."""

    def __init__(self, url: str, folder: Path, case: Case) -> None:
        file = folder / "office.form"
        file.write_text(case.office)
        self.room: Postroom = postroom.open(url, clock=lambda: NOW)
        self.room._parts.interpreter.evaluate = evaluate_here
        for name in case.stations:
            self.room._parts.network.add_station(name, "control", None)
        self.room.load(file)
        self.oracle = Oracle(case.office, case.stations, case.chain_max, to_datetime(NOW).date().isoformat())
        self.stations = case.stations
        self.chain_max = case.chain_max
        self._desks = {name: self.room.stations._station(name) for name in case.stations}

    def do(self, deed: Deed) -> bool:
        """False if it has no end."""
        if deed.verb == "run":
            return self.run(deed.which, deed.steps)
        act: Callable[[Deed], None] = getattr(self, f"_{deed.verb}")
        act(deed)
        return True

    # --- people ---

    def _create(self, deed: Deed) -> None:
        given, desk = dict(deed.given), self._desks[deed.station]
        code = _refusal(lambda: self.oracle.says(deed.station, deed.type, given, ""))
        if code is None:
            self.oracle.create(deed.station, deed.type, given, desk.create(deed.type, given))
        else:
            assert code == _refusal(lambda: desk.create(deed.type, given))

    def _modify(self, deed: Deed) -> None:
        message = self._chosen(deed)
        if message is not None:
            names = {each.name for each in self.oracle.forms[message.type].fields}
            given, key = {name: value for name, value in deed.given if name in names}, message.key
            code = _refusal(lambda: self.oracle.modify(key, given))
            assert code == _refusal(lambda: self._desks[deed.station].modify(key, given))

    def _copy(self, deed: Deed) -> None:
        message = self._chosen(deed)
        if message is not None:
            (new,) = self._desks[deed.station].copy(message.key)
            self.oracle.copy(message.key, new)

    def _ship(self, deed: Deed) -> None:
        message = self._chosen(deed)
        if message is not None:
            self._desks[deed.station].ship(message.key, deed.where)
            self.oracle.ship(message.key, deed.where)

    def _get(self, deed: Deed) -> None:
        limit = deed.which or None
        self._desks[deed.station].get(limit)
        self.oracle.get(deed.station, limit)

    def _file(self, deed: Deed) -> None:
        message = self._chosen(deed)
        if message is not None:
            self._desks[deed.station].add_to_dossier(deed.where, message.key)
            self.oracle.add_to_dossier(deed.station, deed.where, message.key)

    def _chosen(self, deed: Deed) -> Message | None:
        here = self.oracle.at(deed.station, mail=False)
        return here[deed.which % len(here)] if here else None

    def _switch(self, deed: Deed) -> None:
        kept = self.room.stations.procedures()[deed.which]
        (self.room.stations.disable_procedure if kept.enabled else self.room.stations.enable_procedure)(
            kept.procedure.name
        )
        self.oracle.enabled = [each.procedure.name for each in self.room.stations.procedures() if each.enabled]
        self.oracle.since[kept.procedure.name] += 1

    # --- the engine ---

    def run(self, size: int, steps: int | None) -> bool:
        """The engine, and the oracle after it; False if it does not come to rest, and so was stopped.

        One station has one order, whatever the steps. Of several, the oracle follows the engine's.
        """
        totals, looks = self.run_engine(size, steps)
        stopped = totals.steps in (steps, STEPS_MAX)
        if not stopped and len({each.station for each in self.oracle.known.values()}) == 1:
            self.oracle.run_serially()
        else:
            self.oracle.follow(looks)
        assert stopped or self.oracle.is_idle(), "the engine has left something"
        self.compare()
        return totals.steps < STEPS_MAX

    def run_engine(self, size: int, steps: int | None = None) -> tuple[Totals, Looks]:
        """What was done, and in every step the number of looks at each station."""
        looks: Looks = []
        commit = interpreter._Steps._commit

        def noted(engine: Any, found: Sequence[claiming.Look], *rest: Any) -> Any:
            answer = commit(engine, found, *rest)
            looks.append([(each.desk.station, _looks(each)) for each in found])
            return answer

        def stop(totals: Totals) -> None:
            if totals.steps in (steps, STEPS_MAX):
                self.room.stop()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(claiming, "CHAIN_MAX", self.chain_max)
            patch.setattr(interpreter._Steps, "_commit", noted)
            totals = self.room.engine.run_totals(until_idle=True, step_messages=size, progress=stop)
        return totals, looks

    # --- what is the case ---

    def compare(self) -> None:
        """Place by place and in order; new messages have the keys that the engine has given them."""
        names: dict[str, str] = {}
        both: list[tuple[Message, Stored]] = []
        for station in self.stations:
            for mail in (False, True):
                ours = self._held(mailbox(station) if mail else database(station))
                theirs = self.oracle.at(station, mail=mail)
                said = [(each.type, json.loads(each.body).get("K")) for each in ours]
                expected = [(each.type, each.said.get("K")) for each in theirs]
                where = f"{'mailbox of ' if mail else ''}{station}"
                assert said == expected, f"{where}:\n  the engine {said}\n  the oracle {expected}"
                both += zip(theirs, ours, strict=True)
        for message, stored in both:
            names[message.key] = key_text(stored.key)
            known = message.key if not message.key.startswith(NEW) else names[message.key]
            assert known == names[message.key], f"the engine has {names[message.key]} where the oracle has {known}"
        self.oracle.rename(names)
        for message, stored in both:
            self._compare_one(self.oracle.messages[names[message.key]], stored)
        self._compare_dossiers()
        self._compare_candidates()

    def _held(self, queue: str) -> list[Stored]:
        return self.room.store.read(lambda tx: tx.messages.next_of(queue, 0, _ALL))

    def _compare_one(self, message: Message, stored: Stored) -> None:
        assert stored.sound
        body, said = json.loads(stored.body), {name: plain(value) for name, value in message.said.items()}
        if message.type == ERROR.name:
            self._compare_error(message, body, said)
        about = postmarks(stored.properties)
        engine = (message.key, body, about.sender, about.depth, sorted(about.handled))
        oracle = (message.key, said, message.sender, message.depth, sorted(message.handled))
        assert engine == oracle, f"\n  the engine {engine}\n  the oracle {oracle}"

    def _compare_error(self, message: Message, body: dict[str, Any], said: dict[str, Any]) -> None:
        """The wording is the engine's; of several reasons it tells one."""
        codes = self.oracle.codes.get(message.key)  # none of a copy
        assert codes is None or body["Code"] in codes, f"{body}: {codes}"
        body["Messages"].sort()
        said["Messages"].sort()
        said |= {"Code": body["Code"], "Description": body["Description"]}

    def _compare_dossiers(self) -> None:
        oracle = {place: kept for place, kept in self.oracle.dossiers.items() if kept}
        engine = {
            (station, name): [each.key for each in desk.dossier(name)]
            for station, desk in self._desks.items()
            for name in desk.dossiers()
        }
        assert engine == oracle, f"dossiers:\n  the engine {engine}\n  the oracle {oracle}"

    def _compare_candidates(self) -> None:
        """Who waits where, the oldest first; then what people are shown of it."""
        engine: dict[tuple[str, str], list[str]] = {}
        for procedure, sketch, key in self.room.store.read(_candidates):
            kept = engine.setdefault((procedure, sketch), [])
            if key not in kept:
                kept.append(key)
        oracle = self.oracle.candidates()
        assert engine == oracle, f"candidates:\n  the engine {engine}\n  the oracle {oracle}"
        shown = {
            (each.procedure, sketch, key) for each in self.room.stations.waiting() for sketch, key in each.has.items()
        }
        if self._is_current():
            assert shown <= {(*place, key) for place, kept in oracle.items() for key in kept}
            waiting = {(procedure, key) for (procedure, _), kept in oracle.items() for key in kept}
            assert {(procedure, key) for procedure, _, key in shown} == waiting

    def _is_current(self) -> bool:
        """Whether every station has begun with the procedures that are enabled now."""
        oracle = self.oracle
        return all(
            (desk.procedures, desk.since) == (now, tuple(oracle.since[name] for name in now))
            for station, desk in oracle._desks.items()
            for now in [oracle.in_force_at(station)]
        )

    def compare_queries(self) -> None:
        """What is filed is what is there: by type, and by an index."""
        for station, desk in self._desks.items():
            here = self.oracle.at(station, mail=False)
            assert sorted(each.key for each in here) == [each.key for each in desk.messages()]
            waiting = [each.key for each in self.oracle.at(station, mail=True)]
            assert waiting == [each.key for each in desk.mail()]
            for type, name, value in (("A", "K", "X"), ("A", "N", 1), ("B", "S", "Y")):
                found = [each.key for each in desk.query(type, {name: str(value)})]
                assert found == sorted(each.key for each in here if each.type == type and each.said.get(name) == value)


def _refusal(work: Callable[[], object]) -> str | None:
    """The code by which something is refused; None if it is done."""
    try:
        work()
    except (Refused, FieldRefused, FunctionFailed) as refused:
        return refused.code
    return None


def _looks(look: claiming.Look) -> int:
    """How many messages that someone asks for were looked at; one whose set has failed will be looked at again."""
    failed = any(each.arrival == look.until for each in look.sets)
    seen = [each.stored for each in look.arrivals[: look.until + failed]]
    return sum(bool(look.desk.wants(each.type or "", postmarks(each.properties).handled)) for each in seen)


def _candidates(tx: Transaction) -> list[tuple[str, str, str]]:
    found = []
    for desk in tx.working_sets.all():
        for each in tx.working_sets.candidates(desk.id, (0, 0), _ALL):
            procedure, sketch, _ = each.slot.rsplit(".", 2)
            if each.is_there:
                found.append((procedure, sketch, key_text(each.message)))
    return found


@contextmanager
def pair(case: Case, url: str | None = None) -> Iterator[Pair]:
    with tempfile.TemporaryDirectory() as folder:
        made = Pair(url or str(Path(folder) / "room.db"), Path(folder), case)
        try:
            yield made
        finally:
            made.room.close()


def check(case: Case, url: str | None = None) -> None:
    with pair(case, url) as both:
        if all(both.do(deed) for deed in case.history) and both.run(100, None):
            both.compare_queries()


# --- generated -------------------------------------------------------------------------------------------------------


@settings(_SETTINGS, max_examples=30)
@given(cases())
def test_a_generated_office_ends_as_the_oracle_says(case: Case) -> None:
    check(case)


@pytest.mark.slow
@settings(_SETTINGS, max_examples=3_000)
@given(cases())
def test_thousands_of_generated_offices_end_as_the_oracle_says(case: Case) -> None:
    check(case)


@settings(_SETTINGS, max_examples=5, phases=[Phase.explicit, Phase.reuse, Phase.generate])  # shrink with SQLite
@given(case=cases())
def test_a_generated_office_ends_on_postgres_as_the_oracle_says(postgres_server: str, case: Case) -> None:
    schema = f"office_{next(_schemas)}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(psycopg.sql.SQL("CREATE SCHEMA {}").format(psycopg.sql.Identifier(schema)))
    check(case, f"{postgres_server}&options=-csearch_path%3D{schema}")


# --- directed --------------------------------------------------------------------------------------------------------


def office(procedures: str, *history: Deed, stations: tuple[str, ...] = ("X",), chain_max: int = 6) -> None:
    check(Case(procedures, stations, history, chain_max))


def create(type: str, station: str = "X", **given: str) -> Deed:
    return Deed("create", station, type=type, given=tuple(given.items()))


def run(size: int = 100, steps: int | None = None) -> Deed:
    return Deed("run", which=size, steps=steps)


_FAILING = """\
procedure pX0 at X
  precondition s0 : A
  precondition s1 : B
    K: ?s0.K
  destination d0 on s0 copy 0 ship ?s1.S
"""


def test_what_a_procedure_failed_with_waits_for_it_no_more_even_if_it_came_in_the_same_step() -> None:
    office(
        _FAILING,
        create("A", R="a", K="a"),
        create("B", K="a", S="Nobody"),
        run(),
        create("B", K="a", S="X"),
        run(),
    )


def test_what_a_person_has_written_on_is_offered_again_whoever_leaves_it_afterwards() -> None:
    leaves = "procedure pX1 at X\n  precondition s0 : A\n    D: 1\n"
    office(
        _FAILING + leaves,
        create("A", R="a", K="a"),
        create("B", K="a", S="Nobody"),
        run(),
        Deed("modify", "X", 0, given=(("D", "1"),)),
        run(),
        create("B", K="a", S="X"),
        run(),
    )


def test_of_sketches_that_are_alike_the_first_gets_the_oldest() -> None:
    text = "procedure pX0 at X\n  precondition s0 : B\n  precondition s1 : A\n  precondition s2 : A\n"
    text += "  action a1 on s1\n    N: 1\n  action a2 on s2\n    N: 2\n"
    for size in (1, 100):
        office(text, create("A", R="a"), create("A", R="a"), create("B"), run(size))


def test_who_was_handled_is_kept_no_longer() -> None:
    text = "procedure pX0 at X\n  precondition s0 : A\n  precondition s1 : B\n    K: ?s0.K\n"
    with pair(Case(text, ("X",), (), 6)) as made:
        for deed in (create("A", R="a", K="a"), run(), create("B", K="a"), run()):
            made.do(deed)
        (desk,) = made.room.store.read(lambda tx: tx.working_sets.all())
        assert made.room.store.read(lambda tx: tx.working_sets.candidates(desk.id, (0, 0), _ALL)) == []


def test_a_signature_does_not_depend_on_what_is_written() -> None:
    text = "procedure pX0 at X\n  precondition s0 : B\n  action a on s0\n    S: ?s0.G'\n"
    office(text, create("B"), run())


def test_a_field_that_a_function_makes_is_made_of_what_is_written_in_the_end() -> None:
    """On the way there it would refuse: a and 2."""
    text = 'procedure pX0 at X\n  precondition s0 : A\n  action a on s0\n    N: 2\n    K: turned("a", ?s0.N\')\n'
    office(text, create("A", R="a", K="a", N="1"), run())


def test_a_procedure_that_is_switched_off_and_on_keeps_its_place() -> None:
    both = "".join(f"procedure pX{number} at X\n  precondition s0 : A\n" for number in range(2))
    with pair(Case(both, ("X",), (), 6)) as made:
        before = [each.procedure.name for each in made.room.stations.procedures()]
        made.room.stations.disable_procedure("pX0")
        made.room.stations.enable_procedure("pX0")
        assert [each.procedure.name for each in made.room.stations.procedures()] == before


def test_errors_about_errors_come_to_an_end() -> None:
    text = f"procedure pX0 at X\n  precondition s0 : {ERROR.name}\n  destination d0 on s0 copy 0 ship ?s0.Procedure\n"
    text += "procedure pX1 at X\n  precondition s0 : A\n  destination d0 on s0 copy 0 ship ?s0.R\n"
    with pair(Case(text, ("X",), (), 3)) as made:
        made.do(create("A", R="a"))
        totals, _ = made.run_engine(100)
        assert totals.steps < STEPS_MAX, "the engine would tell of errors for ever"


@pytest.mark.parametrize("answer", [{"a": 1}, b"a", object()], ids=["dict", "bytes", "object"])
def test_a_function_that_answers_with_what_no_field_holds_fails(answer: Any) -> None:
    _fails_with(lambda *values: answer)


@pytest.mark.parametrize("why", ["a\x00b", "a\x1fb", "\ud800"])
def test_a_function_may_say_anything_when_it_fails(why: str) -> None:
    def refuse(*values: Any) -> None:
        raise ValueError(why)

    _fails_with(refuse)


@pytest.mark.parametrize("name", ["a\x00b", "\ud800", "\ufffe"])
def test_a_function_may_say_any_destination(name: str) -> None:
    _fails_with(lambda *values: name, "  destination d0 on s0 copy 0 ship strange(1)\n")


def _fails_with(strange: Callable[..., Any], rest: str = "  action a on s0\n    K: strange(1)\n") -> None:
    functions.provide({"strange": strange})
    text = f"procedure pX0 at X\n  precondition s0 : A\n{rest}"
    with pair(Case(text, ("X",), (), 3)) as made:
        made.do(create("A", R="a"))
        made.run_engine(100)
        assert made.room.stations._station("X").dossiers() == {"errors": 1}

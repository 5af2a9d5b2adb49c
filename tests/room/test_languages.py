"""The languages of a room: files that are printed define the same, and another language is one more in a list."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import postroom
from postroom import errors
from postroom.engine.language import Language, Load, Symbol, Terms, Trial, TrialResult
from postroom.model.definitions import Definition, Loaded, Position
from postroom.model.paths import text_of
from postroom.room import Postroom, loading
from postroom.room.identity import identity_of
from postroom.room.languages import languages
from postroom.room.reach import Loading
from postroom.store.kernel.base import Store
from postroom.store.kernel.transaction import Transaction

EXAMPLES = Path(__file__).parents[2] / "examples"
SETS = {
    "claims": ["claims.qdl", "claims.form", "claims.flow", "claims.demaq"],
    "location": ["location.flow"],
    "nexmark": ["nexmark.flow"],
    "office": ["holiday.form", "meeting.form"],
    "procurement": ["procurement.demaq"],
    "purchasing": ["purchase.form"],
    "queues": ["figure-2-2.qdl"],
    "trading": ["trading.flow"],
}
STATIONS = ("Cashier", "Director", "North", "South", "accounts", "archive", "buyer", "chair")
PROGRAM = """
create module shop errorqueue failed
create system errorqueue failed
create queue failed kind basic mode persistent
create queue orders kind basic mode persistent schema order.xsd priority 7 errorqueue failed
create queue late kind basic mode transient
create collection prices
create property total as xs:decimal fixed queue orders value //total
    queue late value 1
create property note as xs:string inherited queue orders, late
create property kind as xs:string queue orders, late value if (//queue) then "queue of" else "create rule x"
create slicing byKind on kind
create rule big for orders errorqueue failed
  if (//total > 100) then do enqueue <late>{ "create queue" }</late> into late
create rule sliced for byKind if (count(qs:slice()) > 3) then do reset
"""
SCHEMA = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="order"/></xs:schema>'
FLOW = """
domain market
  allow Ann : requestAddArc
  space trades : [issue: string, price: float] retain
  space big
  table rates : [code: string, rate: decimal, open: boolean, lots: int] from "sub/rates.csv"
  arc one : trades -> big select [issue: "IBM", price: > 100.5]
domain other
  space more : [n: int]
"""
CSV = 'code,rate,open,lots\nEUR,1.0950,true,7\n"A ""quoted"", one",0.10,FALSE,-3\n'


def shown(room: Postroom) -> list[tuple[str, str, object]]:
    """What is defined, without the places where it was written."""

    def plain(value: object) -> object:
        if isinstance(value, dict):
            return {
                name: plain(part) for name, part in value.items() if name not in ("line", "column", "schema", "source")
            }
        if isinstance(value, str):
            return re.sub(r' from ".*"$', "", value)  # the file of a table has another name then
        return [plain(part) for part in value] if isinstance(value, list) else value

    return sorted((entry.what, entry.name, plain(entry.definition)) for entry in room.definitions.catalog())


def opened(file: Path) -> Postroom:
    """A room with the stations and gateways that the examples name."""
    room = postroom.open(str(file))
    for name in STATIONS:
        room.stations.add(name, "a password")
    for name in ("supplier", "customer", "postalService"):
        room.gateways.add(name, "fetched")
    return room


def reloaded(room: Postroom, folder: Path) -> Postroom:
    """Another room, with what the first one printed."""
    folder.mkdir()
    files = room.definitions.files()
    for name, text in files.items():
        (folder / name).write_bytes(text)
    other = opened(folder / "other.db")
    suffixes = {language.suffix for language in languages()}
    other.load(*(folder / name for name in sorted(files) if Path(name).suffix in suffixes))
    return other


@pytest.mark.parametrize("example", SETS)
def test_the_examples_are_printed_and_loaded_as_the_same(example: str, tmp_path: Path) -> None:
    with opened(tmp_path / "room.db") as room:
        room.load(*(EXAMPLES / example / file for file in SETS[example]))
        with reloaded(room, tmp_path / "printed") as other:
            assert len(shown(room)) > 1
            assert shown(other) == shown(room)
            assert other.definitions.files() == room.definitions.files()


def test_every_kind_of_definition_is_printed(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "rates.csv").write_text(CSV)
    (tmp_path / "order.xsd").write_text(SCHEMA)
    (tmp_path / "any.demaq").write_text(PROGRAM)
    (tmp_path / "any.flow").write_text(FLOW)
    with postroom.open(str(tmp_path / "room.db")) as room:
        room.load(tmp_path / "any.demaq", tmp_path / "any.flow")
        files = room.definitions.files()
        assert sorted(files) == ["market-rates.csv", "market.flow", "orders.xsd", "other.flow", "shop.demaq"]
        assert files["orders.xsd"].decode() == SCHEMA
        with reloaded(room, tmp_path / "printed") as other:
            assert shown(other) == shown(room)
            assert {"rule", "property", "slicing", "table", "arc", "allow"} <= {
                entry.what for entry in other.definitions.catalog()
            }


def test_what_is_printed_stays_in_its_folder(tmp_path: Path) -> None:
    """A source with a path is a file that someone else's program named."""
    (tmp_path / "rates.csv").write_text(CSV)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "any.flow").write_text(FLOW.replace("sub/rates.csv", "../rates.csv"))
    with postroom.open(str(tmp_path / "room.db")) as room:
        room.load(tmp_path / "in" / "any.flow")
        assert all("/" not in name for name in room.definitions.files())


@dataclass(frozen=True)
class Greetings(Load):
    names: tuple[str, ...]
    count = 2

    def symbols(self) -> Iterator[Symbol]:
        return (Symbol("greeting", name, Position("x.greet", 1)) for name in self.names)

    def check(self, store: Store | None, *, alone: bool) -> None:
        if "Nobody" in self.names:
            raise errors.NameInvalid(name="Nobody", why="nobody is greeted")

    def prepare(self, store: Store, terms: Terms) -> Load:
        return self

    def write(self, tx: Transaction) -> Loaded:
        version = tx.definitions.replace("greeting", [Definition("greeting", name) for name in self.names], {})
        return Loaded(version, added=self.names)

    def tried(self, trial: Trial) -> Iterator[TrialResult]:
        return iter(())


class GreetingLanguage:
    """Another language: one class, and one more in a list."""

    suffix = ".greet"
    others = ()
    defines = "greetings"

    def read(self, files: Sequence[Path]) -> Greetings:
        return Greetings(tuple(name for file in files for name in text_of(file).split()))

    def printed(self, tx: Transaction, version: int | None = None) -> dict[str, bytes]:
        return {"all.greet": " ".join(each.name for each in tx.definitions.of_kind("greeting")).encode()}


def test_another_language_is_one_more_in_the_list(tmp_path: Path) -> None:
    known: tuple[Language, ...] = (*languages(), GreetingLanguage())
    (tmp_path / "some.greet").write_text("Ann Bob")
    (tmp_path / "tree.qdl").write_text("01 INPUT-QUEUE (a)\n99\n")
    sources = loading.read([tmp_path / "some.greet", tmp_path / "tree.qdl"], known)
    assert (sources.count, sources.alone) == (3, False)
    with postroom.open(str(tmp_path / "room.db")) as room:
        sources.check(room.store)
        loaded = sources.load(room.store, Terms(sources.files, "Ann", "here", sources.alone))
        assert loaded.added == ("INP_0000", "Ann", "Bob")
        assert {entry.name for entry in room.definitions.catalog()} == {"a", "Ann", "Bob"}
        assert room.store.read(known[-1].printed) == {"all.greet": b"Ann Bob"}


def test_what_another_language_does_is_for_operators_until_its_rights_are_known(tmp_path: Path) -> None:
    (tmp_path / "some.greet").write_text("Ann Bob")
    sources = loading.read([tmp_path / "some.greet"], (*languages(), GreetingLanguage()))
    with postroom.open(str(tmp_path / "room.db")) as room:
        room.flows.add_principal("ann", "secret")
        room.access.grant("ann", "load", "*")
        terms = Terms(sources.files, "ann", "here", sources.alone)

        def loading_for_ann(tx: Transaction) -> Loading:
            return Loading(room._parts, identity_of(tx, "ann"), sources.files)

        with pytest.raises(errors.RightMissing, match=r"some\.greet"):
            sources.load(room.store, terms, loading_for_ann)
        assert room.definitions.catalog() == []
        room.access.grant("ann", "operate")
        sources.load(room.store, terms, loading_for_ann)
        assert {entry.name for entry in room.definitions.catalog()} == {"Ann", "Bob"}


def test_a_refusal_of_one_language_leaves_nothing_of_another(tmp_path: Path) -> None:
    (tmp_path / "tree.qdl").write_text("01 INPUT-QUEUE (a)\n99\n")
    (tmp_path / "bad.demaq").write_text("create rule r for nowhere if (1) then do reset")
    with postroom.open(str(tmp_path / "room.db")) as room:
        with pytest.raises(errors.ProgramInvalid):
            room.load(tmp_path / "tree.qdl", tmp_path / "bad.demaq")
        assert room.definitions.catalog() == []


def test_a_suffix_that_no_language_has_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    with pytest.raises(errors.LanguageUnknown, match=r"\.qdl \(queue descriptions\), \.form .*\.flow .*\.demaq"):
        loading.read([tmp_path / "x.txt"])


def test_a_language_that_is_imported_later_is_what_the_list_says_of_it() -> None:
    for later in languages():
        made = later.make()
        assert (later.suffix, later.others, later.defines) == (made.suffix, made.others, made.defines)


def test_an_arc_is_printed_as_it_was_written(tmp_path: Path) -> None:
    text = "arc big   : Trades -> Big\n  select [price: p > 75,   # dear\n          volume: > 1000]"
    spaces = "".join(f"space {name} : [price: int, volume: int]\n" for name in ("Trades", "Big"))
    (tmp_path / "own.flow").write_text(f"domain own\n{spaces}{text}  # behind it\n")
    with opened(tmp_path / "room.db") as room:
        room.load(tmp_path / "own.flow")
        assert room.definitions.files()["own.flow"].decode().endswith(f"\n{text}\n")
        with reloaded(room, tmp_path / "printed") as other:
            assert shown(other) == shown(room)
        (tmp_path / "own.flow").write_text(f"domain own\n{spaces}{' '.join(text.replace('# dear', '').split())}\n")
        room.load(tmp_path / "own.flow")
        assert room.definitions.files()["own.flow"].decode().endswith(" select [price: p > 75, volume: > 1000]\n")

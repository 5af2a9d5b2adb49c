"""Programs in the store: loaded by module, all or nothing, with what stays and what may not go."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from tests.rules.conftest import Load, without_spark

import postroom
from postroom.errors import (
    CollectionUnknown,
    LanguageUnknown,
    NameTaken,
    PostroomError,
    ProgramInvalid,
    QueueInUse,
    SchemaMalformed,
    SlicingInUse,
    XmlForbidden,
)
from postroom.model.definitions import Definition
from postroom.room import Postroom
from postroom.rules.programs import read
from postroom.store.tables.definitions import Definitions

A = "create queue a kind basic mode persistent\n"
B = "create queue b kind basic mode persistent\n"
SLICED = f"{A}create property p as xs:string queue a value string(/x) create slicing s on p\n"
RULE = "create rule r for a if (/x) then do enqueue <y/> into b\n"


def file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def names(room: Postroom) -> list[str]:
    return [f"{each.what} {each.name}" for each in room.definitions.catalog()]


def doors(room: Postroom) -> dict[str, bool]:
    return {queue.name: bool(queue.admission) for queue in room.store.read(lambda tx: tx.queues.all())}


def state(room: Postroom) -> Any:
    """All that a refused load must leave as it was."""
    queues = room.store.read(lambda tx: [queue[:9] for queue in tx.queues.all()])
    version = room.store.read(lambda tx: tx.definitions.version())
    return queues, version, names(room), room.store.read(lambda tx: tx.slices.ids("slicing"))


def test_a_module_is_loaded_and_loaded_again_in_its_place(room: Postroom, tmp_path: Path) -> None:
    program = file(tmp_path, "shop.demaq", A + B + RULE)
    first = room.load(program)
    assert (first.version, first.added) == (1, ("module shop", "queue a", "queue b", "rule r"))
    again = room.load(program)
    assert (again.version, again.added, again.changed) == (1, (), ())
    assert again.kept == first.added
    program.write_text(A + B + RULE.replace("<y/>", "<z/>") + "create collection c")
    third = room.load(program)
    assert third.as_dict() == {
        "status": "00",
        "version": 2,
        "added": ["collection c"],
        "changed": ["rule r"],
        "kept": ["module shop", "queue a", "queue b"],
        "passwords": [],
        "removed": [],
    }
    program.write_text(A)
    assert room.load(program).removed == ("queue b", "rule r", "collection c")
    assert names(room) == ["module shop", "queue a"]


def test_modules_stand_beside_each_other_and_may_use_each_other(room: Postroom, tmp_path: Path) -> None:
    room.load(file(tmp_path, "one.demaq", A))
    room.load(file(tmp_path, "two.demaq", f"create module second {B}{RULE}"))
    assert names(room) == ["module one", "queue a", "module second", "queue b", "rule r"]
    with pytest.raises(ProgramInvalid, match="no queue or slicing a"):
        room.load(file(tmp_path, "one.demaq", "create collection other"))
    with pytest.raises(ProgramInvalid, match=r"the name a is taken: see .*one.demaq:1:1"):
        room.load(file(tmp_path, "three.demaq", A))
    assert names(room) == ["module one", "queue a", "module second", "queue b", "rule r"]


def test_several_files_are_one_load(room: Postroom, tmp_path: Path) -> None:
    one, two = file(tmp_path, "one.demaq", RULE), file(tmp_path, "two.demaq", A + B)
    assert room.load(one, two).version == 1
    assert names(room) == ["module one", "rule r", "module two", "queue a", "queue b"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (A + RULE, ProgramInvalid),
        (f"{A}{B}create rule r for a if ($x) then do enqueue . into b", ProgramInvalid),
        ("create queue taken kind basic mode persistent", NameTaken),
        ("create queue q kind basic mode persistent schema missing.xsd", ProgramInvalid),
        ("create queue q kind basic mode persistent schema bad.xsd", SchemaMalformed),
    ],
)
def test_a_refused_load_changes_nothing(room: Postroom, tmp_path: Path, text: str, kind: type[PostroomError]) -> None:
    room.queues.create("taken")
    room.load(file(tmp_path, "first.demaq", "create queue first kind basic mode persistent"))
    (tmp_path / "bad.xsd").write_text("<a/>")
    before = state(room)
    with pytest.raises(kind):
        room.load(file(tmp_path, "second.demaq", text))
    assert state(room) == before


def test_a_queue_with_messages_cannot_vanish(load: Load) -> None:
    room = load(A + B + RULE)
    room.send("a", "<x/>", format="xml")
    with pytest.raises(QueueInUse, match=r"a cannot be removed: it has 1 unprocessed.*it is defined at .*p.demaq:1:1"):
        load(B, room)
    room.run_until_idle()
    with pytest.raises(QueueInUse, match="b cannot be removed"):
        load(A, room)
    load(B, room)
    assert [each.body for each in room.queues.info("b")] == ["<y/>"]
    assert len(list(room.queues.history("a"))) == 1  # under its name its history stays readable
    load(A + B + RULE, room)
    room.send("a", "<x/>", format="xml")
    room.run_until_idle()
    assert len(list(room.queues.info("b"))) == 2


def test_a_queue_whose_messages_a_slice_holds_cannot_vanish(load: Load) -> None:
    room = load(
        f"{SLICED}{B}create property q as xs:string queue b create rule r for a if (/x) then do enqueue <y/> into b"
    )
    room.send("a", "<x>1</x>", format="xml")
    room.run_until_idle()
    with pytest.raises(QueueInUse, match="a cannot be removed: it has 1"):
        load(f"{B}create property p as xs:string queue b create slicing s on p", room)


def test_a_slicing_that_holds_messages_goes_only_when_dropped(load: Load) -> None:
    room = load(f"{SLICED}{B}{RULE}")
    key = room.send("a", "<x>k1</x>", format="xml").key
    room.run_until_idle()
    before = state(room)
    with pytest.raises(SlicingInUse, match="slicing s cannot be removed: its slice 'k1' has messages"):
        load(A + B + RULE, room)
    assert state(room) == before
    load(A + B + RULE, room, drop=True)
    assert room.journal.why(key).removable
    assert room.engine.sweep() == 1
    load(f"{SLICED}{B}{RULE}", room)
    assert room.journal.slice("s", "k1") == []


def test_names_of_other_queues_are_taken(room: Postroom, tmp_path: Path) -> None:
    room.queues.create("a")
    with pytest.raises(NameTaken, match="the name a is taken by a queue of kind"):
        room.load(file(tmp_path, "p.demaq", A))
    room.load(file(tmp_path, "p.demaq", B))
    with pytest.raises(PostroomError):
        room.queues.create("b")


def test_rules_may_watch_and_fill_queues_that_were_made_by_hand(load: Load) -> None:
    room = load("create collection c")
    for name in ("a", "b"):
        room.queues.create(name)
    load(RULE, room)
    room.send("a", "<x/>", format="xml")
    room.run_until_idle()
    assert [each.body for each in room.queues.info("b")] == ["<y/>"]
    assert [each.body for each in room.queues.history("a")] == ["<x/>"]
    assert room.engine.sweep() == 0  # such queues keep their history


def test_doors_are_set_where_something_is_to_be_worked_out_and_cleared_again(load: Load, tmp_path: Path) -> None:
    (tmp_path / "x.xsd").write_text(
        '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="x"/></xs:schema>'
    )
    many = "".join(f"create queue {name} kind basic mode persistent\n" for name in ("plain", "out", "asks", "indexed"))
    room = load(
        f"""{many}create queue echo kind echo mode persistent
        create queue schema kind basic mode persistent schema x.xsd
        create queue property kind basic mode persistent create property p as xs:string queue property
        create queue gate kind incomingGateway mode persistent
        create rule r for plain if (qs:queue("indexed")[x = "1"]) then do enqueue . into out
        create rule s for asks if (qs:property("sender")) then do enqueue . into out"""
    )
    assert doors(room) == {
        "plain": False, "out": False, "asks": True, "indexed": True, "echo": True, "schema": True, "property": True,
        "gate": True, "postroom-errors": False,
    }  # fmt: skip
    load(many, room)
    assert doors(room) == {"plain": False, "out": False, "asks": False, "indexed": False, "postroom-errors": False}


def test_a_loaded_program_sets_the_doors_of_other_rooms_too(url: str, tmp_path: Path) -> None:
    program = file(tmp_path, "p.demaq", A)
    with postroom.open(url) as room, postroom.open(url) as other:
        room.load(program)
        other.send("a", "<x>1</x>", format="xml")
        program.write_text(SLICED)
        room.load(program)
        other.send("a", "<x>2</x>", format="xml")
        assert [each.properties for each in other.queues.info("a")][1]["p"] == "2"
        assert [each.body for each in room.journal.slice("s", "2")] == ["<x>2</x>"]


def test_collections_are_made_by_a_program_and_filled_from_files(load: Load, tmp_path: Path) -> None:
    room = load(
        f"{A}{B}create collection c "
        "create rule r for a if (/x) then do enqueue <y>{collection('c')/p/@n/data()}</y> into b"
    )
    room.send("a", "<x/>", format="xml")
    room.run_until_idle()
    one = file(tmp_path, "one.xml", "<?xml version='1.0'?><p n='1'/>")
    two = file(tmp_path, "two.xml", "<p n='2'/>")
    assert room.definitions.load_collection("c", one, two) == 2
    room.send("a", "<x/>", format="xml")
    room.run_until_idle()
    assert room.definitions.load_collection("c", two) == 3
    room.send("a", "<x/>", format="xml")
    room.run_until_idle()
    assert [each.body for each in room.queues.info("b")] == ["<y/>", "<y>1 2</y>", "<y>2</y>"]
    assert room.definitions.load_collection("c", two) == 3
    with pytest.raises(CollectionUnknown, match="create collection d"):
        room.definitions.load_collection("d", one)
    with pytest.raises(XmlForbidden):
        room.definitions.load_collection("c", file(tmp_path, "bad.xml", "<!DOCTYPE p []><p/>"))
    with pytest.raises(PostroomError):
        room.definitions.load_collection("c")


def test_a_claim_is_evaluated_by_the_program_it_was_claimed_under(load: Load) -> None:
    room = load(A + B + RULE)
    old = room.store.read(lambda tx: read(tx))
    load(A + B + RULE.replace("<y/>", "<z/>"), room)
    assert room.store.read(lambda tx: read(tx, 1)) == old
    assert "<z/>" in room.store.read(lambda tx: read(tx)).rules["r"].body.text
    plan = room.store.read(room._parts.programs.plan)
    assert plan.version == 2
    assert room.store.read(room._parts.programs.plan) is plan


def test_queues_that_come_and_go_are_known_without_a_new_version(load: Load) -> None:
    room = load(A)
    before = room.store.read(room._parts.programs.plan)
    room.queues.create("new")
    after = room.store.read(room._parts.programs.plan)
    assert before.version == after.version
    assert after.known - before.known == {"new"}


def test_a_tree_and_a_program_are_loaded_in_one_transaction(room: Postroom, tmp_path: Path) -> None:
    tree = file(tmp_path, "t.qdl", "01 INPUT-QUEUE (TREE)\n99")
    program = file(tmp_path, "p.demaq", f"{B}create rule r for INP_0000 if (/x) then do enqueue . into b")
    loaded = room.load(tree, program)
    assert set(loaded.added) == {"INP_0000", "module p", "queue b", "rule r"}
    program.write_text(f"{B}create rule r for INP_0000 if ($x) then do enqueue . into b")
    tree.write_text("01 INPUT-QUEUE (OTHER)\n99")
    before = state(room)
    with pytest.raises(ProgramInvalid):
        room.load(tree, program)
    assert state(room) == before
    assert "TREE" in room.definitions.hierarchy()


def test_two_loads_at_once_are_one_after_the_other(url: str, tmp_path: Path) -> None:
    files = [
        file(tmp_path, f"m{number}.demaq", f"create queue q{number} kind basic mode persistent") for number in range(4)
    ]
    failures: list[BaseException] = []

    def load(path: Path) -> None:
        try:
            with postroom.open(url) as mine:
                mine.load(path)
        except BaseException as error:  # told below, in the test's own thread
            failures.append(error)

    with postroom.open(url) as room:
        threads = [threading.Thread(target=load, args=(path,)) for path in files]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert room.store.read(lambda tx: tx.definitions.version()) == 4
        assert {name for name in names(room) if name.startswith("queue")} == {f"queue q{number}" for number in range(4)}


def test_a_load_looks_at_one_version_of_the_definitions(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another load is committed before it or after it, never between two looks at what there is."""
    of_kind, others = Definitions.of_kind, list[threading.Thread]()

    def load(path: Path) -> None:
        with postroom.open(url) as mine:
            mine.load(path)

    def late(definitions: Definitions, kind: str, version: int | None = None) -> list[Definition]:
        if kind == "type" and not others:  # rules have been looked at, and are again
            others.append(threading.Thread(target=load, args=(file(tmp_path, "b.demaq", B),)))
            others[0].start()
            others[0].join(2)  # it waits for the other, so that time is over
        return of_kind(definitions, kind, version)

    with postroom.open(url) as room:
        monkeypatch.setattr(Definitions, "of_kind", late)
        room.load(file(tmp_path, "a.demaq", A))
        others[0].join()
        assert room.store.read(lambda tx: tx.definitions.version()) == 2
        assert {"queue a", "queue b"} <= set(names(room))


def test_a_language_is_known_by_its_suffix(room: Postroom, tmp_path: Path) -> None:
    with pytest.raises(LanguageUnknown, match=r"\.demaq"):
        room.load(file(tmp_path, "p.txt", A))


def test_checking_loads_nothing(room: Postroom, tmp_path: Path) -> None:
    assert room.definitions.check(file(tmp_path, "p.demaq", A + B + RULE)) == 4
    assert names(room) == []
    with pytest.raises(ProgramInvalid):
        room.definitions.check(file(tmp_path, "p.demaq", A + RULE))


def test_a_load_takes_effect_between_two_steps(load: Load) -> None:
    room = load(A + B + RULE)
    room.send_many("a", ["<x/>"] * 3, format="xml")
    without_spark(room).run_until_idle(step_messages=1)
    load(A + B + RULE.replace("<y/>", "<z/>"), room)
    room.send_many("a", ["<x/>"] * 2, format="xml")
    room.run_until_idle()
    assert [each.body for each in room.queues.info("b")] == ["<y/>"] * 3 + ["<z/>"] * 2

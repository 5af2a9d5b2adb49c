"""The program in force: what it says without being compiled is what its plan says."""

from __future__ import annotations

from pathlib import Path

from tests.rules.conftest import Load

from postroom.rules.programs import Programs, read
from postroom.store.kernel.queues import SYSTEM_ERRORS

PROGRAM = """create module m errorqueue e3
create queue a kind basic mode persistent errorqueue e1 create queue b kind basic mode persistent
create queue e1 kind basic mode persistent create queue e2 kind basic mode persistent
create queue e3 kind basic mode persistent create queue quiet kind basic mode persistent
create queue later kind echo mode persistent
create property k as xs:string queue a, b value //k create slicing s on k create slicing t on connection
create rule one for a errorqueue e2 if (//x) then do enqueue <y/> into b
create rule two for s if (//done) then do reset
"""


def test_a_program_is_read_once_for_each_version_and_compiled_when_it_is_asked_for(load: Load, tmp_path: Path) -> None:
    room, programs = load(PROGRAM), Programs()
    program = room.store.read(programs.program)
    assert programs._plan is None
    assert room.store.read(programs.program) is program
    plan = room.store.read(programs.plan)
    assert room.store.read(programs.plan) is plan
    (tmp_path / "p.demaq").write_text(PROGRAM + "create rule three for quiet if (//x) then do enqueue <y/> into b\n")
    room.load(tmp_path / "p.demaq")
    assert "three" in room.store.read(programs.program).rules
    assert "quiet" in room.store.read(programs.plan).queues
    assert room.store.read(read) == room.store.read(programs.program)


def test_what_is_told_without_a_plan_is_what_a_plan_tells(load: Load) -> None:
    room, programs = load(PROGRAM), Programs()
    program, plan = room.store.read(lambda tx: (programs.program(tx), programs.plan(tx)))
    assert set(program.watched) == set(plan.queues)
    levels = [name for names in plan.error_queues.values() for name in names]
    assert program.every_error_queue() == list(dict.fromkeys([SYSTEM_ERRORS, *levels]))
    assert {"e1", "e2", SYSTEM_ERRORS} <= set(program.every_error_queue())
    for queue in [*program.queues, "unheard-of"]:
        slicings = [(slicing.name, slicing.property) for slicing in program.slicings_into(queue)]
        assert slicings == list(plan.target(queue).slicings)
    assert [slicing.name for slicing in program.slicings_into("later")] == ["t"]
    assert program.slicings_into("unheard-of") == []

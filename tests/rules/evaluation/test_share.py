"""The share of the rules in a step: what they watch, and in which version."""

from __future__ import annotations

from postroom.rules.compilation.compiler import compiled
from postroom.rules.compilation.plan import Plan
from postroom.rules.evaluation.share import RulesShare
from postroom.rules.language.definitions import Program
from postroom.rules.language.reader import parse


def plan(text: str = "create rule r for a if (/x) then do enqueue <y>{string(/x)}</y> into b") -> Plan:
    queues = "create queue a kind basic mode persistent create queue b kind basic mode persistent\n"
    return compiled(Program(parse(queues + text, "f.demaq")), 7, "m")


def test_a_share_tells_the_engine_what_it_watches() -> None:
    text = """create queue c kind basic mode persistent priority 5 create queue wait kind echo mode persistent
    create property p as xs:string queue c create slicing s on p
    create rule r for a if (/x) then do enqueue . into b create rule t for s if (/x) then do reset"""
    share = RulesShare(plan(text))
    watched = share.watched
    assert (share.version, dict(watched.queues), watched.echoes) == (7, {"a": 0, "c": 5}, ("wait",))
    assert watched.sliced == frozenset({"c"})
    assert (watched.windows, watched.staying) == ({}, frozenset())

"""Whatever a verb is given from Python: it answers, or refuses with an error of ours and has changed nothing."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

import postroom
from postroom.errors import ArgumentInvalid, PostroomError
from postroom.model.arguments import check_of, parameter_types
from postroom.queues.leases.leased import LeasedMessage
from postroom.room import Postroom
from postroom.room.parts import RoomPart

#: Of every kind of Python value one that is wrong in most places; a text that is no text, numbers that are none.
WRONG: tuple[Any, ...] = (
    None,
    "x",
    "",
    "\ud800",
    "a\0b",
    b"x",
    -1,
    0,
    2.5,
    10**30,
    -(10**400),
    float("nan"),
    float("inf"),
    float("-inf"),
    True,
    [],
    [None],
    {},
    {"x": object()},
    (1, "x"),
    object(),
    datetime.max.replace(tzinfo=UTC),
    datetime(2026, 1, 1),
    len,
)
#: What is right, by the names of parameters.
RIGHT: dict[str, Any] = {
    "queue": "q",
    "name": "free",
    "names": "q",
    "queues": ["q"],
    "body": "x",
    "bodies": ["x"],
    "segments": ["x"],
    "count": 1,
    "keep_processed": True,
    "password": "secret",
    "cron": "0 7 * * *",
    "to": "other",
    "number": 1,
    "messages": [],
    "space": "S",
    "event": "[1]",
    "events": ["[1]"],
    "id": "s1",
    "key": "00001.00001",
    "state": "ACTIVE",
    "states": ["A", "B"],
    "transitions": [("A", "B")],
    "entity": "e",
    "reason": "because",
    "file": "nowhere.jsonl",
    "url": "postgresql://nowhere.invalid/x",
    "participant": None,
    "text": "x",
    "source": "T1",
    "object": "q",
    "verb": "look",
    "principal": "ann",
    "transport": "http",
    "token": "x",
    "destinations": [("q",)],
    "folder": "nowhere",
    "seq": 1,
    "since": 1,
    "kind": "journal",
    "keys": ["00001.00001"],
    "type": "ORDER",
    "before": None,
    "files": "nowhere.demaq",
    "age": None,
    "statement": "SELECT 1",
    "rows": [{"body": "x", "format": "text", "type": None, "properties": {}}],
    "message_count": 1,
    "digest": "0" * 32,
    "answer": [],
    "several": [{"No": 1}],
    "dossier": "d",
    "rule": "r",
    "arc": "a",
    "procedure": "p",
    "counter": "c",
    "node": "north",
    "station": "Ann",
    "slicing": "s",
    "effect": 1,
    "limit": 1,
    "recipients": ["q"],
    "compensation": "y",
    "function": len,
    "forms": "ORDER",
    "writer": None,
}
#: They wait, write files elsewhere, need Spark or a network, or are for the inside of servers.
NOT_CALLED = {
    "run",
    "stream",
    "stop",
    "drain",
    "export",
    "settle",
    "settle_database",
    "compensator",
    "compensate",
    "run_totals",
    "run_senders",
    "http_app",
    "mail_server",
    "present",
    "note_refusals",
    "restore",
    "sql",
    "spark_plan",
    "try_out",
    "run_until_idle",
}


def objects(room: Postroom, tmp_path: Path) -> dict[str, Callable[[], Any]]:
    """Makes one of each kind of object that has verbs."""
    (tmp_path / "g.flow").write_text("domain d\nspace S : [n: int]\n")
    (tmp_path / "o.form").write_text("type ORDER\n| No: ____ |\nfield No int required\n")
    room.load(tmp_path / "g.flow", tmp_path / "o.form")
    room.stations.add("Ann", "secret")
    for name in ("q", "other"):
        room.queues.create(name)
    room.queues.create_source("T1")
    room.flows.add_principal("ann", "secret")
    room.send_many("q", ["x"] * 3, properties={"n": 1})
    client = room.client("kim")
    machine = room.spheres.machine(["A", "B"], [("A", "B")])

    def leased() -> LeasedMessage:
        room.send("q", "x")
        message = room.receive("q", lease=600).message
        assert message is not None
        return message

    return {
        "queues": lambda: room.queues,
        "consumers": lambda: room.consumers,
        "flows": lambda: room.flows,
        "spheres": lambda: room.spheres,
        "access": lambda: room.access,
        "handle": lambda: room.queue("q"),
        "lease": leased,
        "client": lambda: client,
        "machine": lambda: machine,
        "workers": postroom.Workers,
        "session": lambda: room.queues.session(),
        "station": lambda: room.stations.admitted("Ann"),
        "stations": lambda: room.stations,
        "journal": lambda: room.journal,
        "definitions": lambda: room.definitions,
        "operations": lambda: room.operations,
        "engine": lambda: room.engine,
        "sphere": lambda: room.sphere(),
    }


def verbs(thing: Any) -> Iterator[tuple[str, inspect.Signature, dict[str, Any]]]:
    for name in sorted(dir(type(thing))):
        member = inspect.getattr_static(type(thing), name)
        if inspect.isfunction(member) and not name.startswith("_") and name not in NOT_CALLED and name != "as_dict":
            yield name, inspect.signature(member), parameter_types(member)


def calls(signature: inspect.Signature, wrong: str, value: Any) -> tuple[list[Any], dict[str, Any]]:
    """All that must be given, right, and one that is wrong."""
    args, named = [], {}
    for parameter in list(signature.parameters.values())[1:]:
        needed = parameter.default is parameter.empty
        if parameter.kind is parameter.VAR_KEYWORD or not (needed or parameter.name == wrong):
            continue
        given = value if parameter.name == wrong else RIGHT[parameter.name]
        if parameter.kind is parameter.KEYWORD_ONLY or (not needed and parameter.kind is not parameter.VAR_POSITIONAL):
            named[parameter.name] = given
        else:
            args.append(given)
    return args, named


def newest(room: Postroom) -> int:
    return room.store.read(lambda tx: tx.journal.newest())


def attempt(room: Postroom, call: Callable[[], Any], *, must: bool) -> str | None:
    """What is wrong with a call: nothing (None) if it was refused with an error of ours, or ("") if it was done."""
    before = newest(room)
    try:
        result = call()
        if inspect.isgenerator(result):
            result.close()
    except PostroomError as refusal:
        return None if newest(room) == before else f"{refusal!r} and changed something"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "was taken" if must else ""


PARTS = [
    *("queues", "consumers", "flows", "spheres", "handle", "lease", "client", "machine", "workers", "session"),
    *("station", "stations", "journal", "definitions", "operations", "engine", "sphere"),
]


def test_the_types_of_every_verb_can_be_read() -> None:
    for module in iter_modules(postroom.room.__path__, "postroom.room."):
        import_module(module.name)
    verbs = [
        getattr(member, "__wrapped__", member)
        for kind in RoomPart.__subclasses__()
        for name, member in vars(kind).items()
        if not name.startswith("_") and inspect.isfunction(member)
    ]
    assert len(verbs) > 100
    for verb in verbs:
        assert set(parameter_types(verb)) <= {*inspect.signature(verb).parameters, "return"}


@pytest.mark.parametrize("part", PARTS)
def test_every_verb_refuses_wrong_values_with_an_error_of_ours(
    tmp_path: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # whatever a verb takes for a path
    with postroom.open(tmp_path / "room.db") as room:
        check_verbs(room, objects(room, tmp_path), part)


@pytest.mark.slow
@pytest.mark.parametrize("part", [*PARTS, "access"])
def test_every_verb_refuses_wrong_values_on_both_stores(
    room: Postroom, tmp_path: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check_verbs(room, objects(room, tmp_path), part)


def check_verbs(room: Postroom, kinds: dict[str, Callable[[], Any]], part: str) -> None:
    refused = 0
    wrong: list[str] = []
    things = [kinds[part]()]  # all of them are kept: a sphere that is lost is aborted, some time later
    for verb, signature, hints in verbs(things[0]):
        for name, parameter in list(signature.parameters.items())[1:]:
            if parameter.kind is parameter.VAR_KEYWORD:
                continue
            check = check_of(hints.get(name, Any))
            for value in WRONG:
                args, named = calls(signature, name, value)
                things.append(kinds[part]())
                told = f"{part}.{verb}({name}={value!r})"
                must = check is not None and not check.fits(value)
                outcome = attempt(room, partial(getattr(things[-1], verb), *args, **named), must=must)
                refused += outcome is None
                wrong += [f"{told}: {outcome}"] if outcome else []
    assert wrong == []
    assert refused > 20
    assert room.journal.verify().differences == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"nope": 1},
        {"lease": "1"},
        {"attempts": 1.5},
        {"backoff": float("nan")},
        {"by": 1},
        {"order": []},
        {"over": None},
    ],
)
def test_a_policy_is_refused_by_the_name_of_what_is_wrong(room: Postroom, changes: dict[str, Any]) -> None:
    room.queues.create("q")
    before = newest(room)
    with pytest.raises(ArgumentInvalid, match=next(iter(changes))):
        room.consumers.set_policy("q", **changes)
    assert newest(room) == before

"""What is no text gets a typed error wherever text comes in, and changes nothing: halves of surrogate pairs, NUL."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.interfaces.conftest import Run, run  # noqa: F401  # the fixture
from tests.stations.world import NOTE

import postroom
from postroom import Field, Kind, MessageType
from postroom.errors import PostroomError
from postroom.interfaces.cli.main import program
from postroom.room import Postroom
from postroom.room.parts import RoomPart

HALVES = ["a\ud800", "\udcff", "\udc80\ud800", "a\udfffb"]
NUL = "a\0b"
FLOW = "domain trading\nspace Trades : [issue: string, price: int]\n"
TREE = '01 INPUT-QUEUE (TOP) PASSWORD IS "TOP"\n02 SUB-QUEUE-1 (LOW)\n99'


@pytest.fixture
def furnished(url: str, tmp_path: Path) -> Iterator[Postroom]:
    """A room with one of everything that is named."""
    for name, text in (("note.form", NOTE), ("trading.flow", FLOW), ("tree.qdl", TREE)):
        (tmp_path / name).write_text(text)
    with postroom.open(url) as room:
        room.load(*(tmp_path / name for name in ("note.form", "trading.flow", "tree.qdl")))
        room.queues.create("q", password="pw")
        room.stations.add("ann", "pw")
        room.flows.add_principal("service", "pw")
        room.client("me").subscribe("Trades")
        room.station("ann", "pw").create("NOTE", {"To": "you"})
        yield room


def verbs(room: Postroom, bad: str, folder: Path) -> dict[str, Callable[[], Any]]:
    """Every verb with every text that it takes, one of them bad."""
    ann, me, key = room.stations._station("ann"), room.client("me"), "00001.00001"
    return {
        "send to": lambda: room.send(bad, "x"),
        "send a body": lambda: room.send("q", bad),
        "send a text as XML": lambda: room.send("q", f"<a>{bad}</a>", format="xml"),
        "send JSON text": lambda: room.send("q", f'"{bad}"', format="json"),
        "send bytes": lambda: room.send("q", bad.encode(errors="surrogatepass")),
        "send a value": lambda: room.send("q", {"a": [bad]}),
        "send a name in a value": lambda: room.send("q", {bad: 1}),
        "send a format": lambda: room.send("q", "x", format=bad),
        "send a type": lambda: room.send("q", "x", type=bad),
        "send a property": lambda: room.send("q", "x", properties={"p": bad}),
        "send a property's name": lambda: room.send("q", "x", properties={bad: 1}),
        "send a key": lambda: room.send("q", "x", idempotency_key=bad),
        "send a cause": lambda: room.send("q", "x", cause=bad),
        "send many": lambda: room.send_many("q", ["x", bad]),
        "send many with a property": lambda: room.send_many("q", ["x"], properties={"p": bad}),
        "distribute": lambda: room.queues.distribute(["q"], bad),
        "distribute to": lambda: room.queues.distribute(["q", bad], "x"),
        "receive": lambda: room.receive(bad),
        "accept": lambda: room.queues.accept(bad),
        "info": lambda: list(room.queues.info(bad)),
        "history": lambda: list(room.queues.history(bad)),
        "disable": lambda: room.queues.disable(bad, password="pw"),
        "disable by": lambda: room.queues.disable("q", password=bad),
        "enable": lambda: room.queues.enable(bad, password="pw"),
        "create a queue": lambda: room.queues.create(bad),
        "create a queue's password": lambda: room.queues.create("other", password=bad),
        "set a password": lambda: room.queues.set_password("q", password=bad, old="pw"),
        "set a password by": lambda: room.queues.set_password("q", password="new", old=bad),
        "set a mode": lambda: room.queues.set_mode(bad, keep_processed=True),
        "remove a queue": lambda: room.queues.remove(bad),
        "show": lambda: room.show(bad),
        "trace": lambda: list(room.trace(bad)),
        "locate": lambda: room.journal.locate(bad),
        "open": lambda: postroom.open(folder / "new.db", actor=bad),
        "open at": lambda: postroom.open(str(folder / bad)),
        "open as a broker": lambda: postroom.open(folder / "new.db", broker=bad),
        "load": lambda: room.load(folder / f"{bad}.qdl"),
        "check": lambda: room.definitions.check(folder / f"{bad}.demaq"),
        "load by": lambda: room.load(_written(folder, "01 INPUT-QUEUE (NONE)\n99"), old=bad),
        "explain": lambda: room.definitions.explain(bad),
        "a plan of Spark": lambda: room.definitions.spark_plan(bad),
        "back up": lambda: room.backup(folder / bad),
        "restore": lambda: room.operations.restore(folder / bad),
        "archive": lambda: room.journal.archive(timedelta(0), folder / bad),
        "send a file": lambda: room.queues.send_file("q", folder / bad),
        "send a file with a key": lambda: room.queues.send_file("q", _written(folder, "x"), idempotency_key=bad),
        "export": lambda: room.queues.export("q", folder / f"{bad}.jsonl"),
        "explain an arc": lambda: room.definitions.explain_arc(bad),
        "define a type": lambda: room.definitions.define_type(MessageType(bad, (Field("a", Kind.STRING),))),
        "a field": lambda: room.definitions.define_type(MessageType("T", (Field(bad, Kind.STRING),))),
        "a client": lambda: room.client(bad),
        "a client by": lambda: room.client("service", bad),
        "a client at": lambda: room.client("me", broker=bad),
        "publish": lambda: room.publish(bad, '["a", 1]'),
        "publish an event": lambda: room.publish("Trades", [bad, 1]),
        "publish a text": lambda: room.publish("Trades", f'["{bad}", 1]'),
        "publish a named event": lambda: me.publish("Trades", {"issue": bad, "price": 1}),
        "publish many": lambda: me.publish_many("Trades", [[bad, 1]]),
        "publish with a key": lambda: me.publish("Trades", ["a", 1], idempotency_key=bad),
        "subscribe": lambda: me.subscribe(bad),
        "subscribe to a pattern": lambda: me.subscribe("Trades", f'["{bad}", p]'),
        "add a principal": lambda: room.flows.add_principal(bad, "pw"),
        "a principal's password": lambda: room.flows.add_principal("new", bad),
        "a principal's old password": lambda: room.flows.add_principal("service", "new", old=bad),
        "remove a principal": lambda: room.flows.remove_principal(bad),
        "add a node": lambda: room.stations.add_node(bad, str(folder / "node.db")),
        "add a node at": lambda: room.stations.add_node("north", str(folder / bad)),
        "add a node in a database": lambda: room.stations.add_node("north", f"postgresql://{bad}@127.0.0.1:1/x"),
        "move a node": lambda: room.stations.move_node(bad, str(folder / "node.db")),
        "add a station": lambda: room.stations.add(bad, "pw"),
        "a station's password": lambda: room.stations.add("new", bad),
        "a station's node": lambda: room.stations.add("new", "pw", bad),
        "a station": lambda: room.station(bad, "pw"),
        "a station by": lambda: room.station("ann", bad),
        "a station by token": lambda: room.station("ann", token=bad),
        "log in": lambda: room.stations.login(bad, "pw"),
        "log in by": lambda: room.stations.login("ann", bad),
        "create": lambda: ann.create(bad, {}),
        "create with": lambda: ann.create("NOTE", {"To": bad}),
        "create with a field": lambda: ann.create("NOTE", {"To": "x", bad: "x"}),
        "modify": lambda: ann.modify(key, {"Text": bad}),
        "modify a key": lambda: ann.modify(bad, {"Text": "x"}),
        "ship": lambda: ann.ship(key, bad),
        "query": lambda: ann.query(bad, scope="local"),
        "query by": lambda: ann.query("NOTE", {"Text": bad}, scope="nowhere"),
        "query in": lambda: ann.query("NOTE", {"Text": "x"}, scope=bad),
        "enable a procedure": lambda: room.stations.enable_procedure(bad),
        "a sphere's message": lambda: _in_sphere(room, lambda it: it.send("q", bad)),
        "a sphere's queue": lambda: _in_sphere(room, lambda it: it.send(bad, "x")),
        "a compensation": lambda: _in_sphere(room, lambda it: it.send("q", "x", compensation=bad)),
    }


def _in_sphere(room: Postroom, work: Callable[[Any], Any]) -> None:
    sphere = room.sphere()
    try:
        work(sphere)
    finally:
        sphere.abort()


def _written(folder: Path, text: str) -> Path:
    file = folder / "other.qdl"
    file.write_text(text)
    return file


def refused(call: Callable[[], Any]) -> bool:
    try:
        call()
    except PostroomError as error:
        str(error).encode()  # whoever tells it must be able to
        return True
    return False


@pytest.mark.parametrize("bad", [HALVES[0], HALVES[2], NUL], ids=["half", "halves", "NUL"])
def test_every_verb_refuses_what_is_no_text(furnished: Postroom, tmp_path: Path, bad: str) -> None:
    calls = verbs(furnished, bad, tmp_path)
    before = (
        furnished.definitions.hierarchy(),
        furnished.stations.all(),
        furnished.flows.principals(),
        furnished.queues.accept("q").queues,
    )
    assert [about for about, call in calls.items() if not refused(call)] == []
    after = (
        furnished.definitions.hierarchy(),
        furnished.stations.all(),
        furnished.flows.principals(),
        furnished.queues.accept("q").queues,
    )
    assert after == before
    assert furnished.journal.verify().differences == ()


AROUND = st.text("a\0\u202e'\"%_-/ \x1fé\U0001f4ee", max_size=8)
TEXTS = st.tuples(AROUND, st.characters(whitelist_categories=["Cs"]), AROUND).map("".join)


def test_any_half_of_a_surrogate_pair_is_refused_by_any_verb(furnished: Postroom, tmp_path: Path) -> None:
    names = list(verbs(furnished, "x", tmp_path))
    later = ["load by", "query by", "a sphere's message", "a sphere's queue", "a compensation"]  # they take their time

    @settings(max_examples=60, deadline=None)
    @given(about=st.sampled_from([name for name in names if name not in later]), bad=TEXTS)
    def each(about: str, bad: str) -> None:
        assert refused(verbs(furnished, bad, tmp_path)[about])

    each()


# --- every text of every verb, by its signature: also of those that are not there yet ---

#: They return at once, and look at what they were given when they are used.
LATER = {"handle", "queue", "seen_by", "session", "work", "worker", "mail_server"}
#: They run for long, or evaluate on Spark, whose master and settings have their own test.
RUNNING = {"close", "run", "run_senders", "run_totals", "spark_plan", "sql", "follow", "watch"}
#: What it is asked for is not there, or was not needed.
NO_MATTER = {"is_signed_in", "inventory", "enable", "set_password", "redrive"}
EXAMPLES = {"queue": "q", "key": "00001.00001", "before": timedelta(days=1), "names": "q"}


def example(parameter: inspect.Parameter, folder: Path) -> Any:
    """Something that a parameter may be."""
    kinds = str(parameter.annotation)
    known: dict[str, Any] = {"timedelta": timedelta(days=1), "datetime": datetime.now(UTC), "bool": False, "float": 1.0}
    more = {
        "PathLike": folder / "x",
        "File": folder / "x",
        "Callable": print,
        "Sequence": ["q"],
        "Mapping": {},
        "str": "x",
        "Any": "x",
    }
    if parameter.name in EXAMPLES:
        return EXAMPLES[parameter.name]
    return next((value for kind, value in (known | more).items() if kind in kinds), 1)


def bad_ones(parameter: inspect.Parameter, bad: str) -> list[Any]:
    """What is no text, as a parameter takes it."""
    kinds = str(parameter.annotation)
    if parameter.name in ("master", "conf") or not any(kind in kinds for kind in ("str", "Any", "PathLike", "File")):
        return []
    if "Mapping" in kinds:
        return [{"a": bad}, {bad: "a"}]
    if "Sequence" in kinds or "Iterable" in kinds:
        return [[bad]]
    return [bad]


def called(verb: Callable[..., Any], about: str, value: Any, folder: Path) -> Any:
    """Call it with one argument that is given, and something for all others that it must have."""
    words, options = [], {}
    for name, parameter in inspect.signature(verb).parameters.items():
        if name == about:
            given = value
        elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD:
            given = example(parameter, folder)
        else:
            continue
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL) or (
            parameter.kind is parameter.POSITIONAL_OR_KEYWORD and parameter.default is parameter.empty
        ):
            words.append(given)
        else:
            options[name] = given
    answer = verb(*words, **options)
    return list(answer) if isinstance(answer, Iterator) else answer


def parts(room: Postroom) -> dict[str, Any]:
    every = {name: getattr(room, name) for name in dir(Postroom) if isinstance(getattr(room, name), RoomPart)}
    more = {"station": room.stations._station("ann"), "client": room.client("me"), "session": room.queues.session()}
    return {"room": room, **every, **more}


@pytest.mark.parametrize("bad", [HALVES[0], pytest.param(NUL, marks=pytest.mark.slow)], ids=["half", "NUL"])
def test_every_text_of_every_verb_is_looked_at(furnished: Postroom, tmp_path: Path, bad: str) -> None:
    accepted, untyped, count = [], [], 0
    for of, part in parts(furnished).items():
        for name in {name for name in dir(type(part)) if not name.startswith("_")} - LATER - RUNNING:
            verb = getattr(part, name)
            if not callable(verb) or not type(part).__module__.startswith("postroom"):
                continue
            for about, parameter in inspect.signature(verb).parameters.items():
                if parameter.kind is parameter.VAR_KEYWORD:
                    continue
                for value in bad_ones(parameter, bad):
                    count += 1
                    try:
                        called(verb, about, value, tmp_path)
                    except PostroomError as error:
                        str(error).encode()
                    except Exception as error:
                        untyped.append((f"{of}.{name}({about})", repr(error)))
                    else:
                        accepted.append(f"{of}.{name}({about})")
    assert untyped == []
    assert [said for said in accepted if not any(f".{name}(" in said for name in NO_MATTER)] == []
    assert count > 200
    assert furnished.journal.verify().differences == ()


# --- commands ---


def commands(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*before, name))
        else:
            yield (*before, name)


SOME = {"send", "receive", "queue", "principal", "station", "create", "publish", "load"}
LONG = {"run", "top", "try", "compensate", "query", "sql"}


@pytest.mark.parametrize("some", ["some", pytest.param("all", marks=pytest.mark.slow)])
def test_every_command_answers_bytes_that_are_no_text_with_an_error(
    run: Run,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    some: str,
) -> None:
    """An argument of any bytes comes as halves of surrogate pairs; what is said of it can be printed."""
    monkeypatch.setenv("POSTROOM_PASSWORD", "pw")
    assert run("queue", "create", "q").code == 0
    bad = os.fsdecode(b"\xff\xfe")
    for command in commands(typer.main.get_command(program())):
        if not LONG & {*command} and (some == "all" or command[0] in SOME):
            told = run(*command, bad, bad)
            assert told.code != 0, command
            assert told.err.encode(), command
    for words in (["send", "q", "--body", bad], ["send", bad, "--body", "x"], ["principal", "add", bad]):
        assert run(*words).err.startswith("postroom: "), words
    monkeypatch.setenv("POSTROOM_PASSWORD", bad)
    assert run("principal", "add", "ann").err.startswith("postroom: argument-invalid: password")
    assert run("station", "add", "bob").err.startswith("postroom: argument-invalid: password")
    assert run("accept", "q").out.split()[-2:] == ["0", "0"]
